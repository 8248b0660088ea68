package rules

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEmbedded holds that every rule and library file is built into the program, and
// no Rego test.
func TestEmbedded(t *testing.T) {
	want, err := regoFiles(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("*/*_test.rego")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d Rego tests on disk: %v", len(names), err)
	}
	got := map[string][]byte{}
	err = fs.WalkDir(Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got[name], err = fs.ReadFile(Files(), name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files built into the program; make update packs them (-on disk +built in):\n%s", diff)
	}
}

// TestFileLength holds that no rule or library is longer than a person reads in one go.
func TestFileLength(t *testing.T) {
	const most = 300
	files, err := regoFiles(os.DirFS("."))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files on disk: %v", len(files), err)
	}
	for name, text := range files {
		if n := bytes.Count(text, []byte{'\n'}); n > most {
			t.Errorf("%s has %d lines, at most %d: move a part to a library", name, n, most)
		}
	}
}
