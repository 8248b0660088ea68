package amd

import (
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// transferBenchKind are the matrices of TransferBench's presets p2p and a2a
// (src/TransferBench.cpp, RunPeerToPeerBenchmarks and RunAllToAllBenchmark).
var transferBenchKind = &parse.Kind{
	Name: "transferbench", Title: "rates between AMD GPUs, from TransferBench", Command: "TransferBench p2p", Gives: []string{"benchmarks"},
	Anchors: []string{"directional copy peak bandwidth GB/s [", `SRC+EXE\DST`, `SRC\EXE+DST`, `SRC\DST `},
	Begins: func(in *parse.Lines) bool {
		for _, l := range in.Ahead(2) {
			if transferBenchHead.MatchString(l.Text) {
				return true
			}
		}
		return false
	},
	Read: transferBenchRead,
}

var (
	transferBenchTitle = lazy.New(`^\s*((Uni|Bi)directional copy peak bandwidth GB/s \[.*\] \(GPU-Executor: \w+\))\s*$`)
	transferBenchHead  = lazy.New(`^\s*(SRC(?:\+EXE\\DST|\\EXE\+DST|\\DST))((?:[\s,|]+[CG]PU \d{1,3})+)(?:[\s,|]+STotal[\s,|]+Actual)?[\s,|]*$`)
	transferBenchName  = lazy.New(`([CG]PU) (\d{1,3})`)
	transferBenchRow   = lazy.New(`^\s*([CG]PU) (\d{1,3}) {0,3}(->|<-)?((?:[\s,|]+(?:[0-9.]+|N/A))+)[\s,|]*$`)
)

func transferBenchRead(s *parse.Sink, in *parse.Lines) {
	b := facts.Benchmark{Tool: "TransferBench", What: "copy", Source: s.Source()}
	first, _ := in.Peek()
	b.Line = first.Number
	var columns []string
	for {
		l, ok := in.Peek()
		if !ok {
			break
		}
		if m := transferBenchTitle.FindStringSubmatch(l.Text); m != nil && columns == nil {
			b.Test = m[1]
			if m[2] == "Bi" {
				b.What = "bidirectional"
			}
			in.Next()
			continue
		}
		if m := transferBenchHead.FindStringSubmatch(l.Text); m != nil && columns == nil {
			if b.Test == "" {
				b.Test = "p2p"
				if m[1] == `SRC\DST` && strings.Contains(l.Text, "STotal") {
					// Every GPU sends to every other at the same time.
					b.Test, b.What = "a2a", "other"
				} else if m[1] == `SRC\DST` {
					b.What = "bidirectional"
				}
			}
			for _, name := range transferBenchName.FindAllStringSubmatch(m[2], gpuMax) {
				columns = append(columns, transferBenchDevice(name))
			}
			in.Next()
			continue
		}
		m := transferBenchRow.FindStringSubmatch(l.Text)
		if columns != nil && strings.TrimSpace(l.Text) == "" { // Between processors and GPUs.
			if ahead := in.Ahead(2); len(ahead) < 2 || !transferBenchRow.MatchString(ahead[1].Text) {
				break
			}
			in.Next()
			continue
		}
		if m == nil || columns == nil {
			break
		}
		in.Next()
		if m[3] == "<-" { // The other direction of the row before.
			continue
		}
		from := transferBenchDevice(m)
		for i, cell := range strings.FieldsFunc(m[4], func(r rune) bool { return strings.ContainsRune(" \t,|", r) }) {
			rate, err := facts.ParseFloat(cell)
			if err != nil || i >= len(columns) || columns[i] == from || rate < 0 || rate > 1e6 || len(b.Points) >= parse.MaxEntries {
				continue
			}
			b.Points = append(b.Points, facts.BenchmarkPoint{A: from, B: columns[i], GBps: &rate, Line: l.Number})
		}
	}
	if len(b.Points) == 0 || len(s.Facts.Benchmarks) >= parse.MaxEntries {
		return
	}
	b.Complete = true
	s.Facts.Benchmarks = append(s.Facts.Benchmarks, b)
}

// transferBenchDevice is a device's name without blank and leading zero. The
// kind of device and its number are the groups 1 and 2.
func transferBenchDevice(m []string) string { return m[1] + strconv.Itoa(parse.Number(m[2])) }
