package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/image"
	"github.com/gpudoctor/gpudoctor/checks/image/imagetest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// inParts calls a function for each part of a text.
func inParts(raw []byte, size int, do func(part []byte)) {
	for part := range slices.Chunk(raw, size) {
		do(part)
	}
}

// skippable is a frame that decoders of zstd pass over (RFC 8878, 3.1.2).
func skippable(content string) []byte {
	return append([]byte{0x50, 0x2a, 0x4d, 0x18, byte(len(content)), 0, 0, 0}, content...)
}

// TestPackings checks that a layer is the same however it is packed: as one stream, as several
// in a row (pigz, zstd with several workers), and as the formats for partial pulls have it.
func TestPackings(t *testing.T) {
	plain := tarOf(t, append(slices.Clone(small.Layers[0].Files), imagetest.File{Name: "usr/share/x", Size: 300_000})...)
	pack := expect.Value(zstd.NewWriter(nil))(t)
	var members, frames, chunked bytes.Buffer
	inParts(plain, 50_000, func(part []byte) {
		members.Write(checktest.Gzip(part))
		frames.Write(pack.EncodeAll(part, nil))
	})
	chunked.Write(skippable("head"))
	chunked.Write(frames.Bytes())
	chunked.Write(skippable("table of contents"))
	for name, raw := range map[string][]byte{
		"none": plain, "gzip": checktest.Gzip(plain), "gzip members": members.Bytes(),
		"zstd": pack.EncodeAll(plain, nil), "zstd frames": frames.Bytes(), "zstd:chunked": chunked.Bytes(),
	} {
		img, err := image.Open(t.Context(), layout(t, raw), true, usualOptions)
		expect.Must(t, err == nil, "%s: %v", name, err)
		f, _ := checks.GatherImage(t.Context(), img, gather.Options{})
		expect.That(t, len(f.Libraries.Files) == 1 && f.Libraries.Files[0].Version == "2.18.3", "%s: got %+v", name, f.Libraries.Files)
		expect.Fails(image.Open(t.Context(), layout(t, raw[:len(raw)-len(raw)/3]), true, usualOptions))(t, nil, "%s: two thirds of it were read", name)
	}
}

// TestMembers checks that whatever a member of a layer is, it is never taken for a library or for settings unless it is
// a file of the image, and that nothing of the machine is read through it.
func TestMembers(t *testing.T) {
	for _, kind := range []byte{tar.TypeChar, tar.TypeBlock, tar.TypeFifo, tar.TypeSymlink, tar.TypeDir, tar.TypeCont, 'V', 'Z', 0x80} {
		for _, name := range []string{lib + "libnccl.so.2", lib + "libcuda.so.1", "etc/nccl.conf", "dev/nvidia0", "etc/passwd"} {
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			head := &tar.Header{Name: name, Typeflag: kind, Mode: 0o666, Devmajor: 1, Devminor: 3}
			if kind == tar.TypeSymlink {
				head.Linkname = "../../../../../../../../etc/hostname"
			}
			err := w.WriteHeader(head)
			closeErr := w.Close()
			expect.Must(t, err == nil && closeErr == nil, "%q: %v, %v", kind, err, closeErr)
			img, err := image.Open(t.Context(), layout(t, b.Bytes()), true, usualOptions)
			if err != nil {
				expect.That(t, !strings.Contains(err.Error(), "\n"), "%q %s: more than a line: %q", kind, name, err)
				continue
			}
			f, _ := checks.GatherImage(t.Context(), img, gather.Options{})
			if slices.ContainsFunc(f.Libraries.Files, func(l facts.Library) bool { return l.Version != "" || l.Loads && !l.Empty }) || len(f.Env.Variables) > 0 {
				t.Errorf("%q %s: %+v, %+v", kind, name, f.Libraries.Files, f.Env.Variables)
			}
		}
	}
}

// TestManyFiles checks that a layer of 200,000 files is read, in bounded memory: of a file that
// does not matter, a hash is kept.
func TestManyFiles(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	const files = 200_000
	var b bytes.Buffer
	packed := expect.Value(gzip.NewWriterLevel(&b, gzip.BestSpeed))(t)
	w := tar.NewWriter(packed)
	for i := range files {
		expect.NoError(t, w.WriteHeader(&tar.Header{Name: fmt.Sprintf("usr/share/%d/%d/file-%d.py", i%100, i%1000, i), Mode: 0o644}))
	}
	expect.NoError(t, w.WriteHeader(&tar.Header{Name: lib + "libnccl.so.2.18.3", Mode: 0o644}))
	expect.NoError(t, w.Close())
	expect.NoError(t, packed.Close())
	at := layout(t, b.Bytes())
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	img := expect.Value(image.Open(t.Context(), at, true, usualOptions))(t)
	expect.Equal(t, files+1, img.Facts().Files, "it")
	expect.Value(img.Host().Stat("/" + lib + "libnccl.so.2.18.3"))(t)
	used := int64(heap()) - int64(before)
	expect.That(t, used <= 32<<20, "%d bytes are kept of %d files", used, files)
	runtime.KeepAlive(img)
}
