package host

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

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
