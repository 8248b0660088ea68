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
	var b bytes.Buffer
	t := newText(&b, newView(d, s.ASCII), s)
	t.Wrapped("", lines.Bold, t.v.Host.Summary)
	t.Line()
	m := t.v.picture(s.ASCII)
	switch {
	case m == nil && d.textsOnly:
		t.Wrapped("", lines.Plain, "No topology: the input does not show how GPUs are connected.")
	case m == nil && len(d.Host.GPUs) == 0:
		_, why := noGPU(t.v.Document)
		t.Wrapped("", lines.Plain, "No topology: "+why+".")
	case m == nil:
		t.Wrapped("", lines.Plain, "No topology: how the GPUs are connected is not known.")
	default:
		t.tree(m)
		t.pictured(m)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write topology: %w", err)
	}
	return nil
}

// tree writes the nodes, a line each, their links in columns at the right of the names,
// or below them where there is no room, and below a node what is wrong there.
func (t *text) tree(m *topology.Machine) {
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
}

// below writes a text below a node.
func (t *text) below(r topology.Row, c lines.Color, said string) {
	for _, l := range lines.Wrap(said, max(t.Width-utf8.RuneCountInString(r.Under), leastBelow)) {
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

// pictured writes what the tree does not show: the links beside PCIe, what is hidden,
// and the titles of the faults.
func (t *text) pictured(m *topology.Machine) {
	if len(m.Joins) > 0 || m.Hidden {
		t.Line()
	}
	for _, j := range m.Joins {
		t.Wrapped("", lines.Plain, j.String())
	}
	if m.Hidden {
		t.Wrapped("", lines.Dim, topology.HiddenPaths)
	}
	t.near(m)
	if len(m.Faults) > 0 {
		t.Line()
	}
	for _, f := range m.Faults {
		lead := fmt.Sprintf("%d  %s  ", f.Number, f.Severity)
		t.Under(t.Paint(ColorOf(f.Severity), lead), strings.Repeat(" ", len(lead)), lines.Plain, f.Title)
	}
	if len(m.Faults) > 0 {
		t.Line()
		t.Line(t.Paint(lines.Dim, "what to do: "), t.v.Recheck)
	}
}

// near writes what is near each GPU, and what follows from how the machine is built.
func (t *text) near(m *topology.Machine) {
	if len(m.Near) > 0 {
		t.Line()
		t.Line("Nearest to each GPU")
	}
	for _, n := range m.Near {
		t.Under(t.Paint(lines.Dim, n.GPU+"  "), strings.Repeat(" ", len(n.GPU)+2), lines.Plain, n.String())
	}
	if len(m.Notes) > 0 {
		t.Line()
	}
	for _, note := range m.Notes {
		t.Wrapped("", lines.Plain, note)
	}
}
