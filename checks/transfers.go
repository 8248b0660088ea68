package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/pci"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

var transfersCheck = &gather.Check{
	Name:    "transfers",
	After:   []string{"pci", "gpus", "links"},
	Patient: true,
	Gather:  gatherTransfers,
}

// errProbeOff is the reason why there are no transfers if the probe was not requested.
var errProbeOff = errors.New("the probe was not requested")

// askProbe asks for a probe in a mode. A recording is asked for whatever it holds.
func (d *doors) askProbe(mode probe.Mode, ask func(probe.Mode) error) error {
	if d.host.Recorded() {
		if err := ask(probe.Full); err == nil {
			return nil
		}
		return ask(probe.Quick)
	}
	if mode == "" || mode == probe.Off {
		return errProbeOff
	}
	return ask(mode)
}

// slowOnes are the transfers that are slower than the links allow.
func slowOnes(f *facts.Facts, gpus int, all []probe.Transfer) []probe.Transfer {
	var slow []probe.Transfer
	for _, t := range all {
		if judgeSpeed(f, gpus, &t); t.Outcome == probe.Slow {
			slow = append(slow, t)
		}
	}
	return slow
}

func gatherTransfers(ctx context.Context, g *gather.Gathering) error {
	g.Linked(g.Facts)
	r := &probe.Report{}
	switch err := g.Probe(ctx, r); {
	case errors.Is(err, errProbeOff):
		g.Add(facts.Unknown{Section: "transfers", Reason: err.Error(), Hint: "use --probe quick or full", Kind: facts.NotAsked})
		return nil
	case errors.Is(err, host.ErrNotRecorded):
		g.Add(facts.Unknown{Section: "transfers", Reason: "the recording holds no probe", Kind: facts.NotRecorded})
		return nil
	case err != nil:
		return err
	}
	g.Facts.Transfers = r
	if noDriver(g.Facts, r) {
		// There is nothing to probe, so no fact is missing.
		g.Facts.Transfers = nil
		return nil
	}
	if r.Outcome == probe.Unknown {
		g.Unknown("transfers", "", r.Reason, probeHints[r.Cause])
	}
	if r.SMTests != "" {
		g.Unknown("transfers", "sm", r.SMTests, "")
	}
	for i := range r.Transfers {
		judgeSpeed(g.Facts, len(r.Devices), &r.Transfers[i])
	}
	return nil
}

// probeHints say the same of the probe's process.
var probeHints = map[probe.Cause]string{
	probe.CauseKilled: endHints[child.DeathByOther], probe.CauseShortage: endHints[child.DeathByShortage],
	probe.CauseBug: endHints[child.DeathByBug], probe.CauseEnded: endHints[child.DeathUnknown], probe.CauseStalled: endHints[child.DeathUnknown],
}

// noDriver is true on a machine without GPUs and without a driver, or with AMD's runtime alone.
func noDriver(f *facts.Facts, r *probe.Report) bool {
	if _, ended := probeHints[r.Cause]; ended { // It did not come to look for one.
		return false
	}
	if r.Outcome != probe.Unknown || r.Stage != "load library" && r.API != "hip" {
		return false
	}
	return !slices.ContainsFunc(f.GPUs.All(), func(d facts.GPU) bool { return d.Vendor == pci.WordNVIDIA || d.Vendor == pci.WordAMD })
}

// judgeSpeed records what a transfer should have reached, and judges its speed.
func judgeSpeed(f *facts.Facts, devices int, t *probe.Transfer) {
	s, judged := data.Rates().Shares[t.Test]
	if t.GBps == nil || !judged {
		return
	}
	var rate, threshold float64
	var basis string
	switch t.Test {
	case probe.TestHostToDevice:
		rate, threshold, basis = hostRate(f, t.Destination, t.Source, s)
	case probe.TestDeviceToHost:
		rate, threshold, basis = hostRate(f, t.Source, t.Destination, s)
	default:
		rate, threshold, basis = pairRate(f, t, devices, s)
	}
	if rate == 0 && (t.Test == probe.TestHostToDevice || t.Test == probe.TestDeviceToHost) {
		rate, threshold, basis = floor(*t.GBps)
	}
	if rate == 0 {
		return // Nothing is known of the path: no speed is wrong.
	}
	fraction := thousandths(*t.GBps / rate)
	t.ExpectedGBps, t.Fraction, t.Threshold, t.Basis = &rate, &fraction, &threshold, basis
	address, user := FirstUser(f, t.Source, t.Destination)
	if user != nil && t.Outcome == probe.OK && fraction < threshold {
		t.InUse(address, *user)
	}
	if user != nil || t.Cause == probe.CauseBusy {
		// The other job used the engines as well: the path may be fine.
		t.Threshold, t.Basis = nil, basis+"; others use a GPU of the pair, so the speed is not judged"
		return
	}
	if t.Outcome == probe.OK && fraction < threshold {
		t.Outcome = probe.Slow
		t.Reason = fmt.Sprintf("%.1f GB/s is %.0f %% of the %.1f GB/s of %s; at least %.0f %% is expected", *t.GBps, 100*fraction, rate, basis, 100*threshold)
	}
}

// FirstUser is the first of these GPUs that others than gpudoctor are known to use, and who does.
func FirstUser(f *facts.Facts, addresses ...string) (string, *probe.User) {
	for _, d := range f.GPUs.All() {
		if !slices.Contains(addresses, d.Address) {
			continue
		}
		if u := userOf(&d, ownBytes); u != nil {
			return d.Address, u
		}
	}
	return "", nil
}

// pairRate is what the links between two GPUs could carry.
func pairRate(f *facts.Facts, t *probe.Transfer, devices int, s data.Share) (rate, threshold float64, basis string) {
	p := f.Links.Between(t.Source, t.Destination)
	if p == nil {
		return 0, 0, ""
	}
	lanes := 1.0 // What part of the link is this pair's.
	if t.Test == probe.TestBidirectional {
		lanes = 2
	}
	crowd := float64(max(1, devices-1)) // All at once, the peers share the GPU's own link.
	switch {
	case p.NVLinks != nil && *p.NVLinks > 0 && p.NVLinkGBps > 0:
		if t.Test == probe.TestAllAtOnce && p.NVSwitch {
			lanes /= crowd
		}
		basis = fmt.Sprintf("%d NVLinks", *p.NVLinks)
		rate, threshold = p.NVLinkGBps, s.NVLink
	case p.LinkType == linkXGMI:
		if rate = p.XGMIGBps; t.Test == probe.TestCopy || t.Test == probe.TestCopyRead || t.Test == probe.TestBidirectional {
			d, _ := pci.DeviceAt(f, p.A) // Of one that is not in the tree no model is known: then all links count.
			rate = min(rate, cmp.Or(data.GPUModelByID(d.Device).XGMIGBps, rate))
		}
		if rate == 0 {
			return 0, 0, "" // A way over other GPUs, or a driver that does not tell.
		}
		basis, threshold = "xGMI", s.XGMI
	case p.LinkType == "" && isAMD(f, p.A):
		return 0, 0, "" // It may be xGMI or PCIe.
	case p.NVLinks == nil:
		return 0, 0, "" // It may be NVLink or PCIe: they differ by a factor of ten.
	default:
		rate, basis = pcieRate(f, p)
		threshold = map[string]float64{"PIX": s.PCIe, "PXB": s.PCIe, "PHB": s.PCIe, "NODE": s.Far, "SYS": s.Far}[p.Path]
		if f.Links.VirtualTopology == nil || *f.Links.VirtualTopology || threshold == 0 {
			threshold = s.Unknown
		}
		if t.Test == probe.TestAllAtOnce {
			lanes /= crowd
		}
	}
	switch {
	case t.Test == probe.TestBidirectional:
		basis += ", both directions"
	case t.Test == probe.TestAllAtOnce && lanes < 1:
		basis += fmt.Sprintf(", shared by %.0f peers", crowd)
	}
	return rate * lanes, threshold, basis
}

func isAMD(f *facts.Facts, address string) bool {
	d := f.GPUs.At(address)
	return d != nil && d.Vendor == pci.WordAMD
}

// pcieRate is the rate of the narrowest PCIe link between two GPUs or, if the path is hidden, of their own.
func pcieRate(f *facts.Facts, p *facts.Pair) (rate float64, basis string) {
	if n := p.Narrowest; n != nil && n.BestGBps > 0 {
		return n.BestGBps, "the narrowest PCIe link on the path"
	}
	a, b := ownLinkRate(f, p.A), ownLinkRate(f, p.B)
	if a == 0 || b == 0 {
		return 0, ""
	}
	return min(a, b), "the narrower PCIe link of the two GPUs"
}

// ownLinkRate is the best rate of a GPU's own PCIe link in its slot, according to NVML.
func ownLinkRate(f *facts.Facts, address string) float64 {
	d := f.GPUs.At(address)
	if d == nil || d.PCIe == nil {
		return 0
	}
	return data.PCIeGBps(data.PCIeSpeedGTs(d.PCIe.MaxGeneration), cmp.Or(d.PCIe.Width, d.PCIe.MaxWidth))
}

// hostRate is what a GPU's way to the host's memory could carry.
func hostRate(f *facts.Facts, gpu, node string, s data.Share) (rate, threshold float64, basis string) {
	rate, basis = ownLinkRate(f, gpu), "the GPU's PCIe link"
	if h := f.Links.Host(gpu); h != nil && (rate == 0 && !isAMD(f, gpu) || h.GBps < rate) {
		rate = h.GBps
		if h.At != gpu {
			basis = affinity.UplinkBasis(f, h)
		}
	}
	if rate == 0 {
		return 0, 0, ""
	}
	threshold = s.Unknown
	if d, _ := pci.DeviceAt(f, gpu); d.NUMANode != nil && strings.HasPrefix(node, "node") {
		if threshold = s.Far; node == fmt.Sprintf("node%d", *d.NUMANode) {
			threshold = s.PCIe
		}
	}
	return rate, threshold, basis
}

// floor is what copies between host memory and a GPU reach on any machine.
func floor(gbps float64) (rate, threshold float64, basis string) {
	link := data.Rates().HostFloor
	if rate = link.GBps(); gbps >= rate {
		return 0, 0, ""
	}
	return rate, 1, fmt.Sprintf("one lane of PCIe %d.0", data.PCIeGeneration(link.GTs))
}
