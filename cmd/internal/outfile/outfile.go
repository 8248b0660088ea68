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
	"sync"
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

// State is what a write that failed has left.
type State int

// The states.
const (
	// Unwritten: no file was made.
	Unwritten State = iota
	// Unchanged: the file holds what it held before.
	Unchanged
	// Incomplete: the file, device or pipe may hold a part of the content.
	Incomplete
)

// Error is a write that failed.
type Error struct {
	Name  string
	State State
	Err   error
}

func (e *Error) Error() string {
	line := fmt.Sprintf("write %s: %s", e.Name, reason(e.Err))
	if e.State == Incomplete {
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
	errStopped  = errors.New("the program ends")
	errSeveral  = errors.New("it has several names")
)

// Write writes a file: into a new one that takes its name at the end, with the mode and the owner of one that
// exists, or the permissions less the umask. Where nothing can be created beside a file, or not with its owner,
// and where it has several names, it is written over. An error is an *Error.
func Write(ctx context.Context, name string, data []byte, perm fs.FileMode) error {
	state := Unwritten
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		err = ErrFolder
	case err == nil && !info.Mode().IsRegular():
		state, err = stream(ctx, name, info, data)
	case err == nil || errors.Is(err, fs.ErrNotExist):
		state, err = whole(name, info, data, perm)
	}
	if err != nil {
		return &Error{name, state, err}
	}
	return nil
}

// whole writes a regular file; info is nil if it does not exist.
func whole(name string, info fs.FileInfo, data []byte, perm fs.FileMode) (State, error) {
	target, err := followed(name)
	if err != nil {
		return Unwritten, err
	}
	state := Unwritten
	if info != nil {
		state = Unchanged
		f, err := openExisting(target) // Renaming would ask for no permission to write.
		if err != nil {
			return state, err
		}
		defer f.Close() //nolint:errcheck // What is written to it is synced.
	}
	t, err := newTemporary(target, info, perm)
	if err != nil {
		if info == nil || !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errSeveral) {
			return state, err
		}
		return Incomplete, over(target, data)
	}
	defer t.discard()
	if _, err = t.file.Write(data); err == nil {
		err = t.file.Sync()
	}
	if err != nil {
		return state, err
	}
	err = t.rename(target)
	if info != nil && (errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV)) { // It is a mount point.
		return Incomplete, over(target, data)
	}
	return state, err
}

// over writes over a file that exists.
func over(name string, data []byte) error {
	unfinished.Lock()
	defer unfinished.Unlock()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// followed is the name that links lead to, of a file that need not exist.
func followed(name string) (string, error) {
	for range 40 { // As many as the kernel follows (MAXSYMLINKS).
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		to, err := os.Readlink(name)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			dir, _ := filepath.Split(name) // Not cleaned: a folder in it may be a link itself.
			to = dir + to
		}
		name = to
	}
	return "", syscall.ELOOP
}

// folder is where a name stands.
func folder(name string) string {
	if dir, _ := filepath.Split(name); dir != "" {
		return dir
	}
	return "."
}

// temporary is a file under way to its name.
type temporary struct {
	file *os.File
	name string
}

// unfinished are the names of temporary files. Its lock is held while a file is written over.
var unfinished = struct {
	sync.Mutex
	names   map[string]bool
	stopped bool
}{names: map[string]bool{}}

// newTemporary makes a file beside another, with its mode and owner if that exists.
func newTemporary(beside string, info fs.FileInfo, perm fs.FileMode) (*temporary, error) {
	t := &temporary{name: folder(beside) + ".gpudoctor-" + rand.Text()[:12]}
	if folder(beside) == "." {
		t.name = filepath.Base(t.name)
	}
	unfinished.Lock()
	defer unfinished.Unlock()
	if unfinished.stopped {
		return nil, errStopped
	}
	if info != nil {
		perm = Private // Until it has the mode of the other.
	}
	var err error
	if t.file, err = os.OpenFile(t.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm); err != nil {
		return nil, err
	}
	unfinished.names[t.name] = true
	if info == nil {
		return t, nil
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if ok && s.Nlink > 1 {
		err = errSeveral
	} else if ok {
		err = t.file.Chown(int(s.Uid), int(s.Gid))
	}
	if err = errors.Join(err, t.file.Chmod(info.Mode().Perm())); err != nil {
		t.remove()
		return nil, err
	}
	return t, nil
}

// rename gives the file its name.
func (t *temporary) rename(to string) error {
	unfinished.Lock()
	defer unfinished.Unlock()
	if unfinished.stopped {
		return errStopped
	}
	err := os.Rename(t.name, to)
	if err == nil {
		delete(unfinished.names, t.name)
	}
	return err
}

// discard closes the file, and removes it if it has not got its name.
func (t *temporary) discard() {
	unfinished.Lock()
	defer unfinished.Unlock()
	t.remove()
}

func (t *temporary) remove() {
	_ = t.file.Close() // What was written is synced.
	if unfinished.names[t.name] {
		_ = os.Remove(t.name) // Nothing more can be done.
		delete(unfinished.names, t.name)
	}
}

// Abandon removes what is unfinished, for good: the program is about to exit. A file that is written over is
// finished first. It waits no longer than wait, for a file system may hang.
func Abandon(wait time.Duration) {
	for end := time.Now().Add(wait); !unfinished.TryLock(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return
		}
	}
	defer unfinished.Unlock()
	unfinished.stopped = true
	for name := range unfinished.names {
		_ = os.Remove(name) // There is nobody left to tell.
	}
}

// stream writes to a device or a FIFO, which has to have a reader.
func stream(ctx context.Context, name string, info fs.FileInfo, data []byte) (State, error) {
	var f *os.File
	for end := time.Now().Add(deadline.Reader); ; time.Sleep(20 * time.Millisecond) {
		var err error
		f, err = os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
		if err == nil {
			break
		}
		switch waits := info.Mode()&fs.ModeNamedPipe != 0 && errors.Is(err, syscall.ENXIO); {
		case !waits:
			return Unchanged, err
		case ctx.Err() != nil:
			return Unchanged, context.Cause(ctx)
		case time.Now().After(end):
			return Unchanged, errNoReader
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetWriteDeadline(time.Now()) }) // A device has none.
	defer stop()
	n, err := f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		if n == 0 {
			return Unchanged, err
		}
		return Incomplete, err
	}
	return Unchanged, nil
}

// Check reports, before any work is done, why a file could not be written.
func Check(name string) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		target, err := followed(name)
		if err != nil {
			return err
		}
		return mayCreate(folder(target))
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
	if name, err = followed(name); err != nil {
		return Place{}, err
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
