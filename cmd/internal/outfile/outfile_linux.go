package outfile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// accessible reports no fault where this user may write.
func accessible(at string) error {
	return unix.Faccessat(unix.AT_FDCWD, at, unix.W_OK, unix.AT_EACCESS)
}

// foreignLink reports whether the kernel would refuse to follow a link if
// fs.protected_symlinks is set (Documentation/admin-guide/sysctl/fs.rst), which
// is not the default of every kernel.
func foreignLink(link fs.FileInfo, dir string) bool {
	at, err := os.Stat(dir)
	if err != nil {
		return false
	}
	l, ok := link.Sys().(*syscall.Stat_t)
	d, also := at.Sys().(*syscall.Stat_t)
	if !ok || !also {
		return false
	}
	const sharedByAll = unix.S_ISVTX | unix.S_IWOTH
	return d.Mode&sharedByAll == sharedByAll && int(l.Uid) != os.Geteuid() && l.Uid != d.Uid
}

// newTemporary makes a file without a name, so that nothing is left whatever
// ends the program; or one with a name where the file system knows no other, or
// where /proc, through which it would get its name, is not there.
func newTemporary(dir string, perm fs.FileMode) (*temporary, error) {
	if Testing.Named {
		return newNamed(dir, perm)
	}
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, uint32(perm))
	if err != nil { // EOPNOTSUPP, EISDIR or ENOENT (open(2)); or else it happens again.
		return newNamed(dir, perm)
	}
	t := &temporary{f: os.NewFile(uintptr(fd), dir)}
	if _, err := os.Lstat(t.inProc()); err != nil {
		t.discard()
		return newNamed(dir, perm)
	}
	return t, nil
}

// temporaryName is a name in a folder that no file has.
func temporaryName(dir string) string {
	return strings.TrimSuffix(dir, "/") + "/.gpudoctor-" + rand.Text()[:12]
}

// inProc is the name of the file in /proc.
func (t *temporary) inProc() string { return fmt.Sprintf("/proc/self/fd/%d", t.f.Fd()) }

// link gives the file a name.
func (t *temporary) link(name string) error {
	return unix.Linkat(unix.AT_FDCWD, t.inProc(), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
}

// renameNew renames a file to a name that no file has.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// alike reports whether a file and the one that is to replace it have the same
// owner, mode, attributes and flags, and whether the file has no other name.
func alike(f, with *os.File) bool {
	var a, b unix.Stat_t
	if unix.Fstat(int(f.Fd()), &a) != nil || unix.Fstat(int(with.Fd()), &b) != nil {
		return false
	}
	if a.Uid != b.Uid || a.Gid != b.Gid || a.Mode != b.Mode || a.Dev != b.Dev || a.Nlink != 1 {
		return false
	}
	x, err := attributes(f)
	if err != nil {
		return false
	}
	y, err := attributes(with)
	return err == nil && x == y
}

// attributes are a file's extended attributes, which hold ACLs and security
// labels, and its flags (ioctl_iflags(2)), as one text.
func attributes(f *os.File) (string, error) {
	fd := int(f.Fd())
	list := make([]byte, 64<<10) // XATTR_LIST_MAX (limits.h).
	n, err := unix.Flistxattr(fd, list)
	if err != nil && !errors.Is(err, unix.ENOTSUP) {
		return "", err
	}
	all := map[string]string{}
	for name := range bytes.SplitSeq(list[:max(n, 0)], []byte{0}) {
		if len(name) == 0 {
			continue
		}
		value := make([]byte, 64<<10) // XATTR_SIZE_MAX (limits.h).
		n, err := unix.Fgetxattr(fd, string(name), value)
		if err != nil {
			return "", err
		}
		all[string(name)] = string(value[:n])
	}
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		flags = 0 // The file system has none.
	}
	return fmt.Sprintf("%q %#x", all, flags), nil // Maps are printed in order of their keys.
}

// fits reports whether the process may write a file of this size (setrlimit(2)).
// The kernel would take the part that is allowed.
func fits(size int64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err == nil && uint64(size) > limit.Cur {
		return unix.EFBIG
	}
	return nil
}

// reserve makes sure that a file can grow to a size before it is written over.
func reserve(f *os.File, size int64) error {
	if err := fits(size); err != nil || size == 0 {
		return err
	}
	switch err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size); {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EFBIG):
		return err
	}
	return nil // Reserved, or the file system does not say: writing will tell.
}
