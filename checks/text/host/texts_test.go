package host_test

import (
	gocmp "cmp"
	"maps"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestKernelLines(t *testing.T) {
	const xid = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
	for _, prefix := range []string{
		"", "[   12.803392] ", "[   12.803392] kernel: ", "[Tue Aug 19 10:21:07 2025] ", "Aug 19 10:21:07 node7 kernel: ",
		"Aug  9 10:21:07 node7 kernel: [   12.803392] ", "2025-08-19T10:21:07,123456+02:00 ", "2025-08-19T10:21:07+0200 node7 kernel: ",
		"kern  :err   : [   12.803392] ", "<3>[   12.803392] ", "[   12.803392] [   T123] ",
	} {
		f := texttest.Parse("dmesg.txt", "before\n"+prefix+xid+"\n")
		expect.Must(t, f.KernelLog != nil && len(f.KernelLog.Events) == 1, "%q: got %+v", prefix, f.KernelLog)
		e := f.KernelLog.Events[0]
		expect.That(t, e.Kind == "xid" && e.Code != nil && *e.Code == 79 && e.Address == "0000:3b:00.0" && e.Message == xid && e.Source == "dmesg.txt" && e.Line == 2, "%q: got %+v", prefix, e)
		expect.That(t, strings.Contains(prefix, "node7") == (e.Host == "node7"), "%q: the host is %q", prefix, e.Host)
		expect.That(t, strings.Contains(prefix, "12.8") == (e.Seconds == 12.803392), "%q: at %v", prefix, e.Seconds)
	}
}

func TestKernelWindows(t *testing.T) {
	const bar = "nvidia 0000:41:00.0: BAR 1 [mem size 0x800000000 64bit pref]: can't assign; no space\n"
	for name, tt := range map[string]struct {
		text string
		want []facts.KernelEvent
	}{
		"no room":              {bar, []facts.KernelEvent{{ID: "kernel-bar-no-room", Kind: "bar", Address: "0000:41:00.0", BAR: new(1), SizeBytes: 32 << 30, Count: 1, Source: "d", Line: 1}}},
		"room in a later pass": {bar + "nvidia 0000:41:00.0: BAR 1 [mem 0x4000000000-0x47ffffffff 64bit pref]: assigned\n", nil},
		"a smaller one in a later pass": {
			bar + "nvidia 0000:41:00.0: BAR 1 [mem 0x4000000000-0x400fffffff 64bit pref]: assigned\n",
			[]facts.KernelEvent{{ID: "kernel-bar-no-room", Kind: "bar", Address: "0000:41:00.0", BAR: new(1), SizeBytes: 32 << 30, Count: 1, Source: "d", Line: 1}},
		},
		"a bridge, before Linux 6.9": {
			"pcieport 0000:00:1d.4: BAR 15: no space for [mem size 0xc00000000 64bit pref]\n",
			[]facts.KernelEvent{{ID: "kernel-bridge-window-no-room", Kind: "bridge-window", Address: "0000:00:1d.4", SizeBytes: 48 << 30, Count: 1, Source: "d", Line: 1}},
		},
		"a bridge, since": {
			"pci 0000:00:01.0: bridge window [mem size 0xc00000000 64bit pref]: can't assign; no space\n",
			[]facts.KernelEvent{{ID: "kernel-bridge-window-no-room", Kind: "bridge-window", Address: "0000:00:01.0", SizeBytes: 48 << 30, Count: 1, Source: "d", Line: 1}},
		},
		"another window of that bridge has room": {
			"pci 0000:00:01.0: bridge window [mem size 0xc00000000 64bit pref]: can't assign; no space\npci 0000:00:01.0: BAR 14: assigned [mem 0x0-0xfffffffff]\n",
			[]facts.KernelEvent{{ID: "kernel-bridge-window-no-room", Kind: "bridge-window", Address: "0000:00:01.0", SizeBytes: 48 << 30, Count: 1, Source: "d", Line: 1}},
		},
		"a bridge with room in a later pass, before Linux 6.9": {
			"pcieport 0000:00:1d.4: BAR 15: no space for [mem size 0xc00000000 64bit pref]\npcieport 0000:00:1d.4: BAR 15: assigned [mem 0x1000000000-0x1bffffffff 64bit pref]\n", nil,
		},
		"a bridge of an empty slot":   {"pci 0000:17:00.0: BAR 15: no space for [mem size 0x00200000 64bit pref]\n", nil},
		"I/O ports":                   {"pci 0000:17:00.0: BAR 13: no space for [io  size 0x1000]\n", nil},
		"what the card has at a boot": {"pci 0000:c1:00.0: BAR 1 [mem 0x90630000000-0x9063fffffff 64bit pref]\n", nil},
	} {
		got := texttest.Sections("d", tt.text).KernelLog.Events
		for i := range got {
			got[i].Message, got[i].Fields = "", nil
		}
		if len(got) == 0 {
			got = nil
		}
		expect.NoDiff(t, tt.want, got, "%s", name)
	}
}

func TestKernelIOMMU(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want facts.IOMMUFacts
	}{
		"translated": {"[    0.73] iommu: Default domain type: Translated\n[    0.90] AMD-Vi: Interrupt remapping enabled\n", facts.IOMMUFacts{DefaultDomain: "translated", Vendor: "amd"}},
		"passed through by a parameter": {
			"[    0.73] iommu: Default domain type: Passthrough (set via kernel command line)\n[    0.9] DMAR: Intel(R) Virtualization Technology for Directed I/O\n",
			facts.IOMMUFacts{DefaultDomain: "passthrough", Vendor: "intel"},
		},
		"passed through, before Linux 5.3": {"AMD-Vi: Initialized for Passthrough Mode\n", facts.IOMMUFacts{DefaultDomain: "passthrough", Vendor: "amd"}},
		"no IOMMU":                         {"iommu: Default domain type: Translated\n", facts.IOMMUFacts{DefaultDomain: "translated"}},
		"command line":                     {"$ cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz root=UUID=1 ro amd_iommu=on iommu=pt pci=realloc\n", facts.IOMMUFacts{CommandLine: []string{"amd_iommu=on", "iommu=pt"}}},
		"command lines of hosts":           {"$ cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz ro amd_iommu=on iommu=pt\n$ ssh node8 cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz ro amd_iommu=on\n", facts.IOMMUFacts{CommandLine: []string{"amd_iommu=on"}}},
		"command line of a boot":           {"[    0.000000] Kernel command line: BOOT_IMAGE=/vmlinuz intel_iommu=on -- single\n", facts.IOMMUFacts{CommandLine: []string{"intel_iommu=on"}}},
	} {
		f := texttest.Parse("d", tt.text)
		expect.Must(t, f.IOMMU != nil, "%s: nothing was read", name)
		expect.NoDiff(t, tt.want, *f.IOMMU, "%s", name)
	}
}

func TestHostTexts(t *testing.T) {
	f := texttest.Parse("host.txt", `Linux node7 5.15.0-91-generic #101-Ubuntu SMP Tue Nov 14 13:30:08 UTC 2023 x86_64 x86_64 x86_64 GNU/Linux
$ lscpu
Architecture:                       x86_64
Vendor ID:                          AuthenticAMD
Model name:                         AMD EPYC 7543 32-Core Processor
Socket(s):                          2
Flags:                              fpu vme de pse
NUMA node0 CPU(s):                  0-31,64-95
NUMA node1 CPU(s):                  32-63,96-127
$ numactl --hardware
available: 2 nodes (0-1)
node 0 cpus: 0 1 2 3 8
node 0 size: 515822 MB
node 0 free: 1 MB
node 1 cpus: 4 5
node 1 size: 516088 MB
node distances:
node   0   1
  0:  10  32
  1:  32  10
kernel.numa_balancing = 1
`)
	expect.NoDiff(t, &facts.HostFacts{
		Hostname: "node7", Kernel: "5.15.0-91-generic", Arch: "amd64",
		Virtualization: &facts.Virtualization{Kind: "none", Source: "host.txt:7"},
		CPU:            &facts.CPU{Vendor: "AuthenticAMD", Model: "AMD EPYC 7543 32-Core Processor", Sockets: 2},
	}, f.Host, "host")
	numa := &facts.NUMAFacts{Balancing: new(1), Nodes: []facts.NUMANode{
		{ID: 0, CPUs: "0-31,64-95", MemoryBytes: 515822 << 20},
		{ID: 1, CPUs: "32-63,96-127", MemoryBytes: 516088 << 20},
	}}
	expect.NoDiff(t, numa, f.NUMA, "NUMA")
}

func TestHostGuest(t *testing.T) {
	f := texttest.Parse("lscpu.txt", "Hypervisor vendor:                       KVM\nFlags: fpu vme hypervisor\n")
	v := f.Host.Virtualization
	expect.That(t, v != nil && v.Guest && v.Kind == "kvm", "got %+v", v)
	f = texttest.Parse("lspci.txt", "\tFlags: bus master, fast devsel, latency 0\n")
	expect.That(t, f.Host == nil, "a device's flags are no processor's: %+v", f.Host)
}

func TestPythonCopy(t *testing.T) {
	for name, tt := range map[string]struct {
		text  string
		wrong bool
	}{
		"bits of another":    {"tensor([1.0, 2.0], device='cuda:0')\n> tensor([1.4013e-45, 0.0000e+00], device='cuda:1')\n", true},
		"zeros of its own":   {"tensor([3., 7.], device='cuda:0')\n>>> b = torch.zeros(2, device='cuda:1')\n>>> b\ntensor([0., 0.], device='cuda:1')\n", false},
		"made on the host":   {">>> a = torch.tensor([1])\n>>> b\ntensor([0], device='cuda:1')\n", false},
		"zeros arrive":       {">>> x\ntensor([3., 7.], device='cuda:0')\n>>> x.to('cuda:1')\ntensor([0., 0.], device='cuda:1')\n", true},
		"the values arrive":  {">>> x\ntensor([3., 7.], device='cuda:0')\n>>> x.to('cuda:1')\ntensor([3., 7.], device='cuda:1')\n", false},
		"zeros on one GPU":   {"tensor([3., 7.], device='cuda:0')\ntensor([0., 0.], device='cuda:0')\n", false},
		"zeros were copied":  {"tensor([0., 0.], device='cuda:0')\ntensor([0., 0.], device='cuda:1')\n", false},
		"another shape":      {"tensor([3., 7.], device='cuda:0')\ntensor([0.], device='cuda:1')\n", false},
		"long after":         {"tensor([3., 7.], device='cuda:0')\n" + strings.Repeat("x\n", 30) + "tensor([0., 0.], device='cuda:1')\n", false},
		"zeros were asked":   {"tensor([3., 7.], device='cuda:0')\n>>> torch.zeros(2): tensor([0., 0.], device='cuda:1')\n", false},
		"in both directions": {"tensor([3.], device='cuda:1')\ntensor([0.], device='cuda:0')\ntensor([0.], device='cuda:0')\n", true},
	} {
		f := texttest.Parse("app.log", tt.text)
		got := len(f.Benchmarks) == 1 && *f.Benchmarks[0].Wrong > 0
		expect.That(t, got == tt.wrong && len(f.Benchmarks) <= 1, "%s: got %+v", name, f.Benchmarks)
	}
}

func TestKernelConfig(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       map[string]string
	}{
		{"a search", "$ zcat /proc/config.gz | grep -E 'P2PDMA|HSA_AMD'\n# CONFIG_PCI_P2PDMA is not set\nCONFIG_HSA_AMD=y\nCONFIG_HSA_AMD_SVM=y\n", map[string]string{"CONFIG_PCI_P2PDMA": "n", "CONFIG_HSA_AMD": "y"}},
		{"several files", "/boot/config-6.8.0-40-generic:CONFIG_DMABUF_MOVE_NOTIFY=y\n/boot/config-6.8.0-40-generic:# CONFIG_HSA_AMD_P2P is not set\n", map[string]string{"CONFIG_DMABUF_MOVE_NOTIFY": "y", "CONFIG_HSA_AMD_P2P": "n"}},
		{"the first of two kernels", "CONFIG_HSA_AMD_P2P=y\n# CONFIG_HSA_AMD_P2P is not set\n", map[string]string{"CONFIG_HSA_AMD_P2P": "y"}},
		{"advice", "Set CONFIG_HSA_AMD_P2P=y and CONFIG_PCI_P2PDMA=y in your kernel.\n", nil},
	} {
		got := gocmp.Or(texttest.Sections("x", c.text).GPUs.AMD, &facts.AMDDriver{}).KernelConfig
		expect.That(t, maps.Equal(got, c.want), "%s: got %v, want %v", c.name, got, c.want)
	}
}

func TestAffinity(t *testing.T) {
	const topo = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n" +
		"GPU0\t X \tSYS\t0-15,32-47\t0\t\tN/A\nGPU1\tSYS\t X \t16-31,48-63\t1\t\tN/A\n"
	for _, test := range []struct {
		name, text, allowed string
		counts              [2]int
	}{
		{"the kernel's status", "Cpus_allowed_list:\t0-7\n", "0-7", [2]int{8, 0}},
		{"taskset", "pid 4711's current affinity list: 0-7,40,48\n", "0-7,40,48", [2]int{9, 1}},
		{"srun", "cpu-bind=MASK - n1, task  0  0 [4711]: mask 0x3 set\ncpu-bind=MASK - n1, task  1  1 [4712]: mask 0x30 set\ncpu-bind=MASK - n2, task  2  0 [99]: mask 0xf00 set\n", "0-1,4-5", [2]int{4, 0}},
		{"numactl", "physcpubind: 16 17 18 20\n", "16-18,20", [2]int{0, 4}},
	} {
		f := texttest.Parse("a.txt", test.text+topo)
		expect.Must(t, f.NUMA != nil && f.NUMA.AllowedCPUs == test.allowed && len(f.NUMA.Nodes) == 2, "%s: got %+v, want %s and two nodes", test.name, f.NUMA, test.allowed)
		for i, want := range test.counts {
			got := f.NUMA.Nodes[i].AllowedCPUs
			expect.That(t, got != nil && *got == want, "%s: node %d: got %v, want %d", test.name, i, got, want)
			got = f.GPUs.Devices[i].NUMANode
			expect.That(t, got != nil && *got == i, "%s: GPU %d: got node %v", test.name, i, got)
		}
	}
	for _, text := range []string{"Cpus_allowed_list:\t\n", "Cpus_allowed_list:\t7-0\n", "pid 1's current affinity list: ,\n"} {
		expect.Equal(t, "", texttest.Sections("a.txt", text).NUMA.AllowedCPUs, "%q", text)
	}
}

// TestEnvironmentJSON: variables of a job's description in JSON.
func TestEnvironmentJSON(t *testing.T) {
	f := texttest.Sections("job.json", "  \"NCCL_DEBUG\": \"INFO\",\n  {\"name\": \"FI_PROVIDER\", \"value\": \"efa\"},\n  \"USER\": \"x\",\n")
	got := expect.Map(f.Env.Variables, func(v facts.Variable) string { return v.Name + "=" + v.Value })
	expect.NoDiff(t, []string{"NCCL_DEBUG=INFO", "FI_PROVIDER=efa"}, got, "variables")
}

// TestNCCLAffinity: the list of CPUs of NCCL 2.27.
func TestNCCLAffinity(t *testing.T) {
	f := texttest.Parse("a.log", "n1:1:5 [0] NCCL INFO Setting affinity for GPU 0 to 0-31,64-95\n")
	expect.That(t, len(f.Logs.Affinities) == 1 && f.Logs.Affinities[0].CPUs == 64, "got %+v", f.Logs.Affinities)
}

// TestNCCLTestsCutTable: a table that begins with the names of its columns.
func TestNCCLTestsCutTable(t *testing.T) {
	f := texttest.Parse("a.log", "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"+
		"     1048576        262144   float     sum    310.1    3.38    6.76  1e-06    308.0    3.40    6.81  1e-06\n")
	expect.That(t, len(f.Benchmarks) == 1 && len(f.Benchmarks[0].Points) == 1, "got %+v", f.Benchmarks)
}

func TestHostXML(t *testing.T) {
	const nccl = `<system version="1">
  <cpu numaid="1" affinity="00000001,ffff0000" arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1">
    <pci busid="0000:41:00.0" class="0x030200" vendor="0x10de" device="0x20b0" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="80" rank="0" gdr="1"><nvlink target="0000:61:00.0" count="4" tclass="0x030200"/></gpu>
    </pci>
    <pci busid="0000:61:00.0" class="0x030200" vendor="0x10de" device="0x20b0" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="80" rank="1" gdr="1"><nvlink target="0000:41:00.0" count="4" tclass="0x030200"/></gpu>
    </pci>
  </cpu>
</system>
`
	f := texttest.Parse("topo.xml", "NCCL wrote:\n"+nccl+"after\n")
	expect.Must(t, len(f.GPUs.Devices) == 2 && *f.GPUs.Devices[1].Index == 1 && f.GPUs.Devices[0].ComputeCapability == "8.0", "GPUs are %+v", f.GPUs.Devices)
	p := f.Links.Between("0000:41:00.0", "0000:61:00.0")
	expect.That(t, p != nil && p.NVLinks != nil && *p.NVLinks == 4 && !p.NVSwitch, "the pair is %+v", p)
	n := f.NUMA.Nodes
	expect.That(t, len(n) == 1 && n[0].ID == 1 && n[0].CPUs == "16-32", "NUMA nodes are %+v", n)
	d := texttest.PCIDevice(t, f, "0000:41:00.0")
	expect.That(t, d.NUMANode != nil && *d.NUMANode == 1 && d.RootBus == "" && d.Link.MaxSpeedGTs == 16, "the GPU is %+v", d)
}
