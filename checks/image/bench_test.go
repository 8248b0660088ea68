package image_test

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/image"
)

// benchLayers is how many layers the image of the benchmarks has, and benchBytes how much
// each holds: libraries of 100 MB, half of them looked for and searched, and small files.
const benchLayers = 4

func benchBytes() int64 {
	if mb, err := strconv.Atoi(os.Getenv("IMAGE_LAYER_MB")); err == nil {
		return int64(mb) << 20
	}
	return 128 << 20
}

// noise is data that is compressed to about 40 %, as libraries are: words that occur again,
// and numbers between them.
type noise struct {
	state uint64
	words [1024][12]byte
}

func newNoise(seed uint64) *noise {
	n := &noise{state: seed}
	for i := range n.words {
		for j := range n.words[i] {
			n.words[i][j] = byte(n.next())
		}
	}
	return n
}

func (n *noise) next() uint64 {
	n.state ^= n.state << 13
	n.state ^= n.state >> 7
	n.state ^= n.state << 17
	return n.state
}

func (n *noise) Read(p []byte) (int, error) {
	for at := 0; at < len(p); {
		r := n.next()
		at += copy(p[at:], n.words[r%1024][:])
		at += copy(p[at:], []byte{byte(r >> 10), byte(r >> 18), byte(r >> 26), 0})
	}
	return len(p), nil
}

// benchTar writes a layer as an archive.
func benchTar(w io.Writer, seed uint64, size int64) error {
	out := tar.NewWriter(w)
	random := newNoise(seed)
	for i := 0; size > 0; i++ {
		n, name := int64(100<<20), "usr/lib/x86_64-linux-gnu/libnccl.so.2.1."+strconv.Itoa(i)
		switch i % 4 {
		case 0, 2:
			n, name = 20_000, "usr/share/doc/"+strconv.Itoa(i)+"/copyright"
		case 1:
			name = "usr/lib/x86_64-linux-gnu/libother" + strconv.Itoa(i) + ".so"
		}
		n = min(n, size)
		if err := out.WriteHeader(&tar.Header{Name: name, Size: n, Mode: 0o644}); err != nil {
			return err
		}
		if _, err := io.CopyN(out, random, n); err != nil {
			return err
		}
		size -= n
	}
	return out.Close()
}

// fileLayer is a layer in a file.
type fileLayer struct {
	file           string
	digest, diffID v1.Hash
	size           int64
	media          types.MediaType
}

func (l *fileLayer) Digest() (v1.Hash, error)             { return l.digest, nil }
func (l *fileLayer) DiffID() (v1.Hash, error)             { return l.diffID, nil }
func (l *fileLayer) Compressed() (io.ReadCloser, error)   { return os.Open(l.file) }
func (l *fileLayer) Uncompressed() (io.ReadCloser, error) { return nil, errors.ErrUnsupported }
func (l *fileLayer) Size() (int64, error)                 { return l.size, nil }
func (l *fileLayer) MediaType() (types.MediaType, error)  { return l.media, nil }

// benchLayer writes a layer to a file, in one pass however large it is.
func benchLayer(file string, seed uint64, media types.MediaType) (v1.Layer, error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	packed, plain := sha256.New(), sha256.New()
	out := io.MultiWriter(f, packed)
	var packer io.WriteCloser
	if media == types.OCILayerZStd {
		packer, err = zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest))
	} else {
		packer, err = gzip.NewWriterLevel(out, gzip.BestSpeed)
	}
	if err != nil {
		return nil, err
	}
	if err := errors.Join(benchTar(io.MultiWriter(packer, plain), seed, benchBytes()), packer.Close()); err != nil {
		return nil, err
	}
	size, err := f.Seek(0, io.SeekCurrent)
	hash := func(h hash.Hash) v1.Hash { return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(h.Sum(nil))} }
	return &fileLayer{file: file, digest: hash(packed), diffID: hash(plain), size: size, media: media}, errors.Join(err, f.Close())
}

// benchImage writes the image to the folder that IMAGE_DIR names, if it is not there, or
// to a new one.
func benchImage(b *testing.B, useZstd bool) string {
	b.Helper()
	dir := os.Getenv("IMAGE_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	at := filepath.Join(dir, "gzip")
	media := types.OCILayer
	if useZstd {
		at, media = filepath.Join(dir, "zstd"), types.OCILayerZStd
	}
	if _, err := os.Stat(at); err == nil {
		return at
	}
	path, err := ocilayout.Write(at, empty.Index)
	if err != nil {
		b.Fatal(err)
	}
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	for i := range benchLayers {
		layer, err := benchLayer(filepath.Join(b.TempDir(), "layer"), uint64(i+1), media)
		if err != nil {
			b.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			b.Fatal(err)
		}
	}
	if err := path.AppendImage(img); err != nil {
		b.Fatal(err)
	}
	return at
}

// BenchmarkOpen reads an image and gathers its facts.
func BenchmarkOpen(b *testing.B) {
	forms(b, func(at string) error {
		img, err := image.Open(b.Context(), at, true, image.Options{Limits: image.DefaultLimits})
		if err != nil {
			return err
		}
		checks.GatherImage(b.Context(), img, gather.Options{})
		return nil
	})
}

// BenchmarkAlone reads and unpacks the same image with go-containerregistry, and looks at
// nothing but the names of its files.
func BenchmarkAlone(b *testing.B) {
	forms(b, func(at string) error {
		index, err := ocilayout.ImageIndexFromPath(at)
		if err != nil {
			return err
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			return err
		}
		img, err := index.Image(manifest.Manifests[0].Digest)
		if err != nil {
			return err
		}
		layers, err := img.Layers()
		if err != nil {
			return err
		}
		for _, l := range layers {
			r, err := l.Uncompressed()
			if err != nil {
				return err
			}
			members := tar.NewReader(r)
			for err == nil {
				_, err = members.Next()
			}
			if !errors.Is(err, io.EOF) {
				return err
			}
			if err := r.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}

func forms(b *testing.B, read func(at string) error) {
	b.Helper()
	for _, zstd := range []bool{false, true} {
		at := benchImage(b, zstd)
		b.Run(filepath.Base(at), func(b *testing.B) {
			b.SetBytes(benchLayers * benchBytes())
			for b.Loop() {
				if err := read(at); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
