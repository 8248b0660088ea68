package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/ansi"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// usualDomain begins the address of every GPU of most machines. It is left out
// where there is no room.
const usualDomain = "0000:"

// matrix writes the table of transfers where it says more than the line above it.
func (t *text) matrix(all paths) {
	odd := slices.ContainsFunc(all, func(p path) bool { return p.outcome != all[0].outcome || badness[p.outcome] > badness[probe.OK] })
	m := newMatrix(t.d, all)
	n, every := len(m.devices), t.style.Verbose || t.style.Tables
	if n < 2 || !odd && (!every || all[0].outcome != probe.OK) {
		return
	}
	t.line()
	if n > largeMachine && !every || !t.table(m) {
		t.folded(all)
	}
	if every {
		for _, m := range testMatrices(t.d, t.style.Verbose) {
			t.line()
			if !t.table(m) {
				t.wrapped("      ", ansi.Dim, t.clean(m.title)+": too wide for this terminal; --format json holds it")
			}
		}
	}
}

// table writes a table, and reports whether it fits.
func (t *text) table(m matrix) bool {
	devices := m.devices
	if m.width() > t.width-6 {
		m.devices = slices.Clone(m.devices)
		for i, d := range m.devices {
			m.devices[i] = strings.TrimPrefix(d, usualDomain)
		}
	}
	if m.width() > t.width-6 {
		return false
	}
	head, column := m.head(), m.column()
	t.line("      ", t.paint(ansi.Dim, t.clean(m.title)))
	var row strings.Builder
	for _, h := range m.heads {
		row.WriteString(lines.Pad(t.clean(h), -column))
	}
	t.line("      ", t.paint(ansi.Dim, strings.Repeat(" ", head)+row.String()))
	for i := range devices {
		row.Reset()
		for j, c := range m.cells[i] {
			code := ansi.Plain
			switch o := m.marks[i][j]; {
			case c == "." || badness[o] < badness[probe.OK]:
				code = ansi.Dim
			case badness[o] > badness[probe.Slow]:
				code = ansi.Red
			case o == probe.Slow:
				code = ansi.Yellow
			}
			row.WriteString(strings.Repeat(" ", column-len(c)) + t.paint(code, c))
		}
		t.line("      ", t.paint(ansi.Dim, lines.Pad(m.labels[i]+"  "+t.clean(m.devices[i]), head)), row.String())
	}
	if m.legend != "" {
		t.wrapped("      ", ansi.Dim, m.legend)
	}
	return true
}

// folded lists the paths that are not well, instead of a table.
func (t *text) folded(all paths) {
	var odd paths
	for _, p := range all {
		if p.outcome != probe.OK {
			odd = append(odd, p)
		}
	}
	slices.SortStableFunc(odd, func(a, b path) int { return badness[b.outcome] - badness[a.outcome] })
	for i, p := range odd {
		if i == maxPaths && !t.style.Verbose {
			t.wrapped("      ", ansi.Dim, fmt.Sprintf("and %d more (--verbose)", len(odd)-i))
			break
		}
		said := string(p.outcome)
		if p.decided != nil {
			if p.decided.Test != probe.TestCopy {
				said += " (" + p.decided.Test + ")"
			}
			if v := speed([]*probe.Transfer{p.decided}); v != "" {
				said += ", " + v
			}
		}
		said = t.clean(p.String() + ": " + said)
		if utf8.RuneCountInString(said) > t.width-6 {
			said = strings.ReplaceAll(said, usualDomain, "")
		}
		t.wrapped("      ", ansi.Plain, said)
	}
	if len(odd) == 0 {
		t.wrapped("      ", ansi.Dim, "all paths alike; their rates are in -o report.json")
	}
}
