package checks

import (
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestIOMMU(t *testing.T) {
	for _, test := range []struct {
		name              string
		units             []string
		kind, commandLine string // The type of each group of a machine with eight GPUs.
		ungrouped         int    // A GPU that is in no group; 0 for none.
		mode, vendor      string
		wantLine          []string
		unknown           []string
	}{
		{"passthrough", []string{"dmar0", "dmar1"}, "identity", "quiet intel_iommu=on iommu=pt", 0, "passthrough", "intel", []string{"intel_iommu=on", "iommu=pt"}, nil},
		{
			"translated, whatever the command line asks for",
			[]string{"ivhd0"},
			"DMA-FQ",
			"quiet amd_iommu=on iommu.passthrough=1 pci=noaer,disable_acs_redir=0000:16:00.0 pci=nommconf pcie_acs_override=downstream", 0, "translated", "amd",
			[]string{"amd_iommu=on", "iommu.passthrough=1", "pci=noaer,disable_acs_redir=0000:16:00.0", "pcie_acs_override=downstream"},
			nil,
		},
		{"off", []string{}, "identity", "quiet", 0, "off", "", []string{}, nil},
		{"a GPU in no group is not translated", []string{"dmar0", "dmar1"}, "DMA", "", 5, "mixed", "intel", []string{}, nil},
		{"an old kernel that shows no type", []string{"dmar0", "dmar1"}, "", "", 0, "", "intel", []string{}, []string{"mode: the kernel does not say the type of each IOMMU group"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			without := []string{"sys/class/iommu/"}
			if len(test.units) == 0 {
				without = append(without, "iommu_group")
			}
			if test.ungrouped > 0 {
				without = append(without, eightGPUs[test.ungrouped]+"/iommu_group")
			}
			m := checktest.Rebuilt(t, eightGPU, without...)
			m.AddFile("/proc/cmdline", []byte(test.commandLine+"\n"))
			m.AddDir("/sys/class/iommu")
			m.AddDir("/sys/kernel/iommu_groups")
			for _, unit := range test.units {
				m.AddDir("/sys/class/iommu/" + unit)
			}
			groups, _ := m.ReadDir("/sys/kernel/iommu_groups")
			for _, group := range groups {
				m.AddFile("/sys/kernel/iommu_groups/"+group+"/type", []byte(test.kind+"\n"))
			}
			f := gatherTopology(t, m, nil)
			expect.Equal(t, test.mode, f.IOMMU.Mode, "mode")
			expect.Equal(t, test.vendor, f.IOMMU.Vendor, "vendor")
			expect.NoDiff(t, test.units, f.IOMMU.Units, "units")
			expect.NoDiff(t, test.wantLine, f.IOMMU.CommandLine, "command line")
			expect.NoDiff(t, test.unknown, checktest.UnknownOf(f, "iommu"), "unknown")
		})
	}
}

func TestIOMMUMixed(t *testing.T) {
	for group, want := range map[int]string{
		215: "mixed",       // That of a GPU.
		0:   "passthrough", // A device that is neither GPU nor NIC does not decide.
	} {
		m := checktest.Rebuilt(t, eightGPU)
		m.AddFile(fmt.Sprintf("/sys/kernel/iommu_groups/%d/type", group), []byte("DMA-FQ\n"))
		expect.Equal(t, want, gatherTopology(t, m, nil).IOMMU.Mode, "mode where group %d is translated", group)
	}
}

func TestIOMMUHidden(t *testing.T) {
	for _, test := range []struct {
		name    string
		build   func(m *host.Memory)
		want    *facts.IOMMUFacts
		unknown []string
	}{
		{
			"units without groups",
			func(m *host.Memory) {
				m.AddDir("/sys/class/iommu/smmu3.0x0000000012000000")
				m.AddDir("/sys/kernel/iommu_groups")
			},
			&facts.IOMMUFacts{Units: []string{"smmu3.0x0000000012000000"}, Vendor: "arm", Groups: []facts.IOMMUGroup{}, CommandLine: []string{}},
			[]string{"mode: IOMMU units are listed, but their groups are hidden"},
		},
		{"neither can be read", func(m *host.Memory) { m.AddError("/sys/kernel/iommu_groups", fs.ErrPermission) }, &facts.IOMMUFacts{CommandLine: []string{}}, []string{
			"groups: list /sys/kernel/iommu_groups: permission denied",
			"mode: the kernel's list of IOMMU groups cannot be read",
			"units: list /sys/class/iommu: no such file or directory",
		}},
		{
			"groups of a platform that lists no units",
			func(m *host.Memory) { m.AddFile("/sys/kernel/iommu_groups/0/type", []byte("identity\n")) },
			&facts.IOMMUFacts{Mode: "passthrough", CommandLine: []string{}, Groups: []facts.IOMMUGroup{{ID: 0, Type: "identity", Devices: []string{}}}},
			[]string{"units: list /sys/class/iommu: no such file or directory"},
		},
		{
			"no group, and units that cannot be read",
			func(m *host.Memory) { m.AddDir("/sys/kernel/iommu_groups") },
			&facts.IOMMUFacts{Groups: []facts.IOMMUGroup{}, CommandLine: []string{}},
			[]string{"mode: there is no IOMMU group, and the list of IOMMU units cannot be read", "units: list /sys/class/iommu: no such file or directory"},
		},
		{"without the PCI section all groups count", func(m *host.Memory) {
			m.AddDir("/sys/class/iommu/virtio0")
			m.AddFile("/sys/kernel/iommu_groups/10/type", []byte("DMA\n"))
			m.AddFile("/sys/kernel/iommu_groups/9/type", []byte("identity\n"))
		}, &facts.IOMMUFacts{
			Units: []string{"virtio0"}, Vendor: "virtio", Mode: "mixed", CommandLine: []string{},
			Groups: []facts.IOMMUGroup{{ID: 9, Type: "identity", Devices: []string{}}, {ID: 10, Type: "DMA", Devices: []string{}}},
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &host.Memory{}
			m.AddFile("/proc/cmdline", []byte("quiet\n"))
			test.build(m)
			g := checktest.On(m, &facts.Facts{})
			expect.NoError(t, iommuCheck.Gather(t.Context(), g))
			expect.NoDiff(t, test.want, g.Facts.IOMMU, "section")
			g.Facts.Unknown = g.Unknowns()
			got := checktest.UnknownOf(g.Facts, "iommu")
			slices.Sort(got)
			expect.NoDiff(t, test.unknown, got, "unknown")
		})
	}
}

func TestIOMMUGroupsHiddenFromContainer(t *testing.T) {
	pci := []facts.PCIDevice{{Address: "0000:01:00.0", Kind: "gpu", IOMMUGroup: new(3)}}
	mode, unknown := iommuMode(&facts.IOMMUFacts{Units: []string{}, Groups: []facts.IOMMUGroup{}}, &facts.PCIFacts{Devices: pci})
	expect.That(t, mode == "" && unknown == "devices belong to IOMMU groups, but the groups are hidden", "mode, unknown = %q, %q; want no mode where groups are hidden", mode, unknown)
}
