package amd

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/benchmark"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// transferBenchKind are the matrices of TransferBench's presets p2p and a2a
// (src/TransferBench.cpp, RunPeerToPeerBenchmarks and RunAllToAllBenchmark).
var transferBenchKind = &parse.Kind{
	Name: "transferbench", Title: "rates between AMD GPUs, from TransferBench", Command: "TransferBench p2p", Gives: []string{"benchmarks"},
	Anchors: []string{"directional copy peak bandwidth GB/s [", `SRC+EXE\DST`, `SRC\EXE+DST`, `SRC\DST `},
	Begins: func(in *parse.Lines) bool {
		return slices.ContainsFunc(in.Ahead(2), func(l parse.Line) bool { return transferBenchHead.MatchString(l.Text) })
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
	b := facts.Benchmark{Tool: "TransferBench", What: "copy", Source: s.Source(), Line: in.First().Number}
	var columns []string
	in.While(func(l parse.Line) bool {
		if m := transferBenchTitle.FindStringSubmatch(l.Text); m != nil && columns == nil {
			b.Test = m[1]
			if m[2] == "Bi" {
				b.What = "bidirectional"
			}
			return true
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
			return true
		}
		m := transferBenchRow.FindStringSubmatch(l.Text)
		switch {
		case columns != nil && strings.TrimSpace(l.Text) == "": // Between processors and GPUs.
			ahead := in.Ahead(2)
			return len(ahead) == 2 && transferBenchRow.MatchString(ahead[1].Text)
		case m == nil || columns == nil:
			return false
		case m[3] == "<-": // The other direction of the row before.
			return true
		}
		from := transferBenchDevice(m)
		for i, cell := range strings.FieldsFunc(m[4], func(r rune) bool { return strings.ContainsRune(" \t,|", r) }) {
			if rate := benchmark.Amount(cell, 1); rate != nil && i < len(columns) && columns[i] != from {
				benchmark.AddPoint(&b, facts.BenchmarkPoint{A: from, B: columns[i], GBps: rate, Line: l.Number})
			}
		}
		return true
	})
	if b.Complete = len(b.Points) > 0; b.Complete {
		benchmark.Add(s, b)
	}
}

// transferBenchDevice is a device's name without blank and leading zero. The
// kind of device and its number are the groups 1 and 2.
func transferBenchDevice(m []string) string { return m[1] + strconv.Itoa(parse.Number(m[2])) }
