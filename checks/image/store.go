package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/image/registry"
)

type store func(ctx context.Context, b blob) (io.ReadCloser, error)

type blob struct {
	// name is where an archive or a layout holds it.
	name string
	// Descriptor is what a manifest or an index says of it. Where none does, its digest is
	// empty and its size unknownSize.
	v1.Descriptor
}

const unknownSize = -1

// named is a blob of which only the name is known; that may be its digest.
func named(name string) blob {
	b := blob{path.Clean(name), v1.Descriptor{Size: unknownSize}}
	if rest, ok := strings.CutPrefix(b.name, "blobs/"); ok {
		b.Digest, _ = v1.NewHash(strings.Replace(rest, "/", ":", 1)) // It may be called otherwise.
	}
	return b
}

// described is a blob that a manifest or an index describes.
func described(d v1.Descriptor) blob {
	d.Size = max(d.Size, 0) // It is known.
	return blob{path.Join("blobs", d.Digest.Algorithm, d.Digest.Hex), d}
}

func (b blob) short() string {
	base := path.Base(strings.TrimSuffix(b.name, "/layer.tar"))
	return escape.Printable(base[:min(len(base), 12)], maxShown)
}

// verified is a blob that can be read to its end only if it is the one that was described.
type verified struct {
	io.ReadCloser
	blob blob
	n    int64
	sum  hash.Hash // nil if the digest is not known.
}

// verify compares what is read of a blob with its description.
func (b blob) verify(from io.ReadCloser) io.ReadCloser {
	sum, _ := v1.Hasher(b.Digest.Algorithm) // nil for none; others than those it knows were rejected.
	return &verified{ReadCloser: from, blob: b, sum: sum}
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.ReadCloser.Read(p)
	v.n += int64(n)
	if v.sum != nil {
		_, _ = v.sum.Write(p[:n]) // It never fails.
	}
	ended := errors.Is(err, io.EOF)
	if size := v.blob.Size; size != unknownSize && (v.n > size || ended && v.n < size) {
		return 0, fmt.Errorf("it is %w: it does not have %d bytes", ErrDamaged, size)
	}
	if ended && v.sum != nil {
		if got := hex.EncodeToString(v.sum.Sum(nil)); got != v.blob.Digest.Hex {
			return 0, fmt.Errorf("it is %w: its digest is %s:%.12s", ErrDamaged, v.blob.Digest.Algorithm, got)
		}
	}
	return n, err
}

// maxDocument bounds a manifest or a configuration: registries take manifests of 4 MiB.
const maxDocument = 4 << 20

func decode(ctx context.Context, st store, kind string, b blob, into any) error {
	r, err := st(ctx, b)
	if err != nil {
		return fmt.Errorf("read the %s: %w", kind, err)
	}
	defer r.Close() //nolint:errcheck // It was only read.
	raw, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	switch {
	case err != nil:
		return fmt.Errorf("read the %s: %w", kind, err)
	case len(raw) > maxDocument:
		return fmt.Errorf("the %s has more than %d MiB", kind, maxDocument>>20)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("broken %s: %s", kind, escape.Printable(err.Error(), maxShown))
	}
	return nil
}

var errNoBlob = errors.New("the image names it, but does not hold it")

func folderStore(root *os.Root) store {
	return func(_ context.Context, b blob) (io.ReadCloser, error) {
		file, err := openRegular(root, b.name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", b.name, errNoBlob)
		}
		if err != nil {
			return nil, err
		}
		return b.verify(file), nil
	}
}

// openRegular opens a file in a folder, which no link leaves, without waiting for the writer of a pipe.
func openRegular(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close() // It was not even read.
		return nil, errors.Join(err, fmt.Errorf("%s: not a regular file", name))
	}
	return f, nil
}

// archiveStore is a tar archive of an image. Its members are read where they lie: package
// tarball of go-containerregistry begins at the start of the archive for each, reads layers
// that are compressed once more for their digests, and takes no OCI archives.
type archiveStore map[string]*io.SectionReader

func (a archiveStore) open(_ context.Context, b blob) (io.ReadCloser, error) {
	m := a[b.name]
	if m == nil {
		return nil, fmt.Errorf("%s: %w", b.name, errNoBlob)
	}
	return b.verify(io.NopCloser(io.NewSectionReader(m, 0, m.Size()))), nil
}

// index finds out where the members of an archive lie.
func (s *scanner) index(file *os.File) (archiveStore, error) {
	a, links := archiveStore{}, map[string]string{}
	members := tar.NewReader(file) // It seeks over what is not read.
	for {
		head, err := members.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("broken tar: %w", err)
		}
		if err := cmp.Or(s.budget.entry(), s.budget.keep(len(head.Name))); err != nil {
			return nil, err
		}
		name := path.Clean(head.Name)
		switch head.Typeflag {
		case tar.TypeLink:
			links[name] = path.Clean(head.Linkname)
		case tar.TypeSymlink: // docker save of old: a layer that two images have.
			links[name] = path.Join(path.Dir(name), head.Linkname)
		case tar.TypeReg:
			at, err := file.Seek(0, io.SeekCurrent)
			if err != nil {
				return nil, err
			}
			a[name] = io.NewSectionReader(file, at, head.Size)
		}
	}
	for name, target := range links {
		if m := a[target]; m != nil {
			a[name] = m
		}
	}
	return a, nil
}

// OpenRemote reads an image in a registry. Its layers are read as they come, and written nowhere.
func OpenRemote(ctx context.Context, ref registry.Reference, how registry.Options, o Options) (*Image, error) {
	repository, err := registry.Open(ref, how)
	if err != nil {
		return nil, err
	}
	defer repository.Close()
	top, raw, err := repository.Resolve(ctx)
	if err != nil {
		return nil, err
	}
	st := func(ctx context.Context, b blob) (io.ReadCloser, error) {
		switch {
		case b.Digest == top.Digest:
			return b.verify(io.NopCloser(bytes.NewReader(raw))), nil
		case b.MediaType.IsImage() || b.MediaType.IsIndex():
			raw, err := repository.Manifest(ctx, b.Digest)
			return io.NopCloser(bytes.NewReader(raw)), err
		}
		body, err := repository.Blob(ctx, b.Digest) // Which compares the digest.
		if err != nil {
			return nil, err
		}
		return &verified{ReadCloser: body, blob: b}, nil
	}
	s := &scanner{platform: o.Platform, budget: &budget{limits: o.Limits}}
	img, err := s.indexed(ctx, st, formRegistry, []v1.Descriptor{top})
	if err != nil {
		return nil, err
	}
	img.facts.Name = ref.String()
	return img, nil
}
