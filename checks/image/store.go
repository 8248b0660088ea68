package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/internal/zst"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// store holds the blobs of an image.
type store interface {
	// read returns a small blob.
	read(ctx context.Context, b blob) ([]byte, error)
	// layer reads a blob that is a layer.
	layer(ctx context.Context, b blob, s *scanner) (*layer, error)
}

// blob is a part of an image: a document or a layer.
type blob struct {
	// name is where an archive or a layout holds it.
	name string
	// digest and size are what the document says that names it; they are empty and unknown
	// (-1) where it says nothing.
	digest digest.Digest
	size   int64
	media  string
}

// unknownSize is the size of a blob of which only the name is known.
const unknownSize = -1

// named is a blob of which only the name is known; that may be its digest.
func named(name string) blob {
	b := blob{name: name, size: unknownSize}
	if rest, ok := strings.CutPrefix(name, "blobs/"); ok {
		if d, err := digest.Parse(strings.Replace(rest, "/", ":", 1)); err == nil {
			b.digest = d
		}
	}
	return b
}

// described is a blob that a manifest or an index describes.
func described(d v1.Descriptor) (blob, error) {
	if err := d.Digest.Validate(); err != nil {
		return blob{}, fmt.Errorf("the digest %.80q: %w", d.Digest, err)
	}
	if d.Size < 0 {
		return blob{}, fmt.Errorf("the size %d of a blob is negative", d.Size)
	}
	name := path.Join("blobs", string(d.Digest.Algorithm()), d.Digest.Encoded())
	return blob{name: name, digest: d.Digest, size: d.Size, media: d.MediaType}, nil
}

// short is the name of a blob for a message.
func (b blob) short() string {
	base := path.Base(strings.TrimSuffix(b.name, "/layer.tar"))
	return escape.Printable(base[:min(len(base), 12)], maxShown)
}

// compare reports why a blob is not the one that was described, nil if it is.
func (b blob) compare(kind string, got digest.Digest, size int64) error {
	switch {
	case b.digest != "" && got != b.digest:
		return fmt.Errorf("%s is %w: its digest is %.19s", kind, ErrDamaged, got)
	case b.size != unknownSize && size != b.size:
		return fmt.Errorf("%s is %w: it has %d bytes, not %d", kind, ErrDamaged, size, b.size)
	}
	return nil
}

// maxDocument bounds a manifest or a configuration (distribution-spec: registries take
// manifests of 4 MiB).
const maxDocument = 4 << 20

// errNoBlob is the error for a blob that the image names and lacks.
var errNoBlob = errors.New("the image names it, but does not hold it")

// folderStore is an OCI layout in a folder.
type folderStore struct{ dir string }

func (f *folderStore) read(_ context.Context, b blob) ([]byte, error) {
	file, err := f.open(b.name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // It was only read.
	return document(b.name, file)
}

func (f *folderStore) layer(ctx context.Context, b blob, s *scanner) (*layer, error) {
	file, err := f.open(b.name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // It was only read.
	return s.blob(ctx, b, file)
}

// open opens a blob. No part of its path may be a link, which could lead out of the folder.
func (f *folderStore) open(name string) (*os.File, error) {
	at := f.dir
	parts := strings.Split(name, "/")
	for i, part := range parts {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s: %w", name, errNoBlob)
		case err != nil:
			return nil, err
		case i < len(parts)-1 && !info.IsDir(), i == len(parts)-1 && !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s: not a regular file", name)
		}
	}
	return openRegular(at)
}

// openRegular opens a file that was found to be regular: what took its place meanwhile is
// neither followed nor waited for.
func openRegular(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close() // It was not even read.
		return nil, errors.Join(err, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")})
	}
	return f, nil
}

// document reads a small blob.
func document(name string, r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxDocument {
		return nil, fmt.Errorf("%s: larger than %d MiB", name, maxDocument>>20)
	}
	return raw, nil
}

// blob reads a layer, and compares it with its description.
func (s *scanner) blob(ctx context.Context, b blob, r io.Reader) (*layer, error) {
	var sum digest.Digester
	if b.digest != "" {
		sum = b.digest.Algorithm().Digester()
		r = io.TeeReader(r, sum.Hash())
	}
	l, err := s.archive(ctx, r, true)
	if err != nil {
		return nil, err
	}
	got := b.digest
	if sum != nil {
		got = sum.Digest()
	}
	return l, b.compare("the layer", got, l.packed)
}

// tarStore is an archive that is not compressed: a member is read where it lies.
type tarStore struct {
	file    *os.File
	members map[string]member
}

type member struct {
	offset, size int64
	target       string // Of a link.
}

func (t *tarStore) find(name string) (*io.SectionReader, error) {
	m, ok := t.members[name]
	if ok && m.target != "" {
		m, ok = t.members[m.target]
	}
	if !ok || m.target != "" {
		return nil, fmt.Errorf("%s: %w", name, errNoBlob)
	}
	return io.NewSectionReader(t.file, m.offset, m.size), nil
}

func (t *tarStore) read(_ context.Context, b blob) ([]byte, error) {
	r, err := t.find(b.name)
	if err != nil {
		return nil, err
	}
	return document(b.name, r)
}

func (t *tarStore) layer(ctx context.Context, b blob, s *scanner) (*layer, error) {
	r, err := t.find(b.name)
	if err != nil {
		return nil, err
	}
	return s.blob(ctx, b, r)
}

// packedStore is a compressed archive: it is read once, and its layers as they come.
type packedStore struct {
	documents map[string][]byte
	layers    map[string]*layer
	links     map[string]string
	// failed are members that could be layers and could not be read.
	failed map[string]error
}

func (p *packedStore) read(_ context.Context, b blob) ([]byte, error) {
	raw, ok := p.documents[b.name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", b.name, errNoBlob)
	}
	return raw, nil
}

func (p *packedStore) layer(_ context.Context, b blob, _ *scanner) (*layer, error) {
	name := b.name
	if target, ok := p.links[name]; ok {
		name = target
	}
	if err := p.failed[name]; err != nil {
		return nil, err
	}
	l, ok := p.layers[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, errNoBlob)
	}
	return l, b.compare("the layer", b.digest, l.packed) // Its digest was compared when it was read.
}

// pack reads a compressed archive.
func (s *scanner) pack(ctx context.Context, r io.Reader) (*packedStore, error) {
	p := &packedStore{documents: map[string][]byte{}, layers: map[string]*layer{}, links: map[string]string{}, failed: map[string]error{}}
	members := tar.NewReader(r)
	for {
		head, err := members.Next()
		switch {
		case errors.Is(err, io.EOF):
			return p, nil
		case err != nil:
			return nil, fmt.Errorf("broken tar: %w", err)
		}
		if err := s.budget.entry(); err != nil {
			return nil, err
		}
		name := memberName(head.Name)
		switch head.Typeflag {
		case tar.TypeLink:
			p.links[name] = memberName(head.Linkname)
		case tar.TypeSymlink:
			p.links[name] = path.Join(path.Dir(name), head.Linkname)
		case tar.TypeReg:
			if err := s.packed(ctx, p, name, head.Size, members); err != nil {
				return nil, err
			}
		}
	}
}

// packed reads a member of a compressed archive: a document, or else a layer.
func (s *scanner) packed(ctx context.Context, p *packedStore, name string, size int64, r io.Reader) error {
	b := bufio.NewReaderSize(r, copyBytes)
	head, _ := b.Peek(8) // An error comes again.
	if size <= maxDocument && (bytes.HasPrefix(head, []byte("{")) || bytes.HasPrefix(head, []byte("["))) {
		raw, err := document(name, b)
		if err != nil {
			return fmt.Errorf("broken archive: %w", err)
		}
		p.documents[name] = raw
		return s.budget.keep(len(raw))
	}
	if size < blockBytes && !bytes.HasPrefix(head, []byte("\x1f\x8b")) && !zst.Is(head) {
		return nil // Too small for an archive: "VERSION" of old ones.
	}
	l, err := s.blob(ctx, named(name), b)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrBomb) {
			return err
		}
		p.failed[name] = err
		return nil
	}
	p.layers[name] = l
	return nil
}

// memberName is the name of a member as documents write it.
func memberName(name string) string { return strings.TrimPrefix(path.Clean(name), "./") }

// openFile reads an archive: of an image, or of a root folder.
func openFile(ctx context.Context, name string, sure bool, s *scanner) (*Image, error) {
	form, packed, err := formOfFile(name, sure)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	if form == formTar {
		l, err := s.archive(ctx, f, false)
		if err != nil {
			return nil, err
		}
		return s.fromRoot(l, formTar, nil)
	}
	var st store
	if packed {
		counted := &countingReader{ctx: ctx, from: f}
		plain, done, err := decompress(counted)
		if err != nil {
			return nil, err
		}
		defer done()
		st, err = s.pack(ctx, s.bounded(ctx, plain, counted))
		if err != nil {
			return nil, err
		}
	} else if st, err = indexTar(f, s); err != nil {
		return nil, err
	}
	return s.layout(ctx, st, form)
}

// maxMembers bounds the members of an archive of an image: a blob each.
const maxMembers = 100_000

// indexTar finds out where the members of an archive lie.
func indexTar(f *os.File, s *scanner) (*tarStore, error) {
	t := &tarStore{file: f, members: make(map[string]member)}
	members := tar.NewReader(f) // It seeks over what is not read.
	for {
		head, err := members.Next()
		switch {
		case errors.Is(err, io.EOF):
			return t, nil
		case err != nil:
			return nil, fmt.Errorf("broken tar: %w", err)
		case len(t.members) == maxMembers:
			return nil, fmt.Errorf("%w: more than %d blobs", ErrTooLarge, maxMembers)
		}
		if err := s.budget.entry(); err != nil {
			return nil, err
		}
		name := memberName(head.Name)
		switch head.Typeflag {
		case tar.TypeLink:
			t.members[name] = member{target: memberName(head.Linkname)}
		case tar.TypeSymlink: // docker save of old: a layer that two images have.
			t.members[name] = member{target: path.Join(path.Dir(name), head.Linkname)}
		case tar.TypeReg:
			at, err := f.Seek(0, io.SeekCurrent)
			if err != nil {
				return nil, err
			}
			t.members[name] = member{offset: at, size: head.Size}
		}
	}
}

// maxHeads is how many members of an archive tell what it is.
const maxHeads = 64

// formOfFile finds out what a file is by the names of its first members.
func formOfFile(name string, sure bool) (form string, packed bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", false, err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	head := make([]byte, blockBytes)
	n, _ := io.ReadFull(f, head) // A short file is no image.
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", false, err
	}
	var members *tar.Reader
	if head = head[:n]; bytes.HasPrefix(head, []byte("\x1f\x8b")) || zst.Is(head) {
		plain, done, err := decompress(f)
		if err != nil {
			return "", true, err
		}
		defer done()
		members, packed = tar.NewReader(io.LimitReader(plain, 64<<20)), true
	} else {
		members = tar.NewReader(f)
	}
	var tops []string
	for range maxHeads {
		member, err := members.Next()
		if err != nil {
			switch {
			case len(tops) > 0:
			case sure && packed:
				return "", packed, fmt.Errorf("broken archive: %w", err)
			default:
				return "", packed, ErrNotImage
			}
			break
		}
		name := strings.TrimPrefix(memberName(strings.TrimLeft(member.Name, "/")), "/")
		if isBlobName(name) {
			return formOCI, packed, nil
		}
		if strings.HasPrefix(name, "sys/") && !sure {
			return "", packed, ErrNotImage // The copy of a machine: in an image, /sys is empty.
		}
		top, _, _ := strings.Cut(name, "/")
		if top != "." && (len(tops) == 0 || tops[len(tops)-1] != top) {
			tops = append(tops, top)
		}
	}
	if !isRoot(tops, sure) {
		return "", packed, ErrNotImage
	}
	return formTar, packed, nil
}

// blobName is what the members of an image's archive are called: by docker save before
// and since 25, by Podman and by go-containerregistry.
var blobName = lazy.New(`^(?:manifest\.json|index\.json|oci-layout|repositories|blobs(?:/.*)?|sha256:[0-9a-f]{64}|[0-9a-f]{64}(?:/.*|\.json|\.tar(?:\.gz)?)?)$`)

func isBlobName(name string) bool { return blobName.MatchString(name) }
