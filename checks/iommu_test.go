package checks

import (
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/checktest"
	"github.com/gpudoctor/gpudoctor/checks/internal/machine"
)

func TestIOMMU(t *testing.T) {
	tests := []struct {
		name string
		// change changes an eight-GPU machine whose groups are all identity.
		change      func(tree *checktest.Tree, gpus []*checktest.Function)
		mode        string
		vendor      string
		units       []string
		commandLine []string
		unknown     []string
	}{
		{
			"passthrough", func(*checktest.Tree, []*checktest.Function) {},
			"passthrough", "intel",
			[]string{"dmar0", "dmar1"},
			[]string{"intel_iommu=on", "iommu=pt"},
			nil,
		},
		{
			"translated, whatever the command line asks for",
			func(tree *checktest.Tree, _ []*checktest.Function) {
				tree.IOMMUUnits, tree.IOMMUType = []string{"ivhd0"}, "DMA-FQ"
				tree.CommandLine = "quiet amd_iommu=on iommu.passthrough=1 pci=noaer,disable_acs_redir=0000:16:00.0 pci=nommconf pcie_acs_override=downstream"
			},
			"translated", "amd",
			[]string{"ivhd0"},
			[]string{"amd_iommu=on", "iommu.passthrough=1", "pci=noaer,disable_acs_redir=0000:16:00.0", "pcie_acs_override=downstream"},
			nil,
		},
		{
			"off",
			func(tree *checktest.Tree, _ []*checktest.Function) { tree.IOMMUUnits, tree.CommandLine = nil, "quiet" },
			"off", "",
			[]string{},
			[]string{},
			nil,
		},
		{
			"a GPU in no group is not translated",
			func(tree *checktest.Tree, gpus []*checktest.Function) {
				tree.IOMMUType, tree.CommandLine = "DMA", ""
				gpus[5].Group = -1
			},
			"mixed", "intel",
			[]string{"dmar0", "dmar1"},
			[]string{},
			nil,
		},
		{
			"an old kernel that shows no type",
			func(tree *checktest.Tree, _ []*checktest.Function) { tree.IOMMUType, tree.CommandLine = "", "" },
			"", "intel",
			[]string{"dmar0", "dmar1"},
			[]string{},
			[]string{"mode: the kernel does not say the type of each IOMMU group"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tree, gpus, _ := checktest.EightGPU()
			test.change(tree, gpus)
			f := gatherTopology(t, checktest.MemoryOf(tree), nil)
			got := f.IOMMU
			if got.Mode != test.mode || got.Vendor != test.vendor {
				t.Errorf("mode, vendor = %q, %q; want %q, %q", got.Mode, got.Vendor, test.mode, test.vendor)
			}
			if diff := cmp.Diff(test.units, got.Units); diff != "" {
				t.Errorf("units (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.commandLine, got.CommandLine); diff != "" {
				t.Errorf("command line (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.unknown, checktest.UnknownOf(f, "iommu")); diff != "" {
				t.Errorf("unknown (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIOMMUMixed(t *testing.T) {
	tree, gpus, _ := checktest.EightGPU()
	m := checktest.MemoryOf(tree)
	m.AddFile(fmt.Sprintf("/sys/kernel/iommu_groups/%d/type", gpus[2].Group), []byte("DMA-FQ\n"))
	f := gatherTopology(t, m, nil)
	if f.IOMMU.Mode != "mixed" {
		t.Errorf("mode = %q, want mixed", f.IOMMU.Mode)
	}
	// A device that is neither GPU nor NIC does not decide.
	tree, _, _ = checktest.EightGPU()
	m = checktest.MemoryOf(tree)
	m.AddFile(fmt.Sprintf("/sys/kernel/iommu_groups/%d/type", tree.Functions[0].Group), []byte("DMA\n"))
	if f = gatherTopology(t, m, nil); f.IOMMU.Mode != "passthrough" {
		t.Errorf("mode = %q, want passthrough where another device is translated", f.IOMMU.Mode)
	}
}

func TestIOMMUHidden(t *testing.T) {
	tests := []struct {
		name    string
		build   func(m *machine.Memory)
		want    *facts.IOMMUFacts
		unknown []string
	}{
		{
			"units without groups",
			func(m *machine.Memory) {
				m.AddDir("/sys/class/iommu/smmu3.0x0000000012000000")
				m.AddDir("/sys/kernel/iommu_groups")
			},
			&facts.IOMMUFacts{Units: []string{"smmu3.0x0000000012000000"}, Vendor: "arm", Groups: []facts.IOMMUGroup{}, CommandLine: []string{}},
			[]string{"mode: IOMMU units are listed, but their groups are hidden"},
		},
		{
			"neither can be read",
			func(m *machine.Memory) { m.AddError("/sys/kernel/iommu_groups", fs.ErrPermission) },
			&facts.IOMMUFacts{CommandLine: []string{}},
			[]string{
				"groups: list /sys/kernel/iommu_groups: permission denied",
				"mode: the kernel's list of IOMMU groups cannot be read",
				"units: list /sys/class/iommu: no such file or directory",
			},
		},
		{
			"groups of a platform that lists no units",
			func(m *machine.Memory) { m.AddFile("/sys/kernel/iommu_groups/0/type", []byte("identity\n")) },
			&facts.IOMMUFacts{
				Mode: "passthrough", CommandLine: []string{},
				Groups: []facts.IOMMUGroup{{ID: 0, Type: "identity", Devices: []string{}}},
			},
			[]string{"units: list /sys/class/iommu: no such file or directory"},
		},
		{
			"no group, and units that cannot be read",
			func(m *machine.Memory) { m.AddDir("/sys/kernel/iommu_groups") },
			&facts.IOMMUFacts{Groups: []facts.IOMMUGroup{}, CommandLine: []string{}},
			[]string{
				"mode: there is no IOMMU group, and the list of IOMMU units cannot be read",
				"units: list /sys/class/iommu: no such file or directory",
			},
		},
		{
			"without the PCI section the groups name their devices",
			func(m *machine.Memory) {
				m.AddDir("/sys/class/iommu/virtio0")
				m.AddFile("/sys/kernel/iommu_groups/10/type", []byte("DMA\n"))
				m.AddDir("/sys/kernel/iommu_groups/10/devices/0000:01:00.0")
				m.AddDir("/sys/kernel/iommu_groups/10/devices/NVDA0001:00")
				m.AddFile("/sys/kernel/iommu_groups/9/type", []byte("identity\n"))
			},
			&facts.IOMMUFacts{
				Units: []string{"virtio0"}, Vendor: "virtio", Mode: "mixed", CommandLine: []string{},
				Groups: []facts.IOMMUGroup{{ID: 9, Type: "identity", Devices: []string{}}, {ID: 10, Type: "DMA", Devices: []string{"0000:01:00.0"}}},
			},
			nil,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := &machine.Memory{}
			m.AddFile("/proc/cmdline", []byte("quiet\n"))
			test.build(m)
			g := checktest.On(m, &facts.Facts{})
			if err := iommuCheck.Gather(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, g.Facts.IOMMU); diff != "" {
				t.Errorf("section (-want +got):\n%s", diff)
			}
			g.Facts.Unknown = g.Unknowns()
			got := checktest.UnknownOf(g.Facts, "iommu")
			slices.Sort(got)
			if diff := cmp.Diff(test.unknown, got); diff != "" {
				t.Errorf("unknown (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIOMMUGroupsHiddenFromContainer(t *testing.T) {
	pci := []facts.PCIDevice{{Address: "0000:01:00.0", Kind: "gpu", IOMMUGroup: new(3)}}
	mode, unknown := iommuMode(&facts.IOMMUFacts{Units: []string{}, Groups: []facts.IOMMUGroup{}}, &facts.PCIFacts{Devices: pci})
	if mode != "" || unknown != "devices belong to IOMMU groups, but the groups are hidden" {
		t.Errorf("mode, unknown = %q, %q; want no mode where groups are hidden", mode, unknown)
	}
}
