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
	if m.Hidden || b.facts.Links == nil {
		m.Notes = b.hiddenNotes(m.Hidden)
		return
	}
	gpus := slices.DeleteFunc(affinity.Of(b.facts), func(g affinity.GPU) bool { return b.names[g.Address] == "" })
	slices.SortStableFunc(gpus, func(x, y affinity.GPU) int { return compareAddresses(b.names[x.Address], b.names[y.Address]) })
	for _, g := range gpus {
		if len(g.NICs)+len(g.Drives) > 0 {
			b.nodes[g.Address].NICs = devices(g.NICs)
			m.Near = append(m.Near, Near{GPU: b.names[g.Address], NICs: devices(g.NICs), Drives: devices(g.Drives), CPUs: g.CPUs})
		}
	}
	m.Notes = append(b.hostNotes(gpus), b.farNotes(gpus)...)
}

// hiddenNotes say what NCCL lacks where the real paths to several RDMA devices are hidden.
func (b *builder) hiddenNotes(hidden bool) []string {
	if !hidden || len(b.facts.NICs.Ports()) < 2 || b.variable("NCCL_TOPO_FILE") != "" {
		return nil
	}
	return []string{"NCCL does not see the paths either: without a topology file of the cloud (NCCL_TOPO_FILE) it does not know which NIC is near which GPU."}
}

// maxNear bounds the devices that are named beside a GPU.
const maxNear = 4

// devices names devices at one distance: "mlx5_0, mlx5_1 (PIX, 63 GB/s)".
func devices(near []affinity.Near) string {
	if len(near) == 0 {
		return ""
	}
	var names []string
	slowest := near[0].GBps
	for _, n := range near {
		names = append(names, n.Name())
		slowest = min(slowest, n.GBps)
	}
	said := lines.First(names, maxNear, ", ")
	if slowest == 0 {
		return fmt.Sprintf("%s (%s)", said, near[0].Path)
	}
	return fmt.Sprintf("%s (%s, %s)", said, near[0].Path, rate(slowest))
}

// remark is what a note says of a GPU.
type remark struct{ what, gpu string }

// grouped are what is said of the GPUs of which the same is to be said, in the order of the first.
func grouped(all []remark, said func(what string, gpus []string) string) (notes []string) {
	for _, alike := range lines.Grouped(all, func(r remark) string { return r.what }) {
		notes = append(notes, said(alike[0].what, lines.Map(alike, func(r remark) string { return r.gpu })))
	}
	return notes
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
func (b *builder) hostNotes(gpus []affinity.GPU) []string {
	var links []remark
	for _, g := range gpus {
		if g.Host == nil || g.Host.At == g.Address {
			continue
		}
		own := b.pcie(g.Address)
		if best := data.PCIeGBps(max(own.SpeedGTs, own.MaxSpeedGTs), max(own.Width, own.MaxWidth)); best > g.Host.GBps {
			what := fmt.Sprintf("at most %s, because the switch above each GPU has a %s uplink", precise(g.Host.GBps), data.PCIeName(g.Host.SpeedGTs, g.Host.Width))
			links = append(links, remark{what, b.names[g.Address]})
		}
	}
	return grouped(links, func(what string, gpus []string) string {
		return fmt.Sprintf("Host copies of %s: %s. This is how the machine is built.", who(gpus), what)
	})
}

// precise writes a rate with the digits by which people know those of PCIe: "15.75 GB/s".
func precise(gbps float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", gbps), "0"), ".") + " GB/s"
}

// variable is a variable's value in force; empty where it is not set.
func (b *builder) variable(name string) string {
	if b.facts.Env == nil {
		return ""
	}
	for _, v := range b.facts.Env.Variables {
		if v.Name == name && v.Effective {
			return v.Value
		}
	}
	return ""
}

// farNotes say what NCCL does for a GPU whose nearest NIC is farther than it uses GPUDirect
// RDMA: it sends through a GPU that is nearer (PXN), if NVLink joins the two, else through host
// memory (NCCL src/graph/paths.cc, ncclTopoCheckGdr and ncclTopoComputePaths).
func (b *builder) farNotes(gpus []affinity.GPU) []string {
	if b.variable("NCCL_NET_GDR_LEVEL") != "" || b.facts.Host != nil && b.facts.Host.Arch == "arm64" {
		return nil // Another level, or a GPU whose own link to the processor counts as near.
	}
	var far []remark
	for _, g := range gpus {
		if len(g.NICs) == 0 || near(g) || !b.nvidia(g.Address) || slices.ContainsFunc(g.NICs, b.virtio) {
			continue
		}
		way := "through host memory, unless NCCL_NET_GDR_LEVEL allows more"
		if b.variable("NCCL_PXN_DISABLE") != "1" && slices.ContainsFunc(gpus, func(o affinity.GPU) bool { return near(o) && b.nvlinked(g.Address, o.Address) }) {
			way = "through a GPU that has a nearer NIC and is joined by NVLink (PXN)"
		}
		far = append(far, remark{fmt.Sprintf("the nearest NIC is %s. NCCL uses GPUDirect RDMA up to %s, and sends %s.", g.NICs[0].Path, data.Rates().GDRPath, way), b.names[g.Address]})
	}
	return grouped(far, func(what string, gpus []string) string { return who(gpus) + ": " + what })
}

// virtio reports whether a NIC is a hypervisor's, which has no RDMA.
func (b *builder) virtio(n affinity.Near) bool {
	return strings.HasPrefix(b.device(n.Address).Driver, "virtio")
}

// near reports whether NCCL uses GPUDirect RDMA between a GPU and its nearest NIC by default.
func near(g affinity.GPU) bool {
	return len(g.NICs) > 0 && data.PathRank(g.NICs[0].Path) <= data.PathRank(data.Rates().GDRPath)
}

// nvidia reports whether a GPU is NVIDIA's.
func (b *builder) nvidia(address string) bool {
	if vendor := b.device(address).Vendor; vendor != "" {
		return vendor == vendors[0]
	}
	g := b.facts.GPUs.At(address)
	return g != nil && g.Vendor == "nvidia"
}

// nvlinked reports whether NVLinks join two GPUs.
func (b *builder) nvlinked(x, y string) bool {
	p := b.facts.Links.Between(x, y)
	return p != nil && p.NVLinks != nil && *p.NVLinks > 0
}
