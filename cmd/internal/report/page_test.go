package report

import (
	"bytes"
	"html"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestOutline(t *testing.T) {
	f := &facts.Facts{
		Schema: "v1", Unknown: []facts.Unknown{}, Origins: []facts.Origin{{Fact: "a", Source: "b", Line: 1}},
		PCI: &facts.PCIFacts{Devices: []facts.PCIDevice{
			{Address: "0000:01:00.0", Kind: "gpu", Link: &facts.PCIeLink{SpeedGTs: 32, Width: 16}, Ancestors: []string{"a", "\u202eb"}}, {Address: "0000:02:00.0"},
		}},
		Links:     &facts.LinkFacts{Pairs: []facts.Pair{{A: "x", B: "y", NVLinks: new(0)}}},
		NUMA:      &facts.NUMAFacts{Nodes: []facts.NUMANode{}},
		KernelLog: &facts.KernelLogFacts{Events: []facts.KernelEvent{{ID: "e", Fields: map[string]string{"code": "9"}}}},
	}
	var got []string
	for _, s := range outlineOf(f) {
		for _, r := range s.Rows {
			for _, field := range r.Fields {
				got = append(got, s.Name+": "+r.Path+": "+field.Name+" "+field.Text)
			}
		}
	}
	for _, want := range []string{
		"pci: pci.devices[0000:01:00.0]: link.speed_gts 32", "pci: pci.devices[0000:01:00.0]: ancestors a \\u{202e}b", "pci: pci.devices[0000:02:00.0]: address 0000:02:00.0",
		"links: links.pairs[x -> y]: nvlinks 0", "numa: numa: nodes none", "kernel_log: kernel_log.events[e]: fields[code] 9",
	} {
		expect.That(t, slices.Contains(got, want), "%q is missing in %q", want, got)
	}
	expect.That(t, !slices.ContainsFunc(got, func(s string) bool {
		return strings.Contains(s, "schema") || strings.Contains(s, "unknown") || strings.Contains(s, "0000:02:00.0]: link")
	}), "what is not known is listed: %q", got)
}

func TestShade(t *testing.T) {
	m := matrix{Devices: []string{"a"}, Labels: []string{"0"}, Columns: slices.Repeat([]string{"b"}, 6), Cells: [][]cell{{
		{"100", probe.OK}, {"99.0?", probe.Unknown}, {"50", probe.OK}, {"0.1", probe.OK}, {"?", probe.Unknown}, {"30!", probe.Slow},
	}}}
	got := expect.Map(m.Cells[0], m.Shade)
	expect.NoDiff(t, []string{"heat4", "heat4", "heat2", "heat0", "", "slow"}, got, "it")
}

// TestPolicy checks that the policy names the style and the script as they stand in the
// page, and that the page refers to nothing else.
func TestPolicy(t *testing.T) {
	var b bytes.Buffer
	v := &view{Document: &Document{}, Found: []finding{{Number: 1, Remedies: []remedy{{Links: []string{"javascript:alert(1)"}}}}}}
	expect.NoError(t, compiled().Execute(&b, &page{view: v, Headline: "</title><script>alert(1)</script>"}))
	written := b.String()
	for _, part := range []struct{ begin, end, directive string }{{"<style>", "</style>", "style-src"}, {"<script>", "</script>", "script-src"}} {
		_, rest, _ := strings.Cut(written, part.begin)
		text, _, _ := strings.Cut(rest, part.end)
		want := part.directive + " '" + sourceDigest(text) + "'"
		expect.That(t, strings.Contains(html.UnescapeString(written), want), "the policy lacks %s", want)
	}
	expect.Equal(t, 1, strings.Count(written, "<script"), "scripts of the page")
	for _, banned := range []string{` src=`, `<link`, `style="`, `onclick`, `href="javascript`, `url(`} {
		expect.That(t, !strings.Contains(written, banned), "the page has %q", banned)
	}
}
