package report

import (
	"bytes"
	"html"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestOutline(t *testing.T) {
	type link struct {
		Speed float64 `json:"speed"`
	}
	type device struct {
		Address string   `json:"address,omitempty"`
		Link    *link    `json:"link,omitempty"`
		Flags   []string `json:"flags"`
		Parts   []link   `json:"parts,omitempty"`
	}
	type joint struct {
		A  string `json:"a"`
		B  string `json:"b"`
		OK bool   `json:"ok"`
	}
	facts := struct {
		Schema string `json:"schema"`
		PCI    struct {
			Devices []device `json:"devices"`
		} `json:"pci"`
		Links struct {
			Pairs []joint `json:"pairs"`
			Bytes int64   `json:"bytes"`
			None  []joint `json:"none"`
		} `json:"links"`
		Empty *link `json:"empty"`
	}{Schema: "v1"}
	facts.PCI.Devices = []device{{Address: "0000:01:00.0", Link: &link{32}, Flags: []string{"a", "b"}, Parts: []link{{1}, {2}}}, {Flags: []string{}}}
	facts.Links.Pairs = []joint{{"x", "\u202ey", true}}
	facts.Links.Bytes = 1 << 53
	facts.Links.None = []joint{}
	var got []string
	for _, s := range outlineOf(facts) {
		for _, r := range s.Rows {
			var fields []string
			for _, f := range r.Fields {
				fields = append(fields, f.Name+" "+f.Text)
			}
			got = append(got, s.Name+": "+r.Path+": "+strings.Join(fields, ", "))
		}
	}
	want := []string{
		"pci: pci.devices[0000:01:00.0]: address 0000:01:00.0, link.speed 32, flags a b",
		"pci: pci.devices[0000:01:00.0].parts[0]: speed 1",
		"pci: pci.devices[0000:01:00.0].parts[1]: speed 2",
		"pci: pci.devices[1]: flags none",
		"links: links: bytes 9007199254740992, none none",
		"links: links.pairs[x \\u{202e}y]: a x, b \\u{202e}y, ok true",
	}
	expect.NoDiff(t, want, got, "it")
}

func TestShade(t *testing.T) {
	m := matrix{Devices: []string{"a"}, Labels: []string{"0"}, Columns: slices.Repeat([]string{"b"}, 6), Cells: [][]cell{{
		{"100", probe.OK}, {"99.0?", probe.Unknown}, {"50", probe.OK}, {"0.1", probe.OK}, {"?", probe.Unknown}, {"30!", probe.Slow},
	}}}
	var got []string
	for _, c := range m.Cells[0] {
		got = append(got, m.Shade(c))
	}
	expect.NoDiff(t, []string{"heat4", "heat4", "heat2", "heat0", "", "slow"}, got, "it")
}

// TestPolicy checks that the policy names the style and the script as they stand in the
// page, and that the page refers to nothing else.
func TestPolicy(t *testing.T) {
	var b bytes.Buffer
	v := &view{Document: &Document{}, Found: []finding{{Number: 1, Remedies: []remedy{{Links: []string{"javascript:alert(1)"}}}}}}
	(&page{view: v, Headline: "</title><script>alert(1)</script>"}).write(&b)
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
