package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/topology"
)

// matrix is a number or mark for each GPU (a row) and the other GPUs or the memory of each NUMA node (a column).
type matrix struct {
	Title, Legend   string
	Devices, Labels []string // The GPUs by address, and their short names.
	Columns, Heads  []string // Addresses or names of nodes, and their short names.
	Cells           [][]cell
}

type cell struct {
	Text    string
	Outcome probe.Outcome
}

func (c cell) Bad() bool { return badness[c.Outcome] > badness[probe.OK] }

func (m matrix) Bad() bool { return m.any(cell.Bad) }

func (m matrix) Several() bool { return len(m.Devices) > 1 }

func (m *matrix) any(is func(cell) bool) bool {
	return slices.ContainsFunc(m.Cells, func(row []cell) bool { return slices.ContainsFunc(row, is) })
}

// newMatrix makes the table of rates. It has no rows without two GPUs.
func newMatrix(d *Document, all paths) matrix {
	var devices []string
	for _, p := range all {
		devices = append(devices, p.source, p.destination)
	}
	m := pairMatrix(d, devices)
	if len(m.Devices) < 2 {
		return matrix{}
	}
	m.Title = "GB/s, row to column"
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

// test is a test of the probe, how it is summed up and how its transfers are laid out in a table.
type test struct {
	id, name     string // The name is what it is called where it is summed up.
	unit         string // What the numbers of its table mean; empty for a test without a table of its own.
	within       bool   // It does not cross from one GPU to another.
	once         bool   // It is made once for both ways of a pair.
	host, inward bool   // It is with the host's memory; the GPU is the destination if inward is true, else the source.
}

// tests are the tests beyond the plain copy, whose table is that of the paths.
var tests = []test{
	{id: probe.TestCopyRead, name: "reads", unit: "GB/s, row to column"},
	{id: probe.TestStore, name: "SM stores", unit: "GB/s, row to column"},
	{id: probe.TestLoad, name: "SM loads", unit: "GB/s, row to column"},
	{id: probe.TestBidirectional, name: "both ways", unit: "GB/s, both directions combined", once: true},
	{id: probe.TestAllAtOnce, name: "all at once", unit: "GB/s, row to column"},
	{id: probe.TestHandshake, name: "handshake", unit: "microseconds, round trip", once: true},
	{id: probe.TestLatency, name: "latency", unit: "microseconds per load, row from column"},
	{id: probe.TestAtomics, name: "atomics", within: true},
	{id: probe.TestInterprocess, name: "between processes", unit: "GB/s, row to column"},
	{id: probe.TestStaged, name: "through host memory", unit: "GB/s, row to column, through host memory", within: true},
	{id: probe.TestHostToDevice, name: "host to GPU", unit: "GB/s from the memory of each NUMA node", within: true, host: true, inward: true},
	{id: probe.TestDeviceToHost, name: "GPU to host", unit: "GB/s to the memory of each NUMA node", within: true, host: true},
}

// byWay are the transfers of a test, those of each of its ways between processes together.
func (t test) byWay(r *probe.Report) (ways []string, of map[string][]*probe.Transfer) {
	of = map[string][]*probe.Transfer{}
	for i := range r.Transfers {
		if x := &r.Transfers[i]; x.Test == t.id {
			of[x.Way] = append(of[x.Way], x)
		}
	}
	return slices.Sorted(maps.Keys(of)), of
}

// testMatrices makes a table for each way of each test in which something was measured.
func testMatrices(d *Document) []matrix {
	if d.Transfers == nil {
		return nil
	}
	var all []matrix
	for _, t := range tests {
		ways, of := t.byWay(d.Transfers)
		for _, way := range ways {
			m := t.matrix(d, of[way])
			m.Title = t.id + lines.Behind(" by ", way) + ", " + t.unit
			if t.unit != "" && m.measured() {
				all = append(all, m)
			}
		}
	}
	return all
}

func (t test) matrix(d *Document, transfers []*probe.Transfer) matrix {
	var devices, columns []string
	for _, x := range transfers {
		row, column := t.place(x)
		if devices = append(devices, row); t.host {
			columns = append(columns, column)
		} else {
			devices = append(devices, column)
		}
	}
	m := pairMatrix(d, devices)
	if t.host {
		m.Columns = sorted(columns)
		m.Heads = m.Columns
		m.clear()
	}
	if t.once {
		for i := range m.Devices {
			for j := range i {
				m.Cells[i][j] = cell{"", probe.OK}
			}
		}
	}
	for _, x := range transfers {
		row, column := t.place(x)
		m.set(row, column, x.Outcome, cellOf(x.Outcome, x))
	}
	m.explain()
	return m
}

// place is the row and the column of a transfer.
func (t test) place(x *probe.Transfer) (row, column string) {
	row, column = x.Source, x.Destination
	if t.inward || t.once && topology.CompareAddresses(column, row) < 0 {
		row, column = column, row
	}
	return row, column
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.SortFunc(names, topology.CompareAddresses)
	return slices.Compact(names)
}

// pairMatrix makes an empty table of GPUs, with the management library's numbers as labels where all are known.
func pairMatrix(d *Document, devices []string) matrix {
	m := matrix{Devices: sorted(devices)}
	n := len(m.Devices)
	named := make([]string, n)
	for i := range n {
		m.Labels = append(m.Labels, fmt.Sprint(i))
	}
	for _, g := range d.Host.GPUs {
		if i := slices.Index(m.Devices, g.Address); i >= 0 && g.Index != nil {
			named[i] = fmt.Sprint(*g.Index)
		}
	}
	if !slices.Contains(named, "") {
		m.Labels = named
	}
	m.Columns, m.Heads = m.Devices, m.Labels
	m.clear()
	for i := range n {
		m.Cells[i][i] = cell{".", probe.OK}
	}
	return m
}

func (m *matrix) clear() {
	m.Cells = make([][]cell, len(m.Devices))
	for i := range m.Devices {
		m.Cells[i] = slices.Repeat([]cell{{"?", probe.Unknown}}, len(m.Columns))
	}
}

func (m *matrix) set(row, column string, o probe.Outcome, text string) {
	m.Cells[slices.Index(m.Devices, row)][slices.Index(m.Columns, column)] = cell{text, o}
}

// measured reports whether a table holds more than outcomes that are well.
func (m *matrix) measured() bool {
	return m.any(func(c cell) bool { return !slices.Contains([]string{"", ".", "?", "-", "ok"}, c.Text) })
}

// mark stands in a table instead of a number, or behind it where there is one.
type mark struct {
	outcome     probe.Outcome
	mark, means string
}

var marks = []mark{
	{probe.Corrupt, "BAD", "wrong data"},
	{probe.Hang, "HANG", "not finished within the deadline"},
	{probe.Error, "ERR", "driver error"},
	{probe.Slow, "!", "slower than the links allow"},
	{probe.Unsupported, "-", "not offered"},
	{probe.Unknown, "?", "not tried, or not judged"},
}

// cellOf is a transfer's rate or time, or a mark.
func cellOf(o probe.Outcome, t *probe.Transfer) string {
	text := ""
	if i := slices.IndexFunc(marks, func(m mark) bool { return m.outcome == o }); i >= 0 {
		text = marks[i].mark
	}
	switch {
	case t == nil:
		return cmp.Or(text, "?")
	case o != probe.OK && o != probe.Slow:
		return text
	case t.GBps != nil:
		return lines.Rate(*t.GBps) + text
	case t.Microseconds != nil:
		return lines.Microseconds(*t.Microseconds) + text
	}
	return string(o)
}

// explain writes the legend of the marks that are in the table.
func (m *matrix) explain() {
	used := lines.Filter(marks, func(e mark) bool { return m.any(func(c cell) bool { return c.Outcome == e.outcome }) })
	m.Legend = strings.Join(lines.Map(used, func(e mark) string { return e.mark + " " + e.means }), ", ")
}

func (m *matrix) column() (width int) {
	for _, text := range append(lines.Map(slices.Concat(m.Cells...), func(c cell) string { return c.Text }), m.Heads...) {
		width = max(width, len(text)+2)
	}
	return width
}

func (m *matrix) head() (width int) {
	for i := range m.Devices {
		width = max(width, len(m.Labels[i])+2+len(m.Devices[i]))
	}
	return width
}

func (m *matrix) width() int { return m.head() + len(m.Columns)*m.column() }
