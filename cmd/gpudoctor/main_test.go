package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestComplain(t *testing.T) {
	base := errors.New("read host\x1b[2J.txtar: no\nsuch thing")
	var b bytes.Buffer
	complain(&b, hinted(fmt.Errorf("open: %w", hinted(base, "inner")), "outer"))
	want := "gpudoctor: open: read host\\x1b[2J.txtar: no such thing\nhint: outer\nhint: inner\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWriteFileLeavesNothing holds that a write that fails changes no file and
// leaves none.
func TestWriteFileLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "r.json")
	if err := os.WriteFile(file, []byte("before"), 0o666); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("disk full")
	err := writeFile(file, func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			t.Fatal(err)
		}
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "before" {
		t.Errorf("the file holds %q, %v", got, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files are left, want 1 (%v)", len(entries), err)
	}
}
