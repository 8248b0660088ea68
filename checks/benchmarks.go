package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// CompareBenchmarks compares tables that had no links to be compared with.
func CompareBenchmarks(f *facts.Facts) {
	f.Benchmarks = slices.Clone(f.Benchmarks)
	for i := range f.Benchmarks {
		b := &f.Benchmarks[i]
		if !slices.ContainsFunc(b.Points, func(p facts.BenchmarkPoint) bool { return p.Threshold != nil && *p.Threshold < 1 }) {
			b.Points = slices.Clone(b.Points)
			expectOfBenchmark(f, b)
		}
	}
}

// expectOfBenchmark notes with each measured value what the links allow. A table does not always identify its
// GPUs, so the weakest pair of the machine sets the expectation.
func expectOfBenchmark(f *facts.Facts, b *facts.Benchmark) {
	if b.P2P != nil && !*b.P2P {
		return // It was measured without peer access on purpose.
	}
	switch b.What {
	case "collective":
		expectOfCollective(f, b)
	case probe.TestCopy, probe.TestCopyRead, probe.TestBidirectional:
		expectOfPairs(f, b)
	case "host-to-gpu", "gpu-to-host":
		expectOfHost(f, b)
	case "network":
		expectOfNetwork(f, b)
	}
}

// expectOfNetwork compares a bandwidth between two machines with the rate of the port.
func expectOfNetwork(f *facts.Facts, b *facts.Benchmark) {
	if !strings.HasPrefix(b.Test, "RDMA_Write") && !strings.HasPrefix(b.Test, "Send") {
		return // Reads and atomics keep fewer requests under way.
	}
	p := fastest(b, func(p *facts.BenchmarkPoint) bool { return p.A != "" && p.Bytes >= data.Rates().NetworkBytes })
	if p == nil {
		return
	}
	rate, basis := affinity.PortRate(f, p.A, b.QueuePairs)
	if rate == 0 {
		return
	}
	threshold := data.Rates().Network
	if path := affinity.PathTo(f, p.B, p.A); path != nil {
		if share, ok := data.Rates().GPUNetwork[path.Path]; ok {
			threshold, basis = share, fmt.Sprintf("%s over a path of type %s", basis, path.Path)
		}
		if n := path.Narrowest; n != nil && n.BestGBps < rate {
			rate, basis = n.BestGBps, "the narrowest PCIe link between "+p.B+" and "+p.A
		}
	}
	if strings.Contains(b.Test, "Bidirectional") {
		rate, basis = 2*rate, basis+" in both directions"
	}
	p.ExpectedGBps, p.Threshold, p.Basis = &rate, &threshold, basis
}

// expectOfHost compares copies between host memory and a GPU with the narrowest of the GPUs' ways to their
// processors or, if these are not known, with what any machine reaches.
func expectOfHost(f *facts.Facts, b *facts.Benchmark) {
	rate, threshold, basis := weakestHost(f)
	for i := range b.Points {
		p := &b.Points[i]
		if p.GBps == nil || !strings.HasPrefix(p.A, "GPU") && !strings.HasPrefix(p.B, "GPU") {
			continue
		}
		if p.Bytes > 0 && p.Bytes < data.Rates().HostBytes {
			continue // It shows the latency.
		}
		rate, threshold, basis := rate, threshold, basis
		if rate == 0 && !integrated(f, b) {
			rate, threshold, basis = floor(*p.GBps)
		}
		if rate > 0 {
			p.ExpectedGBps, p.Threshold, p.Basis = &rate, &threshold, basis
		}
	}
}

// weakestHost is the rate of the GPU whose way to its processor is the narrowest.
func weakestHost(f *facts.Facts) (rate, threshold float64, basis string) {
	for _, d := range f.GPUs.All() {
		r, least, why := hostRate(f, d.Address, "", data.Rates().Shares[probe.TestHostToDevice])
		if r == 0 {
			return 0, 0, "" // The one of which nothing is known may be the narrowest.
		}
		if rate == 0 || r < rate {
			rate, threshold, basis = r, least, why
		}
	}
	if uplink := affinity.Uplink([]string{basis}); uplink != "" && len(f.GPUs.All()) > 1 {
		basis = fmt.Sprintf("the %s of the switch above a GPU", uplink)
	}
	return rate, threshold, basis
}

// integrated reports whether a GPU of a table, or of the machine, is a part of its processor.
func integrated(f *facts.Facts, b *facts.Benchmark) bool {
	names := slices.Concat(b.GPUNames, modelsOf(f, anyGPU))
	return slices.ContainsFunc(names, func(name string) bool { return data.GPUModelOf(name).Form == "superchip" })
}

// weakestPair is the rate and the threshold of the slowest pair of GPUs that take part.
func weakestPair(f *facts.Facts, test string, takesPart func(gpu string) bool) (rate, threshold float64, basis string) {
	for _, p := range f.Links.All() {
		if !between(&p, takesPart) {
			continue
		}
		t := probe.Transfer{Test: test, Source: p.A, Destination: p.B}
		r, least, why := pairRate(f, &t, 2, data.Rates().Shares[test])
		if r == 0 {
			return 0, 0, "" // A pair of which nothing is known may be the weakest.
		}
		if rate == 0 || r*least < rate*threshold {
			rate, threshold, basis = r, least, why
		}
	}
	return rate, threshold, basis
}

func expectOfPairs(f *facts.Facts, b *facts.Benchmark) {
	rate, threshold, basis := weakestPair(f, b.What, anyGPU)
	if rate == 0 {
		// A board of four without NVSwitches shares its links among three peers.
		rate, basis = modelRate(modelsIn(f, b))
		rate, threshold = rate/3, data.Rates().Shares[b.What].NVLink
		if b.What == probe.TestBidirectional {
			rate *= 2
		}
	}
	if rate == 0 {
		return
	}
	for i := range b.Points {
		p := &b.Points[i]
		if p.GBps != nil && p.A != p.B && strings.HasPrefix(p.A, "GPU") && strings.HasPrefix(p.B, "GPU") {
			p.ExpectedGBps, p.Threshold, p.Basis = &rate, &threshold, basis
		}
	}
}

func modelsIn(f *facts.Facts, b *facts.Benchmark) []string {
	if len(b.GPUNames) > 0 {
		return b.GPUNames
	}
	return modelsOf(f, anyGPU)
}

// modelRate is what a GPU sends over its NVLinks, if all are of models that have the same.
func modelRate(names []string) (rate float64, basis string) {
	if len(names) < 2 {
		return 0, ""
	}
	for _, name := range names {
		r := data.GPUModelOf(name).NVLinkGBps
		if r == 0 || rate != 0 && r != rate || strings.Contains(name, "MIG") { // A part of a GPU has no NVLinks.
			return 0, ""
		}
		rate = r
	}
	return rate, fmt.Sprintf("the NVLinks of %s", names[0])
}

func expectOfCollective(f *facts.Facts, b *facts.Benchmark) {
	cut := func(l facts.Launch) bool { return l.Source == b.Source && l.Processes != nil && *l.Processes > b.Ranks }
	if b.Nodes > 1 || b.Ranks == 1 || len(b.Points) == 0 || slices.ContainsFunc(f.Launches, cut) {
		return // Those of its ranks that are not shown may be on other nodes.
	}
	rate, threshold, basis := expectedOfCollective(f, modelsIn(f, b), anyGPU, overNetwork(f))
	if rate == 0 {
		return
	}
	if p := fastest(b, func(p *facts.BenchmarkPoint) bool { return p.Bytes >= data.Rates().CollectiveBytes }); p != nil {
		p.ExpectedGBps, p.Threshold, p.Basis = &rate, &threshold, basis
	}
}

// fastest is the fastest of some points; nil without a point.
func fastest(b *facts.Benchmark, of func(*facts.BenchmarkPoint) bool) (best *facts.BenchmarkPoint) {
	for i := range b.Points {
		if p := &b.Points[i]; p.GBps != nil && of(p) && (best == nil || *p.GBps > *best.GBps) {
			best = p
		}
	}
	return best
}

// overNetwork reports whether NCCL's log shows that all channels go over NICs, as with NCCL_P2P_DISABLE=1.
func overNetwork(f *facts.Facts) bool {
	return f.Logs != nil && len(f.Logs.Transports) > 0 &&
		!slices.ContainsFunc(f.Logs.Transports, func(t facts.Transport) bool { return t.Kind != "net" })
}
