package topology

import (
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// Near is what is near a GPU: its nearest NICs and drives, each with the type and the rate of
// the path, and the CPUs of its NUMA node. What is not known is empty.
type Near struct {
	GPU, NICs, Drives, CPUs string
}

// String says it in one line: "NIC mlx5_0 (PIX, 63 GB/s), CPUs 0-31".
func (n Near) String() string {
	return lines.Joined(", ", lines.Behind("NIC ", n.NICs), lines.Behind("NVMe ", n.Drives), lines.Behind("CPUs ", n.CPUs))
}

// nearby fills in what is near each GPU. Where the paths are hidden there is nothing to say.
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
