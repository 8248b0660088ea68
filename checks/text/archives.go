package text

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/therootcompany/xz"
	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// packings are the forms of compression: their first bytes (RFC 1952, the .xz file format), their readers, and what they add to names.
var packings = []packing{
	{"gzip", begins("\x1f\x8b"), func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }, []string{".gz", ".tgz"}},
	{"bzip2", isBzip2, func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }, []string{".bz2"}},
	{"xz", begins("\xfd7zXZ\x00"), func(r io.Reader) (io.Reader, error) { return xz.NewReader(r, xzDictionary) }, []string{".xz", ".txz"}},
	{"zstd", files.IsZstd, func(r io.Reader) (io.Reader, error) { return files.NewFrugalZstdReader(r) }, []string{".zst", ".tzst"}},
}

type packing struct {
	name     string
	is       func(head []byte) bool
	open     func(io.Reader) (io.Reader, error)
	suffixes []string
}

func begins(magic string) func(head []byte) bool {
	return func(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
}

// unpack reads what is compressed, or archived with compression: its first bytes
// tell. packed is false for everything else.
func (t *intake) unpack(ctx context.Context, in text, r *bufio.Reader, head []byte) (packed bool, err error) {
	if isZip(head) {
		raw, err := t.inMemory(r, "a zip in a pipe or an archive")
		if err != nil {
			return true, t.unreadable(ctx, in.list, in.name, err)
		}
		return true, t.zip(ctx, in, bytes.NewReader(raw), int64(len(raw)))
	}
	for _, p := range packings {
		if !p.is(head) {
			continue
		}
		z, err := p.open(r)
		if err != nil {
			return true, t.unreadable(ctx, in.list, in.name, fmt.Errorf("broken %s: %w", p.name, err))
		}
		if c, ok := z.(interface{ Close() }); ok {
			defer c.Close()
		}
		return true, t.unpacked(ctx, in, z, p.suffixes...)
	}
	return false, nil
}

// IsArchive reports whether a file that begins so is an archive, or compressed.
func IsArchive(head []byte) bool {
	return slices.ContainsFunc(packings, func(p packing) bool { return p.is(head) }) || isZip(head) || isTar(head)
}

func isBzip2(head []byte) bool {
	return bytes.HasPrefix(head, []byte("BZh")) && len(head) > 9 && string(head[4:10]) == "1AY&SY"
}

// xzDictionary bounds the memory for a file that is compressed with xz: that of its highest level (xz(1), -9).
const xzDictionary = 64 << 20

func isZip(head []byte) bool { return bytes.HasPrefix(head, []byte("PK\x03\x04")) }

// tooDeep is the problem of an archive in too many others.
var tooDeep = problem{"compressed too many times", facts.UnreadForm}

// unpacked reads what a compressed file holds.
func (t *intake) unpacked(ctx context.Context, in text, from io.Reader, suffixes ...string) error {
	if in.depth >= maxDepth {
		in.list.pass(in.name, tooDeep)
		return nil
	}
	inner := in.name
	for _, s := range suffixes {
		inner = strings.TrimSuffix(inner, s)
	}
	return t.stream(ctx, text{name: inner, from: from, depth: in.depth + 1, list: in.list})
}

// inMemory reads what has to be held in memory whole.
func (t *intake) inMemory(r io.Reader, what string) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxInMemory+1))
	if err == nil && len(raw) > maxInMemory {
		err = fmt.Errorf("%s is read only up to %s", what, parse.Size(maxInMemory))
	}
	return raw, err
}

// zip reads the members of a zip archive. Their names are shown and never used as paths.
func (t *intake) zip(ctx context.Context, in text, r io.ReaderAt, size int64) error {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return t.unreadable(ctx, in.list, in.name, fmt.Errorf("broken zip: %w", err))
	}
	list := &listing{intake: t, of: in.name}
	defer list.close()
	for _, f := range z.File {
		shown := t.member(in.name, f.Name)
		m := member{name: f.Name, shown: shown, mode: f.Mode(), problem: zipProblem(f), depth: in.depth + 1}
		if f.UncompressedSize64 > 0 {
			m.mode &^= fs.ModeDir
		}
		m.content = func() (io.ReadCloser, error) {
			if m.problem.why != "" && m.mode&fs.ModeSymlink == 0 {
				return nil, errors.New(m.problem.why)
			}
			return f.Open()
		}
		m.text = func() error {
			from, err := f.Open()
			if err != nil {
				return t.unreadable(ctx, list, shown, err)
			}
			defer from.Close() //nolint:errcheck // It was only read.
			return t.stream(ctx, text{name: shown, from: from, depth: m.depth, list: list})
		}
		if err := t.take(ctx, in.name, m, list); err != nil {
			return err
		}
	}
	return nil
}

// zipProblem is why a member of a zip archive is not read.
func zipProblem(f *zip.File) problem {
	mode := f.Mode()
	switch {
	case mode.IsDir() && f.UncompressedSize64 == 0:
	case mode&fs.ModeSymlink != 0:
		return problem{"a symbolic link", facts.UnreadForm}
	case !mode.IsRegular() && !mode.IsDir():
		return irregular
	case f.Flags&1 != 0: // APPNOTE.TXT 4.4.4, bit 0.
		return problem{"encrypted: extract it first", facts.UnreadForm}
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return problem{fmt.Sprintf("compressed with method %d, which is not supported: extract it first", f.Method), facts.UnreadForm}
	}
	return problem{}
}

// isTar reports whether a file begins with the head of a member of a tar archive: its checksum fits. What follows the head may be cut.
func isTar(head []byte) bool {
	const headSize = 512 // POSIX.1-1988, ustar.
	if len(head) < headSize {
		return false
	}
	_, err := tar.NewReader(bytes.NewReader(head)).Next()
	return err == nil || errors.Is(err, io.ErrUnexpectedEOF)
}

// tar reads the members of a tar archive.
func (t *intake) tar(ctx context.Context, in text, r io.Reader) error {
	end := &tarEnd{from: r}
	members := tar.NewReader(end)
	list := &listing{intake: t, of: in.name}
	defer list.close()
	for {
		head, err := members.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			t.cut(in.name)
		}
		if errors.Is(err, io.EOF) {
			// What follows the last member is nothing, but for the checksum of what the archive is packed in.
			if _, err = io.Copy(io.Discard, end); err == nil {
				t.tarEnded(in, end)
				return nil
			}
		}
		if err != nil {
			if !errors.Is(err, ErrMaxBytes) && !errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("broken tar: %w", err)
			}
			return t.unreadable(ctx, in.list, in.name, fmt.Errorf("the rest was not read: %w", err))
		}
		shown := t.member(strings.TrimSuffix(in.name, ".tar"), head.Name)
		m := member{name: head.Name, shown: shown, depth: in.depth + 1, counted: true}
		m.mode, m.problem = tarMember(head)
		m.content = func() (io.ReadCloser, error) {
			if m.mode == fs.ModeSymlink {
				return io.NopCloser(strings.NewReader(head.Linkname)), nil
			}
			return io.NopCloser(members), nil // An error of the archive comes again with the next member.
		}
		m.text = func() error {
			return t.stream(ctx, text{name: shown, from: members, depth: m.depth, counted: m.counted, list: list})
		}
		if err := t.take(ctx, in.name, m, list); err != nil {
			return err
		}
	}
}

// tarMember is what a member of a tar archive is, and why it is not read.
func tarMember(head *tar.Header) (fs.FileMode, problem) {
	switch head.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		return 0, problem{}
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return fs.ModeDir, problem{}
	case tar.TypeSymlink:
		p := problem{why: "a symbolic link"}
		if !fs.ValidPath(path.Join(path.Dir(head.Name), head.Linkname)) || path.IsAbs(head.Linkname) {
			p.unread = facts.UnreadForm // What it points to is not in the archive.
		}
		return fs.ModeSymlink, p
	case tar.TypeLink:
		return fs.ModeIrregular, problem{why: "a hard link"}
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return fs.ModeIrregular, irregular
	}
	return fs.ModeIrregular, problem{fmt.Sprintf("a member of type %q, which is not supported", head.Typeflag), facts.UnreadForm}
}

// member is the name of a member of an archive.
func (t *intake) member(archive, name string) string {
	if t.alone != "" && strings.HasPrefix(t.alone, archive) {
		return name
	}
	return archive + ":" + name
}

// isArchiveText reports whether a text is a txtar archive: its first line, or
// the first one after a comment, is the mark of a file.
func isArchiveText(head []byte) bool {
	found := txtar.Parse(head).Files
	return len(found) > 0 && !strings.ContainsAny(found[0].Name, " \t") && strings.ContainsAny(found[0].Name, "./")
}

// txtar reads the files of a text archive.
func (t *intake) txtar(ctx context.Context, in text, r io.Reader) error {
	raw, err := t.inMemory(r, "a text archive")
	if err != nil {
		return t.unreadable(ctx, in.list, in.name, err)
	}
	list := &listing{intake: t, of: in.name}
	defer list.close()
	for _, f := range txtar.Parse(raw).Files {
		member := text{name: t.member(in.name, f.Name), from: bytes.NewReader(f.Data), depth: maxDepth, counted: true, list: list}
		if ended, err := t.ended(ctx); err != nil {
			return err
		} else if ended {
			list.pass(member.name, t.problemOf(t.stopped))
			continue
		}
		if err := t.stream(ctx, member); err != nil {
			return err
		}
	}
	return nil
}
