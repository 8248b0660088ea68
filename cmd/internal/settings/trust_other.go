//go:build !unix

package settings

import "io/fs"

const noFollow = 0

// trusted trusts no file: who owns it cannot be told.
func trusted(fs.FileInfo) bool { return false }
