package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"

	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/library"
)

type entry struct {
	path string
	mode fs.FileMode
	size int64
	// target is where a symbolic link points, or which file a hard link names.
	target   string
	hardLink bool
	// content is a small file's content, or the first bytes of a library.
	content []byte
	// text states the version of a library that holds one.
	text string
}

type layer struct {
	entries []entry
	// removed are paths below that the layer takes out, emptied folders of which nothing below remains.
	removed, emptied []string
	files            int
}

// scanner reads layers. It keeps what matters and counts the rest.
type scanner struct {
	platform Platform
	budget   *budget
	// conf is the file that NCCL_CONF_FILE names in the image's configuration.
	conf string
}

// headBytes is how much of a library is kept: enough for the head of an ELF file.
const headBytes = 64

// copyBytes is how much of a file is read at a time.
const copyBytes = 256 << 10

// archive reads a layer to its end: for the checksum of the packing and for the digest.
func (s *scanner) archive(ctx context.Context, r io.Reader) (*layer, error) {
	packed := &countingReader{ctx: ctx, from: r}
	plain, err := decompress(packed)
	if err != nil {
		return nil, err
	}
	defer plain.Close() //nolint:errcheck // It was only read.
	unpacked := &countingReader{ctx: ctx, from: plain}
	unpacked.check = func(n int64) error {
		return cmp.Or(s.budget.take(n), s.budget.ratio(unpacked.n.Load(), packed.n.Load()))
	}
	l, err := s.tar(ctx, unpacked)
	if err != nil {
		return nil, err
	}
	for _, rest := range []io.Reader{unpacked, packed} {
		if _, err := io.Copy(io.Discard, rest); err != nil {
			return nil, fmt.Errorf("broken archive: %w", err)
		}
	}
	return l, nil
}

const magicGzip = "\x1f\x8b" // RFC 1952.

func isPacked(head []byte) bool {
	return bytes.HasPrefix(head, []byte(magicGzip)) || files.IsZstd(head)
}

func decompress(r io.Reader) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(r, copyBytes)
	head, err := b.Peek(blockBytes)
	if len(head) == 0 && err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte(magicGzip)):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("broken gzip: %w", err)
		}
		return z, nil
	case files.IsZstd(head):
		z, err := files.NewZstdReader(b)
		if err != nil {
			return nil, fmt.Errorf("broken zstd: %w", err)
		}
		return z.IOReadCloser(), nil
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")), bytes.HasPrefix(head, []byte("BZh")):
		return nil, errPacking
	}
	return io.NopCloser(b), nil
}

func (s *scanner) tar(ctx context.Context, r io.Reader) (*layer, error) {
	l := &layer{}
	members := tar.NewReader(r)
	for {
		head, err := members.Next()
		switch {
		case errors.Is(err, io.EOF):
			return l, nil
		case err != nil:
			return nil, fmt.Errorf("broken tar: %w", err)
		}
		e, err := entryOf(head)
		if err != nil {
			return nil, err
		}
		// A sparse file has more bytes than its archive: they are counted once more.
		content := &countingReader{ctx: ctx, from: members, check: s.budget.take}
		if err := s.add(l, e, content); err != nil {
			return nil, err
		}
	}
}

func entryOf(head *tar.Header) (entry, error) {
	name, ok := inside(head.Name)
	if !ok {
		return entry{}, fmt.Errorf("%w: %.100q", errLeaves, head.Name)
	}
	e := entry{path: name, mode: head.FileInfo().Mode(), size: head.Size, target: head.Linkname}
	if head.Typeflag == tar.TypeLink {
		if e.target, ok = inside(head.Linkname); !ok {
			return entry{}, fmt.Errorf("%w: %.100q is a hard link to %.100q", errLeaves, head.Name, head.Linkname)
		}
		e.hardLink, e.mode = true, e.mode.Perm()
	}
	return e, nil
}

// inside is the absolute path of a member; false if it would leave the image.
func inside(name string) (string, bool) {
	clean := path.Clean(strings.TrimLeft(name, "/"))
	if clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsRune(name, 0) || len(name) > maxPath {
		return "", false
	}
	return path.Join("/", clean), true
}

const maxPath = 4096 // PATH_MAX, include/uapi/linux/limits.h.

// The files that a layer marks removed ones with (image-spec, layer.md, Whiteouts).
const (
	whiteout     = ".wh."
	whiteoutOwn  = ".wh..wh."
	whiteoutAll  = ".wh..wh..opq"
	distInfo     = ".dist-info"
	blockBytes   = 512
	maxKeptBytes = 4 << 20
)

// add takes an entry, and its content from r if it matters.
func (s *scanner) add(l *layer, e entry, r io.Reader) error {
	if err := s.budget.entry(); err != nil {
		return err
	}
	dir, base := path.Split(e.path)
	if hidden, ok := strings.CutPrefix(base, whiteout); ok {
		switch {
		case base == whiteoutAll:
			l.emptied = append(l.emptied, path.Clean(dir))
		case !strings.HasPrefix(base, whiteoutOwn):
			l.removed = append(l.removed, path.Join(dir, hidden))
		}
		return s.budget.keep(len(e.path))
	}
	regular := e.mode.IsRegular()
	if !e.mode.IsDir() {
		l.files++
	}
	switch {
	case regular && !e.hardLink && s.keepsWhole(e.path):
		content, err := io.ReadAll(io.LimitReader(r, maxKeptBytes))
		if err != nil {
			return fmt.Errorf("broken tar: %w", err)
		}
		e.content = content
	case regular && !e.hardLink && library.Recognizes(base):
		if err := readLibrary(&e, base, r); err != nil {
			return fmt.Errorf("broken tar: %w", err)
		}
	case regular && !library.Recognizes(base) && !s.keepsWhole(e.path):
		// An archive need not name the folders that its files lie in.
		if i := strings.Index(e.path, distInfo+"/"); i > 0 {
			folder := e.path[:i+len(distInfo)]
			if n := len(l.entries); n == 0 || l.entries[n-1].path != folder {
				l.entries = append(l.entries, entry{path: folder, mode: fs.ModeDir})
			}
		}
		return nil
	}
	l.entries = append(l.entries, e)
	return s.budget.keep(len(e.path) + len(e.target) + len(e.content))
}

func (s *scanner) keepsWhole(at string) bool {
	if base := path.Base(at); strings.HasSuffix(base, ".conf") && strings.Contains(base, "ccl") {
		return true // NCCL_CONF_FILE may name others than nccl.conf.
	}
	return at == s.conf || library.Reads(at) || at == "/etc/passwd" || at == enrootStart || at == enrootEnvironment
}

func readLibrary(e *entry, base string, r io.Reader) error {
	head := make([]byte, headBytes)
	n, err := io.ReadFull(r, head)
	e.content = head[:n]
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if !library.HoldsVersion(base) {
		return nil
	}
	var text host.TextFinder
	_, _ = text.Write(e.content) // It never fails.
	_, err = io.CopyBuffer(&text, r, make([]byte, copyBytes))
	e.text = text.Text()
	return err
}

// countingReader counts what is read, and ends with its context.
type countingReader struct {
	ctx   context.Context
	from  io.Reader
	n     atomic.Int64 // A decoder may read ahead.
	check func(n int64) error
}

func (c *countingReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	n, err := c.from.Read(p)
	c.n.Add(int64(n))
	if c.check != nil {
		if tooMuch := c.check(int64(n)); tooMuch != nil {
			return 0, tooMuch
		}
	}
	return n, err
}
