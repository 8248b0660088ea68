package host

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

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
			name := filepath.Join(t.TempDir(), "libtorch_cuda.so")
			expect.NoError(t, os.WriteFile(name, raw, 0o600))
			got, err := loaderPathsOf(name)
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
	expect.Fails(loaderPathsOf(t.TempDir()))(t, nil, "a folder was read")
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
