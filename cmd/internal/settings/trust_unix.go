//go:build unix

package settings

import (
	"io/fs"
	"os"
	"syscall"
)

// noFollow makes opening a link fail.
const noFollow = syscall.O_NOFOLLOW

// trusted reports whether a file belongs to this user or to root, and whether nobody but
// its owner and its group may write to it.
func trusted(info fs.FileInfo) bool {
	const othersWrite = 0o002
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode().Perm()&othersWrite != 0 {
		return false
	}
	return stat.Uid == 0 || int(stat.Uid) == os.Geteuid()
}
