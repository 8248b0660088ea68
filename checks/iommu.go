package checks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/pci"
)

var iommuCheck = &gather.Check{Name: "iommu", After: []string{"pci"}, Gather: gatherIOMMU}

const (
	iommuUnits  = "/sys/class/iommu"
	iommuGroups = "/sys/kernel/iommu_groups"
)

func gatherIOMMU(_ context.Context, g *gather.Gathering) error {
	f := &facts.IOMMUFacts{}
	var err error
	if f.Units, err = g.Host.Dir(iommuUnits); err != nil {
		f.Units = nil
		g.Unknown("iommu", "units", fmt.Sprintf("list %s: %s", iommuUnits, gather.Cause(err)), gather.HintFor(err))
	} else {
		f.Units = append([]string{}, f.Units...)
	}
	f.Vendor = IOMMUVendor(f.Units)
	if f.Groups, err = readIOMMUGroups(g); err != nil {
		g.Unknown("iommu", "groups", fmt.Sprintf("list %s: %s", iommuGroups, gather.Cause(err)), gather.HintFor(err))
	}
	var unknown string
	if f.Mode, unknown = iommuMode(f, g.Facts.PCI); unknown != "" {
		g.Unknown("iommu", "mode", unknown, "in a container, run gpudoctor on the host")
	}
	if line, err := g.Host.Text("/proc/cmdline"); err == nil {
		f.CommandLine = IOMMUParameters(line)
	} else {
		g.Unknown("iommu", "command_line", fmt.Sprintf("read /proc/cmdline: %s", gather.Cause(err)), gather.HintFor(err))
	}
	g.Facts.IOMMU = f
	return nil
}

// IOMMUVendor tells the maker from the names that the drivers give to their
// units: drivers/iommu/intel/dmar.c, amd/init.c, arm-smmu*.c, virtio-iommu.c.
func IOMMUVendor(units []string) string {
	if len(units) == 0 {
		return ""
	}
	for prefix, vendor := range map[string]string{"dmar": "intel", "ivhd": "amd", "smmu": "arm", "virtio": "virtio"} {
		if strings.HasPrefix(units[0], prefix) {
			return vendor
		}
	}
	return "other"
}

// readIOMMUGroups lists the groups, with the devices that the PCI section has for them.
func readIOMMUGroups(g *gather.Gathering) ([]facts.IOMMUGroup, error) {
	names, err := g.Host.Dir(iommuGroups)
	if err != nil {
		return nil, err
	}
	devices := map[int][]string{}
	for _, d := range g.Facts.PCI.All() {
		if d.IOMMUGroup != nil {
			devices[*d.IOMMUGroup] = append(devices[*d.IOMMUGroup], d.Address)
		}
	}
	groups := []facts.IOMMUGroup{}
	for _, name := range names {
		id, err := strconv.Atoi(name)
		if err != nil || id < 0 {
			continue
		}
		group := facts.IOMMUGroup{ID: id, Devices: append([]string{}, devices[id]...)}
		if group.Type, err = g.Host.Text(iommuGroups + "/" + name + "/type"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			g.Unknown("iommu", "groups.type", fmt.Sprintf("the type of a group cannot be read: %s", gather.Cause(err)), gather.HintFor(err))
		}
		groups = append(groups, group)
	}
	slices.SortStableFunc(groups, func(a, b facts.IOMMUGroup) int { return a.ID - b.ID })
	return groups, nil
}

// iommuMode says which mode is in force, or why that is not known.
func iommuMode(f *facts.IOMMUFacts, tree *facts.PCIFacts) (mode, unknown string) {
	if f.Groups == nil {
		return "", "the kernel's list of IOMMU groups cannot be read"
	}
	if len(f.Groups) == 0 {
		switch {
		case f.Units == nil:
			return "", "there is no IOMMU group, and the list of IOMMU units cannot be read"
		case len(f.Units) > 0:
			return "", "IOMMU units are listed, but their groups are hidden"
		case slices.ContainsFunc(tree.All(), func(d facts.PCIDevice) bool { return d.IOMMUGroup != nil }):
			return "", "devices belong to IOMMU groups, but the groups are hidden"
		}
		return "off", ""
	}
	types := peerGroupTypes(f.Groups, tree)
	identity := slices.Contains(types, "identity")
	translated := slices.ContainsFunc(types, func(t string) bool { return t != "identity" && t != "" })
	switch {
	case identity && translated:
		return "mixed", ""
	case slices.Contains(types, ""):
		return "", "the kernel does not say the type of each IOMMU group"
	case identity:
		return "passthrough", ""
	}
	return "translated", ""
}

// peerGroupTypes returns the types that decide: those of the groups of GPUs and NICs, or of all groups without
// either. A GPU or NIC in no group is not translated, as with identity.
func peerGroupTypes(groups []facts.IOMMUGroup, tree *facts.PCIFacts) []string {
	byID := make(map[int]string, len(groups))
	for _, group := range groups {
		byID[group.ID] = group.Type
	}
	var types []string
	for _, d := range tree.All() {
		switch {
		case d.Kind != pci.KindGPU && d.Kind != pci.KindNIC:
		case d.IOMMUGroup == nil:
			types = append(types, "identity")
		default:
			types = append(types, byID[*d.IOMMUGroup])
		}
	}
	if types == nil {
		return slices.Collect(maps.Values(byID))
	}
	return types
}

// IOMMUParameters picks the kernel parameters that affect DMA translation and ACS
// (Documentation/admin-guide/kernel-parameters.txt; pcie_acs_override is an out-of-tree patch's).
func IOMMUParameters(line string) []string {
	parameters := []string{}
	for token := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(token, "=")
		switch name {
		case "intel_iommu", "amd_iommu", "iommu", "iommu.passthrough", "iommu.strict", "pcie_acs_override":
		case "pci":
			if !strings.Contains(value, "acs") && !strings.Contains(value, "noats") {
				continue
			}
		default:
			continue
		}
		parameters = append(parameters, token)
	}
	return parameters
}
