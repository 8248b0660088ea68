// Package outfile writes a file whole or not at all. What exists keeps its
// mode, its owner, its attributes and its links; what does not appears with all
// of its content at once.
package outfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

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
	// Incomplete: the file, device or pipe holds a part of the content.
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

// Errors of names that cannot be written to.
var (
	ErrFolder = errors.New("is a folder")
	// ErrForeignLink is what the kernel's fs.protected_symlinks forbids: in a
	// folder that anyone may write to, somebody else decides where the link leads.
	ErrForeignLink = errors.New("the link belongs to another user, in a folder that anyone may write to")
	errNoReader    = errors.New("no process reads the FIFO")
	errRestless    = errors.New("the file keeps appearing and disappearing")
)

// Testing is for tests alone, and is set before anything is written.
var Testing struct {
	// Step is called between the steps of a write, with the name of the step
	// that was made.
	Step func(string)
	// Named makes every new file have a name while it is written, as on file
	// systems that know no other.
	Named bool
}

func step(name string) {
	if Testing.Step != nil {
		Testing.Step(name)
	}
}

// Write writes a file. One that does not exist gets the permissions, less the
// umask, and a link that leads nowhere is followed. One that exists is replaced
// by a new file only if nobody can distinguish the two; otherwise it is written in
// place. An error is an *Error.
func Write(ctx context.Context, name string, data []byte, perm fs.FileMode) error {
	for range 3 { // The file may appear or vanish between two looks.
		if err := context.Cause(ctx); err != nil {
			return &Error{name, Unchanged, err}
		}
		state, err := write(ctx, name, data, perm)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errAgain) {
			return &Error{name, state, err}
		}
	}
	return &Error{name, Unchanged, errRestless}
}

// errAgain says that the file appeared or vanished.
var errAgain = errors.New("look again")

func write(ctx context.Context, name string, data []byte, perm fs.FileMode) (State, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		target, err := creatable(name)
		if err == nil {
			err = create(target, data, perm)
		}
		return Unwritten, err
	case err != nil:
		return Unchanged, err
	case info.IsDir():
		return Unchanged, ErrFolder
	case info.Mode().IsRegular():
		return replace(name, data)
	}
	return stream(ctx, name, info, data)
}

// maxLinks is how many links are followed, as by the kernel (MAXSYMLINKS).
const maxLinks = 40

// creatable follows links to the name under which open(2) would create the
// file. The path is not cleaned: a folder in it may be a link itself.
func creatable(name string) (string, error) {
	for range maxLinks {
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		if foreignLink(info, folder(name)) {
			return "", ErrForeignLink
		}
		target, err := os.Readlink(name)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = folder(name) + string(filepath.Separator) + target
		}
		name = target
	}
	return "", syscall.ELOOP
}

// folder is where a name stands.
func folder(name string) string {
	dir, _ := filepath.Split(name)
	if dir == "" {
		return "."
	}
	return dir
}

// create makes a file that does not exist.
func create(name string, data []byte, perm fs.FileMode) error {
	t, err := newTemporary(folder(name), perm)
	if err != nil {
		return err
	}
	defer t.discard()
	if err := t.fill(data); err != nil {
		return err
	}
	err = t.publish(name)
	if errors.Is(err, fs.ErrExist) {
		return errAgain
	}
	return err
}

// replace writes a regular file that exists.
func replace(name string, data []byte) (State, error) {
	f, err := openExisting(name)
	if err != nil {
		return Unchanged, err
	}
	defer f.Close() //nolint:errcheck // What was written is synced.
	info, err := f.Stat()
	if err != nil {
		return Unchanged, err
	}
	if !info.Mode().IsRegular() {
		return Unchanged, errAgain
	}
	step("opened")
	if swap(name, f, info, data) {
		return Unchanged, nil
	}
	return inPlace(f, info.Size(), data)
}

// openExisting opens a file that exists for writing, and for reading if that is
// allowed. That it would be created makes the kernel apply fs.protected_regular,
// as it does to a shell's redirection.
func openExisting(name string) (*os.File, error) {
	const how = os.O_CREATE | syscall.O_NONBLOCK | syscall.O_NOCTTY
	f, err := os.OpenFile(name, os.O_RDWR|how, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		f, err = os.OpenFile(name, os.O_WRONLY|how, 0o600)
	}
	return f, err
}

// swap replaces an existing file by a new one if nobody can distinguish the two. If it
// reports false, nothing has changed.
func swap(name string, f *os.File, info fs.FileInfo, data []byte) bool {
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return false
	}
	if at, err := os.Lstat(path); err != nil || !os.SameFile(at, info) {
		return false
	}
	t, err := newTemporary(folder(path), Private)
	if err != nil {
		return false
	}
	defer t.discard()
	return t.f.Chmod(info.Mode().Perm()) == nil && alike(f, t.f) && t.fill(data) == nil && t.replace(path) == nil
}

// maxKept is the largest file whose content is kept in memory while it is
// written over: reports and recordings are far smaller.
const maxKept = 64 << 20

// inPlace writes over a file. If it fails, the old content is restored.
func inPlace(f *os.File, size int64, data []byte) (State, error) {
	if err := reserve(f, int64(len(data))); err != nil {
		_ = f.Truncate(size) // Gives back what was reserved.
		return Unchanged, err
	}
	var old []byte
	kept := false
	if size <= maxKept {
		old = make([]byte, size)
		n, err := f.ReadAt(old, 0)
		kept = int64(n) == size && (err == nil || errors.Is(err, io.EOF))
	}
	step("kept")
	state := Unchanged
	err := guarded(func() error {
		n, err := overwrite(f, data)
		if err != nil && (!kept || restore(f, old, n) != nil) {
			state = Incomplete
		}
		return err
	})
	return state, err
}

// overwrite makes data the content of a file. If it fails, so many bytes of the
// old content may be lost.
func overwrite(f *os.File, data []byte) (lost int, err error) {
	// WriteAt would not count the part that was written before an error.
	n, err := f.Write(data)
	if err != nil {
		return n, err
	}
	step("overwritten")
	if err := f.Truncate(int64(len(data))); err != nil {
		return n, err
	}
	step("truncated")
	return maxKept, f.Sync()
}

// restore makes old the content of a file again, of which so many bytes are
// lost. It needs no space that the file did not have.
func restore(f *os.File, old []byte, lost int) error {
	if _, err := f.WriteAt(old[:min(lost, len(old))], 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(old))); err != nil {
		return err
	}
	return f.Sync()
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
		target, err := creatable(name)
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
		return &FolderError{strings.TrimSuffix(dir, string(filepath.Separator)), err}
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
	if name, err = creatable(name); err != nil {
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

// temporary is a file under way to its name.
type temporary struct {
	f *os.File
	// name is empty where it has none.
	name string
}

// unfinished is what would be left if the program ended now. Its lock is held
// while a file is written in place, and while a temporary file gets a name, loses
// it or is renamed.
var unfinished = struct {
	sync.Mutex
	names   map[string]bool
	stopped bool
}{names: map[string]bool{}}

var errStopped = errors.New("the program ends")

// Abandon removes what is unfinished, for good: the program is about to exit. A
// file that is written in place is finished first. It waits no longer than wait,
// for a file system may hang.
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

// guarded does what Abandon has to wait for, unless it was called.
func guarded(do func() error) error {
	unfinished.Lock()
	defer unfinished.Unlock()
	if unfinished.stopped {
		return errStopped
	}
	return do()
}

// appear does what makes the temporary file of this name, vanish what removes
// or renames it.
func appear(name string, do func() error) error {
	return guarded(func() error {
		err := do()
		if err == nil {
			unfinished.names[name] = true
		}
		return err
	})
}

func vanish(name string, do func() error) error {
	return guarded(func() error {
		err := do()
		if err == nil {
			delete(unfinished.names, name)
		}
		return err
	})
}

// fill writes the content.
func (t *temporary) fill(data []byte) error {
	step("made")
	if err := fits(int64(len(data))); err != nil {
		return err
	}
	if _, err := t.f.Write(data); err != nil {
		return err
	}
	step("filled")
	return t.f.Sync()
}

// discard closes the file and removes it if it is still a temporary one.
func (t *temporary) discard() {
	_ = t.f.Close() // What was written is synced.
	if t.name != "" {
		_ = vanish(t.name, func() error { return os.Remove(t.name) }) // Nothing more can be done.
	}
}

// newNamed makes a temporary file that has a name from the beginning.
func newNamed(dir string, perm fs.FileMode) (*temporary, error) {
	t := &temporary{name: temporaryName(dir)}
	err := appear(t.name, func() (err error) {
		t.f, err = os.OpenFile(t.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// replace renames the file to a name that exists.
func (t *temporary) replace(name string) error {
	if t.name == "" {
		as := temporaryName(folder(name))
		if err := appear(as, func() error { return t.link(as) }); err != nil {
			return err
		}
		t.name = as
	}
	step("named")
	err := vanish(t.name, func() error { return os.Rename(t.name, name) })
	if err == nil {
		t.name = ""
		step("renamed")
	}
	return err
}

// publish gives the file a name that does not exist.
func (t *temporary) publish(name string) error {
	if t.name == "" {
		err := t.link(name)
		step("linked")
		return err
	}
	err := vanish(t.name, func() error { return renameNew(t.name, name) })
	if err == nil {
		t.name = ""
		step("renamed")
	}
	return err
}
