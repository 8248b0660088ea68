package image

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// folder reads a root folder as the layer of which it is made. Nothing outside of it is
// opened. unread are the files and folders that could not be read.
func (s *scanner) folder(ctx context.Context, root *os.Root) (l *layer, unread []string, err error) {
	l = &layer{others: make(map[uint64]struct{})}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		at := path.Join("/", name)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			unread = append(unread, at)
			return nil //nolint:nilerr // The rest is read.
		case name == ".":
			return nil
		case name == "proc", name == "sys": // Of the kernel, not of the image.
			return fs.SkipDir
		}
		if err := s.file(ctx, l, root, at, d); err != nil {
			if !isUnreadable(err) {
				return err
			}
			unread = append(unread, at)
		}
		return nil
	})
	return l, unread, err
}

// file adds a file, link or folder of a root folder.
func (s *scanner) file(ctx context.Context, l *layer, root *os.Root, at string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return &unreadableError{err}
	}
	name := strings.TrimPrefix(at, "/")
	e := entry{path: at, mode: info.Mode(), size: info.Size()}
	if e.mode&fs.ModeSymlink != 0 {
		if e.target, err = root.Readlink(name); err != nil {
			return &unreadableError{err}
		}
	}
	if !e.mode.IsRegular() || !matters(path.Base(at)) && !keepsWhole(at) {
		return s.add(l, e, nil, false)
	}
	// A file that became a pipe meanwhile must not block.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return &unreadableError{err}
	}
	defer f.Close() //nolint:errcheck // It was only read.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return &unreadableError{err}
	}
	return s.add(l, e, &countingReader{ctx: ctx, from: io.LimitReader(f, info.Size()), check: s.budget.take}, false)
}

// unreadableError is that of a file of a folder; the others are read.
type unreadableError struct{ error }

func (e *unreadableError) Unwrap() error { return e.error }

func isUnreadable(err error) bool {
	_, ok := err.(*unreadableError) //nolint:errorlint // It is never wrapped.
	return ok
}
