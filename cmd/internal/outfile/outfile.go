// Package outfile writes files that are never left half-written where that can be helped.
package outfile

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
)

// The permissions of a file that did not exist, before the umask.
const (
	Shared  fs.FileMode = 0o666
	Private fs.FileMode = 0o600
)

// Error is a write that failed.
type Error struct {
	Name string
	// Incomplete is true where the file, device or pipe may hold a part of the content; otherwise nothing was written.
	Incomplete bool
	Err        error
}

func (e *Error) Error() string {
	line := fmt.Sprintf("write %s: %s", e.Name, reason(e.Err))
	if e.Incomplete {
		line += "; the file is incomplete"
	}
	return line
}

func (e *Error) Unwrap() error { return e.Err }

// reason is an error without the names of system calls and temporary files.
func reason(err error) string {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	return err.Error()
}

// Errors of files that are not written.
var (
	ErrFolder   = errors.New("is a folder")
	errNoReader = errors.New("no process reads the FIFO")
	// errInPlace is a file that no other may replace.
	errInPlace = errors.New("it has to be written over")
)

// Write writes a file: into a new one that takes its name at the end, with the mode and the owner of one that
// exists, or the permissions less the umask. Where nothing can be created beside a file, or not with its owner,
// and where it has several names, it is written over. An error is an *Error.
func Write(ctx context.Context, name string, data []byte, perm fs.FileMode) error {
	var incomplete bool
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		err = ErrFolder
	case err == nil && !info.Mode().IsRegular():
		incomplete, err = stream(ctx, name, info, data)
	case err == nil || errors.Is(err, fs.ErrNotExist):
		writing.Lock()
		defer writing.Unlock()
		if err = replace(name, info, data, perm); errors.Is(err, errInPlace) {
			incomplete, err = over(name, data, perm)
		}
	}
	if err != nil {
		return &Error{name, incomplete, err}
	}
	return nil
}

// writing is held while a regular file is written, and temporary is the name that its content has until then.
var (
	writing   sync.Mutex
	temporary atomic.Pointer[string]
)

// replace writes a new file, which takes the name of the old one. old is nil if there is none.
func replace(name string, old fs.FileInfo, data []byte, perm fs.FileMode) error {
	if old != nil {
		f, err := openExisting(name) // Renaming would ask for no permission to write.
		if err == nil {
			err = f.Close()
		}
		if err == nil {
			name, err = filepath.EvalSymlinks(name)
		}
		if err != nil {
			return err
		}
		perm = Private // Until it has the mode of the old one.
	} else if _, err := os.Lstat(name); err == nil { // A link that leads nowhere.
		return errInPlace
	}
	dir, _ := filepath.Split(name) // Not cleaned: a folder in it may be a link.
	draft := dir + ".gpudoctor-" + rand.Text()[:12]
	temporary.Store(&draft)
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return inPlace(err, old, fs.ErrPermission)
	}
	defer os.Remove(draft) //nolint:errcheck // It is there only if something else failed.
	if old != nil {
		if err := liken(f, old); err != nil {
			return errors.Join(inPlace(err, old, fs.ErrPermission), f.Close())
		}
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return inPlace(os.Rename(draft, name), old, syscall.EBUSY, syscall.EXDEV) // As at a mount point.
}

// liken gives a new file the mode and the owner of an old one.
func liken(f *os.File, old fs.FileInfo) error {
	if s, ok := old.Sys().(*syscall.Stat_t); ok {
		if s.Nlink > 1 {
			return errInPlace
		}
		if err := f.Chown(int(s.Uid), int(s.Gid)); err != nil {
			return err
		}
	}
	return f.Chmod(old.Mode().Perm())
}

// inPlace is the error as it is, unless it is one of some for which an old file has to be written over.
func inPlace(err error, old fs.FileInfo, some ...error) error {
	if old != nil && slices.ContainsFunc(some, func(one error) bool { return errors.Is(err, one) }) {
		return errInPlace
	}
	return err
}

// over writes over a file.
func over(name string, data []byte, perm fs.FileMode) (incomplete bool, err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return false, err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	return err != nil, err
}

// Abandon lets the file that is being written be finished, and none be begun: the program is about to exit. It waits
// no longer than wait, for a file system may hang, and removes what is unfinished then.
func Abandon(wait time.Duration) {
	for end := time.Now().Add(wait); !writing.TryLock(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			if draft := temporary.Load(); draft != nil {
				_ = os.Remove(*draft) // There is nobody left to tell.
			}
			return
		}
	}
}

// stream writes to a device or a FIFO, which has to have a reader.
func stream(ctx context.Context, name string, info fs.FileInfo, data []byte) (incomplete bool, err error) {
	var f *os.File
	for end := time.Now().Add(deadline.Reader); ; time.Sleep(20 * time.Millisecond) {
		f, err = os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
		if err == nil {
			break
		}
		switch waits := info.Mode()&fs.ModeNamedPipe != 0 && errors.Is(err, syscall.ENXIO); {
		case !waits:
			return false, err
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case time.Now().After(end):
			return false, errNoReader
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetWriteDeadline(time.Now()) }) // A device has none.
	defer stop()
	n, err := f.Write(data)
	err = errors.Join(err, f.Close())
	return err != nil && n > 0, err
}

// Check reports, before any work is done, why a file could not be written.
func Check(name string) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return mayCreate(folder(name))
	case err != nil:
		return err
	case info.IsDir():
		return ErrFolder
	case !info.Mode().IsRegular():
		return accessible(name)
	}
	f, err := openExisting(name)
	if err != nil {
		return err
	}
	return f.Close()
}

// openExisting opens a file for writing. That it would be created makes the kernel apply fs.protected_regular, as it
// does to a shell's redirection.
func openExisting(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE, Private)
}

// accessible reports no fault where this user may write.
func accessible(at string) error {
	return unix.Faccessat(unix.AT_FDCWD, at, unix.W_OK, unix.AT_EACCESS)
}

// folder is where a name stands.
func folder(name string) string {
	if dir, _ := filepath.Split(name); dir != "" {
		return dir
	}
	return "."
}

// FolderError is a folder in which no file can be created.
type FolderError struct {
	Folder string
	Err    error
}

func (e *FolderError) Error() string { return e.Folder + ": " + reason(e.Err) }

func (e *FolderError) Unwrap() error { return e.Err }

func mayCreate(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err == nil {
		err = accessible(dir)
	}
	if err != nil {
		return &FolderError{filepath.Clean(dir), err}
	}
	return nil
}

// Place is where a file is or would be created, however its name is spelled.
type Place struct {
	info fs.FileInfo // The file, or the folder that it would be created in.
	base string      // Its name there, if it does not exist.
}

// Find returns the place of a file.
func Find(name string) (Place, error) {
	info, err := os.Stat(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return Place{info: info}, err
	}
	info, err = os.Stat(folder(name))
	return Place{info, filepath.Base(name)}, err
}

// PlaceOf returns the place of an open file.
func PlaceOf(f *os.File) (Place, error) {
	info, err := f.Stat()
	return Place{info: info}, err
}

// Same reports whether two places are the same. Devices, such as /dev/null, take
// what is written by any number of writers.
func (p Place) Same(as Place) bool {
	return p.info != nil && as.info != nil && p.base == as.base && os.SameFile(p.info, as.info) &&
		p.info.Mode()&fs.ModeDevice == 0
}
