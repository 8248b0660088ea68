package stdio

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/files"
)

// The permissions of a file that did not exist, before the umask.
const (
	Shared  fs.FileMode = 0o666
	Private fs.FileMode = 0o600
)

// ErrFolder is the error for a folder, which is no file to write.
var ErrFolder = errors.New("is a folder")

// WriteFile writes a file: into a new one that takes its name at the end, with the mode and the owner of one that exists, or
// the permissions less the umask. What is no regular file, and a file that no other may replace (in a folder of another
// user, or bound to its name), is written over.
func WriteFile(ctx context.Context, name string, data []byte, perm fs.FileMode) error {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		err = ErrFolder
	case err == nil && !info.Mode().IsRegular():
		err = over(ctx, name, data, perm)
	case err == nil || errors.Is(err, fs.ErrNotExist):
		writing.Lock()
		defer writing.Unlock()
		err = plain(replace(name, info, data, perm))
		if errors.Is(err, errLink) || info != nil && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EBUSY)) {
			err = over(context.WithoutCancel(ctx), name, data, perm)
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// plain is an error without the names of system calls and temporary files.
func plain(err error) error {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	return err
}

// writing is held while a regular file is written, and temporary is the name that its content has until then.
var (
	writing   sync.Mutex
	temporary atomic.Pointer[string]
)

// errLink is a link that leads nowhere: what it names is created by writing.
var errLink = errors.New("a link that leads nowhere")

// replace writes a new file, which takes the name of the old one. old is nil if there is none.
func replace(name string, old fs.FileInfo, data []byte, perm fs.FileMode) error {
	if old != nil {
		if err := CheckFile(name); err != nil { // Renaming would ask for no permission to write.
			return err
		}
		resolved, err := filepath.EvalSymlinks(name)
		if err != nil {
			return err
		}
		name, perm = resolved, Private // Until it has the mode of the old one.
	} else if _, err := os.Lstat(name); err == nil {
		return errLink
	}
	f, err := create(name, perm)
	if err != nil {
		return err
	}
	draft := f.Name()
	temporary.Store(&draft)
	defer os.Remove(draft) //nolint:errcheck // It is there only if something else failed.
	if old != nil {
		if s, ok := old.Sys().(*syscall.Stat_t); ok {
			err = f.Chown(int(s.Uid), int(s.Gid))
		}
		err = errors.Join(err, f.Chmod(old.Mode().Perm()))
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(draft, name)
}

// create creates a file with a name of its own beside another. The folder is not cleaned: a part of it may be a link.
func create(beside string, perm fs.FileMode) (*os.File, error) {
	dir, _ := filepath.Split(beside)
	return os.OpenFile(dir+".gpudoctor-"+rand.Text()[:12], os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
}

// over writes over what is there: a file, or a device or FIFO, which has to have a reader.
func over(ctx context.Context, name string, data []byte, perm fs.FileMode) error {
	f, err := files.Within(ctx, deadline.Reader, func() (*os.File, error) {
		return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOCTTY, perm)
	})
	if err != nil {
		return plain(err)
	}
	_, err = files.Within(ctx, 0, func() (int, error) {
		n, err := f.Write(data)
		return n, errors.Join(err, f.Close())
	})
	if err != nil {
		return fmt.Errorf("%w; the file may be incomplete", plain(err))
	}
	return nil
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

// CheckFile reports, before any work is done, why a file could not be written.
func CheckFile(name string) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f, err := create(name, Private)
		if err != nil {
			return fmt.Errorf("folder %s: %w", filepath.Dir(name), plain(err))
		}
		return errors.Join(f.Close(), os.Remove(f.Name()))
	case err != nil:
		return plain(err)
	case info.IsDir():
		return ErrFolder
	case !info.Mode().IsRegular():
		return nil // Opening it may wait.
	}
	// That it would be created makes the kernel apply fs.protected_regular, as it does to a shell's redirection.
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, Private)
	if err != nil {
		return plain(err)
	}
	return f.Close()
}

// SameFile reports whether two names are those of one file, however they are spelled, that exists or would be created.
// Devices, such as /dev/null, take what is written by any number of writers.
func SameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX == nil && errY == nil {
		return os.SameFile(x, y) && x.Mode()&fs.ModeDevice == 0
	}
	dirA, baseA := filepath.Split(a)
	dirB, baseB := filepath.Split(b)
	x, folderX := os.Stat(dirA + ".")
	y, folderY := os.Stat(dirB + ".")
	return errX != nil && errY != nil && baseA == baseB && folderX == nil && folderY == nil && os.SameFile(x, y)
}
