package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// card is a model of GPU, as NVML and the PCI bus show it.
type card struct {
	name, device      string
	architecture, cc  string
	memory, bar       int64 // GiB; a bar of 0 is none, as on coherent platforms.
	generation, width int
	links, linkGBps   int // NVLinks and what one carries in one direction.
}

// The models. Memory, BAR1, links and ids are those of recordings (h200x8 of
// the project, nvidia-smi -q -x of NVIDIA/k8s-test-infra) and of pci.ids.
var (
	a100PCIe = card{name: "NVIDIA A100 80GB PCIe", device: "0x20b5", architecture: "ampere", cc: "8.0", memory: 80, bar: 128, generation: 4, width: 16, links: 12, linkGBps: 25}
	a100SXM  = card{name: "NVIDIA A100-SXM4-80GB", device: "0x20b2", architecture: "ampere", cc: "8.0", memory: 80, bar: 128, generation: 4, width: 16, links: 12, linkGBps: 25}
	h100     = card{name: "NVIDIA H100 80GB HBM3", device: "0x2330", architecture: "hopper", cc: "9.0", memory: 80, bar: 128, generation: 5, width: 16, links: 18, linkGBps: 25}
	h200     = card{name: "NVIDIA H200", device: "0x2335", architecture: "hopper", cc: "9.0", memory: 140, bar: 256, generation: 5, width: 16, links: 18, linkGBps: 25}
	gh200    = card{name: "NVIDIA GH200 480GB", device: "0x2342", architecture: "hopper", cc: "9.0", memory: 95, generation: 5, width: 16}
	gb200    = card{name: "NVIDIA GB200", device: "0x2941", architecture: "blackwell", cc: "10.0", memory: 184, generation: 6, width: 16, links: 18, linkGBps: 50}
	l40s     = card{name: "NVIDIA L40S", device: "0x26b9", architecture: "ada", cc: "8.9", memory: 45, bar: 64, generation: 4, width: 16}
	l4       = card{name: "NVIDIA L4", device: "0x27b8", architecture: "ada", cc: "8.9", memory: 23, bar: 32, generation: 4, width: 16}
	t4       = card{name: "Tesla T4", device: "0x1eb8", architecture: "turing", cc: "7.5", memory: 15, bar: 0, generation: 3, width: 16}
	h100PCIe = card{name: "NVIDIA H100 PCIe", device: "0x2331", architecture: "hopper", cc: "9.0", memory: 80, bar: 128, generation: 5, width: 16, links: 12, linkGBps: 25}
	v100     = card{name: "Tesla V100-SXM2-32GB", device: "0x1db5", architecture: "volta", cc: "7.0", memory: 32, bar: 32, generation: 3, width: 16, links: 6, linkGBps: 25}
	a6000    = card{name: "NVIDIA RTX A6000", device: "0x2230", architecture: "ampere", cc: "8.6", memory: 48, bar: 64, generation: 4, width: 16, links: 4, linkGBps: 14}
	gb10     = card{name: "NVIDIA GB10", device: "0x2e12", architecture: "blackwell", cc: "12.1", memory: 119, generation: 5, width: 16}
	rtx4090  = card{name: "NVIDIA GeForce RTX 4090", device: "0x2684", architecture: "ada", cc: "8.9", memory: 24, bar: 32, generation: 4, width: 16}
	rtx4060m = card{name: "NVIDIA GeForce RTX 4060 Laptop GPU", device: "0x28e0", architecture: "ada", cc: "8.9", memory: 8, bar: 8, generation: 4, width: 8}
)

const driver = "580.159.04"

// model is a machine under construction.
type model struct {
	*facts.Facts
	cards []card
}

// machine begins a bare-metal one of a user who is root, with two sockets and
// these cards, each below a root port of its own; the first half on node 0.
func machine(cards ...card) *model {
	m := &model{cards: cards, Facts: &facts.Facts{
		Schema: facts.FactsSchema,
		Host: &facts.HostFacts{
			Kernel: "6.8.0-60-generic", Arch: "amd64", Distribution: "Ubuntu 24.04.3 LTS",
			CommandLine:    []string{"BOOT_IMAGE=/vmlinuz", "ro", "iommu=pt"},
			Virtualization: &facts.Virtualization{Kind: "none", PassthroughHost: new(false), Source: "/proc/cpuinfo"},
			CPU:            &facts.CPU{Vendor: "GenuineIntel", Model: "INTEL(R) XEON(R) PLATINUM 8562Y+", Sockets: 2},
			MemoryBytes:    1 << 40, Root: new(true),
		},
		PCI:   &facts.PCIFacts{},
		IOMMU: &facts.IOMMUFacts{Units: []string{"dmar0"}, Vendor: "intel", Mode: "passthrough", CommandLine: []string{"iommu=pt"}},
		NUMA: &facts.NUMAFacts{Balancing: new(1), AllowedCPUs: "0-127", Nodes: []facts.NUMANode{
			{ID: 0, CPUs: "0-63", AllowedCPUs: new(64), MemoryBytes: 1 << 39},
			{ID: 1, CPUs: "64-127", AllowedCPUs: new(64), MemoryBytes: 1 << 39},
		}},
		GPUs: &facts.GPUFacts{NVML: "ok", NVSwitches: new(0), Driver: facts.GPUDriver{
			Version: driver, KernelVersion: driver, Open: new(true), CUDAVersion: "13.0",
		}},
		Links: &facts.LinkFacts{Pairs: []facts.Pair{}, VirtualTopology: new(false)},
		Container: &facts.ContainerFacts{
			Inside: new(false), SHM: shm(512 << 30), SHMMounted: new(true),
			MemlockSoftBytes: new(int64(8 << 20)), MemlockHardBytes: new(int64(8 << 20)), Capabilities: []string{"IPC_LOCK", "SYS_ADMIN", "SYS_NICE"},
			GetMempolicy: "ok", Mlock: "ok", SysMounted: new(true), PCIVisible: new(true),
			DeviceNodes: []facts.DeviceNode{}, PrivateIPC: new(false), PrivatePID: new(false), PrivateUser: new(false),
		},
		Env: &facts.EnvFacts{Variables: []facts.Variable{}}, Libraries: &facts.LibraryFacts{Files: []facts.Library{}},
		KernelLog: &facts.KernelLogFacts{Source: "/dev/kmsg", Events: []facts.KernelEvent{}},
	}}
	for i, c := range cards {
		m.addCard(i, c)
	}
	for i := range cards {
		for j := range i {
			m.Links.Pairs = append(m.Links.Pairs, facts.Pair{
				A: gpu(j), B: gpu(i), Kind: "gpu-gpu", Path: m.path(j, i), Bridges: []string{port(j), port(i)}, NVLinks: new(0),
				P2P: &facts.P2PStatus{Read: "ok", Write: "ok", NVLink: "not-supported"},
			})
		}
	}
	if len(cards) > 0 {
		m.nodes("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
		for _, kind := range []string{"libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler"} {
			m.library(facts.Library{Kind: kind, Path: "/usr/lib/x86_64-linux-gnu/" + kind + ".so.1", Version: driver, FoundBy: "ld_cache", Loads: true})
		}
	} else {
		m.GPUs = &facts.GPUFacts{NVML: "not-found", Devices: []facts.GPU{}}
	}
	return m
}

func gpu(i int) string  { return fmt.Sprintf("0000:%02x:00.0", 0x18+8*i) }
func port(i int) string { return fmt.Sprintf("0000:%02x:01.0", 0x17+8*i) }

func shm(size int64) *facts.FileSystem {
	return &facts.FileSystem{Path: "/dev/shm", Type: "tmpfs", SizeBytes: size, FreeBytes: size}
}

func (m *model) node(i int) int { return 2 * i / max(len(m.cards), 2) }

func (m *model) path(i, j int) string {
	if m.node(i) != m.node(j) {
		return "SYS"
	}
	return "NODE"
}

func (m *model) addCard(i int, c card) {
	speed := []float64{0, 2.5, 5, 8, 16, 32, 64}[c.generation]
	link := facts.PCIeLink{SpeedGTs: speed, Width: c.width, MaxSpeedGTs: speed, MaxWidth: c.width, Source: "config"}
	idle := link
	idle.SpeedGTs = 2.5 // As an idle card shows.
	m.PCI.Devices = append(
		m.PCI.Devices, facts.PCIDevice{
			Address: port(i), Class: "0x060400", Vendor: "0x8086", Device: "0x352a", Kind: "bridge", Driver: "pcieport", NUMANode: new(m.node(i)),
			RootBus: "pci" + port(i)[:7], PortType: "root-port", Link: &link, Extended: true,
			ACS: &facts.ACS{Control: []string{"SrcValid"}},
		},
		facts.PCIDevice{
			Address: gpu(i), Class: "0x030200", Vendor: "0x10de", Device: c.device, Kind: "gpu", Driver: "nvidia", NUMANode: new(m.node(i)), IOMMUGroup: new(40 + i),
			RootBus: "pci" + port(i)[:7], Ancestors: []string{port(i)}, PortType: "endpoint", Link: &idle, Extended: true,
		},
	)
	m.IOMMU.Groups = append(m.IOMMU.Groups, facts.IOMMUGroup{ID: 40 + i, Type: "identity", Devices: []string{gpu(i)}})
	g := facts.GPU{
		Address: gpu(i), Vendor: "nvidia", InPCI: true, InNVML: true, Index: new(i), UUID: fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", i+1),
		Name: c.name, Architecture: c.architecture, ComputeCapability: c.cc, MemoryBytes: c.memory << 30, MemoryUsedBytes: new(int64(0)),
		PCIe:             &facts.GPULink{Generation: 1, Width: c.width, MaxGeneration: c.generation, MaxWidth: c.width},
		PerformanceState: new(8), Persistence: new(true), VirtualizationMode: "none", RecoveryAction: "none",
		ECC:          &facts.ECC{Enabled: true, VolatileUncorrected: new(int64(0))},
		RemappedRows: &facts.RemappedRows{}, NVLinks: []facts.NVLink{}, Fabric: &facts.Fabric{State: "not-supported"}, Processes: []facts.GPUProcess{},
	}
	if c.bar > 0 {
		g.BAR1Bytes = new(c.bar << 30)
	}
	if c.cc >= "8" {
		g.MIG = new(false)
	}
	m.GPUs.Devices = append(m.GPUs.Devices, g)
	m.nodes(fmt.Sprintf("/dev/nvidia%d", i))
	m.Container.DriverDevices = append(m.Container.DriverDevices, facts.DriverDevice{Address: gpu(i), Minor: new(i), Model: c.name})
}

func (m *model) nodes(paths ...string) *model {
	for _, p := range paths {
		m.Container.DeviceNodes = append(m.Container.DeviceNodes, facts.DeviceNode{Path: p, Access: "rw"})
	}
	return m
}

func (m *model) library(files ...facts.Library) *model {
	m.Libraries.Files = append(m.Libraries.Files, files...)
	return m
}

// env sets variables, each as NAME=value.
func (m *model) env(settings ...string) *model {
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		m.Env.Variables = append(m.Env.Variables, facts.Variable{Name: name, Value: value, Source: "environment", Effective: true})
	}
	return m
}

// nvlinked joins pairs by all the links that their cards have for that.
func (m *model) nvlinked(remote string, links int, joined func(i, j int) bool) *model {
	for i := range m.GPUs.Devices {
		g, c := &m.GPUs.Devices[i], m.cards[i]
		for l := range c.links {
			g.NVLinks = append(g.NVLinks, facts.NVLink{Link: l, Active: l < links, Version: 4, RemoteType: remote, SpeedMBps: 26562})
		}
		if remote == "switch" {
			g.Fabric = &facts.Fabric{State: "completed", Status: "SUCCESS"}
		}
	}
	for i := range m.Links.Pairs {
		p := &m.Links.Pairs[i]
		a, b := m.number(p.A), m.number(p.B)
		if joined(a, b) {
			p.NVLinks, p.NVSwitch, p.NVLinkGBps, p.P2P.NVLink = new(links), remote == "switch", float64(links*m.cards[a].linkGBps), "ok"
		}
	}
	return m
}

func (m *model) number(address string) int {
	return slices.IndexFunc(m.GPUs.Devices, func(g facts.GPU) bool { return g.Address == address })
}

func everyPair(int, int) bool { return true }

// switched joins all by NVSwitches, which are PCI functions before Blackwell.
func (m *model) switched(switches int) *model {
	m.nvlinked("switch", m.cards[0].links, everyPair)
	m.GPUs.NVSwitches = new(switches)
	for i := range switches {
		m.PCI.Devices = append(m.PCI.Devices, facts.PCIDevice{
			Address: fmt.Sprintf("0000:%02x:00.0", 0x05+i), Class: "0x068000", Vendor: "0x10de", Device: "0x22a3", Kind: "nvswitch", Driver: "nvidia-nvswitch", Extended: true,
		})
	}
	m.GPUs.Driver.FabricManager = &facts.FabricManager{Running: new(true), Version: driver}
	return m
}

// refused has the driver offer no peer access, in NVML's words.
func (m *model) refused(status string) *model {
	for i := range m.Links.Pairs {
		m.Links.Pairs[i].P2P = &facts.P2PStatus{Read: status, Write: status, NVLink: "not-supported"}
	}
	return m
}

// guest makes it a virtual machine with a flat PCI tree.
func (m *model) guest() *model {
	m.Host.Virtualization = &facts.Virtualization{Kind: "kvm", Guest: true, PassthroughHost: new(false), Source: "DMI"}
	m.IOMMU = &facts.IOMMUFacts{Units: []string{}, Groups: []facts.IOMMUGroup{}, Mode: "off"}
	m.NUMA = &facts.NUMAFacts{Balancing: new(0), Nodes: []facts.NUMANode{{ID: 0, CPUs: "0-63", AllowedCPUs: new(64)}}}
	m.PCI.Devices = slices.DeleteFunc(m.PCI.Devices, func(d facts.PCIDevice) bool { return d.Kind == "bridge" || d.Kind == "nvswitch" })
	for i := range m.PCI.Devices {
		m.PCI.Devices[i].Ancestors, m.PCI.Devices[i].NUMANode, m.PCI.Devices[i].Extended = nil, nil, false
	}
	for i := range m.Links.Pairs {
		m.Links.Pairs[i].Path, m.Links.Pairs[i].Bridges = "PHB", []string{}
	}
	m.Links.VirtualTopology = new(len(m.cards) > 1)
	for i := range m.GPUs.Devices {
		m.GPUs.Devices[i].VirtualizationMode = "passthrough"
	}
	m.GPUs.Driver.FabricManager = &facts.FabricManager{Running: new(false)}
	return m
}

// inside puts the process into a container that was given the first count GPUs and has a /dev/shm of its own.
func (m *model) inside(runtime string, count int, shmBytes int64) *model {
	c := m.Container
	c.Inside, c.Runtime, c.SHM = new(true), runtime, shm(shmBytes)
	c.Capabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}
	c.GetMempolicy, c.PrivateIPC, c.PrivatePID = "EPERM", new(true), new(true)
	c.DeviceNodes = slices.DeleteFunc(c.DeviceNodes, func(n facts.DeviceNode) bool {
		var minor int
		read, _ := fmt.Sscanf(n.Path, "/dev/nvidia%d", &minor)
		return read == 1 && minor >= count
	})
	for i := count; i < len(m.cards); i++ {
		m.GPUs.Devices[i] = facts.GPU{Address: gpu(i), Vendor: "nvidia", InPCI: true}
	}
	m.Links.Pairs = slices.DeleteFunc(m.Links.Pairs, func(p facts.Pair) bool { return m.number(p.B) >= count })
	for i := range m.Libraries.Files {
		m.Libraries.Files[i].Mounted = true
	}
	m.KernelLog = nil
	m.Unknown = append(m.Unknown, facts.Unknown{Section: "kernel_log", Reason: "reading it needs CAP_SYSLOG", Hint: "run as root on the host"})
	if m.GPUs.Driver.FabricManager != nil {
		m.GPUs.Driver.FabricManager = &facts.FabricManager{}
	}
	return m
}

// probed adds what the quick probe finds among the GPUs that NVML shows.
func (m *model) probed() *model {
	r := &probe.Report{Mode: probe.Quick, Outcome: probe.OK, Library: "libcuda.so.1", DriverVersion: "13.0", Devices: []probe.Device{}, Peers: []probe.Peer{}, Transfers: []probe.Transfer{}}
	for _, g := range m.GPUs.Devices {
		if g.InNVML {
			r.Devices = append(r.Devices, probe.Device{Ordinal: len(r.Devices), Address: g.Address, Name: g.Name, MemoryBytes: g.MemoryBytes, Outcome: probe.OK})
		}
	}
	for _, p := range m.Links.Pairs {
		if !m.GPUs.Devices[m.number(p.A)].InNVML || !m.GPUs.Devices[m.number(p.B)].InNVML {
			continue
		}
		offered := p.P2P.Read == "ok"
		for _, d := range [][2]string{{p.A, p.B}, {p.B, p.A}} {
			r.Peers = append(r.Peers, probe.Peer{Source: d[0], Destination: d[1], Access: &offered})
			t := probe.Transfer{Test: probe.TestCopy, Source: d[0], Destination: d[1], Outcome: probe.Unsupported}
			if offered {
				expected := max(p.NVLinkGBps, 63)
				t.Outcome, t.GBps, t.ExpectedGBps, t.Fraction, t.Threshold = probe.OK, new(0.85*expected), &expected, new(0.85), new(0.7)
			}
			r.Transfers = append(r.Transfers, t)
		}
	}
	m.Transfers = r
	return m
}

// unprivileged takes away what only root sees.
func (m *model) unprivileged() *model {
	m.Host.Root = new(false)
	for i := range m.PCI.Devices {
		d := &m.PCI.Devices[i]
		d.Extended, d.PortType, d.ACS, d.ATS, d.ResizableBARs = false, "", nil, nil, nil
		if d.Link != nil {
			d.Link.Source = "sysfs"
		}
	}
	if !*m.Container.Inside {
		m.Container.Capabilities = []string{}
	}
	m.KernelLog = nil
	m.Unknown = append(m.Unknown, facts.Unknown{Section: "pci", Fact: "devices.acs", Reason: "config space beyond 64 bytes needs root", Hint: "run as root"})
	return m
}

// hgx is a machine with eight H100 and four NVSwitches.
func hgx() *model { return machine(slices.Repeat([]card{h100}, 8)...).switched(4) }

// driverParts is what containers are usually given of the driver.
const driverParts = "NVIDIA_DRIVER_CAPABILITIES=compute,utility"

// healthy are machines as they are found, with nothing wrong.
var healthy = map[string]func() *model{
	"no GPU":        func() *model { return machine() },
	"8 x H100, HGX": hgx,
	"8 x A100, DGX": func() *model { return machine(slices.Repeat([]card{a100SXM}, 8)...).switched(6) },
	"8 x H200, virtual machine": func() *model {
		m := machine(slices.Repeat([]card{h200}, 8)...).switched(0).guest()
		m.Container.MemlockSoftBytes = new(int64(-1))
		return m
	},
	"GB200 tray": func() *model {
		m := machine(slices.Repeat([]card{gb200}, 4)...).nvlinked("switch", 18, everyPair)
		m.Host.Arch, m.IOMMU.Vendor, m.IOMMU.Mode = "arm64", "arm", "translated"
		for i := range m.IOMMU.Groups {
			m.IOMMU.Groups[i].Type = "DMA"
		}
		m.GPUs.NVSwitches = new(18) // Those of the rack, as the links lead there.
		return m
	},
	"GH200": func() *model {
		m := machine(gh200)
		m.Host.Arch, m.IOMMU.Vendor = "arm64", "arm"
		m.NUMA.Nodes = append(m.NUMA.Nodes[:1], facts.NUMANode{ID: 1, CPUs: ""})
		return m
	},
	"4 x A100 PCIe, NVLink bridges on pairs": func() *model {
		return machine(a100PCIe, a100PCIe, a100PCIe, a100PCIe).nvlinked("gpu", 12, func(i, j int) bool { return i/2 == j/2 })
	},
	"4 x L40S, cloud": func() *model { return machine(l40s, l40s, l40s, l40s).guest().refused("topology-not-supported") },
	"8 x H100, all with MIG": func() *model {
		m := hgx().refused("not-supported")
		for i := range m.GPUs.Devices {
			m.GPUs.Devices[i].MIG = new(true)
		}
		return m
	},
	"H100 with MIG": func() *model {
		m := machine(h100)
		m.GPUs.Devices[0].MIG = new(true)
		return m.env("CUDA_VISIBLE_DEVICES=MIG-00000000-0000-0000-0000-000000000001")
	},
	"T4 and L4": func() *model {
		m := machine(t4, l4)
		m.GPUs.Devices[0].BAR1Bytes = new(int64(256 << 20))
		return m.refused("not-supported")
	},
	"GeForce workstation": func() *model {
		m := machine(rtx4090)
		m.NUMA.Nodes = m.NUMA.Nodes[:1]
		m.IOMMU.Mode, m.IOMMU.CommandLine, m.IOMMU.Groups[0].Type = "translated", nil, "DMA-FQ"
		m.GPUs.Devices[0].ECC = nil
		m.nodes("/dev/dri/renderD128")
		return m
	},
	"2 x GeForce 4090": func() *model {
		m := machine(rtx4090, rtx4090).refused("gpu-not-supported")
		m.NUMA.Nodes = m.NUMA.Nodes[:1]
		m.IOMMU.Mode = "translated"
		for i := range m.IOMMU.Groups {
			m.IOMMU.Groups[i].Type = "DMA-FQ"
		}
		m.PCI.Devices[0].ACS.Control = []string{"SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"}
		return m
	},
	"laptop with two graphics processors": func() *model {
		m := machine(rtx4060m)
		m.NUMA.Nodes = m.NUMA.Nodes[:1]
		m.IOMMU.Mode, m.IOMMU.Groups[0].Type = "translated", "DMA-FQ"
		m.PCI.Devices = append(m.PCI.Devices, facts.PCIDevice{Address: "0000:00:02.0", Class: "0x030000", Vendor: "0x8086", Device: "0x46a6", Kind: "display", Driver: "i915", Extended: true})
		g := &m.GPUs.Devices[0]
		g.ECC, g.RemappedRows, g.Persistence, g.PCIe.Width = nil, nil, new(false), 8
		m.PCI.Devices[0].Link.MaxWidth, m.PCI.Devices[0].Link.Width = 8, 8
		m.nodes("/dev/dri/renderD128", "/dev/dri/renderD129")
		return m
	},
	"laptop, NVIDIA GPU asleep": func() *model {
		m := machine(rtx4060m)
		m.NUMA.Nodes = m.NUMA.Nodes[:1]
		m.PCI.Devices[1].OffBus, m.PCI.Devices[1].Driver, m.PCI.Devices[1].Link = true, "nouveau", nil
		m.GPUs = &facts.GPUFacts{NVML: "not-found", Devices: []facts.GPU{{Address: gpu(0), Vendor: "nvidia", InPCI: true}}}
		m.Libraries.Files, m.Container.DeviceNodes, m.Container.DriverDevices = []facts.Library{}, []facts.DeviceNode{}, nil
		return m
	},
	"WSL2": func() *model {
		m := machine(rtx4090)
		m.Host.Virtualization = &facts.Virtualization{Kind: "wsl", Guest: true, Source: "/proc/sys/kernel/osrelease"}
		m.Host.Kernel = "6.6.87.2-microsoft-standard-WSL2"
		m.PCI.Devices = []facts.PCIDevice{{Address: "0001:00:00.0", Class: "0x030200", Vendor: "0x1414", Device: "0x008e", Kind: "display", Driver: "dxgkrnl"}}
		m.GPUs.Devices[0].InPCI, m.GPUs.Devices[0].Fabric = false, nil
		m.GPUs.Driver.KernelVersion, m.GPUs.Driver.Version = "", "581.29"
		m.GPUs.NVSwitches, m.IOMMU = nil, &facts.IOMMUFacts{Units: []string{}, Groups: []facts.IOMMUGroup{}, Mode: "off"}
		m.Container.DeviceNodes, m.Container.DriverDevices = []facts.DeviceNode{}, nil
		m.NUMA.Nodes = m.NUMA.Nodes[:1]
		m.Libraries.Files = []facts.Library{{Kind: "libcuda", Path: "/usr/lib/wsl/lib/libcuda.so.1", FoundBy: "ld_cache", Loads: true}, {Kind: "libnvidia-ml", Path: "/usr/lib/wsl/lib/libnvidia-ml.so.1", FoundBy: "ld_cache", Loads: true}}
		return m
	},
	"passthrough host, one GPU in use": func() *model {
		m := machine(l40s, l40s)
		m.Host.Virtualization.PassthroughHost = new(true)
		m.IOMMU.Mode = "mixed"
		m.IOMMU.Groups[0].Type, m.IOMMU.Groups[1].Type = "DMA-FQ", "unmanaged"
		m.PCI.Devices[3].Driver = "vfio-pci"
		for i := range m.PCI.Devices {
			if m.PCI.Devices[i].ACS != nil {
				m.PCI.Devices[i].ACS.Control = []string{"SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"}
			}
		}
		m.GPUs.Devices[1] = facts.GPU{Address: gpu(1), Vendor: "nvidia", InPCI: true}
		m.Links.Pairs[0].P2P, m.Links.Pairs[0].NVLinks = &facts.P2PStatus{}, nil
		m.Container.DeviceNodes = slices.DeleteFunc(m.Container.DeviceNodes, func(n facts.DeviceNode) bool { return n.Path == "/dev/nvidia1" })
		m.Container.DriverDevices = m.Container.DriverDevices[:1]
		return m
	},
	"8 x MI300X, by PCI alone": func() *model {
		m := machine()
		m.GPUs = &facts.GPUFacts{NVML: "not-found", NVSwitches: new(0)}
		for i := range 8 {
			m.PCI.Devices = append(m.PCI.Devices, facts.PCIDevice{
				Address: gpu(i), Class: "0x120000", Vendor: "0x1002", Device: "0x74a1", Kind: "gpu", Driver: "amdgpu", NUMANode: new(i / 4), Ancestors: []string{port(i)}, Extended: true,
				Link: &facts.PCIeLink{SpeedGTs: 32, Width: 16, MaxSpeedGTs: 32, MaxWidth: 16, Source: "config"},
				BARs: []facts.BAR{{Index: 0, SizeBytes: 256 << 30}},
			})
			m.GPUs.Devices = append(m.GPUs.Devices, facts.GPU{Address: gpu(i), Vendor: "amd", InPCI: true})
			m.IOMMU.Groups = append(m.IOMMU.Groups, facts.IOMMUGroup{ID: i, Type: "identity", Devices: []string{gpu(i)}})
			m.nodes(fmt.Sprintf("/dev/dri/renderD%d", 128+8*i))
			for j := range i {
				m.Links.Pairs = append(m.Links.Pairs, facts.Pair{A: gpu(j), B: gpu(i), Kind: "gpu-gpu", Path: "NODE", Bridges: []string{port(j), port(i)}})
			}
		}
		m.NUMA.Balancing = new(0)
		return m.nodes("/dev/kfd")
	},
	"docker, 1 of 8":                  func() *model { return hgx().inside("docker", 1, 64<<20).env("NVIDIA_VISIBLE_DEVICES=0", driverParts) },
	"docker, all GPUs and --shm-size": func() *model { return hgx().inside("docker", 8, 16<<30).env("NVIDIA_VISIBLE_DEVICES=all", driverParts) },
	"docker, 4 of 8 and --ipc=host": func() *model {
		m := hgx().inside("docker", 4, 512<<30).env("NVIDIA_VISIBLE_DEVICES=0,1,2,3", driverParts)
		m.Container.PrivateIPC = new(false)
		return m
	},
	"rootless podman": func() *model {
		m := machine(l40s, l40s).inside("podman", 2, 8<<30).env("NVIDIA_VISIBLE_DEVICES=void")
		m.Container.PrivateUser = new(true)
		return m
	},
	"pod with one GPU": func() *model {
		return hgx().inside("kubernetes", 1, 64<<20).env("NVIDIA_VISIBLE_DEVICES=GPU-00000000-0000-0000-0000-000000000001", driverParts)
	},
	"enroot under Slurm": func() *model {
		m := hgx().inside("enroot", 8, 512<<30).env("NVIDIA_VISIBLE_DEVICES=all", driverParts, "CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7", "SLURM_NTASKS_PER_NODE=8")
		c := m.Container
		c.GetMempolicy, c.PrivateIPC, c.PrivatePID = "ok", new(false), new(false)
		c.Capabilities, c.MemlockSoftBytes, c.MemlockHardBytes = []string{}, new(int64(-1)), new(int64(-1))
		return m.nodes("/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm")
	},
	"CUDA image under build": func() *model {
		return machine().inside("docker", 0, 64<<20).env(cudaImage...).library(cudaImageFiles...)
	},
	"CUDA image under build on a machine with GPUs": func() *model {
		m := machine(h100, h100).inside("docker", 0, 64<<20).env(cudaImage...)
		m.Container.DeviceNodes = []facts.DeviceNode{}
		m.GPUs.NVML, m.GPUs.Driver = "not-found", facts.GPUDriver{KernelVersion: driver}
		m.Env.Variables = slices.DeleteFunc(m.Env.Variables, func(v facts.Variable) bool { return v.Name == "NVIDIA_VISIBLE_DEVICES" })
		m.env("NVIDIA_VISIBLE_DEVICES=void")
		m.Libraries.Files = cudaImageFiles
		return m
	},
	"NGC image": func() *model { return hgx().inside("docker", 8, 16<<30).env(ngcImage...).library(cudaImageFiles...) },
	"NGC image under build": func() *model {
		return machine().inside("docker", 0, 64<<20).env(ngcImage...).library(cudaImageFiles...)
	},
	"PyTorch from pip": func() *model {
		const site = "/usr/local/lib/python3.12/site-packages/nvidia/"
		return machine(h100, h100).switched(4).library(
			facts.Library{Kind: "libnccl", Path: site + "nccl/lib/libnccl.so.2", Version: "2.27.5+cuda12.9", FoundBy: "python"},
			facts.Library{Kind: "libcudart", Path: site + "cuda_runtime/lib/libcudart.so.12", Version: "12.8.90", FoundBy: "python"},
		).env("TORCH_NCCL_ASYNC_ERROR_HANDLING=1", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2")
	},
	"conda": func() *model {
		const lib = "/opt/conda/lib/"
		return machine(l40s, l40s).library(
			facts.Library{Kind: "libnccl", Path: lib + "libnccl.so.2", RealPath: lib + "libnccl.so.2.27.7", Version: "2.27.7", FoundBy: "ld_library_path", Loads: true},
			facts.Library{Kind: "libcudart", Path: lib + "libcudart.so.12", Version: "12.9.79", FoundBy: "ld_library_path", Loads: true},
			facts.Library{Kind: "libcuda", Path: lib + "stubs/libcuda.so", FoundBy: "toolkit", Stub: true},
		).env("LD_LIBRARY_PATH=/opt/conda/lib", "CUDA_VISIBLE_DEVICES=0,1")
	},
	"Slurm job with one GPU of eight": func() *model {
		m := hgx().unprivileged()
		for i := 1; i < 8; i++ {
			m.GPUs.Devices[i] = facts.GPU{Address: gpu(i), Vendor: "nvidia", InPCI: true}
		}
		for i := range m.Links.Pairs {
			m.Links.Pairs[i].P2P, m.Links.Pairs[i].NVLinks, m.Links.Pairs[i].NVSwitch = &facts.P2PStatus{}, nil, false
		}
		m.NUMA.AllowedCPUs, m.NUMA.Nodes[0].AllowedCPUs, m.NUMA.Nodes[1].AllowedCPUs = "0-15", new(16), new(0)
		m.Container.MemlockSoftBytes = new(int64(-1))
		return m.env("CUDA_VISIBLE_DEVICES=0", "SLURM_NTASKS_PER_NODE=1")
	},
	"DGX-1": func() *model {
		// Each GPU reaches four others, two of them by two links (the DGX-1 system architecture whitepaper).
		m := machine(slices.Repeat([]card{v100}, 8)...).nvlinked("gpu", 6, func(i, j int) bool { return i/4 == j/4 || j-i == 4 })
		for i := range m.Links.Pairs {
			if p := &m.Links.Pairs[i]; *p.NVLinks > 0 {
				p.NVLinks, p.NVLinkGBps = new(1), 25
			}
		}
		return m
	},
	"2 x RTX A6000 with a bridge": func() *model { return machine(a6000, a6000).nvlinked("gpu", 4, everyPair) },
	"2 x H100 PCIe without a bridge": func() *model {
		return machine(h100PCIe, h100PCIe).nvlinked("gpu", 0, func(int, int) bool { return false })
	},
	"GB10": func() *model {
		m := machine(gb10)
		m.Host.Arch, m.IOMMU.Vendor, m.NUMA.Nodes = "arm64", "arm", m.NUMA.Nodes[:1]
		m.GPUs.Devices[0].MemoryBytes, m.GPUs.Devices[0].ECC, m.GPUs.Devices[0].RemappedRows = 0, nil, nil
		return m
	},
	"programs have failed": func() *model {
		m := machine(h100, h100).switched(4)
		m.KernelLog.Events = []facts.KernelEvent{
			{ID: "kernel-xid", Kind: "xid", Code: new(31), Address: gpu(0), Message: "NVRM: Xid (PCI:0000:18:00): 31, pid=4711, MMU Fault", Count: 3},
			{ID: "kernel-xid", Kind: "xid", Code: new(43), Address: gpu(0), Message: "NVRM: Xid (PCI:0000:18:00): 43, pid=4711", Count: 1},
			{ID: "kernel-xid", Kind: "xid", Code: new(45), Address: gpu(1), Message: "NVRM: Xid (PCI:0000:20:00): 45, pid=4711", Count: 8},
			{ID: "kernel-xid", Kind: "xid", Code: new(63), Address: gpu(1), Message: "NVRM: Xid (PCI:0000:20:00): 63, Row Remapper: New row marked for remapping", Count: 1},
			{ID: "kernel-sxid", Kind: "sxid", Code: new(20012), Fatal: new(false), Message: "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20012, Non-fatal, Link 12", Count: 1},
		}
		return m
	},
	"variables in common use": func() *model {
		m := hgx().nodes("/dev/infiniband/uverbs0").env(
			"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,NET", "NCCL_SOCKET_IFNAME=eth0", "NCCL_IB_HCA=mlx5", "NCCL_IB_GID_INDEX=3", "NCCL_IB_TIMEOUT=22", "NCCL_IB_QPS_PER_CONNECTION=4",
			"NCCL_IB_RETRY_CNT=7", "NCCL_IB_TC=106", "NCCL_IB_SL=0", "NCCL_CROSS_NIC=1", "NCCL_NET_GDR_LEVEL=PHB", "NCCL_ASYNC_ERROR_HANDLING=1", "NCCL_BLOCKING_WAIT=0",
			"TORCH_NCCL_ASYNC_ERROR_HANDLING=1", "TORCH_NCCL_AVOID_RECORD_STREAMS=1", "TORCH_NCCL_TRACE_BUFFER_SIZE=2000", "TORCH_NCCL_ENABLE_MONITORING=0", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=1800",
			"CUDA_DEVICE_MAX_CONNECTIONS=1", "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=0,1", "NCCL_NVLS_ENABLE=1", "NCCL_P2P_LEVEL=NVL", "NCCL_MIN_NCHANNELS=4", "NCCL_BUFFSIZE=8388608",
			"NCCL_IB_DISABLE=0", "NCCL_P2P_DISABLE=0", "NCCL_SHM_DISABLE=0", "NCCL_NTHREADS=512", "NCCL_VERSION=2.28.3-1", "NCCL_TIMEOUT=1800", "NCCL_HOME=/usr", "NCCL_ROOT=/usr",
			"GLOO_SOCKET_IFNAME=eth0", "UCX_NET_DEVICES=mlx5_0:1", "UCX_TLS=rc,sm,self,cuda_copy,cuda_ipc", "OMPI_MCA_btl=tcp,self", "OMPI_MCA_pml=ucx", "FI_EFA_USE_DEVICE_RDMA=1", "FI_PROVIDER=efa",
			"NVSHMEM_BOOTSTRAP=PMI", "CUDA_MODULE_LOADING=LAZY", "CUDA_CACHE_PATH=/tmp/cache", "NVTE_FLASH_ATTN=1",
		)
		m.Container.MemlockSoftBytes = new(int64(-1))
		m.PCI.Devices = append(m.PCI.Devices, facts.PCIDevice{Address: "0000:c1:00.0", Class: "0x020700", Vendor: "0x15b3", Device: "0x1021", Kind: "nic", Driver: "mlx5_core", Extended: true})
		return m
	},
}

// cudaImage is what the images nvidia/cuda set.
var cudaImage = []string{
	"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility", "NVIDIA_REQUIRE_CUDA=cuda>=12.8 brand=unknown,driver>=470,driver<471", "NVIDIA_PRODUCT_NAME=CUDA",
	"NCCL_VERSION=2.28.3-1", "CUDA_VERSION=12.8.1", "LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64", "LIBRARY_PATH=/usr/local/cuda/lib64/stubs",
	"NV_LIBNCCL_PACKAGE_VERSION=2.28.3-1", "NV_CUDA_CUDART_VERSION=12.8.90-1",
}

// cudaImageFiles are the libraries in them: stubs for linking, a compatibility
// library that is not on the loader's path, the runtime and NCCL.
var cudaImageFiles = []facts.Library{
	{Kind: "libcuda", Path: "/usr/local/cuda/lib64/stubs/libcuda.so", FoundBy: "toolkit", Stub: true},
	{Kind: "libnvidia-ml", Path: "/usr/local/cuda/lib64/stubs/libnvidia-ml.so", FoundBy: "toolkit", Stub: true},
	{Kind: "libcuda", Path: "/usr/local/cuda/compat/libcuda.so.1", RealPath: "/usr/local/cuda-12.8/compat/libcuda.so.570.124.06", Version: "570.124.06", FoundBy: "toolkit", Compat: true},
	{Kind: "libnvidia-ptxjitcompiler", Path: "/usr/local/cuda/compat/libnvidia-ptxjitcompiler.so.1", Version: "570.124.06", FoundBy: "toolkit", Compat: true},
	{Kind: "libcudart", Path: "/usr/local/cuda/lib64/libcudart.so.12", Version: "12.8.90", FoundBy: "ld_cache", Loads: true},
	{Kind: "libnccl", Path: "/usr/lib/x86_64-linux-gnu/libnccl.so.2", Version: "2.28.3+cuda12.8", FoundBy: "ld_cache", Loads: true},
}

// ngcImage is what NVIDIA's PyTorch images set beside that (HPC-X's Open MPI and UCX, and names of versions).
var ngcImage = []string{
	"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility,video", "NVIDIA_REQUIRE_CUDA=cuda>=9.0", "NVIDIA_PRODUCT_NAME=PyTorch", "NVIDIA_PYTORCH_VERSION=25.09", "NVIDIA_BUILD_ID=1",
	"CUDA_VERSION=13.0.1.012", "CUDA_DRIVER_VERSION=580.82.07", "CUDA_CACHE_DISABLE=1", "CUDA_HOME=/usr/local/cuda", "CUDA_MODULE_LOADING=LAZY", "_CUDA_COMPAT_PATH=/usr/local/cuda/compat",
	"NCCL_VERSION=2.27.7", "OPENUCX_VERSION=1.19.0", "OPENMPI_VERSION=4.1.7", "HPCX_VERSION=2.24.1", "RDMACORE_VERSION=50.0", "GDRCOPY_VERSION=2.5.1", "OPAL_PREFIX=/opt/hpcx/ompi", "OMPI_MCA_coll_hcoll_enable=0",
	"UCC_CL_BASIC_TLS=^sharp", "UCC_EC_CUDA_EXEC_NUM_WORKERS=8", "USE_EXPERIMENTAL_CUDNN_V8_API=1", "TORCH_CUDA_ARCH_LIST=8.0 8.6 9.0 10.0 12.0+PTX", "TORCH_NCCL_USE_COMM_NONBLOCKING=0", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1",
	"LD_LIBRARY_PATH=/usr/local/lib/python3.12/dist-packages/torch/lib:/usr/local/cuda/compat/lib:/usr/local/nvidia/lib:/usr/local/nvidia/lib64", "LIBRARY_PATH=/usr/local/cuda/lib64/stubs:",
}

// TestHealthy checks that a healthy machine gets nothing of medium or above,
// whoever looks, with and without the probe, in both profiles.
func TestHealthy(t *testing.T) {
	set := compiledSet(t)
	for name, build := range healthy {
		t.Run(name, func(t *testing.T) {
			for i, v := range variants(build) {
				if expect.FewRows() && i%4 > 0 {
					continue // The race detector makes each many times as slow.
				}
				for _, profile := range soundFor(name) {
					verdict := expect.Value(set.Evaluate(t.Context(), v.facts, Options{Profile: profile}))(t)
					expect.Len(t, 0, alarms(verdict), "%s, profile %s: alarms", v.name, profile)
					for _, f := range verdict.Findings {
						t.Logf("%s, profile %s: %s %s %s: %s", v.name, profile, f.Severity, f.Rule, f.Subject, f.Message)
					}
				}
			}
		})
	}
}

// judgedOtherwise are machines that are sound as a place to build an image and
// not for training: a container that was given no GPU on a machine that has some.
var judgedOtherwise = map[string]bool{"CUDA image under build on a machine with GPUs": true}

func soundFor(name string) []Profile {
	if judgedOtherwise[name] {
		return []Profile{Image}
	}
	return []Profile{Training, Image}
}

// variant is one way to look at a machine.
type variant struct {
	name  string
	facts *facts.Facts
}

func variants(build func() *model) []variant {
	list := []variant{{"root", build().Facts}, {"user", build().unprivileged().Facts}}
	if m := build(); len(m.cards) > 0 && m.GPUs.NVML == "ok" {
		list = append(list, variant{"root, probed", m.probed().Facts}, variant{"user, probed", build().unprivileged().probed().Facts})
	}
	return list
}

// alarms lists what a healthy machine must not get: findings of medium or above, and rules that fail.
func alarms(v *Result) []string {
	faults := ruleFaults(v)
	for _, f := range v.Findings {
		if f.Severity.Rank() <= Medium.Rank() {
			faults = append(faults, fmt.Sprintf("%s %s at %s: %s", f.Severity, f.Rule, f.Subject, f.Message))
		}
	}
	return faults
}
