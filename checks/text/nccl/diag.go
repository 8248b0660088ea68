package nccl

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/benchmark"
	networktext "github.com/gpudoctor/gpudoctor/checks/text/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// diagKind are the reports that NCCL 2.31, and RCCL after it, writes of
// itself: before the first collective with NCCL_RUN_DIAGNOSTICS=1 (it moves and
// compares data between each pair of GPUs, and runs ib_write_bw between hosts),
// with NCCL_RUN_RAS_DIAGNOSTICS=1, and on request through ncclras -D (it compares
// what the ranks say about themselves). Each line begins with host and process:
//
//	node7:4021 NCCL DIAG [OK]   p2p: verified P2P access in both directions between every GPU pair (56 peer accesses)
//
// "[OK]" is a check that complains of nothing, "[INFO]" anything else, from a
// corrupted transfer to a remark. Forms are of NVIDIA/nccl at 42f326f5 (2026),
// src/diagnostics/{p2p,ib_write_bw}.cc and src/ras/diagnostics_*.cc, and of
// ROCm/rccl's docs/how-to/using-rccl-diagnostics.rst.
//
// What the report complains of is the catalogue's (checks/message/diagnostics.yaml);
// here is read what it states.
func diagKind(d *diag) *parse.Kind {
	return &parse.Kind{
		Name:    "nccl-diagnostics",
		Title:   "NCCL's or RCCL's own diagnostics, from 2.31 on",
		Command: "NCCL_RUN_DIAGNOSTICS=1 NCCL_RUN_RAS_DIAGNOSTICS=1 (in the environment of the job), or ncclras -D",
		Gives:   []string{"logs", "benchmarks", "software", "gpus", "nics", "iommu", "kernel_log"},
		Anchors: []string{diagMark},
		Line:    func(s *parse.Sink, l parse.Line) bool { return diagLine(s, d, l) },
	}
}

const diagMark = "NCCL DIAG "

var (
	diagVerified = lazy.New(`^p2p: (?:verified P2P access in both directions between every GPU pair|all \d+ directed GPU P2P edges verified)`)
	diagGPUs     = lazy.New(`^GPU inventory: (\d{1,3})x (.+?) per node consistent across `)
	diagDriver   = lazy.New(`^(CUDA|HIP|NVIDIA) driver version: (\d+(?:\.\d+)*) consistent across `)
	diagIOMMU    = lazy.New(`^IOMMU mode: (passthrough|enabled \(DMA remapping\)|disabled) for `)
	diagPort     = lazy.New(`^Net device ([\w.-]+):(\d{1,3}): net device type=[\w -]+, speed=(\d{1,8}) Mbps, link layer=(\w+)(?:, Data Direct)?, state=(\w+)/(\w+) across `)
	diagXid      = lazy.New(`^(S?Xid) (\d{1,6}) detected (?:at least )?(\d{1,6}) times? (?:\((?:NVSwitch driver reported (Fatal|Non-fatal))?.*?\) )?on host (\S+?)\. (.*)$`)
)

func diagLine(s *parse.Sink, d *diag, l parse.Line) bool {
	s.Logs() // It was read, and what it does not complain of is right.
	before, body, _ := strings.Cut(l.Text, diagMark)
	body = strings.TrimSpace(body)
	for _, tag := range []string{"[OK]", "[INFO]"} {
		if rest, ok := strings.CutPrefix(body, tag); ok {
			body = strings.TrimSpace(rest)
		}
	}
	host := diagHost(before)
	if m := diagGPUs.FindStringSubmatch(body); m != nil {
		diagEnterGPUs(s, l, parse.Number(m[1]), m[2])
	} else if m := diagDriver.FindStringSubmatch(body); m != nil {
		diagEnterDriver(s, l, host, m[1], m[2])
	} else if m := diagIOMMU.FindStringSubmatch(body); m != nil {
		diagEnterIOMMU(s, l, m[1])
	} else if m := diagPort.FindStringSubmatch(body); m != nil {
		networktext.Merge(s, facts.RDMAPort{
			Device: m[1], Port: parse.Number(m[2]), Host: host, LinkLayer: network.LinkLayer(m[4]),
			State: network.PortState(m[5]), PhysicalState: network.PhysicalState(m[6]), RateGbps: float64(parse.Number(m[3])) / 1000,
		}, l)
	} else if m := diagXid.FindStringSubmatch(body); m != nil {
		diagEnterXid(s, d, l, m[1], m[2], m[3], m[4], m[5], body)
	} else if diagVerified.MatchString(body) {
		benchmark.Add(s, facts.Benchmark{
			Tool: "nccl-diagnostics", Test: "peer access", What: "other", P2P: new(true), Wrong: new(int64(0)), Complete: true, Source: s.Source(), Line: l.Number,
		})
	}
	return true
}

// diagHost is the host in "node7:4021 " at the end of what stands before.
func diagHost(before string) string {
	return escape.Printable(diagSpeaker.First(before), 100)
}

var diagSpeaker = lazy.New(`(?:^| )([^ :]*):\d{1,19} *$`)

// diagMaxGPUs bounds the GPUs of one node.
const diagMaxGPUs = 64

func diagEnterGPUs(s *parse.Sink, l parse.Line, count int, name string) {
	vendor := "nvidia"
	if strings.Contains(name, "AMD") || strings.Contains(name, "Instinct") || strings.Contains(name, "Radeon") {
		vendor = "amd"
	}
	for i := range min(count, diagMaxGPUs) {
		g := s.GPUAt(i, l)
		g.Vendor, g.Name = vendor, cmp.Or(g.Name, escape.Printable(name, 100))
	}
}

// cudaVersion is a version of CUDA that is given as a number: 13000 is 13.0
// (cuDriverGetVersion: 1000 * major + 10 * minor).
func cudaVersion(n int) string { return fmt.Sprintf("%d.%d", n/1000, n%1000/10) }

// diagEnterDriver notes a version.
func diagEnterDriver(s *parse.Sink, l parse.Line, host, kind, version string) {
	switch n := parse.Number(version); {
	case kind == "NVIDIA":
		s.Package("nvidia-driver", version, host, "log", l)
	case kind == "CUDA" && n >= 1000 && n < 100000:
		// RCCL before it had words of its own calls HIP's version CUDA's; that
		// has eight digits and more.
		s.Package("cuda-driver", cudaVersion(n), host, "log", l)
	}
}

// diagEnterIOMMU: the library reads the type of the groups of GPUs and NICs.
func diagEnterIOMMU(s *parse.Sink, l parse.Line, mode string) {
	f := s.IOMMU()
	if f.Mode != "" {
		return
	}
	f.Mode = cmp.Or(map[string]string{"passthrough": "passthrough", "disabled": "off"}[mode], "translated")
	s.Told("iommu.mode", f.Mode, l)
}

// diag is what the diagnostics say about kernel logs.
type diag struct{ events []facts.KernelEvent }

// finish adds those events to the others.
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

// diagMaxEvents bounds the Xids that are kept.
const diagMaxEvents = 256

// diagEnterXid notes what the library found in the kernel log of a host. It
// says itself of which of them nobody need care.
func diagEnterXid(s *parse.Sink, d *diag, l parse.Line, kind, code, count, class, host, text string) {
	if strings.Contains(text, "o user action or further investigation is required") || len(d.events) >= diagMaxEvents {
		return
	}
	n := parse.Number(code)
	e := facts.KernelEvent{
		ID: "nccl-diag-" + strings.ToLower(kind), Kind: strings.ToLower(kind), Code: &n, Message: escape.Printable(text, 300), Count: max(1, parse.Number(count)),
		Host: escape.Printable(host, 100), Source: s.Source(), Line: l.Number,
	}
	if class != "" {
		e.Fatal = new(class == "Fatal")
	}
	d.events = append(d.events, e)
}
