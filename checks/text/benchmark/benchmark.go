// Package benchmark reads what was measured and tried: bandwidths, latencies, copies.
package benchmark

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// New makes the kinds of this package for one reading.
func New(*parse.Sink) parse.Family {
	p := &perftest{}
	return parse.Family{Kinds: []*parse.Kind{
		cudaDevicesKind, ncclTestsKind, p2pBandwidthKind, simpleP2PKind, nvbandwidthKind, perftestKind(p), perftestGPUKind(p), peerMatrixKind, peerCopyKind,
		pythonCopyKind(&pythonCopy{}),
	}}
}

// Add notes a table.
func Add(s *parse.Sink, b facts.Benchmark) {
	if len(s.Facts.Benchmarks) < parse.MaxEntries {
		s.Facts.Benchmarks = append(s.Facts.Benchmarks, b)
	}
}

// AddPoint notes a value of a table.
func AddPoint(b *facts.Benchmark, p facts.BenchmarkPoint) {
	if len(b.Points) < parse.MaxEntries {
		b.Points = append(b.Points, p)
	}
}

// stands notes the line of a part of a table, the first one.
func stands(b *facts.Benchmark, part string, line int) {
	facts.Put(&b.Lines, part, cmp.Or(b.Lines[part], line))
}

// Amount reads a number that was measured, in a unit; nil for any other text.
func Amount(text string, unit float64) *float64 {
	n, err := facts.ParseFloat(text)
	if err != nil || n < 0 || n >= 1e15 {
		return nil
	}
	n *= unit
	return &n
}

// sizedRow reads a row that begins with a size in bytes: the value in a column, in units of GB/s.
func sizedRow(fields []string, column int, unit float64, l parse.Line) (p facts.BenchmarkPoint, ok bool) {
	if len(fields) <= column {
		return p, false
	}
	size, err := strconv.ParseInt(fields[0], 10, 64)
	p = facts.BenchmarkPoint{Bytes: size, GBps: Amount(fields[column], unit), Line: l.Number}
	return p, err == nil && size > 0 && p.GBps != nil
}

// binary is a MB of 2^20 bytes in GB.
const binary = 1.048576 / 1000

// matrix reads a Matrix of amounts.
func matrix(in *parse.Lines, cell func(row, column string, value float64, at parse.Line)) {
	Matrix(in, IsNumber, func(row, column, text string, at parse.Line) {
		if value := Amount(text, 1); value != nil {
			cell(row, column, *value, at)
		}
	})
}

// IsNumber reports whether a word is the number of a row or a column.
func IsNumber(word string) bool {
	_, err := strconv.Atoi(word)
	return err == nil
}

// Matrix reads a matrix: a line of the names of columns, behind a corner
// such as "D\D" or none, and rows that begin with their name.
func Matrix(in *parse.Lines, isName func(word string) bool, cell func(row, column, text string, at parse.Line)) {
	head, _ := in.Peek()
	var columns []string
	for word := range strings.FieldsSeq(head.Text) {
		if isName(word) {
			columns = append(columns, word)
		} else if len(columns) > 0 {
			return // No head of a matrix.
		}
	}
	if len(columns) == 0 || len(columns) > 1024 {
		return
	}
	in.Next()
	cells := func(l parse.Line) []string { // Of a row.
		fields := strings.FieldsFunc(l.Text, func(r rune) bool { return r == ' ' || r == '\t' || r == '|' })
		if len(fields) == 0 || !isName(fields[0]) {
			return nil
		}
		return fields
	}
	in.While(func(l parse.Line) bool {
		fields := cells(l)
		if strings.TrimSpace(l.Text) == "" {
			next := in.Ahead(2)
			return len(next) == 2 && cells(next[1]) != nil
		}
		for i, word := range fields[min(1, len(fields)):min(len(fields), len(columns)+1)] {
			cell(fields[0], columns[i], word, l)
		}
		return fields != nil
	})
}
