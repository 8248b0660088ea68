package checks

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestExpect checks what each kind of path is expected to carry. The rates are
// those of healthy machines, and of the faults that the thresholds are for.
func TestExpect(t *testing.T) {
	const a, b = "0000:06:00.0", "0000:07:00.0"
	pcie := func(path string) facts.Pair {
		return facts.Pair{A: a, B: b, Kind: "gpu-gpu", Path: path, NVLinks: new(0), Narrowest: &facts.NarrowestLink{BestGBps: 63}}
	}
	nvlink := facts.Pair{A: a, B: b, Kind: "gpu-gpu", Path: "PHB", NVLinks: new(18), NVSwitch: true, NVLinkGBps: 450}
	for _, c := range []struct {
		name    string
		pair    facts.Pair
		virtual bool
		test    string
		gbps    float64
		devices int
		want    probe.Outcome
	}{
		{"H200 copy", nvlink, true, probe.TestCopy, 396.4, 8, probe.OK},
		{"H200 copy, a third of the links", nvlink, true, probe.TestCopy, 130, 8, probe.Slow},
		{"H200 both ways", nvlink, true, probe.TestBidirectional, 783.7, 8, probe.OK},
		{"H200 both ways, one direction's worth", nvlink, true, probe.TestBidirectional, 396, 8, probe.Slow},
		{"H200 stores", nvlink, true, probe.TestStore, 370, 8, probe.OK},
		{"H200 all at once", nvlink, true, probe.TestAllAtOnce, 55, 8, probe.OK},
		{"4 x H200 all at once, the slowest stream", nvlink, true, probe.TestAllAtOnce, 66.2, 4, probe.OK},
		{"H200 all at once, collapsed", nvlink, true, probe.TestAllAtOnce, 5, 8, probe.Slow},
		{"PCIe 5 one switch", pcie("PIX"), false, probe.TestCopy, 54, 2, probe.OK},
		{"PCIe 5 detour by the root port", pcie("PIX"), false, probe.TestCopy, 25, 2, probe.Slow},
		{"PCIe 5 across sockets", pcie("SYS"), false, probe.TestCopy, 39, 2, probe.OK},
		{"PCIe 5 across sockets, staged", pcie("SYS"), false, probe.TestCopy, 11, 2, probe.Slow},
		{"PCIe 5 both ways across sockets", pcie("SYS"), false, probe.TestBidirectional, 64, 2, probe.OK},
		{"PCIe 5 alone fine, together collapsed", pcie("PXB"), false, probe.TestAllAtOnce, 0.3, 8, probe.Slow},
		{"PCIe 5 together, one uplink", pcie("PXB"), false, probe.TestAllAtOnce, 4, 8, probe.OK},
		{"way hidden", pcie("PHB"), true, probe.TestCopy, 30, 2, probe.OK},
		{"NVLinks not known", facts.Pair{A: a, B: b, Path: "PHB", Narrowest: &facts.NarrowestLink{BestGBps: 63}}, false, probe.TestCopy, 1, 2, probe.OK},
		{"latency has no rate", nvlink, true, probe.TestLatency, 1, 2, probe.OK},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &facts.Facts{Links: &facts.LinkFacts{Pairs: []facts.Pair{c.pair}, VirtualTopology: &c.virtual}}
			x := probe.Transfer{Test: c.test, Source: b, Destination: a, Outcome: probe.OK, GBps: &c.gbps}
			judgeSpeed(f, c.devices, &x)
			expect.That(t, x.Outcome == c.want, "%s (%s), want %s", x.Outcome, x.Reason, c.want)
			expect.That(t, x.Outcome != probe.Slow || x.Fraction != nil && x.Threshold != nil && strings.Contains(x.Reason, "GB/s"), "slow without its reason: %+v", x)
		})
	}
}

// TestExpectHost checks that host copies are measured against the GPU's own
// link, and less is expected from the far node.
func TestExpectHost(t *testing.T) {
	const gpu = "0000:06:00.0"
	f := &facts.Facts{
		PCI:  &facts.PCIFacts{Devices: []facts.PCIDevice{{Address: gpu, NUMANode: new(0)}}},
		GPUs: &facts.GPUFacts{Devices: []facts.GPU{{Address: gpu, PCIe: &facts.GPULink{MaxGeneration: 5, Width: 16}}}},
	}
	for _, c := range []struct {
		node string
		gbps float64
		want probe.Outcome
	}{{"node0", 55, probe.OK}, {"node0", 30, probe.Slow}, {"node1", 30, probe.OK}, {"node1", 12, probe.Slow}, {"host", 40, probe.OK}} {
		x := probe.Transfer{Test: probe.TestDeviceToHost, Source: gpu, Destination: c.node, Outcome: probe.OK, GBps: &c.gbps}
		judgeSpeed(f, 2, &x)
		expect.That(t, x.Outcome == c.want, "%.0f GB/s to %s: %s (%s), want %s", c.gbps, c.node, x.Outcome, x.Reason, c.want)
	}
}

// TestTransfersSection checks what becomes of the probe's answer.
func TestTransfersSection(t *testing.T) {
	answer := func(r probe.Report) *host.Memory {
		m := &host.Memory{}
		m.Answer(host.AskProbe+"quick", r)
		return m
	}
	for _, c := range []struct {
		name    string
		m       *host.Memory
		mode    probe.Mode
		section bool
		unknown string
	}{
		{"not recorded", &host.Memory{}, probe.Quick, false, "the recording holds no probe"},
		{"no driver and no GPU", answer(probe.Report{Outcome: probe.Unknown, Stage: "load library", Reason: "no libcuda"}), probe.Quick, false, ""},
		{"stuck", answer(probe.Report{Outcome: probe.Hang, Stage: "cuInit"}), probe.Quick, true, ""},
		{"no kernels", answer(probe.Report{Outcome: probe.OK, SMTests: "no compiler"}), probe.Quick, true, "no compiler"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, _ := Gather(t.Context(), host.New(c.m), gather.Options{Probe: c.mode})
			expect.Equal(t, c.section, f.Transfers != nil, "section there")
			joined := strings.Join(checktest.UnknownOf(f, "transfers"), "; ")
			expect.That(t, strings.Contains(joined, c.unknown) && (c.unknown == "") == (joined == ""), "unknown %q, want %q", joined, c.unknown)
		})
	}
}

// TestExpectUnderLoad checks, for each use of the GPUs and each outcome, that a rate below the expectation is slow just
// where nobody is known to have used them, and that what became of the data stands.
func TestExpectUnderLoad(t *testing.T) {
	const a, b = "0000:06:00.0", "0000:07:00.0"
	pair := facts.Pair{A: a, B: b, Kind: "gpu-gpu", Path: "PHB", NVLinks: new(18), NVSwitch: true, NVLinkGBps: 450}
	for use, gpu := range map[string]facts.GPU{
		"nobody":                 {},
		"a process":              {Processes: []facts.GPUProcess{{PID: 7, Name: "python3"}}},
		"somebody unseen":        {MemoryUsedBytes: new(int64(100 << 30))},
		"the doctor and its own": {MemoryUsedBytes: new(int64(ownBytes))},
	} {
		for _, of := range []string{a, b, "0000:08:00.0"} {
			gpu.Address = of
			used := (use == "a process" || use == "somebody unseen") && of != "0000:08:00.0"
			f := &facts.Facts{Links: &facts.LinkFacts{Pairs: []facts.Pair{pair}}, GPUs: &facts.GPUFacts{Devices: []facts.GPU{gpu}}}
			for _, test := range []string{probe.TestCopy, probe.TestCopyRead, probe.TestBidirectional, probe.TestAllAtOnce} {
				for _, outcome := range []probe.Outcome{probe.OK, probe.Corrupt, probe.Hang, probe.Error, probe.Unknown} {
					for _, gbps := range []float64{7, 800} {
						x := probe.Transfer{Test: test, Source: a, Destination: b, Outcome: outcome, GBps: new(gbps)}
						judgeSpeed(f, 2, &x)
						want := outcome
						switch {
						case outcome != probe.OK || gbps == 800:
						case used:
							want = probe.Unknown
						default:
							want = probe.Slow
						}
						busy := want == probe.Unknown && outcome == probe.OK
						if x.Outcome != want || (x.Cause == probe.CauseBusy) != busy || busy != (x.User != nil && strings.Contains(x.Reason, of)) {
							t.Errorf("%s of %s, %s, %g GB/s, %s: %s (%s), want %s", use, of, test, gbps, outcome, x.Outcome, x.Reason, want)
						}
						expect.That(t, *x.GBps == gbps && used == (x.Threshold == nil) && used == strings.Contains(x.Basis, "not judged"), "%s of %s, %s, %s: %+v", use, of, test, outcome, x)
						// A recording is judged again, where nobody may be seen any more.
						again := x
						judgeSpeed(&facts.Facts{Links: f.Links}, 2, &again)
						expect.That(t, !busy || again.Outcome == probe.Unknown && again.Threshold == nil, "judged again it is %+v", again)
					}
				}
			}
		}
	}
}

// TestWithoutOwn checks that of the processes that the management library names
// without the doctor's, one that cannot be seen is taken for it, and only one.
func TestWithoutOwn(t *testing.T) {
	m := &host.Memory{}
	m.AddFile("/proc/10/comm", []byte("python3\n"))
	m.AddFile("/proc/11/comm", []byte("python3\n"))
	seen, hidden := []int{10, 11}, []int{900, 901}
	for n := range len(seen) + 1 {
		for k := range len(hidden) + 1 {
			list := expect.Map(append(slices.Clone(hidden[:k]), seen[:n]...), func(pid int) facts.GPUProcess { return facts.GPUProcess{PID: pid} })
			left := withoutOwn(host.New(m), list)
			want := n + max(0, k-1)
			expect.That(t, len(left) == want, "of %d that can be seen and %d that cannot %d are left, want %d", n, k, len(left), want)
			for _, pid := range seen[:n] {
				expect.That(t, slices.ContainsFunc(left, func(p facts.GPUProcess) bool { return p.PID == pid }), "process %d was left out", pid)
			}
		}
	}
}
