package area

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// summary gives the facts of an area that say most.
func summary(f *facts.Facts, area rules.Area) string {
	switch area {
	case rules.AreaGPUs:
		return gpuSummary(f.GPUs)
	case rules.AreaPCIe:
		return pcieSummary(f)
	case rules.AreaIOMMU:
		return iommuSummary(f.IOMMU)
	case rules.AreaNUMA:
		return numaSummary(f.NUMA)
	case rules.AreaContainer:
		return containerSummary(f.Container)
	case rules.AreaLibraries:
		return librarySummary(f.Libraries)
	case rules.AreaEnvironment:
		return environmentSummary(f.Env)
	case rules.AreaNetwork:
		return networkSummary(f.NICs) + registrationSummary(f.GPUDirect)
	case rules.AreaStorage:
		return storageSummary(f.Storage)
	case rules.AreaKernelLog:
		return kernelLogSummary(f.KernelLog)
	case rules.AreaJob:
		return "the logs report no failure"
	default:
		return "all rules passed"
	}
}

func gpuSummary(g *facts.GPUFacts) string {
	parts := []string{lines.Count(len(g.Devices), "GPU")}
	links, active := 0, 0
	for _, d := range g.Devices {
		links += len(d.NVLinks)
		active += len(lines.Filter(d.NVLinks, func(l facts.NVLink) bool { return l.Active }))
	}
	on := len(lines.Filter(g.Devices, func(d facts.GPU) bool { return d.ECC != nil && d.ECC.Enabled }))
	switch {
	case !slices.ContainsFunc(g.Devices, func(d facts.GPU) bool { return d.ECC != nil }):
	case on == len(g.Devices):
		parts = append(parts, "ECC on")
	default:
		parts = append(parts, fmt.Sprintf("ECC on for %d", on))
	}
	if links > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d NVLinks up", active, links))
	}
	return strings.Join(parts, ", ")
}

// generations are the generations of PCIe by their rate in GT/s (PCI Express Base
// Specification 6.0, section 4.2).
var generations = map[float64]int{2.5: 1, 5: 2, 8: 3, 16: 4, 32: 5, 64: 6}

// pcieSummary says how fast the links of the GPUs are at their best: one at rest is slower.
func pcieSummary(f *facts.Facts) string {
	type link struct{ generation, width int }
	var links []link
	for _, d := range f.PCI.Devices {
		if d.Kind == "gpu" && d.Link != nil && generations[d.Link.MaxSpeedGTs] > 0 && d.Link.MaxWidth > 0 {
			links = append(links, link{generations[d.Link.MaxSpeedGTs], d.Link.MaxWidth})
		}
	}
	if f.GPUs != nil && len(links) == 0 {
		for _, d := range f.GPUs.Devices {
			if d.PCIe != nil && d.PCIe.MaxGeneration > 0 && d.PCIe.MaxWidth > 0 {
				links = append(links, link{d.PCIe.MaxGeneration, d.PCIe.MaxWidth})
			}
		}
	}
	if len(links) == 0 {
		return lines.Count(len(f.PCI.Devices), "device")
	}
	slices.SortStableFunc(links, func(a, b link) int { return cmp.Compare(a.generation*a.width, b.generation*b.width) })
	first, last := links[0], links[len(links)-1]
	said := fmt.Sprintf("%s at %d.0 x%d", lines.Count(len(links), "GPU"), first.generation, first.width)
	if first != last {
		said += fmt.Sprintf(" to %d.0 x%d", last.generation, last.width)
	}
	return said
}

func iommuSummary(i *facts.IOMMUFacts) string {
	switch mode := cmp.Or(i.Mode, i.DefaultDomain); mode {
	case "":
		return lines.Count(len(i.Groups), "group")
	case "off":
		return "off"
	case "passthrough":
		return "pass-through mode"
	default:
		return mode + " mode"
	}
}

func numaSummary(n *facts.NUMAFacts) string {
	said := lines.Count(len(n.Nodes), "node")
	if n.Balancing != nil {
		said += map[bool]string{true: ", automatic balancing off", false: ", automatic balancing on"}[*n.Balancing == 0]
	}
	return said
}

func containerSummary(c *facts.ContainerFacts) string {
	var parts []string
	switch {
	case c.Inside == nil:
	case *c.Inside:
		parts = append(parts, strings.TrimSpace(c.Runtime+" container"))
	default:
		parts = append(parts, "not in a container")
	}
	if c.SHM != nil && c.SHM.SizeBytes > 0 {
		parts = append(parts, "/dev/shm "+humanize.IBytes(uint64(c.SHM.SizeBytes)))
	}
	if m := c.MemlockSoftBytes; m != nil {
		limit := "unlimited"
		if *m >= 0 {
			limit = humanize.IBytes(uint64(*m))
		}
		parts = append(parts, "locked memory "+limit)
	}
	return strings.Join(parts, ", ")
}

// libraries are those that matter most, and what they are called.
var libraries = []struct{ kind, name string }{
	{"libnccl", "NCCL"},
	{"librccl", "RCCL"},
	{"libcudart", "CUDA runtime"},
}

func librarySummary(l *facts.LibraryFacts) string {
	var parts []string
	for _, wanted := range libraries {
		copies := lines.Filter(l.Files, func(file facts.Library) bool { return file.Kind == wanted.kind && file.Version != "" })
		if len(copies) > 0 {
			versions := lines.Map(copies, func(file facts.Library) string { return file.Version })
			parts = append(parts, wanted.name+" "+strings.Join(lines.Unique(versions), " and "))
		}
	}
	if len(parts) == 0 {
		return lines.Count(len(l.Files), "file") + ", neither NCCL nor RCCL among them"
	}
	return strings.Join(parts, ", ")
}

func environmentSummary(e *facts.EnvFacts) string {
	set := lines.Filter(e.Variables, func(v facts.Variable) bool { return v.Effective })
	names := lines.Unique(lines.Map(set, func(v facts.Variable) string { return v.Name }))
	if len(names) == 0 {
		return "no communication variables set"
	}
	const most = 3
	if rest := len(names) - most; rest > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", rest))
	}
	return "set: " + strings.Join(names, ", ")
}

func networkSummary(n *facts.NICFacts) string {
	active := len(lines.Filter(n.RDMA, func(p facts.RDMAPort) bool { return p.State == "active" }))
	if len(n.RDMA) == 0 {
		return lines.Count(len(n.Interfaces), "interface")
	}
	return fmt.Sprintf("%d of %s active", active, lines.Count(len(n.RDMA), "RDMA port"))
}

func storageSummary(s *facts.StorageFacts) string {
	parts := []string{lines.Count(len(s.Drives), "NVMe drive")}
	if len(s.Arrays) > 0 {
		parts = append(parts, lines.Count(len(s.Arrays), "md array"))
	}
	if g := s.GDS; g != nil && g.Loaded != nil && *g.Loaded {
		parts = append(parts, strings.TrimSpace("nvidia_fs "+g.Version))
	}
	return strings.Join(parts, ", ")
}

// registrationSummary tells the memory of how many GPUs a NIC registered, and in which ways all of these.
func registrationSummary(d *facts.GPUDirectFacts) string {
	if d == nil {
		return ""
	}
	tried, registered := map[string]bool{}, map[string]bool{}
	ways := map[string]map[string]bool{"DMA-BUF": {}, "nvidia-peermem": {}}
	for _, n := range d.NICs {
		for _, g := range n.GPUs {
			tried[g.Address] = true
			for way, a := range map[string]*facts.Attempt{"DMA-BUF": g.DMABuf, "nvidia-peermem": g.Peermem} {
				if a != nil && a.Outcome == "ok" {
					registered[g.Address], ways[way][g.Address] = true, true
				}
			}
		}
	}
	if len(registered) == 0 {
		return ""
	}
	var all []string
	for _, way := range slices.Sorted(maps.Keys(ways)) {
		if len(ways[way]) == len(registered) {
			all = append(all, way)
		}
	}
	words := fmt.Sprintf(", NICs register the memory of %d of %s", len(registered), lines.Count(len(tried), "GPU"))
	if len(all) > 0 {
		words += " (" + strings.Join(all, ", ") + ")"
	}
	return words
}

func kernelLogSummary(k *facts.KernelLogFacts) string {
	n := 0
	for _, e := range k.Events {
		n += max(1, e.Count)
	}
	if n == 0 {
		return "no GPU or PCIe events"
	}
	return lines.Count(n, "GPU or PCIe event") + ", no known faults"
}

// noRDMA reports whether it is known that no RDMA device is available.
func noRDMA(c *facts.ContainerFacts) bool {
	return c != nil && c.DeviceNodes != nil && !slices.ContainsFunc(c.DeviceNodes, func(n facts.DeviceNode) bool {
		return strings.HasPrefix(n.Path, "/dev/infiniband/uverbs")
	})
}

// nics counts the network adapters of the PCI tree.
func nics(p *facts.PCIFacts) int {
	return len(lines.Filter(p.Devices, func(d facts.PCIDevice) bool { return d.Kind == "nic" }))
}
