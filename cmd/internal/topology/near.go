package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// Near is what is near a GPU: its nearest NICs and drives, each with the type and the rate of
// the path, and the CPUs of its NUMA node. What is not known is empty.
type Near struct {
	GPU, NICs, Drives, CPUs string
}

// String says it in one line: "NIC mlx5_0 (PIX, 63 GB/s), CPUs 0-31".
func (n Near) String() string {
	var parts []string
	for _, p := range []struct{ kind, said string }{{"NIC", n.NICs}, {"NVMe", n.Drives}, {"CPUs", n.CPUs}} {
		if p.said != "" {
			parts = append(parts, p.kind+" "+p.said)
		}
	}
	return strings.Join(parts, ", ")
}

// nearby fills in what is near each GPU, and what follows from it. Where the paths are hidden
// there is nothing to say.
func (b *builder) nearby(m *Machine) {
	if m.Hidden {
		return
	}
	gpus := slices.DeleteFunc(affinity.Of(b.facts), func(g affinity.GPU) bool { return b.names[g.Address] == "" })
	slices.SortStableFunc(gpus, func(x, y affinity.GPU) int { return CompareAddresses(b.names[x.Address], b.names[y.Address]) })
	for _, g := range gpus {
		if len(g.NICs)+len(g.Drives) > 0 {
			b.nodes[g.Address].NICs = devices(g.NICs)
			m.Near = append(m.Near, Near{GPU: b.names[g.Address], NICs: devices(g.NICs), Drives: devices(g.Drives), CPUs: g.CPUs})
		}
	}
	m.Notes = b.hostNotes(gpus)
}

// maxNear bounds the devices that are named beside a GPU.
const maxNear = 4

// devices names devices at one distance: "mlx5_0, mlx5_1 (PIX, 63 GB/s)".
func devices(near []affinity.Near) string {
	if len(near) == 0 {
		return ""
	}
	how := near[0].Path
	if slowest := slices.Min(lines.Map(near, func(n affinity.Near) float64 { return n.GBps })); slowest > 0 {
		how += ", " + rate(slowest)
	}
	return lines.First(lines.Map(near, affinity.Near.Name), maxNear, ", ") + " (" + how + ")"
}

// who names GPUs: "GPU 0", "GPUs 0 and 1", "GPUs 0 to 3".
func who(gpus []string) string {
	switch len(gpus) {
	case 1:
		return gpus[0]
	case 2:
		return "GPUs " + strings.TrimPrefix(gpus[0], "GPU ") + " and " + strings.TrimPrefix(gpus[1], "GPU ")
	}
	return rangesOf(gpus)
}

// hostNotes explain the links above GPUs that are narrower than the GPUs' own, as a switch with
// a narrow uplink: copies between host memory and the GPU are bound by them.
func (b *builder) hostNotes(gpus []affinity.GPU) (notes []string) {
	bounded := slices.DeleteFunc(slices.Clone(gpus), func(g affinity.GPU) bool {
		own := b.pcie(g.Address)
		best := data.PCIeGBps(max(own.SpeedGTs, own.MaxSpeedGTs), max(own.Width, own.MaxWidth))
		return g.Host == nil || g.Host.At == g.Address || best <= g.Host.GBps
	})
	uplink := func(g affinity.GPU) string {
		return fmt.Sprintf("at most %s, because the switch above each GPU has a %s uplink", precise(g.Host.GBps), data.PCIeName(g.Host.SpeedGTs, g.Host.Width))
	}
	for _, alike := range lines.Grouped(bounded, uplink) {
		names := lines.Map(alike, func(g affinity.GPU) string { return b.names[g.Address] })
		notes = append(notes, fmt.Sprintf("Host copies of %s: %s. This is how the machine is built.", who(names), uplink(alike[0])))
	}
	return notes
}

// precise writes a rate with the digits by which people know those of PCIe: "15.75 GB/s".
func precise(gbps float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", gbps), "0"), ".") + " GB/s"
}
