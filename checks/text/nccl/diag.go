package nccl

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/benchmark"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// diagKind are the reports that NCCL 2.31, and RCCL after it, writes about itself: before the first collective with
// NCCL_RUN_DIAGNOSTICS=1 (it moves and compares data between each pair of GPUs), with NCCL_RUN_RAS_DIAGNOSTICS=1, and on request
// through ncclras -D (it compares what the ranks say about themselves). Each line begins with host and process:
//
//	node7:4021 NCCL DIAG [OK]   p2p: verified P2P access in both directions between every GPU pair (56 peer accesses)
//
// Forms are of NVIDIA/nccl at 42f326f5 (2026), src/diagnostics/{p2p,ib_write_bw}.cc and src/ras/diagnostics_*.cc, and of
// ROCm/rccl's docs/how-to/using-rccl-diagnostics.rst. What the report complains of is the catalogue's
// (checks/message/diagnostics.yaml); here is read that data were verified, and which Xids the library found.
func diagKind(d *diag) *parse.Kind {
	return &parse.Kind{
		Name:    "nccl-diagnostics",
		Title:   "NCCL's or RCCL's own diagnostics, from 2.31 on",
		Command: "NCCL_RUN_DIAGNOSTICS=1 NCCL_RUN_RAS_DIAGNOSTICS=1 (in the environment of the job), or ncclras -D",
		Gives:   []string{"logs", "benchmarks", "kernel_log"},
		Anchors: []string{"NCCL DIAG "},
		Line:    d.line,
	}
}

var (
	diagVerified = lazy.New(`NCCL DIAG (?:\[OK\] *)?p2p: (?:verified P2P access in both directions between every GPU pair|all \d+ directed GPU P2P edges verified)`)
	diagXid      = lazy.New(`NCCL DIAG (?:\[INFO\] *)?((S?Xid) (\d{1,6}) detected (?:at least )?(\d{1,6}) times? (?:\((?:NVSwitch driver reported (Fatal|Non-fatal))?.*?\) )?on host (\S+?)\. .*)$`)
)

// maxDiagEvents bounds the Xids that are kept.
const maxDiagEvents = 256

// diag is what the diagnostics say about kernel logs.
type diag struct{ events []facts.KernelEvent }

func (d *diag) line(s *parse.Sink, l parse.Line) bool {
	s.Logs() // It was read, and what it does not complain of is right.
	if m := diagXid.FindStringSubmatch(l.Text); m != nil && len(d.events) < maxDiagEvents && !strings.Contains(m[1], "o user action or further investigation is required") {
		kind, code := strings.ToLower(m[2]), parse.Number(m[3])
		e := facts.KernelEvent{
			ID: "nccl-diag-" + kind, Kind: kind, Code: &code, Message: escape.Printable(m[1], 300), Count: max(1, parse.Number(m[4])),
			Host: escape.Printable(m[6], 100), Source: s.Source(), Line: l.Number,
		}
		if m[5] != "" {
			e.Fatal = new(m[5] == "Fatal")
		}
		d.events = append(d.events, e)
	}
	if diagVerified.MatchString(l.Text) {
		benchmark.Add(s, facts.Benchmark{
			Tool: "nccl-diagnostics", Test: "peer access", What: "other", P2P: new(true), Wrong: new(int64(0)), Complete: true, Source: s.Source(), Line: l.Number,
		})
	}
	return true
}

// finish adds the events to those of kernel logs.
func (d *diag) finish(s *parse.Sink) {
	if len(d.events) == 0 {
		return
	}
	f := s.KernelLog()
	if len(f.Events) == 0 {
		f.Source = d.events[0].Source
	}
	f.Events = append(f.Events, d.events...)
}
