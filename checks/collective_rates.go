package checks

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// expectedOfCollective is what the links of one GPU carry in a collective on one machine, and the least part of it
// that counts as good, by the models of the GPUs, or else the paths between those that take part. network is true
// where all of it goes over NICs.
func expectedOfCollective(f *facts.Facts, models []string, takesPart func(gpu string) bool, network bool) (rate, threshold float64, basis string) {
	if network {
		rate, basis = affinity.NetworkRate(f)
		return rate, data.Rates().CollectiveNetwork, basis
	}
	if rate, basis = modelRate(models); rate > 0 {
		return rate, data.Rates().Collective.NVLink, basis
	}
	rate, _, basis = weakestPair(f, probe.TestCopy, takesPart)
	if rate == 0 {
		return 0, 0, ""
	}
	threshold = data.Rates().Collective.NVLink
	for _, p := range f.Links.Pairs {
		if between(&p, takesPart) && (p.NVLinks == nil || *p.NVLinks == 0) {
			threshold = data.Rates().Collective.PCIe
		}
	}
	return rate, threshold, cmp.Or(basis, "the links of one GPU")
}

func between(p *facts.Pair, takesPart func(gpu string) bool) bool {
	return p.Kind == pairGPUs && takesPart(p.A) && takesPart(p.B)
}

// anyGPU takes part: a table does not say which do.
func anyGPU(string) bool { return true }

// expectOfProbe notes with large all-reduces what the links allow; the best decides whether collectives are slow.
// All ways are judged by the links: a library takes others on one machine only where it must, and rules see which.
func expectOfProbe(f *facts.Facts, c *probe.Collectives) {
	if len(c.Arms) == 0 || len(c.GPUs) < 2 || c.Arms[0].Outcome != probe.OK {
		return
	}
	first := &c.Arms[0]
	large := largeSums(first)
	if len(large) == 0 {
		return
	}
	takesPart := func(gpu string) bool { return slices.Contains(c.GPUs, gpu) }
	rate, threshold, basis := expectedOfCollective(f, modelsOf(f, takesPart), takesPart, false)
	best := 0.0
	for _, op := range large {
		best = max(best, *op.BusGBps)
	}
	if most := mostOfCollective(f, c, rate, takesPart); best <= 0 || math.IsInf(best, 0) || math.IsNaN(best) || most > 0 && best > most {
		unknownSpeed(c, large, probe.CauseImplausible, fmt.Sprintf("every value is correct, but all-reduce at %.1f GB/s is more than the %.0f GB/s that the links can carry", best, most))
		return
	}
	if rate == 0 {
		return // Nothing is known of the links: no speed is wrong.
	}
	for _, op := range large {
		fraction := thousandths(*op.BusGBps / rate)
		op.ExpectedGBps, op.Fraction, op.Threshold, op.Basis = &rate, &fraction, &threshold, basis
	}
	slow := best < rate*threshold
	if address, user := FirstUser(f, c.GPUs...); user != nil { // The other job used the links as well.
		for _, op := range large {
			op.Threshold = nil
		}
		if slow {
			unknownSpeed(c, large, probe.CauseBusy, fmt.Sprintf("every value is correct, but %s: %s while all-reduce was timed, so its speed is not judged", address, user))
		}
		return
	}
	if slow {
		first.Outcome, first.Stage = probe.Slow, probe.AllReduce
		first.Reason = fmt.Sprintf("all-reduce at %.1f GB/s is %.0f %% of the %.0f GB/s of %s; at least %.0f %% is expected", best, 100*best/rate, rate, basis, 100*threshold)
		for _, op := range large {
			op.Outcome, op.Reason = probe.Slow, first.Reason
		}
		c.Outcome, c.Reason = first.Outcome, first.Reason
	}
}

// unknownSpeed notes that the speed of large all-reduces, whose values are correct, is not known.
func unknownSpeed(c *probe.Collectives, large []*probe.Operation, cause probe.Cause, why string) {
	for _, op := range large {
		op.Outcome, op.Cause, op.Reason = probe.Unknown, cause, why
	}
	first := &c.Arms[0]
	first.Outcome, first.Cause, first.Reason, first.Stage = probe.Unknown, cause, why, probe.AllReduce
	c.Outcome, c.Cause, c.Reason = first.Outcome, first.Cause, first.Reason
}

// largeSums are the all-reduces of an arm that show the bandwidth of the links and not their latency.
func largeSums(a *probe.Arm) []*probe.Operation {
	var all []*probe.Operation
	for i := range a.Operations {
		if op := &a.Operations[i]; op.Name == probe.AllReduce && op.Outcome == probe.OK && op.BusGBps != nil && op.Bytes >= data.Rates().CollectiveBytes {
			all = append(all, op)
		}
	}
	return all
}

// modelsOf are the models of the GPUs that take part; nil where one of them is not known.
func modelsOf(f *facts.Facts, takesPart func(gpu string) bool) []string {
	var all []string
	for _, d := range f.GPUs.All() {
		if takesPart(d.Address) {
			all = append(all, d.Name)
		}
	}
	return all
}

// mostOfCollective is the largest bus bandwidth that an all-reduce can have: no GPU sends more than its links
// carry, and with NVLS, where the switches add, each byte that it sends counts 2(n-1)/n times.
func mostOfCollective(f *facts.Facts, c *probe.Collectives, rate float64, takesPart func(gpu string) bool) float64 {
	of := map[string]float64{}
	for _, p := range f.Links.All() {
		if !between(&p, takesPart) {
			continue
		}
		r, _, _ := pairRate(f, &probe.Transfer{Test: probe.TestStore, Source: p.A, Destination: p.B}, 2, data.Rates().Shares[probe.TestStore])
		if r == 0 {
			clear(of) // Unknown links carry an unknown rate.
			break
		}
		for _, gpu := range []string{p.A, p.B} {
			if p.NVSwitch || p.LinkType != linkXGMI && (p.NVLinks == nil || *p.NVLinks == 0) {
				of[gpu] = max(of[gpu], r) // One link to all peers.
			} else {
				of[gpu] += r
			}
		}
	}
	most := rate
	for _, r := range of {
		most = max(most, r)
	}
	n := float64(len(c.GPUs))
	if nvls := c.Arms[0].NVLS; nvls == nil || *nvls {
		most *= max(1, 2*(n-1)/n)
	}
	return most * data.Rates().CollectiveError
}
