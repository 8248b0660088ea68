package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/gfmtest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
)

// TestMarkdownOfAll checks, for all situations, that the report in Markdown is valid, short
// enough for a ticket, and that it names every finding and every remedy.
func TestMarkdownOfAll(t *testing.T) {
	t.Parallel()
	night.NotShort(t, "it enumerates, and nothing in it runs side by side")
	known := learnt(t)
	format, _ := report.FormatNamed("markdown")
	longest, of := 0, ""
	situations(t, func(s situation) {
		d := tellOf(t.Context(), t, known, s)
		var b bytes.Buffer
		expect.NoError(t, format.Write(&b, d, report.Style{}))
		for _, fault := range gfmtest.Faults(b.Bytes()) {
			t.Errorf("%s: %s", s.name, fault)
		}
		if b.Len() > report.MaxMarkdown {
			t.Errorf("%s: %d bytes", s.name, b.Len())
		}
		written := b.String()
		for _, f := range d.Findings {
			if !strings.Contains(written, "`"+f.Rule+"`") {
				t.Errorf("%s: %s is not named", s.name, f.Rule)
			}
		}
		if n := strings.Count(written, "\n"); n > longest {
			longest, of = n, s.name
		}
	})
	t.Logf("the longest has %d lines: %s", longest, of)
}
