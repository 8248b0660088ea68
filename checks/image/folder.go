package image

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/library"
)

// folder reads a root folder as a layer. What cannot be read is noted, and the rest is read.
func (s *scanner) folder(ctx context.Context, root *os.Root) (*Image, error) {
	l := &layer{}
	t := s.newTree()
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		at := "/" + name
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case name == ".":
			return err
		case at == "/proc", at == "/sys": // Of the kernel, not of the image.
			return fs.SkipDir
		}
		var e entry
		var f *os.File
		if err == nil {
			e, f, err = s.file(root, name, d)
		}
		if err != nil {
			t.unread = append(t.unread, at)
			return nil // The rest is read.
		}
		if f == nil {
			return s.add(l, e, nil)
		}
		defer f.Close() //nolint:errcheck // It was only read.
		return s.add(l, e, &countingReader{ctx: ctx, from: io.LimitReader(f, e.size), check: s.budget.take})
	})
	if err != nil {
		return nil, err
	}
	if err := t.apply(l, 0); err != nil {
		return nil, err
	}
	src := t.source(nil)
	env, from := environmentOf(src.Memory)
	return s.finish(src, &facts.ImageFacts{Form: formFolder, Files: l.files, Environment: from}, env), nil
}

func (s *scanner) file(root *os.Root, name string, d fs.DirEntry) (entry, *os.File, error) {
	info, err := d.Info()
	if err != nil {
		return entry{}, nil, err
	}
	e := entry{path: "/" + name, mode: info.Mode(), size: info.Size()}
	if e.mode&fs.ModeSymlink != 0 {
		e.target, err = root.Readlink(name)
		return e, nil, err
	}
	if !e.mode.IsRegular() || !library.Recognizes(path.Base(name)) && !s.keepsWhole(e.path) {
		return e, nil, nil
	}
	f, err := openRegular(root, name)
	return e, f, err
}
