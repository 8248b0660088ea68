package text_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestTextAfterRecording checks that what follows the end of a recording is the same wherever the recording comes from:
// blank lines are nothing, and anything else is one line that names the place.
func TestTextAfterRecording(t *testing.T) {
	const recording = "gpudoctor.snapshot/v1\nrecorded by gpudoctor 1\nunlisted: not-recorded\n-- proc/cmdline --\nquiet\n-- !end --\n"
	for _, tt := range []struct {
		trailer string
		line    int // Of the error; 0 for none.
	}{
		{"", 0}, {"\n", 0}, {"\r\n \n", 0}, {"x", 7}, {"\n--\n", 8}, {"-- etc/hostname --\nother\n", 7}, {recording, 7},
	} {
		content := recording + tt.trailer
		for _, in := range []struct {
			what  string
			path  func(dir string) string
			place string
		}{
			{"file", func(dir string) string { return written(t, dir, "a.txtar", content) }, "a.txtar"},
			{"folder", func(dir string) string { written(t, dir, "a.txtar", content); return dir }, "a.txtar"},
			{"standard input", func(string) string { return "-" }, "standard input"},
			{"zip", func(dir string) string { return written(t, dir, "a.zip", string(zipped(t, "a.txtar", content))) }, "a.txtar"},
			{"tar", func(dir string) string { return written(t, dir, "a.tar", string(tarred(t, "a.txtar", content))) }, "a.txtar"},
			{"gzip", func(dir string) string { return written(t, dir, "a.txtar.gz", string(gzipped([]byte(content)))) }, "a.txtar"},
		} {
			result, err := text.Read(t.Context(), []string{in.path(t.TempDir())}, text.Options{Stdin: strings.NewReader(content)})
			switch want := fmt.Sprintf("%s:%d: text after the end of the recording: ", in.place, tt.line); {
			case tt.line == 0 && (err != nil || result.Facts == nil || result.Facts.Host == nil):
				t.Errorf("%s, %q: %v", in.what, tt.trailer, err)
			case tt.line > 0 && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("%s, %q: got %v, want %q", in.what, tt.trailer, err, want)
			}
		}
	}
}

// written writes a file and returns its path.
func written(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	expect.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
