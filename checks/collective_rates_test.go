package checks

import (
	"fmt"
	"math"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// collectiveMachine is a machine with GPUs of a model, whose pairs are alike.
func collectiveMachine(n int, model string, pair facts.Pair) *facts.Facts {
	f := &facts.Facts{GPUs: &facts.GPUFacts{}, Links: &facts.LinkFacts{}}
	for i := range n {
		f.GPUs.Devices = append(f.GPUs.Devices, facts.GPU{Address: gpuAt(i), Name: model, Vendor: "nvidia"})
		for k := range i {
			p := pair
			p.A, p.B, p.Kind = gpuAt(k), gpuAt(i), pairGPUs
			f.Links.Pairs = append(f.Links.Pairs, p)
		}
	}
	return f
}

func gpuAt(i int) string { return fmt.Sprintf("0000:%02x:00.0", i+1) }

// ranAt are collectives of n GPUs with all-reduces at some rates, the last of which is the best.
func ranAt(n int, kind, network string, nvls *bool, rates ...float64) *probe.Collectives {
	c := &probe.Collectives{Outcome: probe.OK, Arms: []probe.Arm{{Name: probe.ArmConfigured, Outcome: probe.OK, NVLS: nvls}, {Name: probe.ArmP2POff, Outcome: probe.OK}}}
	for i := range n {
		c.GPUs = append(c.GPUs, gpuAt(i))
	}
	first := &c.Arms[0]
	if kind != "" {
		first.Transports = []probe.CollectiveTransport{{A: 0, B: 1, Kind: kind, Network: network, Channels: 2}}
	}
	tiny := 0.001
	first.Operations = []probe.Operation{{Name: probe.AllReduce, Bytes: 8, Outcome: probe.OK, BusGBps: &tiny}}
	for _, rate := range rates {
		first.Operations = append(first.Operations, probe.Operation{Name: probe.AllReduce, Bytes: 64 << 20, Outcome: probe.OK, BusGBps: &rate})
	}
	c.Arms[1].Operations = append(c.Arms[1].Operations, first.Operations...)
	return c
}

func joined(n int, gbps float64, through bool) facts.Pair {
	return facts.Pair{NVLinks: &n, NVLinkGBps: gbps, NVSwitch: through}
}

func pcie(gbps float64) facts.Pair {
	zero := 0
	return facts.Pair{NVLinks: &zero, Path: "PIX", Narrowest: &facts.NarrowestLink{BestGBps: gbps}}
}

// TestCollectiveThresholds checks, for each kind of link and way, that all-reduce is good from the threshold on and
// slow just below, whatever the sizes before, and that only the first arm is judged.
func TestCollectiveThresholds(t *testing.T) {
	t.Parallel()
	off := false
	shares := data.Rates().Collective
	for _, m := range []struct {
		name            string
		gpus            int
		facts           *facts.Facts
		rate, threshold float64
	}{
		{"a model with NVSwitches", 8, collectiveMachine(8, "NVIDIA H100 80GB HBM3", joined(18, 450, true)), 450, shares.NVLink},
		{"a model of which no link is known", 2, collectiveMachine(2, "NVIDIA H200", facts.Pair{}), 450, shares.NVLink},
		{"bridges", 2, collectiveMachine(2, "NVIDIA RTX A6000", joined(4, 56, false)), 56, shares.NVLink},
		{"PCIe", 4, collectiveMachine(4, "NVIDIA L40S", pcie(31.5)), 31.5, shares.PCIe},
	} {
		for _, way := range []struct{ kind, network string }{{"p2p-cumem", ""}, {"shm", ""}, {"net", "Socket"}, {"net", "IB"}, {"", ""}} {
			for _, share := range []float64{0, 0.001, 0.5, 0.999999, 1, 1.5, 2} {
				best := m.rate * m.threshold * share
				c := ranAt(m.gpus, way.kind, way.network, &off, best/2, best)
				expectOfProbe(m.facts, c)
				want := probe.OK
				switch {
				case share == 0:
					want = probe.Unknown
				case share < 1:
					want = probe.Slow
				}
				op := c.Arms[0].Operations[2]
				if c.Outcome != want || c.Arms[0].Outcome != want || op.Outcome != want || (c.Reason == "") != (want == probe.OK) {
					t.Errorf("%s by %q at %v of the threshold: %s, arm %s, operation %s, want %s (%s)", m.name, way.kind, share, c.Outcome, c.Arms[0].Outcome, op.Outcome, want, c.Reason)
				}
				expect.That(t, want == probe.Unknown || op.ExpectedGBps != nil && *op.ExpectedGBps == m.rate && *op.Threshold == m.threshold && op.Basis != "" && op.Fraction != nil, "%s: got %+v", m.name, op)
				expect.That(t, c.Arms[0].Operations[0].ExpectedGBps == nil && c.Arms[0].Operations[0].Outcome == probe.OK, "%s: 8 bytes are judged: %+v", m.name, c.Arms[0].Operations[0])
				other := c.Arms[1]
				expect.That(t, other.Outcome == probe.OK && other.Operations[2].ExpectedGBps == nil, "%s: the arm %s is judged: %+v", m.name, other.Name, other)
			}
		}
	}
}

// TestCollectiveMeasured checks figures that were measured: of healthy machines, and of two H200 without peer access.
func TestCollectiveMeasured(t *testing.T) {
	t.Parallel()
	on, off := true, false
	h200, h100 := collectiveMachine(2, "NVIDIA H200", joined(18, 450, true)), collectiveMachine(8, "NVIDIA H100 80GB HBM3", joined(18, 450, true))
	a100 := collectiveMachine(8, "NVIDIA A100-SXM4-80GB", joined(12, 300, true))
	for _, tt := range []struct {
		name    string
		f       *facts.Facts
		n       int
		kind    string
		nvls    *bool
		gbps    float64
		want    probe.Outcome
		because probe.Cause
	}{
		{"2 x H200", h200, 2, "p2p-cumem", &off, 328, probe.OK, ""},
		{"2 x H200 through host memory", h200, 2, "shm", &off, 27.6, probe.Slow, ""},
		{"2 x H200 over sockets", h200, 2, "net", &off, 4.2, probe.Slow, ""},
		{"8 x H100 with NVLS", h100, 8, "p2p-cumem", &on, 460, probe.OK, ""},
		{"8 x H100 with NVLS, the best that was measured", h100, 8, "p2p-cumem", nil, 480, probe.OK, ""},
		{"8 x A100", a100, 8, "p2p-ipc", &off, 228, probe.OK, ""},
		{"2 x H200, too fast", h200, 2, "p2p-cumem", &on, 500, probe.Unknown, probe.CauseImplausible},
		{"8 x H100 without NVLS, too fast", h100, 8, "p2p-cumem", &off, 500, probe.Unknown, probe.CauseImplausible},
		{"8 x H100 with NVLS, too fast", h100, 8, "p2p-cumem", &on, 900, probe.Unknown, probe.CauseImplausible},
		{"no number", h200, 2, "p2p-cumem", &off, math.Inf(1), probe.Unknown, probe.CauseImplausible},
	} {
		c := ranAt(tt.n, tt.kind, map[string]string{"net": "Socket"}[tt.kind], tt.nvls, tt.gbps)
		expectOfProbe(tt.f, c)
		expect.That(t, c.Outcome == tt.want && c.Cause == tt.because && c.Arms[0].Outcome == tt.want, "%s: %s (%s, %s), want %s (%s)", tt.name, c.Outcome, c.Cause, c.Reason, tt.want, tt.because)
	}
}

// TestCollectiveNotJudged checks where no speed is judged: of one GPU, of unknown links, of failed collectives, where
// no size is large, and where others use a GPU.
func TestCollectiveNotJudged(t *testing.T) {
	t.Parallel()
	off := false
	machine := func() *facts.Facts { return collectiveMachine(2, "NVIDIA H200", joined(18, 450, true)) }
	judge := func(f *facts.Facts, change func(*probe.Collectives)) *probe.Collectives {
		c := ranAt(2, "shm", "", &off, 4.2)
		change(c)
		expectOfProbe(f, c)
		return c
	}
	for name, c := range map[string]*probe.Collectives{
		"one GPU":       judge(machine(), func(c *probe.Collectives) { c.GPUs = c.GPUs[:1] }),
		"unknown links": judge(collectiveMachine(2, "", facts.Pair{}), func(*probe.Collectives) {}),
		"no links":      judge(&facts.Facts{}, func(*probe.Collectives) {}),
		"small":         judge(machine(), func(c *probe.Collectives) { c.Arms[0].Operations[1].Bytes = 8 << 20 }),
		"no rate":       judge(machine(), func(c *probe.Collectives) { c.Arms[0].Operations[1].BusGBps = nil }),
	} {
		op := c.Arms[0].Operations[1]
		expect.That(t, c.Outcome == probe.OK && op.Threshold == nil && op.Outcome == probe.OK, "%s: %s, %+v", name, c.Outcome, op)
	}
	for _, outcome := range []probe.Outcome{probe.Corrupt, probe.Hang, probe.Error, probe.Unknown} {
		c := judge(machine(), func(c *probe.Collectives) { c.Outcome, c.Arms[0].Outcome = outcome, outcome })
		expect.That(t, c.Outcome == outcome && c.Arms[0].Operations[1].Threshold == nil, "%s: %+v", outcome, c.Arms[0])
	}
	c := judge(machine(), func(c *probe.Collectives) { c.Arms = nil })
	expect.That(t, c.Outcome == probe.OK, "no arm: %+v", c)
	used := machine()
	used.GPUs.Devices[1].Processes = []facts.GPUProcess{{PID: 7, Name: "train"}}
	c = judge(used, func(*probe.Collectives) {})
	expect.That(t, c.Outcome == probe.Unknown && c.Cause == probe.CauseBusy && c.Arms[0].Operations[1].Threshold == nil, "in use, slow: %+v", c)
	c = judge(used, func(c *probe.Collectives) { *c.Arms[0].Operations[1].BusGBps = 328 })
	expect.That(t, c.Outcome == probe.OK && c.Arms[0].Operations[1].Threshold == nil, "in use, good: %+v", c)
}
