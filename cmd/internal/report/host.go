package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/topology"
)

func newHost(f *facts.Facts) Host {
	h := Host{GPUs: gpusOf(f)}
	h.looked = looked(f) || len(h.GPUs) > 0
	if f.Host != nil {
		h.Hostname, h.Kernel, h.Arch, h.Distribution = f.Host.Hostname, f.Host.Kernel, f.Host.Arch, f.Host.Distribution
		if v := f.Host.Virtualization; v != nil {
			h.Virtualization = v.Kind
		}
		if f.Host.CPU != nil {
			h.CPU = f.Host.CPU.Model
		}
	}
	if c := f.Container; c != nil && c.Inside != nil {
		h.Container = "none"
		if *c.Inside {
			h.Container = cmp.Or(c.Runtime, "other")
		}
	}
	if f.GPUs != nil {
		h.Driver = cmp.Or(f.GPUs.Driver.KernelVersion, f.GPUs.Driver.Version)
		h.CUDA = f.GPUs.Driver.CUDAVersion
	}
	h.parts = summarize(f, h)
	h.Summary = strings.Join(h.parts, ", ")
	return h
}

var vendorNames = map[string]string{"nvidia": "NVIDIA ", "amd": "AMD "}

// gpusOf lists the GPUs that any of the sections shows, by PCI address.
func gpusOf(f *facts.Facts) []GPU {
	var gpus []GPU
	models := map[string]string{} // Where the management library does not tell.
	if f.Transfers != nil {
		for _, d := range f.Transfers.Devices {
			models[d.Address] = d.Name
		}
	}
	if f.Container != nil {
		for _, d := range f.Container.DriverDevices {
			models[d.Address] = cmp.Or(d.Model, models[d.Address])
		}
	}
	if f.GPUs != nil {
		// GPUs that one text counts and another shows by address are the same
		// ones, though it is not known which is which.
		counted := slices.ContainsFunc(f.GPUs.Devices, func(g facts.GPU) bool { return strings.HasPrefix(g.Address, "GPU") })
		for _, g := range f.GPUs.Devices {
			if counted && g.InPCI && g.Index == nil {
				continue
			}
			gpus = append(gpus, GPU{Address: g.Address, Index: g.Index, Name: cmp.Or(g.Name, models[g.Address], vendorNames[g.Vendor]+"GPU"), MemoryBytes: g.MemoryBytes})
		}
	}
	if f.Transfers != nil {
		for _, d := range f.Transfers.Devices { // Where /sys is masked, only the CUDA driver may show a GPU.
			if !slices.ContainsFunc(gpus, func(g GPU) bool { return g.Address == d.Address }) {
				gpus = append(gpus, GPU{Address: d.Address, Name: d.Name, MemoryBytes: d.MemoryBytes})
			}
		}
	}
	if f.GPUs == nil && len(gpus) == 0 && f.PCI != nil {
		for _, d := range f.PCI.Devices {
			// The vendors whose GPUs the doctor knows; a display adapter of a server's management controller is no GPU.
			name := map[string]string{"0x10de": "NVIDIA GPU", "0x1002": "AMD GPU"}[d.Vendor]
			if d.Kind == "gpu" && name != "" {
				gpus = append(gpus, GPU{Address: d.Address, Name: name})
			}
		}
	}
	slices.SortStableFunc(gpus, func(a, b GPU) int { return cmp.Compare(a.Address, b.Address) })
	return gpus
}

func summarize(f *facts.Facts, h Host) []string {
	if i := f.Image; i != nil {
		layers := ""
		if n := len(i.Layers); n > 0 {
			layers = lines.Count(n, "layer")
		}
		return lines.NonEmpty("container image ("+i.Form+")", i.Name, i.Platform, layers, lines.Count(i.Files, "file"))
	}
	parts := Models(h.GPUs)
	if len(parts) > 0 {
		if len(h.GPUs) > 1 && f.Links != nil {
			parts = append(parts, joined(f)...)
		}
		parts = append(parts, lines.Behind("driver ", h.Driver))
	} else {
		parts = []string{map[bool]string{true: "no GPU", false: "GPUs not known"}[h.looked], h.CPU, h.Distribution, lines.Behind("kernel ", h.Kernel)}
	}
	if v := f.Host; v != nil && v.Virtualization != nil && v.Virtualization.Guest {
		parts = append(parts, "virtual machine")
	}
	switch h.Container {
	case "none":
	case "other":
		parts = append(parts, "container")
	default:
		parts = append(parts, lines.After(h.Container, " container"))
	}
	return lines.NonEmpty(parts...)
}

// Models counts the GPUs by model, in order of first appearance.
func Models(gpus []GPU) []string {
	return lines.Map(lines.Grouped(gpus, func(g GPU) string { return g.Name }), func(alike []GPU) string { return fmt.Sprintf("%d x %s", len(alike), alike[0].Name) })
}

func joined(f *facts.Facts) []string {
	pairs := lines.Filter(f.Links.Pairs, func(p facts.Pair) bool { return p.Kind == "gpu-gpu" })
	if len(pairs) == 0 {
		return nil
	}
	linked, least, name := 0, math.MaxInt, ""
	for _, j := range topology.Joins(f) {
		linked, least, name = linked+len(j.Pairs), min(least, j.Links), cmp.Or(name, j.Name)
	}
	switch {
	case linked == len(pairs):
		return []string{name + " all to all" + lines.After(lines.Behind(" (", map[bool]string{true: lines.Count(least, "link")}[least > 0]), ")")}
	case linked > 0:
		return []string{fmt.Sprintf("%s between %d of %d pairs", name, linked, len(pairs))}
	}
	isHidden := f.Links.VirtualTopology != nil && *f.Links.VirtualTopology
	return []string{pcieLink(f), map[bool]string{true: "PCIe paths hidden"}[isHidden]}
}

// pcieLink is the least of the GPUs' links at their best: "PCIe 5.0 x16".
func pcieLink(f *facts.Facts) string {
	if len(f.GPUs.All()) == 0 {
		return ""
	}
	generation, width := math.MaxInt, math.MaxInt
	for _, g := range f.GPUs.All() {
		if g.PCIe == nil || g.PCIe.MaxGeneration == 0 || g.PCIe.MaxWidth == 0 {
			return ""
		}
		generation, width = min(generation, g.PCIe.MaxGeneration), min(width, g.PCIe.MaxWidth)
	}
	return fmt.Sprintf("PCIe %d.0 x%d", generation, width)
}
