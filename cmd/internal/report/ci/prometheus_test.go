package ci

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
)

// TestLabelsAreSafe checks that what a file of waivers says is safe to print.
func TestLabelsAreSafe(t *testing.T) {
	waiver := &waivers.Waiver{Rule: "a", Owner: "\x1b[31mme", Expires: "2027-01-31", File: "w\x1b.yaml", Line: 1}
	var b bytes.Buffer
	Prometheus(&b, &Report{Issues: []Issue{{Rule: "a", Waiver: waiver}}})
	if got := b.String(); strings.Contains(got, "\x1b") || !strings.Contains(got, "[31mme") || !strings.Contains(got, ".yaml:1") {
		t.Errorf("%q", got)
	}
}
