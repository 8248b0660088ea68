package benchmark

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvbandwidthKind reads NVIDIA/nvbandwidth (output.cpp of v0.4 to v0.8).
var nvbandwidthKind = &parse.Kind{
	Name:    "nvbandwidth",
	Title:   "bandwidth between GPUs and to the host, from NVIDIA's nvbandwidth",
	Command: "./nvbandwidth",
	Gives:   []string{"benchmarks"},
	Anchors: []string{"bandwidth (GB/s)", "latency (ns)"},
	Begins:  parse.BeginsLike(nvbandwidthTitle),
	Read:    readNVBandwidth,
}

// nvbandwidthTitle is the line above a matrix: "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)".
var nvbandwidthTitle = lazy.New(`^\s*(memcpy|memory latency|multicast|local copy).*(bandwidth \(GB/s\)|latency.*\(ns\))`)

func readNVBandwidth(s *parse.Sink, in *parse.Lines) {
	l, _ := in.Next()
	b := facts.Benchmark{Tool: "nvbandwidth", Test: strings.TrimSpace(l.Text), What: nvbandwidthWhat("", l.Text), Source: s.Source(), Line: l.Number}
	if strings.Contains(l.Text, "GPU(row)") {
		b.P2P = new(true) // It makes peer access or leaves the pair out (N/A).
	}
	matrix(in, func(row, column string, value float64, at parse.Line) {
		p := facts.BenchmarkPoint{A: "GPU" + row, B: "GPU" + column, Line: at.Number}
		switch b.What {
		case "host-to-gpu":
			p.A = "CPU"
		case "gpu-to-host":
			p.A, p.B = "GPU"+column, "CPU"
		case "copy": // The arrow says which way data goes: from the column to the row.
			p.A, p.B = "GPU"+column, "GPU"+row
		}
		if b.What == "latency" {
			p.Microseconds = new(value / 1000) // It prints nanoseconds.
		} else {
			p.GBps = &value
		}
		AddPoint(&b, p)
	})
	for _, next := range in.Ahead(4) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(next.Text), "SUM "); ok {
			b.Test, _, _ = strings.Cut(name, " ")
			b.What = nvbandwidthWhat(b.Test, l.Text)
			b.Complete = true
			in.While(func(l parse.Line) bool { return l.Number <= next.Number })
			break
		}
	}
	Add(s, b)
}

// nvbandwidthTests are words of a test's name or title, and what it measures in the terms of gpudoctor; the first that fits counts.
var nvbandwidthTests = [][2]string{
	{"latency", "latency"},
	{"local", "local"},
	{"all_to_", "other"}, // Many copies at once: the pair's link is shared.
	{"one_to_all", "other"},
	{"multicast", "other"},
	{"bidirectional", "bidirectional"},
	{"<->", "bidirectional"},
	{"device_to_device_memcpy_read", "copy-read"},
	{"GPU(row) -> GPU(column)", "copy-read"},
	{"GPU(row) <- GPU(column)", "copy"},
	{"device_to_device", "copy"},
	{"CPU(row) -> GPU(column)", "host-to-gpu"},
	{"CPU(row) <- GPU(column)", "gpu-to-host"},
	{"", "other"},
}

func nvbandwidthWhat(name, title string) string {
	i := slices.IndexFunc(nvbandwidthTests, func(t [2]string) bool { return strings.Contains(name+" "+title, t[0]) })
	return nvbandwidthTests[i][1]
}
