package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// maxSize is the most bytes that the stripped program may have: 32 MB.
const maxSize = 32_000_000

// TestSize holds the program to its size. The release is larger by its relocations.
func TestSize(t *testing.T) {
	if testing.Short() {
		t.Skip("it links the program")
	}
	file := filepath.Join(t.TempDir(), "gpudoctor")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", file, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxSize {
		t.Errorf("the stripped program has %d bytes, more than %d; go version -m and go tool nm -size show what is in it", info.Size(), maxSize)
	}
	t.Logf("%d bytes", info.Size())
}
