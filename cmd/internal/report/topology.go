package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/topology"
)

// picture draws the machine with what is wrong in it; nil where no GPU is known.
func (v *view) picture(ascii bool) *topology.Machine {
	var faults []topology.Fault
	for _, f := range v.Found {
		if len(f.Places) > 0 {
			faults = append(faults, topology.Fault{Number: f.Number, Severity: string(f.Severity), Title: f.Title, Rule: f.Rule, Places: f.Places, OnLink: f.OnLink})
		}
	}
	return lines.Clean(topology.New(v.shown(), faults), ascii)
}

// WriteTopology writes the picture of the machine as a tree, and what is wrong in it.
func WriteTopology(w io.Writer, d *Document, s Style) error {
	v := newView(d, s.ASCII)
	shown := struct {
		*view
		Picture *topology.Machine
		Why     string
	}{v, v.picture(s.ASCII), "how the GPUs are connected is not known"}
	switch {
	case d.textsOnly:
		shown.Why = "the input does not show how GPUs are connected"
	case len(d.Host.GPUs) == 0:
		_, shown.Why = noGPU(v.Document)
	}
	t := newText(v, s)
	t.write("topology", shown)
	if _, err := w.Write(t.B.Bytes()); err != nil {
		return fmt.Errorf("write topology: %w", err)
	}
	return nil
}

// treeLines are the nodes, a line each, their links in columns at the right of the names,
// or below them where there is no room, and below a node what is wrong there.
func (t *text) treeLines(m *topology.Machine) []string {
	t = &text{Page: lines.Page{B: &bytes.Buffer{}, Width: t.Width, Color: t.Color}, style: t.style}
	rows := m.Rows(t.style.ASCII)
	names, speeds, rates := 0, 0, 0
	for _, r := range rows {
		if r.Up != nil {
			names = max(names, utf8.RuneCountInString(r.Lead+r.Label()))
			speeds, rates = max(speeds, utf8.RuneCountInString(r.Up.Speed)), max(rates, len(r.Up.Rate))
		}
	}
	beside := names+len("  ")+speeds+len("  ")+rates <= t.Width
	for _, r := range rows {
		line, below := r.Lead+r.Label(), []string{r.Detail, r.Links}
		if r.Up != nil && r.Up.Speed != "" && beside {
			line = lines.Pad(line, names) + "  " + lines.Pad(r.Up.Speed, speeds) + "  " + lines.Pad(r.Up.Rate, rates)
		} else if r.Up != nil && r.Up.Speed != "" {
			below = append([]string{r.Up.Speed, r.Up.Rate}, below...)
		}
		detail := lines.Joined(", ", below...)
		if detail != "" && utf8.RuneCountInString(line)+2+utf8.RuneCountInString(detail) <= t.Width {
			line, detail = line+"  "+detail, ""
		}
		t.Line(t.Paint(lines.Dim, r.Lead), strings.TrimPrefix(line, r.Lead))
		if detail != "" {
			t.below(r, lines.Dim, detail)
		}
		t.faults(r)
	}
	return strings.Split(strings.TrimSuffix(t.B.String(), "\n"), "\n")
}

// below writes a text below a node.
func (t *text) below(r topology.Row, c lines.Color, said string) {
	for _, l := range lines.Wrap(said, max(t.Width-utf8.RuneCountInString(r.Under), 20)) {
		t.Line(t.Paint(lines.Dim, r.Under), t.Paint(c, l))
	}
}

// faults writes what is wrong at a node and on the link above it.
func (t *text) faults(r topology.Row) {
	for _, f := range r.Marks() {
		said := fmt.Sprintf("! %d %s %s", f.Number, f.Severity, f.Rule)
		switch {
		case slices.ContainsFunc(r.Faults, func(o topology.Fault) bool { return o.Number == f.Number }):
		case slices.Contains(f.Places, r.Up.Port):
			said += " at port " + r.Up.Port
		default:
			said += " on this link"
		}
		t.below(r, ColorOf(f.Severity), said)
	}
}
