package main

import (
	"bytes"
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
		var stdout, stderr bytes.Buffer
		if code := run([]string{"gpudoctor", "explain", name, "--ascii"}, &stdout, &stderr); code != exitOK || stdout.Len() < 40 || stderr.Len() > 0 {
			t.Errorf("explain %s ends with %d and writes %q and %q", name, code, stdout.String(), stderr.String())
		}
		for _, c := range stdout.Bytes() {
			if c != '\n' && (c < ' ' || c > '~') {
				t.Errorf("explain %s --ascii writes the byte %#x", name, c)
				break
			}
		}
	}
}
