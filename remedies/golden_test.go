package remedies

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/golden"
)

// TestGoldenRemedies holds that remedies.zip.zst, which is part of the program, has the remedies of
// this folder. How they are packed may differ.
func TestGoldenRemedies(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no remedies: %v", err)
	}
	want := map[string][]byte{}
	for _, file := range files {
		if want[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	golden.Archive(t, "remedies.zip.zst", want)
}
