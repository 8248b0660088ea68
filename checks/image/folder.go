package image

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// folder reads a root folder as the layer of which it is made. Nothing outside of it is
// opened. unread are the files and folders that could not be read.
func (s *scanner) folder(ctx context.Context, root string) (l *layer, unread []string, err error) {
	l = &layer{others: make(map[uint64]struct{})}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		at := "/" + strings.TrimPrefix(strings.TrimPrefix(name, root), "/")
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			unread = append(unread, at)
			return nil //nolint:nilerr // The rest is read.
		case at == "/":
			return nil
		case at == "/proc", at == "/sys": // Of the kernel, not of the image.
			return fs.SkipDir
		}
		if err := s.file(ctx, l, name, at, d); err != nil {
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
func (s *scanner) file(ctx context.Context, l *layer, name, at string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return &unreadableError{err}
	}
	e := entry{path: at, mode: info.Mode(), size: info.Size()}
	if e.mode&fs.ModeSymlink != 0 {
		if e.target, err = os.Readlink(name); err != nil {
			return &unreadableError{err}
		}
	}
	if !e.mode.IsRegular() || !matters(path.Base(at)) && !s.keepsWhole(at) {
		return s.add(l, e, nil, false)
	}
	f, err := openRegular(name)
	if err != nil {
		return &unreadableError{err}
	}
	defer f.Close() //nolint:errcheck // It was only read.
	return s.add(l, e, &countingReader{ctx: ctx, from: io.LimitReader(f, e.size), check: s.budget.take}, false)
}

// unreadableError is that of a file of a folder; the others are read.
type unreadableError struct{ error }

func (e *unreadableError) Unwrap() error { return e.error }

func isUnreadable(err error) bool {
	_, ok := err.(*unreadableError) //nolint:errorlint // It is never wrapped.
	return ok
}
