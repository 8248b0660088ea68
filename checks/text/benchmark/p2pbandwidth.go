package benchmark

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/finite"
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
	Begins: func(in *parse.Lines) bool {
		l, _ := in.Peek()
		return p2pBandwidthTitle.MatchString(l.Text) || p2pBandwidthAccess.MatchString(l.Text) || strings.TrimSpace(l.Text) == "P2P Connectivity Matrix"
	},
	Read: readP2PBandwidth,
}

var (
	p2pBandwidthTitle  = lazy.New(`^\s*(Unidirectional |Bidirectional )?P2P=(Enabled|Disabled) (Bandwidth|Latency)\b.*Matrix \((GB/s|us)\)`)
	p2pBandwidthAccess = lazy.New(`^\s*Device=(\d+) (CAN|CANNOT) Access Peer Device=(\d+)`)
)

func readP2PBandwidth(s *parse.Sink, in *parse.Lines) {
	for {
		l, ok := in.Peek()
		switch {
		case !ok:
			return
		case p2pBandwidthAccess.MatchString(l.Text):
			m := p2pBandwidthAccess.FindStringSubmatch(l.Text)
			p2pAccess(s, parse.Number(m[1]), parse.Number(m[3]), m[2] == "CAN", l)
			in.Next()
		case strings.TrimSpace(l.Text) == "P2P Connectivity Matrix":
			in.Next()
			matrix(in, func(row, column string, value float64, at parse.Line) {
				if row != column {
					p2pAccess(s, parse.Number(row), parse.Number(column), value == 1, at)
				}
			})
		case p2pBandwidthTitle.MatchString(l.Text):
			m := p2pBandwidthTitle.FindStringSubmatch(l.Text)
			in.Next()
			enabled := m[2] == "Enabled"
			b := facts.Benchmark{
				Tool: "p2pBandwidthLatencyTest", Test: strings.TrimSpace(l.Text), P2P: &enabled, Complete: true,
				Source: s.Source(), Line: l.Number,
			}
			switch {
			case m[3] == "Latency":
				b.What = "latency"
			case m[1] == "Bidirectional ":
				b.What = "bidirectional"
			default:
				b.What = "copy"
			}
			matrix(in, func(row, column string, value float64, at parse.Line) {
				if row == column || len(b.Points) >= parse.MaxEntries {
					return
				}
				p := facts.BenchmarkPoint{A: "GPU" + row, B: "GPU" + column, Line: at.Number}
				if b.What == "latency" {
					p.Microseconds = &value
				} else {
					p.GBps = &value
				}
				b.Points = append(b.Points, p)
			})
			Add(s, b)
		case strings.TrimSpace(l.Text) == "":
			if next := in.Ahead(2); len(next) < 2 || !p2pBandwidthTitle.MatchString(next[1].Text) && !p2pBandwidthAccess.MatchString(next[1].Text) {
				return
			}
			in.Next()
		default:
			return
		}
	}
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
	for _, p := range gpus.P2P {
		if p.A == from.Address && p.B == to.Address {
			return
		}
	}
	if len(gpus.P2P) < parse.MaxEntries {
		gpus.P2P = append(gpus.P2P, facts.GPUPeer{A: from.Address, B: to.Address, Read: status, Write: status})
		s.Told("gpus.p2p["+from.Address+" -> "+to.Address+"]", &gpus.P2P[len(gpus.P2P)-1], l)
	}
}

// matrix reads a matrix: a line of column numbers, behind a corner
// such as "D\D" or none, and rows that begin with their number.
func matrix(in *parse.Lines, cell func(row, column string, value float64, at parse.Line)) {
	head, ok := in.Peek()
	if !ok {
		return
	}
	var columns []string
	for word := range strings.FieldsSeq(head.Text) {
		if _, err := strconv.Atoi(word); err == nil {
			columns = append(columns, word)
		} else if len(columns) > 0 {
			return // No head of a matrix.
		}
	}
	if len(columns) == 0 || len(columns) > 1024 {
		return
	}
	in.Next()
	for {
		l, ok := in.Peek()
		if !ok {
			return
		}
		fields := strings.FieldsFunc(l.Text, func(r rune) bool { return r == ' ' || r == '\t' || r == '|' })
		if len(fields) == 0 {
			return
		}
		if _, err := strconv.Atoi(fields[0]); err != nil {
			return
		}
		in.Next()
		for i, word := range fields[1:] {
			if value, err := finite.Parse(word); err == nil && i < len(columns) && value >= 0 && value < 1e9 {
				cell(fields[0], columns[i], value, l)
			}
		}
	}
}

// stands notes the line of a part of a table, the first one.
func stands(b *facts.Benchmark, part string, line int) {
	if b.Lines == nil {
		b.Lines = make(map[string]int)
	}
	if b.Lines[part] == 0 {
		b.Lines[part] = line
	}
}

// Add notes a table.
func Add(s *parse.Sink, b facts.Benchmark) {
	if len(s.Facts.Benchmarks) < parse.MaxEntries {
		s.Facts.Benchmarks = append(s.Facts.Benchmarks, b)
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
		rate, err := finite.Parse(m[3])
		if err != nil {
			return false
		}
		enabled := true
		Add(s, facts.Benchmark{
			Tool: "simpleP2P", Test: "cudaMemcpyPeer, there and back", What: "copy", P2P: &enabled, Complete: true,
			Points: []facts.BenchmarkPoint{{A: "GPU" + m[1], B: "GPU" + m[2], GBps: &rate, Line: l.Number}},
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
