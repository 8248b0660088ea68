package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/ansi"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/topology"
)

// topology draws the machine with what is wrong in it; nil where no GPU is known.
func (d *Document) topology() *topology.Machine {
	var faults []topology.Fault
	for i, g := range groups(d.Findings) {
		fault := topology.Fault{
			Number: i + 1, Severity: string(g.Severity), Title: g.Title, Rule: g.Rule,
			Places: g.places(), OnLink: g.Cause == "pcie-link-degraded",
		}
		if len(fault.Places) > 0 {
			faults = append(faults, fault)
		}
	}
	return topology.New(d.shown(), faults, func(s string) string { return lines.Printable(s, false) })
}

// places are the addresses at which the findings of a group lie: those that the
// parameters of its remedies name, as the subject may count them, else those of the
// subject.
func (g group) places() []string {
	var all []string
	for _, f := range g.findings {
		bridges, _ := f.Params["bridges"].([]any)
		for _, b := range bridges {
			all = append(all, fmt.Sprint(b))
		}
		all = append(all, topology.Addresses(f.Subject)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// WriteTopology writes the picture of the machine as a tree, and what is wrong in it.
func WriteTopology(w io.Writer, d *Document, s Style) error {
	var b bytes.Buffer
	t := newText(&b, d, s)
	t.wrapped("", ansi.Bold, t.clean(d.Host.Summary))
	t.line()
	m := d.topology()
	switch {
	case m == nil && d.textsOnly:
		t.wrapped("", ansi.Plain, "No topology: the input does not show how GPUs are connected.")
	case m == nil && len(d.Host.GPUs) == 0:
		_, why := noGPU(d)
		t.wrapped("", ansi.Plain, "No topology: "+t.clean(why)+".")
	case m == nil:
		t.wrapped("", ansi.Plain, "No topology: how the GPUs are connected is not known.")
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
	beside := names+len("  ")+speeds+len("  ")+rates <= t.width
	for _, r := range rows {
		line, below := r.Lead+r.Label(), []string{r.Detail, r.Links}
		if r.Up != nil && r.Up.Speed != "" && beside {
			line = lines.Pad(line, names) + "  " + lines.Pad(r.Up.Speed, speeds) + "  " + lines.Pad(r.Up.Rate, rates)
		} else if r.Up != nil && r.Up.Speed != "" {
			below = append([]string{r.Up.Speed, r.Up.Rate}, below...)
		}
		below = slices.DeleteFunc(below, func(s string) bool { return s == "" })
		detail := t.clean(strings.Join(below, ", "))
		if detail != "" && utf8.RuneCountInString(line)+2+utf8.RuneCountInString(detail) <= t.width {
			line, detail = line+"  "+detail, ""
		}
		t.line(t.paint(ansi.Dim, r.Lead), strings.TrimPrefix(line, r.Lead))
		if detail != "" {
			t.under(r, ansi.Dim, detail)
		}
		t.faults(m, r)
	}
}

// under writes a text below a node.
func (t *text) under(r topology.Row, c ansi.Color, said string) {
	for _, l := range lines.Wrap(said, max(t.width-utf8.RuneCountInString(r.Under), leastWidth/2)) {
		t.line(t.paint(ansi.Dim, r.Under), t.paint(c, l))
	}
}

// faults writes what is wrong at a node and on the link above it.
func (t *text) faults(m *topology.Machine, r topology.Row) {
	for _, f := range m.Faults {
		said := fmt.Sprintf("! %d %s %s", f.Number, f.Severity, t.clean(f.Rule))
		switch {
		case slices.Contains(r.Faults, f.Number):
		case r.Up != nil && slices.Contains(r.Up.Faults, f.Number) && slices.Contains(f.Places, r.Up.Port):
			said += " at port " + r.Up.Port
		case r.Up != nil && slices.Contains(r.Up.Faults, f.Number):
			said += " on this link"
		default:
			continue
		}
		t.under(r, colorOf(f.Severity), said)
	}
}

// pictured writes what the tree does not show: the links beside PCIe, what is hidden,
// and the titles of the faults.
func (t *text) pictured(m *topology.Machine) {
	if len(m.Joins) > 0 || m.Hidden {
		t.line()
	}
	for _, j := range m.Joins {
		t.wrapped("", ansi.Plain, t.clean(j.String()))
	}
	if m.Hidden {
		t.wrapped("", ansi.Dim, topology.HiddenPaths)
	}
	t.near(m)
	if len(m.Faults) > 0 {
		t.line()
	}
	for _, f := range m.Faults {
		lead := fmt.Sprintf("%d  %s  ", f.Number, f.Severity)
		for i, l := range lines.Wrap(t.clean(f.Title), t.width-len(lead)) {
			if i > 0 {
				lead = strings.Repeat(" ", len(lead))
			}
			t.line(t.paint(colorOf(f.Severity), lead), l)
		}
	}
	if len(m.Faults) > 0 {
		t.line()
		t.line(t.paint(ansi.Dim, "what to do: "), t.clean(t.d.recheck.Command()))
	}
}

// near writes what is near each GPU, and what follows from how the machine is built.
func (t *text) near(m *topology.Machine) {
	if len(m.Near) > 0 {
		t.line()
		t.line("Nearest to each GPU")
	}
	for _, n := range m.Near {
		lead := n.GPU + "  "
		for i, l := range lines.Wrap(t.clean(n.String()), max(t.width-len(lead), leastWidth/2)) {
			if i > 0 {
				lead = strings.Repeat(" ", len(lead))
			}
			t.line(t.paint(ansi.Dim, lead), l)
		}
	}
	if len(m.Notes) > 0 {
		t.line()
	}
	for _, note := range m.Notes {
		t.wrapped("", ansi.Plain, t.clean(note))
	}
}
