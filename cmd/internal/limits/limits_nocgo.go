//go:build !linux || !cgo

package limits

import "os"

// Stderr is where standard error goes.
func Stderr() *os.File { return os.Stderr }
