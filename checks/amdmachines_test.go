package checks

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/nvml"
	"github.com/gpudoctor/gpudoctor/checks/pci"
)

// aNode is a node of a made-up topology of amdkfd. Node numbers are the places in the list.
type aNode struct {
	// id is the driver's number for a GPU; 0 is a processor.
	id int64
	// properties are lines of the file, "name value".
	properties []string
	io, peers  []aLink
}

// aLink is a link from a node.
type aLink struct{ to, kind, weight, least, most, flags int }

// aXGMI is a number of links of 50 or 64 GB/s to another GPU, and aPeer what
// the driver says of a GPU that is reached over PCIe.
func aXGMI(to, links, least int) aLink { return aLink{to, 11, 15, least, links * least, 1} }
func aPeer(to int) aLink               { return aLink{to, 2, 40, 312, 64000, 3} }

// addKFD puts the topology in place as Linux 6.8 shows it.
func addKFD(m *host.Memory, nodes []aNode) {
	m.AddFile(kfdClass+"/topology/generation_id", []byte("2\n"))
	m.AddDir(kfdProcesses)
	for i, n := range nodes {
		dir := fmt.Sprintf("%s/%d", kfdNodes, i)
		m.AddFile(dir+"/gpu_id", fmt.Appendf(nil, "%d\n", n.id))
		m.AddFile(dir+"/properties", []byte(strings.Join(n.properties, "\n")+"\n"))
		m.AddDir(dir + "/io_links")
		m.AddDir(dir + "/p2p_links")
		for kind, links := range map[string][]aLink{"io_links": n.io, "p2p_links": n.peers} {
			for j, l := range links {
				m.AddFile(fmt.Sprintf("%s/%s/%d/properties", dir, kind, j), fmt.Appendf(nil,
					"type %d\nversion_major 0\nversion_minor 0\nnode_from %d\nnode_to %d\nweight %d\nmin_latency 0\nmax_latency 0\nmin_bandwidth %d\nmax_bandwidth %d\nrecommended_transfer_size 0\nflags %d\n",
					l.kind, i, l.to, l.weight, l.least, l.most, l.flags))
			}
		}
	}
}

// aProcessor is a node of a processor, aGPU one of a GPU at an address "0000:0c:00.0", with more lines.
func aProcessor() aNode {
	return aNode{properties: []string{"cpu_cores_count 64", "simd_count 0", "vendor_id 4130", "location_id 0", "hive_id 0"}}
}

func aGPU(id int64, address string, more ...string) aNode {
	var domain, bus, device, function int
	if _, err := fmt.Sscanf(address, "%x:%x:%x.%x", &domain, &bus, &device, &function); err != nil {
		panic(err)
	}
	return aNode{id: id, properties: append([]string{
		"cpu_cores_count 0", "vendor_id 4098", fmt.Sprintf("location_id %d", bus<<8|device<<3|function), fmt.Sprintf("domain %d", domain),
	}, more...)}
}

// standInHive is a hive's number as a snapshot shows it.
const standInHive = "hive_id 144115188075855873"

// amdMachine is a modelled machine with GPUs of AMD.
type amdMachine struct {
	tree  *checktest.Tree
	gpus  []string
	nodes []aNode
	// files are those of each GPU's PCI device.
	files map[string]string
	// told is false where no more is known than the kernel's topology.
	told bool
}

// build makes the machine answer.
func (a amdMachine) build() *host.Memory {
	m := &host.Memory{}
	a.tree.Write(m, a.told)
	addKFD(m, a.nodes)
	for _, address := range a.gpus {
		for name, text := range a.files {
			m.AddFile(folderOf(m, address)+"/"+name, []byte(text))
		}
	}
	m.AddDir(amdModule)
	m.AddDir("/dev/dri")
	for i := range len(a.gpus) + 1 {
		node := "/dev/kfd"
		if i < len(a.gpus) {
			node = fmt.Sprintf("/dev/dri/renderD%d", 128+i)
		}
		m.AddInfo(node, host.FileInfo{Mode: fs.ModeDevice | fs.ModeCharDevice | 0o660})
		m.Answer(host.AskAccess+node, "rw")
	}
	m.Answer(host.AskNVML, nvml.Answer{Outcome: nvml.NotFound, Reason: "libnvidia-ml.so.1 is not found"})
	m.Answer(host.AskUname, host.Uname{Node: "host-1", Release: "6.8.0-60-generic", Machine: "x86_64"})
	m.Answer(host.AskEnviron, []string{})
	if !a.told {
		m.AddError(iommuUnits, fs.ErrPermission)
		m.AddError(iommuGroups, fs.ErrPermission)
		m.AddLink("/sys/kernel/mm", "mm") // Leads nowhere: what lies below is neither there nor missing.
		return m
	}
	m.AddFile("/sys/module/amdgpu/initstate", []byte("live\n"))
	m.AddFile(amdModule+"/version", []byte("6.12.12\n"))
	for name, value := range map[string]string{"pcie_p2p": "Y", "use_xgmi_p2p": "1", "noretry": "-1", "no_system_mem_limit": "N", "gpu_recovery": "-1", "ras_enable": "-1"} {
		m.AddFile(amdModule+"/parameters/"+name, []byte(value+"\n"))
	}
	m.AddFile("/opt/rocm/.info/version", []byte("6.4.1-83\n"))
	m.AddFile("/proc/sys/kernel/numa_balancing", []byte("0\n"))
	m.AddFile("/proc/2/comm", []byte("kthreadd\n"))
	m.AddFile("/proc/meminfo", []byte("MemTotal:      2113247808 kB\n"))
	m.Answer(host.AskKernelConfig, host.KernelConfig{Source: "/boot/config-6.8.0-60-generic", Options: map[string]string{
		"CONFIG_HSA_AMD": "y", "CONFIG_HSA_AMD_P2P": "y", "CONFIG_PCI_P2PDMA": "y", "CONFIG_DMABUF_MOVE_NOTIFY": "y",
	}})
	m.Answer(host.AskStatfs+"/dev/shm", host.Statfs{SizeBytes: 1 << 40, FreeBytes: 1 << 40})
	return m
}

// folderOf is where a device's files really lie.
func folderOf(m *host.Memory, address string) string {
	dir, err := host.New(m).Real(pci.Devices + "/" + address)
	if err != nil {
		panic(err)
	}
	return dir
}

// radeon puts a card with its own switch below a port: 1002:1478, 1002:1479, the GPU and its audio function.
func radeon(port *checktest.Function, link checktest.Link) string {
	up, down := port.Below.Switch(1, link, nil)
	up.Vendor, up.Device = 0x1002, 0x1478
	down[0].Vendor, down[0].Device = 0x1002, 0x1479
	bus := down[0].Below
	gpu := bus.Add(0, 0, checktest.Function{Class: 0x030000, Vendor: 0x1002, Device: 0x7551, Driver: "amdgpu", Link: link})
	bus.Add(0, 1, checktest.Function{Class: 0x040300, Vendor: 0x1002, Device: 0xab40, Driver: "snd_hda_intel", Link: link})
	return gpu.Address
}

// r9700x4 is the workstation of the first seed (shared/seeds/000_304cc93339ae5cef.txt): four Radeon AI PRO R9700 on an
// ASRock WRX90 WS EVO. Their addresses, the links of amd-smi topology (PCIE, weight 40, NC, 64 and 32 bit atomics, DMA,
// not both ways), not both ways) are reported there; IOMMU, BARs, kernel and versions are not, and stay unknown.
func r9700x4() amdMachine {
	a := amdMachine{tree: &checktest.Tree{}}
	link := checktest.Link{} // Not told.
	for _, number := range []int{0x00, 0xe0} {
		b := a.tree.Root(0, number, -1)
		b.Add(0, 0, checktest.Function{Class: 0x060000, Vendor: 0x1022, Device: 0x14a4, Port: checktest.NoExpress})
		for _, device := range []int{1, 3} {
			port := b.Bridge(device, checktest.RootPort, link, checktest.ACSOff())
			port.Vendor, port.Device = 0x1022, 0x14a5
			a.gpus = append(a.gpus, radeon(port, link))
		}
	}
	a.nodes = []aNode{aProcessor()}
	for i, address := range a.gpus {
		n := aGPU(int64(40001+i), address, "simd_count 128", "simd_per_cu 2", fmt.Sprintf("drm_render_minor %d", 128+i), "gfx_target_version 120001", "device_id 30033", "hive_id 0")
		n.io = []aLink{{0, 2, 20, 312, 63008, 3}}
		for j := range a.gpus {
			if i != j {
				n.peers = append(n.peers, aPeer(j+1))
			}
		}
		a.nodes = append(a.nodes, n)
	}
	return a
}

// mi300x8 is a server with eight MI300X, each two of which are joined by one xGMI link (rccl-topo_8p_940.xml; 64 GB/s,
// stas00/ml-engineering).
func mi300x8() amdMachine {
	a := amdMachine{told: true, tree: &checktest.Tree{
		Nodes:       []checktest.Node{{CPUs: "0-63", MemoryKiB: 1056411988}, {CPUs: "64-127", MemoryKiB: 1056948224}},
		CommandLine: "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro iommu=pt", IOMMUUnits: []string{"dmar0", "dmar1"}, IOMMUType: "identity",
	}}
	link := checktest.Gen(5, 16)
	for i := range 8 {
		b := a.tree.Root(0, 0x05+0x1c*i, i/4)
		_, down := b.Bridge(1, checktest.RootPort, link, checktest.ACSOff()).Below.Switch(1, link, checktest.ACSOff())
		a.gpus = append(a.gpus, down[0].Below.Add(0, 0, checktest.Function{
			Class: 0x120000, Vendor: 0x1002, Device: 0x74a1, Driver: "amdgpu", Link: link,
			BARs: []checktest.BAR{{Index: 0, Bytes: 256 << 30, Flags: 0x14220c}, {Index: 2, Bytes: 2 << 20, Flags: 0x14220c}},
		}).Address)
	}
	bytes := fmt.Sprintf("%d\n", 196592<<20)
	a.files = map[string]string{
		"mem_info_vram_total": bytes, "mem_info_vis_vram_total": bytes, "mem_info_vram_used": "297029632\n", "product_name": "AMD Instinct MI300X OAM\n",
		"vbios_version": "113-M3000100-102\n", "ras/features": "feature mask: 0x0\n", "ras/gpu_vram_bad_pages": "",
		"current_compute_partition": "SPX\n", "current_memory_partition": "NPS1\n",
	}
	for _, block := range []string{"umc", "sdma", "gfx", "mmhub", "pcie_bif", "xgmi_wafl"} {
		a.files["ras/"+block+"_err_count"] = "ue: 0\nce: 0\n"
	}
	a.nodes = []aNode{aProcessor(), aProcessor()}
	for i, address := range a.gpus {
		n := aGPU(int64(50001+i), address, "simd_count 1216", "simd_per_cu 4", "num_xcc 8", fmt.Sprintf("drm_render_minor %d", 128+8*i), "gfx_target_version 90402", "device_id 29857", standInHive)
		n.io = []aLink{{i / 4, 2, 20, 312, 64000, 1}}
		for j := range a.gpus {
			if i != j {
				n.io = append(n.io, aXGMI(j+2, 1, 64000))
			}
		}
		a.nodes = append(a.nodes, n)
	}
	return a
}
