package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestSARIFTexts checks that no text from a machine becomes a link or a placeholder.
func TestSARIFTexts(t *testing.T) {
	for text, want := range map[string]string{"[click](http://evil)": "[click] (http://evil)", "{0} and {x}": "{{0}} and {{x}}", "plain [x] (y)": "plain [x] (y)"} {
		expect.Equal(t, want, sarifText(text), "sarifText(%q)", text)
	}
	for file, want := range map[string]string{
		"logs/job 1.log": "logs/job%201.log", "/etc/nccl.conf": "file:///etc/nccl.conf", "a:b.log": "./a:b.log", "x#y?z": "x%23y%3Fz", "../a%b": "../a%25b",
	} {
		expect.Equal(t, want, sarifURI(file), "sarifURI(%q)", file)
	}
	expect.That(t, !strings.Contains(sarifURI("a\nb"), "\n"), "a line break is kept")
}

// TestLabelsAreSafe checks that what a file of waivers says is safe to print.
func TestLabelsAreSafe(t *testing.T) {
	waiver := waivers.Waiver{Rule: "a", Owner: "\x1b[31mme", Expires: "2027-01-31", File: "w\x1b.yaml", Line: 1}
	var b bytes.Buffer
	writePrometheus(&b, &ciReport{view: &view{Document: &Document{}}, issues: []issue{{Finding: rules.Finding{Rule: "a"}, Terms: waiver.Terms(), waiver: waiver}}})
	got := b.String()
	expect.That(t, !strings.Contains(got, "\x1b") && strings.Contains(got, "[31mme") && strings.Contains(got, ".yaml:1"), "%q", got)
}
