package benchmark

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// p2pBandwidthKind reads p2pBandwidthLatencyTest of NVIDIA/cuda-samples.
var p2pBandwidthKind = &parse.Kind{
	Name:    "p2pBandwidthLatencyTest",
	Title:   "bandwidth and latency between GPUs, from NVIDIA's CUDA samples",
	Command: "./p2pBandwidthLatencyTest",
	Gives:   []string{"benchmarks"},
	Anchors: []string{"P2P=Disabled ", "P2P=Enabled ", "P2P Connectivity Matrix", "Peer Device="},
	Begins:  parse.BeginsLike(p2pBandwidthTitle, p2pBandwidthAccess, p2pBandwidthMatrix),
	Read:    readP2PBandwidth,
}

var (
	p2pBandwidthTitle  = lazy.New(`^\s*(Unidirectional |Bidirectional )?P2P=(Enabled|Disabled) (Bandwidth|Latency)\b.*Matrix \((GB/s|us)\)`)
	p2pBandwidthAccess = lazy.New(`^\s*Device=(\d+) (CAN|CANNOT) Access Peer Device=(\d+)`)
	p2pBandwidthMatrix = lazy.New(`^\s*P2P Connectivity Matrix\s*$`)
)

func readP2PBandwidth(s *parse.Sink, in *parse.Lines) {
	for {
		l, ok := in.Peek()
		if next := in.Ahead(2); ok && strings.TrimSpace(l.Text) == "" && len(next) > 1 && (p2pBandwidthTitle.MatchString(next[1].Text) || p2pBandwidthAccess.MatchString(next[1].Text)) {
			in.Next()
			l = next[1]
		}
		access, title := p2pBandwidthAccess.FindStringSubmatch(l.Text), p2pBandwidthTitle.FindStringSubmatch(l.Text)
		switch {
		case access != nil:
			in.Next()
			p2pAccess(s, parse.Number(access[1]), parse.Number(access[3]), access[2] == "CAN", l)
		case title != nil:
			in.Next()
			p2pMatrix(s, in, title, l)
		case p2pBandwidthMatrix.MatchString(l.Text):
			in.Next()
			matrix(in, func(row, column string, value float64, at parse.Line) {
				p2pAccess(s, parse.Number(row), parse.Number(column), value == 1, at)
			})
		default:
			return
		}
	}
}

// p2pMatrix reads a matrix below its title.
func p2pMatrix(s *parse.Sink, in *parse.Lines, title []string, at parse.Line) {
	b := facts.Benchmark{
		Tool: "p2pBandwidthLatencyTest", Test: strings.TrimSpace(at.Text), P2P: new(title[2] == "Enabled"), Complete: true, What: "copy", Source: s.Source(), Line: at.Number,
	}
	if title[3] == "Latency" {
		b.What = "latency"
	} else if title[1] == "Bidirectional " {
		b.What = "bidirectional"
	}
	matrix(in, func(row, column string, value float64, at parse.Line) {
		p := facts.BenchmarkPoint{A: "GPU" + row, B: "GPU" + column, Line: at.Number}
		switch {
		case row == column:
			return
		case b.What == "latency":
			p.Microseconds = &value
		default:
			p.GBps = &value
		}
		AddPoint(&b, p)
	})
	Add(s, b)
}

// p2pAccess notes what CUDA says about peer access.
func p2pAccess(s *parse.Sink, a, b int, can bool, l parse.Line) {
	if a == b || a > 1024 || b > 1024 {
		return
	}
	status := "not-supported"
	if can {
		status = "ok"
	}
	from, to := s.GPUAt(a, l), s.GPUAt(b, l)
	from.Vendor, to.Vendor = cmp.Or(from.Vendor, "nvidia"), cmp.Or(to.Vendor, "nvidia")
	gpus := s.GPUs()
	known := slices.ContainsFunc(gpus.P2P, func(p facts.GPUPeer) bool { return p.A == from.Address && p.B == to.Address })
	if !known && len(gpus.P2P) < parse.MaxEntries {
		gpus.P2P = append(gpus.P2P, facts.GPUPeer{A: from.Address, B: to.Address, Read: status, Write: status})
		s.Told("gpus.p2p["+from.Address+" -> "+to.Address+"]", &gpus.P2P[len(gpus.P2P)-1], l)
	}
}

// simpleP2PKind reads simpleP2P of NVIDIA/cuda-samples.
var simpleP2PKind = &parse.Kind{
	Name:    "simpleP2P",
	Title:   "peer access and a verified copy, from NVIDIA's CUDA samples",
	Command: "./simpleP2P",
	Gives:   []string{"benchmarks", "gpus"},
	Anchors: []string{"Peer access from ", "cudaMemcpyPeer / cudaMemcpy between GPU", "Verification error @ element"},
	Line:    simpleP2PLine,
}

var (
	simpleP2PAccess = lazy.New(`Peer access from .*\(GPU(\d+)\) -> .*\(GPU(\d+)\) : (Yes|No)`)
	simpleP2PRate   = lazy.New(`cudaMemcpyPeer / cudaMemcpy between GPU(\d+) and GPU(\d+): ([0-9.]+)GB/s`)
	simpleP2PWrong  = lazy.New(`Verification error @ element (\d+): val = (\S+), ref = (\S+)`)
)

func simpleP2PLine(s *parse.Sink, l parse.Line) bool {
	if m := simpleP2PAccess.FindStringSubmatch(l.Text); m != nil {
		p2pAccess(s, parse.Number(m[1]), parse.Number(m[2]), m[3] == "Yes", l)
		return true
	}
	if m := simpleP2PRate.FindStringSubmatch(l.Text); m != nil {
		Add(s, facts.Benchmark{
			Tool: "simpleP2P", Test: "cudaMemcpyPeer, there and back", What: "copy", P2P: new(true), Complete: true,
			Points: []facts.BenchmarkPoint{{A: "GPU" + m[1], B: "GPU" + m[2], GBps: Amount(m[3], 1), Line: l.Number}},
			Source: s.Source(), Line: l.Number,
		})
		return true
	}
	if simpleP2PWrong.MatchString(l.Text) {
		list := s.Facts.Benchmarks
		if n := len(list); n == 0 || list[n-1].Tool != "simpleP2P" || list[n-1].Source != s.Source() {
			Add(s, facts.Benchmark{Tool: "simpleP2P", Test: "verification", What: "copy", Complete: true, Source: s.Source(), Line: l.Number})
		}
		b := &s.Facts.Benchmarks[len(s.Facts.Benchmarks)-1]
		if b.Wrong == nil {
			b.Wrong = new(int64)
			b.Line = l.Number
			stands(b, "wrong", l.Number)
		}
		*b.Wrong++
		return true
	}
	return false
}
