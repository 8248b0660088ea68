package host

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/image/imagetest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestLoaderPaths checks that the paths of a file and those of the same bytes as a stream,
// however they are cut, are equal.
func TestLoaderPaths(t *testing.T) {
	for _, want := range []LoaderPaths{
		{RPath: "$ORIGIN/../../nvidia/nccl/lib:$ORIGIN"},
		{RunPath: "/opt/lib:$ORIGIN"},
		{RPath: "$ORIGIN/a", RunPath: "$ORIGIN/b"},
		{},
	} {
		for _, places := range [][2]int{{5000, 20000}, {20000, 5000}, {300, 700}, {60000, 59000}} {
			raw := imagetest.ELF(want.RPath, want.RunPath, places[0], places[1])
			got, err := loaderPaths(bytes.NewReader(raw))
			expect.That(t, got == want && err == nil, "%v: got %+v, %v, want %+v", places, got, err, want)
			for _, size := range []int{64, 100, 511, 4096, 10000, 1 << 20} {
				var f PathFinder
				for part := range bytes.Lines(raw) { // Any cut will do.
					for len(part) > 0 {
						n := min(size, len(part))
						expect.Value(f.Write(part[:n]))(t)
						part = part[n:]
					}
				}
				expect.Equal(t, want, f.Paths(), "%v in parts of %d", places, size)
			}
		}
	}
}

func FuzzLoaderPaths(f *testing.F) {
	f.Add(imagetest.ELF("$ORIGIN", "", 500, 900), 100)
	f.Fuzz(func(t *testing.T, raw []byte, size int) {
		var finder PathFinder
		for rest := raw; len(rest) > 0; {
			n := min(max(size, 1), len(rest))
			_, _ = finder.Write(rest[:n]) // It never fails.
			rest = rest[n:]
		}
		whole, err := loaderPaths(bytes.NewReader(raw))
		got := finder.Paths()
		expect.That(t, err != nil || got.RPath == "" || got.RPath == whole.RPath, "got %+v, want %+v", got, whole)
	})
}

func TestLibraryText(t *testing.T) {
	filler := strings.Repeat("x", libraryPart)
	for _, c := range []struct{ name, content, want string }{
		{"alone", "NCCL version 2.28.9+cuda13.0", "NCCL version 2.28.9+cuda13.0"},
		{"RCCL", "\x00RCCL version 2.20.5+hip6.2 HEAD\x00", "RCCL version 2.20.5+hip6.2"},
		{"the plugin for libfabric", "NET/OFI Initializing aws-ofi-nccl 1.9.1-aws\x00", "aws-ofi-nccl 1.9.1"},
		{"format string before it", "NCCL version %d.%d.%d\x00" + filler + "NCCL version 2.21.5+cuda12.4", "NCCL version 2.21.5+cuda12.4"},
		{"at the end", filler + filler + "NCCL version 2.4.8", "NCCL version 2.4.8"},
		{"none", filler, ""},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "libnccl.so.2")
			expect.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
			got, err := libraryText(path)
			expect.That(t, got == c.want && err == nil, "got %q, %v, want %q", got, err, c.want)
		})
	}
	// Wherever it stands in relation to the parts, it is found whole.
	for at := libraryPart - 64; at < libraryPart+8; at++ {
		content := append(bytes.Repeat([]byte("x"), at), "NCCL version 2.28.9+cuda13.0 and more text that follows after it"...)
		got, err := findText(bytes.NewReader(content), time.Now().Add(time.Minute))
		expect.Must(t, got == "NCCL version 2.28.9+cuda13.0" && err == nil, "at %d: got %q, %v", at, got, err)
	}
	expect.Fails(libraryText(t.TempDir()))(t, nil, "a folder was searched")
}

func FuzzLibraryText(f *testing.F) {
	f.Add([]byte("NCCL version 2.28.9"))
	f.Add([]byte("CCL version NCCL version 1."))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := findText(bytes.NewReader(b), time.Now().Add(time.Minute))
		expect.That(t, err == nil && (got == "" || bytes.Contains(b, []byte(got))), "got %q, %v", got, err)
	})
}
