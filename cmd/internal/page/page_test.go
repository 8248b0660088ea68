package page

import (
	"bytes"
	"html"
	"strings"
	"testing"

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
	type pair struct {
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
			Pairs []pair `json:"pairs"`
			Bytes int64  `json:"bytes"`
			None  []pair `json:"none"`
		} `json:"links"`
		Empty *link `json:"empty"`
	}{Schema: "v1"}
	facts.PCI.Devices = []device{{Address: "0000:01:00.0", Link: &link{32}, Flags: []string{"a", "b"}, Parts: []link{{1}, {2}}}, {Flags: []string{}}}
	facts.Links.Pairs = []pair{{"x", "y", true}}
	facts.Links.Bytes = 1 << 53
	facts.Links.None = []pair{}
	var got []string
	for _, s := range Outline(facts, strings.ToUpper) {
		for _, r := range s.Rows {
			var fields []string
			for _, f := range r.Fields {
				fields = append(fields, f.Name+" "+f.Text)
			}
			got = append(got, s.Name+": "+r.Path+": "+strings.Join(fields, ", "))
		}
	}
	want := []string{
		"pci: PCI.DEVICES[0000:01:00.0]: address 0000:01:00.0, link.speed 32, flags A B",
		"pci: PCI.DEVICES[0000:01:00.0].PARTS[0]: speed 1",
		"pci: PCI.DEVICES[0000:01:00.0].PARTS[1]: speed 2",
		"pci: PCI.DEVICES[1]: flags NONE",
		"links: LINKS: bytes 9007199254740992, none NONE",
		"links: LINKS.PAIRS[X Y]: a X, b Y, ok TRUE",
	}
	expect.NoDiff(t, want, got, "it")
}

func TestShade(t *testing.T) {
	m := Matrix{Rows: []MatrixRow{{Cells: []Cell{{Text: "100"}, {Text: "99.0?"}, {Text: "50"}, {Text: "0.1"}, {Text: "?"}, {Text: "30!", Class: "slow"}}}}}
	m.Shade()
	var got []string
	for _, c := range m.Rows[0].Cells {
		got = append(got, c.Class)
	}
	expect.NoDiff(t, []string{"heat4", "heat4", "heat2", "heat0", "", "slow"}, got, "it")
}

// TestPolicy checks that the policy names the style and the script as they stand in the
// page, and that the page refers to nothing else.
func TestPolicy(t *testing.T) {
	var b bytes.Buffer
	expect.NoError(t, Write(&b, &Report{Verdict: "</title><script>alert(1)</script>", Findings: []Finding{{Number: 1, Remedies: []Remedy{{Links: []string{"javascript:alert(1)"}}}}}}))
	page := b.String()
	for _, part := range []struct{ begin, end, directive string }{{"<style>", "</style>", "style-src"}, {"<script>", "</script>", "script-src"}} {
		_, rest, _ := strings.Cut(page, part.begin)
		text, _, _ := strings.Cut(rest, part.end)
		want := part.directive + " '" + digest(text) + "'"
		expect.That(t, strings.Contains(html.UnescapeString(page), want), "the policy lacks %s", want)
	}
	expect.Equal(t, 1, strings.Count(page, "<script"), "scripts of the page")
	for _, banned := range []string{` src=`, `<link`, `style="`, `onclick`, `href="javascript`, `url(`} {
		expect.That(t, !strings.Contains(page, banned), "the page has %q", banned)
	}
}
