package checks

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// linkedModel returns the rate at which a GPU of this model sends over its NVLinks to the others on
// its board; 0 for a part of a GPU, or a model without.
func linkedModel(name string) float64 {
	if strings.Contains(name, "MIG") {
		return 0
	}
	return data.GPUModelOf(name).NVLinkGBps
}

// expectOfBenchmarks notes with each measured value what the links allow.
// A table does not always identify its GPUs, so the weakest pair of the
// machine sets the expectation.
func expectOfBenchmarks(f *facts.Facts) {
	for i := range f.Benchmarks {
		b := &f.Benchmarks[i]
		if b.P2P != nil && !*b.P2P {
			continue // It was measured without peer access on purpose.
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
}

// expectOfNetwork compares a bandwidth between two machines with the rate of the
// port, which another text must have given.
func expectOfNetwork(f *facts.Facts, b *facts.Benchmark) {
	if !strings.HasPrefix(b.Test, "RDMA_Write") && !strings.HasPrefix(b.Test, "Send") {
		return // Reads and atomics keep fewer requests under way.
	}
	best := -1
	for i, p := range b.Points {
		if p.A != "" && p.Bytes >= data.Limits().NetworkBytes && p.GBps != nil && (best < 0 || *p.GBps > *b.Points[best].GBps) {
			best = i
		}
	}
	if best < 0 || f.NICs == nil {
		return
	}
	p := &b.Points[best]
	rate := 0.0
	for _, port := range f.NICs.RDMA {
		if port.Device == p.A && port.RateGbps > 0 && (rate == 0 || port.RateGbps/8 < rate) {
			rate = port.RateGbps / 8
		}
	}
	if rate == 0 {
		return
	}
	basis := "the port of " + p.A
	if strings.Contains(b.Test, "Bidirectional") {
		rate, basis = 2*rate, basis+" in both directions"
	}
	threshold := data.Limits().Network
	p.ExpectedGBps, p.Threshold, p.Basis = &rate, &threshold, basis
}

// expectOfHost compares copies between host memory and a GPU with the narrowest of
// the GPUs' links, as the table does not always identify its GPUs.
func expectOfHost(f *facts.Facts, b *facts.Benchmark) {
	rate, basis := 0.0, "the GPU's PCIe link"
	if f.GPUs != nil {
		for _, d := range f.GPUs.Devices {
			own := ownLinkRate(f, d.Address)
			if own == 0 {
				rate = 0 // The one of which nothing is known may be the narrowest.
				break
			}
			if rate == 0 || own < rate {
				rate = own
			}
		}
	}
	if rate == 0 {
		return
	}
	threshold := data.Limits().Shares[probe.TestHostToDevice].Unknown
	for i := range b.Points {
		p := &b.Points[i]
		if p.GBps != nil && (strings.HasPrefix(p.A, "GPU") || strings.HasPrefix(p.B, "GPU")) {
			p.ExpectedGBps, p.Threshold, p.Basis = &rate, &threshold, basis
		}
	}
}

// weakestPair is the rate and the threshold of the pair of GPUs whose link
// is the slowest.
func weakestPair(f *facts.Facts, test string) (rate, threshold float64, basis string) {
	if f.Links == nil {
		return 0, 0, ""
	}
	for _, p := range f.Links.Pairs {
		if p.Kind != pairGPUs {
			continue
		}
		t := probe.Transfer{Test: test, Source: p.A, Destination: p.B}
		r, least, why := pairRate(f, &t, 2, data.Limits().Shares[test])
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
	rate, threshold, basis := weakestPair(f, b.What)
	if rate == 0 {
		// A board of four without NVSwitches shares its links among three peers.
		rate, basis = modelRate(f, b)
		rate, threshold = rate/3, data.Limits().Shares[b.What].NVLink
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

// modelRate is what a GPU of the table sends over its NVLinks, if all are of
// one model that always has them.
func modelRate(f *facts.Facts, b *facts.Benchmark) (rate float64, basis string) {
	names := b.GPUNames
	if len(names) == 0 && f.GPUs != nil {
		for _, g := range f.GPUs.Devices {
			names = append(names, g.Name)
		}
	}
	if len(names) < 2 {
		return 0, ""
	}
	for _, name := range names {
		r := linkedModel(name)
		if r == 0 || rate != 0 && r != rate {
			return 0, ""
		}
		rate = r
	}
	return rate, fmt.Sprintf("the NVLinks of %s", names[0])
}

func expectOfCollective(f *facts.Facts, b *facts.Benchmark) {
	if b.Nodes > 1 || b.Ranks == 1 || len(b.Points) == 0 {
		return
	}
	rate, basis := modelRate(f, b)
	threshold := data.Limits().Collective.NVLink
	if rate == 0 {
		var linked bool
		rate, linked, basis = collectiveRate(f)
		if !linked {
			threshold = data.Limits().Collective.PCIe
		}
	}
	if rate == 0 {
		return
	}
	best := -1
	for i, p := range b.Points {
		if p.Bytes >= data.Limits().CollectiveBytes && p.GBps != nil && (best < 0 || *p.GBps > *b.Points[best].GBps) {
			best = i
		}
	}
	if best >= 0 {
		p := &b.Points[best]
		p.ExpectedGBps, p.Threshold, p.Basis = &rate, &threshold, cmp.Or(basis, "the links of one GPU")
	}
}

// collectiveRate is what one GPU's links carry, if the paths are known.
func collectiveRate(f *facts.Facts) (rate float64, linked bool, basis string) {
	rate, _, basis = weakestPair(f, probe.TestCopy)
	if rate == 0 {
		return 0, false, ""
	}
	for _, p := range f.Links.Pairs {
		if p.Kind == pairGPUs && (p.NVLinks == nil || *p.NVLinks == 0) {
			return rate, false, basis
		}
	}
	return rate, true, basis
}
