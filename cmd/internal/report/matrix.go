package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// matrix is one number or mark for each ordered pair of GPUs.
type matrix struct {
	title   string
	legend  string
	devices []string
	labels  []string
	cells   [][]string
	marks   [][]probe.Outcome
}

// newMatrix makes the table of rates, the mark of what went wrong in place of
// the rate where data does not arrive. It has no rows without two GPUs.
func newMatrix(d *Document, all paths) matrix {
	m := matrix{title: "GB/s from row to column", devices: devicesOf(all)}
	if len(m.devices) < 2 {
		return matrix{}
	}
	m.fill(d)
	for _, p := range all {
		t := p.plain
		if p.outcome != probe.OK || t == nil {
			t = p.decided
		}
		m.set(p.source, p.destination, p.outcome, cellOf(p.outcome, t))
	}
	m.explain()
	return m
}

// newTestMatrix makes the table of one test alone.
func newTestMatrix(d *Document, test string) matrix {
	m := matrix{title: test + ", GB/s from row to column"}
	for _, t := range d.Transfers.Transfers {
		if t.Test == test {
			m.devices = append(m.devices, t.Source, t.Destination)
		}
	}
	slices.Sort(m.devices)
	m.devices = slices.Compact(m.devices)
	if len(m.devices) < 2 {
		return matrix{}
	}
	m.fill(d)
	for _, t := range d.Transfers.Transfers {
		if t.Test == test {
			if t.Microseconds != nil && t.GBps == nil {
				m.title = test + ", microseconds from row to column"
			}
			m.set(t.Source, t.Destination, t.Outcome, cellOf(t.Outcome, &t))
		}
	}
	m.explain()
	return m
}

// devicesOf lists the GPUs of the paths by address.
func devicesOf(all paths) []string {
	var devices []string
	for _, p := range all {
		devices = append(devices, p.source, p.destination)
	}
	slices.Sort(devices)
	return slices.Compact(devices)
}

// fill makes an empty table with the management library's numbers as labels
// where they are known for each GPU, and the place in the list elsewhere.
func (m *matrix) fill(d *Document) {
	n := len(m.devices)
	m.labels = make([]string, n)
	m.cells = make([][]string, n)
	m.marks = make([][]probe.Outcome, n)
	for i := range n {
		m.labels[i] = fmt.Sprint(i)
		m.cells[i] = slices.Repeat([]string{"?"}, n)
		m.marks[i] = slices.Repeat([]probe.Outcome{probe.Unknown}, n)
		m.cells[i][i], m.marks[i][i] = ".", probe.OK
	}
	named := make([]string, n)
	for _, g := range d.Host.GPUs {
		if i := slices.Index(m.devices, g.Address); i >= 0 && g.Index != nil {
			named[i] = fmt.Sprint(*g.Index)
		}
	}
	if !slices.Contains(named, "") {
		m.labels = named
	}
}

func (m *matrix) set(source, destination string, o probe.Outcome, cell string) {
	i, j := slices.Index(m.devices, source), slices.Index(m.devices, destination)
	m.cells[i][j], m.marks[i][j] = cell, o
}

// cellOf is a transfer's rate or time, or a mark.
func cellOf(o probe.Outcome, t *probe.Transfer) string {
	switch o {
	case probe.Corrupt:
		return "BAD"
	case probe.Hang:
		return "HANG"
	case probe.Error:
		return "ERR"
	case probe.Unsupported:
		return "-"
	case probe.Unknown:
		return "?"
	default:
	}
	mark := ""
	if o == probe.Slow {
		mark = "!"
	}
	switch {
	case t == nil:
		return "?"
	case t.GBps != nil:
		return rate(*t.GBps) + mark
	case t.Microseconds != nil:
		return microseconds(*t.Microseconds) + mark
	}
	return string(o)
}

// explain writes the legend of the marks that are in the table.
func (m *matrix) explain() {
	var words []string
	for _, e := range []struct {
		outcome probe.Outcome
		text    string
	}{
		{probe.Corrupt, "BAD wrong data"},
		{probe.Hang, "HANG no end within the deadline"},
		{probe.Error, "ERR driver error"},
		{probe.Slow, "! slower than the links allow"},
		{probe.Unsupported, "- not offered"},
		{probe.Unknown, "? not tried"},
	} {
		if slices.ContainsFunc(m.marks, func(row []probe.Outcome) bool { return slices.Contains(row, e.outcome) }) {
			words = append(words, e.text)
		}
	}
	m.legend = strings.Join(words, ", ")
}

// column is the width of a column, the blanks before it included.
func (m *matrix) column() int {
	width := 0
	for i, row := range m.cells {
		width = max(width, len(m.labels[i]))
		for _, c := range row {
			width = max(width, len(c))
		}
	}
	return width + 2
}

// head is the width of the row labels.
func (m *matrix) head() int {
	width := 0
	for i := range m.devices {
		width = max(width, len(m.labels[i])+2+len(m.devices[i]))
	}
	return width
}

// width is the number of columns that the table takes.
func (m *matrix) width() int { return m.head() + len(m.devices)*m.column() }
