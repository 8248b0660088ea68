package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// seeds are small texts of every kind of this area.
var seeds = []string{
	texttest.LspciVerbose,
	"-[0000:00]-+-00.0  Device 8086:0d57\n           \\-06.0  Device 10de:2335\n",
	"[    1.2] pcieport 0000:00:1d.4: BAR 15: no space for [mem size 0xc00000000 64bit pref]\n",
	"iommu: Default domain type: Translated\nAMD-Vi: Interrupt remapping enabled\n",
	"BOOT_IMAGE=/vmlinuz root=/dev/sda1 iommu=pt\n",
	"Vendor ID: AuthenticAMD\nNUMA node0 CPU(s): 0-15\n",
	"available: 2 nodes (0-1)\nnode 0 cpus: 0 1 2 3\nnode 0 size: 100 MB\nnode distances:\nnode   0   1\n  0:  10  21\n",
	"<system version=\"1\">\n<cpu numaid=\"0\" affinity=\"ff\"><pci busid=\"0000:01:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x20b0\"><gpu dev=\"0\" sm=\"80\"><nvlink target=\"0000:02:00.0\" count=\"4\" tclass=\"0x030200\"/></gpu></pci></cpu>\n</system>\n",
	"$ setpci -s 40:01.1 ECAP_ACS+6.w\n001d\n",
	"/sys/kernel/iommu_groups/3/type:DMA-FQ\n",
	"$ dmidecode -t baseboard\n\tManufacturer: X\n\tProduct Name: Y\n",
	"tensor([1., 2.], device='cuda:0')\ntensor([0., 0.], device='cuda:1')\n",
}

func FuzzHostTexts(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		f := texttest.Parse("x", text)
		if f.PCI != nil && len(f.PCI.Devices) > parse.MaxDevices {
			t.Errorf("%d functions", len(f.PCI.Devices))
		}
		if f.KernelLog != nil && len(f.KernelLog.Events) > 512 {
			t.Errorf("%d events", len(f.KernelLog.Events))
		}
		if f.PCI != nil {
			for _, d := range f.PCI.Devices {
				expect.That(t, len(d.Ancestors) <= 256 && facts.Address(d.Address) == d.Address, "%q has %d ancestors", d.Address, len(d.Ancestors))
			}
		}
	})
}

// TestHostXMLOfMachines reads topologies of whole machines: as NCCL dumps them,
// and as they are written by hand, with functions alone.
func TestHostXMLOfMachines(t *testing.T) {
	for name, gpu := range map[string]string{
		"dumped":  `<pci busid="0000:%02x:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="%d" sm="90" rank="0" gdr="1"/></pci>`,
		"by hand": `<pci busid="0000:%02x:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/><!-- %d -->`,
	} {
		raw := "<system version=\"1\">\n"
		for node := range 2 {
			raw += fmt.Sprintf("<cpu numaid=\"%d\" affinity=\"ffffffff\" arch=\"x86_64\" vendor=\"GenuineIntel\">\n", node)
			for i := range 4 {
				n := 4*node + i
				raw += fmt.Sprintf("<pci busid=\"0000:%02x:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n", 0x10+0x10*n)
				raw += fmt.Sprintf(gpu, 0x11+0x10*n, n) + "\n</pci>\n"
			}
			raw += "</cpu>\n"
		}
		raw += "</system>\n"
		f := texttest.Parse("topo.xml", raw)
		want := strings.Count(raw, "<gpu ")
		if want == 0 { // Written by hand: functions alone.
			want = strings.Count(raw, `class="0x0302`)
		}
		got := 0
		if f.GPUs != nil {
			got = len(f.GPUs.Devices)
		}
		expect.That(t, got == want && want == 8, "%s: %d GPUs, want %d", name, got, want)
	}
}
