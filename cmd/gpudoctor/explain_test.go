package main

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
)

// TestExplain checks that every id and every word is explained, and in ASCII where that is
// asked for.
func TestExplain(t *testing.T) {
	known := expect.Value(learn(""))(t)
	names := known.names()
	expect.Must(t, len(names) >= 100, "only %d names", len(names))
	for i, name := range names {
		if night.Few() && i%10 > 0 {
			continue // It enumerates, and nothing in it runs side by side.
		}
		code, stdout, stderr := inProcess("explain", name, "--ascii")
		expect.That(t, code == exitOK && len(stdout) >= 40 && stderr == "", "explain %s ends with %d and writes %q and %q", name, code, stdout, stderr)
		for _, c := range stdout {
			if c != '\n' && (c < ' ' || c > '~') {
				t.Errorf("explain %s --ascii writes %q", name, c)
				break
			}
		}
	}
}
