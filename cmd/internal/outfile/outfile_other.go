//go:build !linux

package outfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// accessible reports no fault: whether this user may write is known once it is
// tried.
func accessible(string) error { return nil }

func foreignLink(fs.FileInfo, string) bool { return false }

func newTemporary(dir string, perm fs.FileMode) (*temporary, error) { return newNamed(dir, perm) }

func temporaryName(dir string) string {
	return filepath.Join(dir, ".gpudoctor-"+rand.Text()[:12])
}

func (t *temporary) link(string) error { return errors.ErrUnsupported }

func renameNew(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// alike reports no two files alike: what exists is written in place.
func alike(_, _ *os.File) bool { return false }

func fits(int64) error { return nil }

func reserve(*os.File, int64) error { return nil }
