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
	"$ setpci -s 40:01.1 ECAP_ACS+6.w\n001d\n",
	"/sys/kernel/iommu_groups/3/type:DMA-FQ\n",
	"tensor([1., 2.], device='cuda:0')\ntensor([0., 0.], device='cuda:1')\n",
	"max locked memory (kbytes, -l) 64\n$ ulimit -l\n99999999999999999\n", "shm 64M 0 64M 0% /dev/shm\n", "CapEff: 00000000a80425fb\nSeccomp: 2\n",
	"$ ls -l /dev/dri /dev/nvidia*\n/dev/dri:\ncrw-rw---- 1 root render 226, 128 Nov 1 10:00 renderD128\n/dev/nvidia0 /dev/nvidiactl\n",
	"crw-rw---- 1 root render 235, 0 Jan  5 10:40 /dev/kfd\nuid=1000(dev) gid=1000(dev) groups=1000(dev),39(video)\n", "uid=1(a) gid=(b) groups=",
	"CONFIG_HSA_AMD_P2P=y\n# CONFIG_PCI_P2PDMA is not set\n", "x:CONFIG_HSA_AMD=m\n",
	"Cpus_allowed_list:\t0-7,9\n", "pid 1's current affinity list: 0-99999999\nnode 0 cpus: 1 2\n", "physcpubind: 0 1 2\n", "cpu-bind=MASK - n1, task  0  0 [4711]: mask 0x3 set\n",
	"PyTorch version: 2.4.0\nOS: x\nGPU models and configuration:\nGPU 0: NVIDIA A100\nGPU 99999: y\nNvidia driver version: 5.1\n",
	"PRETTY_NAME=\"x\"\nID=a\nRelease:\t1\n",
	"h:~$ pip freeze\nnvidia-nccl-cu12==2.20.5\n[conda] torch  2.1 x_0\n",
	"ii  libnccl2  2.27.7-1+cuda12.9  amd64\nlibnccl-2.21.5-1.x86_64\nName: torch\nVersion: 2\n$ ofed_info -n\n5.0\n",
	"vLLM is using nccl==2.28.9\nCuda compilation tools, release 12.4, V12.4.131\n",
}

// FuzzHostTexts checks that what is read of any text is bounded and sound.
func FuzzHostTexts(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		f := texttest.Sections("x", text)
		expect.That(t, len(f.PCI.Devices) <= parse.MaxDevices, "%d functions", len(f.PCI.Devices))
		for _, d := range f.PCI.Devices {
			expect.That(t, len(d.Ancestors) <= 256 && facts.Address(d.Address) == d.Address, "%q has %d ancestors", d.Address, len(d.Ancestors))
		}
		expect.That(t, len(f.KernelLog.Events) <= 512 && len(f.NUMA.Nodes) <= 1024, "%d events, %d NUMA nodes", len(f.KernelLog.Events), len(f.NUMA.Nodes))
		c := f.Container
		expect.That(t, len(c.DeviceNodes) <= parse.MaxEntries, "%d nodes", len(c.DeviceNodes))
		expect.That(t, c.SHM == nil || c.SHM.SizeBytes >= 0 && c.SHM.FreeBytes >= 0, "got %+v", c.SHM)
		expect.That(t, len(f.GPUs.Devices) <= parse.MaxDevices, "%d GPUs", len(f.GPUs.Devices))
		if f.GPUs.AMD != nil {
			for name, value := range f.GPUs.AMD.KernelConfig {
				expect.That(t, value == "y" || value == "m" || value == "n", "%s is %q", name, value)
			}
		}
		expect.That(t, len(f.Software) <= parse.MaxEntries, "%d packages", len(f.Software))
		for _, p := range f.Software {
			expect.That(t, p.Name != "" && p.Version != "" && p.Line >= 1, "incomplete: %+v", p)
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
		var raw strings.Builder
		raw.WriteString("<system version=\"1\">\n")
		for node := range 2 {
			fmt.Fprintf(&raw, "<cpu numaid=\"%d\" affinity=\"ffffffff\" arch=\"x86_64\" vendor=\"GenuineIntel\">\n", node)
			for i := range 4 {
				n := 4*node + i
				fmt.Fprintf(&raw, "<pci busid=\"0000:%02x:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n", 0x10+0x10*n)
				raw.WriteString(fmt.Sprintf(gpu, 0x11+0x10*n, n) + "\n</pci>\n")
			}
			raw.WriteString("</cpu>\n")
		}
		raw.WriteString("</system>\n")
		want := strings.Count(raw.String(), "<gpu ")
		if want == 0 { // Written by hand: functions alone.
			want = strings.Count(raw.String(), `class="0x0302`)
		}
		got := len(texttest.Sections("topo.xml", raw.String()).GPUs.Devices)
		expect.That(t, got == want && want == 8, "%s: %d GPUs, want %d", name, got, want)
	}
}
