package report

import (
	"fmt"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// matrix writes the table of transfers where it says more than the line above it.
func (t *text) matrix() {
	m := t.v.Matrix
	n, every := len(m.Devices), t.style.Verbose
	if n < 2 || !t.v.Uneven && (!every || len(t.v.Odd) > 0) {
		return
	}
	t.Line()
	if n > largeMachine && !every || !t.table(m) {
		t.folded()
	}
	if !every {
		return
	}
	for _, m := range t.v.Tests {
		t.Line()
		if !t.table(m) {
			t.Wrapped("      ", lines.Dim, m.Title+": too wide for this terminal; --format json holds it")
		}
	}
}

// table writes a table, and reports whether it fits.
func (t *text) table(m matrix) bool {
	if m.width() > t.Width-6 {
		return false
	}
	head, column := m.head(), m.column()
	t.Line("      ", t.Paint(lines.Dim, m.Title))
	var row strings.Builder
	for _, h := range m.Heads {
		row.WriteString(lines.Pad(h, -column))
	}
	t.Line("      ", t.Paint(lines.Dim, strings.Repeat(" ", head)+row.String()))
	for i, cells := range m.Cells {
		row.Reset()
		for _, c := range cells {
			row.WriteString(strings.Repeat(" ", column-len(c.Text)) + t.Paint(c.color(), c.Text))
		}
		t.Line("      ", t.Paint(lines.Dim, lines.Pad(m.Labels[i]+"  "+m.Devices[i], head)), row.String())
	}
	t.remark("      ", lines.Dim, "", m.Legend)
	return true
}

// color is the color of a cell.
func (c cell) color() lines.Color {
	switch {
	case c.Text == "." || badness[c.Outcome] < badness[probe.OK]:
		return lines.Dim
	case badness[c.Outcome] > badness[probe.Slow]:
		return lines.Red
	case c.Outcome == probe.Slow:
		return lines.Yellow
	}
	return lines.Plain
}

// folded lists the paths that are not well, instead of a table.
func (t *text) folded() {
	for i, said := range t.v.Odd {
		if i == maxPaths && !t.style.Verbose {
			t.Wrapped("      ", lines.Dim, fmt.Sprintf("and %d more (--verbose)", len(t.v.Odd)-i))
			break
		}
		t.Wrapped("      ", lines.Plain, said)
	}
	if len(t.v.Odd) == 0 {
		t.Wrapped("      ", lines.Dim, "all paths alike; their rates are in -o report.json")
	}
}
