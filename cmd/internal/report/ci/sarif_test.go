package ci

import (
	"strings"
	"testing"
)

// TestSARIFTexts checks that no text from a machine becomes a link or a placeholder.
func TestSARIFTexts(t *testing.T) {
	for text, want := range map[string]string{
		"[click](http://evil)": "[click] (http://evil)", "{0} and {x}": "{{0}} and {{x}}", "plain [x] (y)": "plain [x] (y)",
	} {
		if got := sarifText(text); got != want {
			t.Errorf("sarifText(%q) = %q, want %q", text, got, want)
		}
	}
	for file, want := range map[string]string{
		"logs/job 1.log": "logs/job%201.log", "/etc/nccl.conf": "file:///etc/nccl.conf", "a:b.log": "./a:b.log", "x#y?z": "x%23y%3Fz", "../a%b": "../a%25b",
	} {
		if got := sarifURI(file); got != want {
			t.Errorf("sarifURI(%q) = %q, want %q", file, got, want)
		}
	}
	if strings.Contains(sarifURI("a\nb"), "\n") {
		t.Error("a line break is kept")
	}
}
