package checktest

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/host"
)

// Tree is the PCI tree of one machine, with the NUMA nodes and the IOMMU that
// stand around it.
type Tree struct {
	// Nodes are the NUMA nodes; node i is Nodes[i].
	Nodes []Node
	// IOMMUUnits are the names in /sys/class/iommu ("dmar0"); without any
	// there are no groups either.
	IOMMUUnits []string
	// IOMMUType is the type of each group: "identity", "DMA-FQ".
	IOMMUType string
	// CommandLine is the kernel's.
	CommandLine string
	// Functions are all functions, each after the one that it hangs below.
	Functions []*Function
}

// Node is a NUMA node.
type Node struct {
	// CPUs is a list as the kernel writes it, empty for a node with only memory.
	CPUs      string
	MemoryKiB int64
}

// Bus is a bus on which functions stand.
type Bus struct {
	tree   *Tree
	domain int
	number int
	node   int
	dir    string
	last   *int // The last bus number given out below the same host bridge.
}

// Port is the PCIe capability's port type.
type Port int

// The port types, PCI_EXP_TYPE_* of include/uapi/linux/pci_regs.h.
const (
	Endpoint   Port = 0x0
	RootPort   Port = 0x4
	Upstream   Port = 0x5
	Downstream Port = 0x6
	Integrated Port = 0x9
	// NoExpress is a function without a PCIe capability.
	NoExpress Port = -1
)

// Link is a PCIe link: speed codes 1 (2.5 GT/s) to 6 (64 GT/s) and widths.
type Link struct {
	Speed, Width       int
	MaxSpeed, MaxWidth int
}

// Gen returns a link that runs at the best that its end can do.
func Gen(generation, width int) Link {
	return Link{Speed: generation, Width: width, MaxSpeed: generation, MaxWidth: width}
}

// ACS is the Access Control Services capability's two registers.
type ACS struct{ Capability, Control uint16 }

// ACSOff returns the registers of a port that could redirect and does not,
// ACSRedirect those of one that Linux has set up for isolation: source
// validation, request and completion redirect, upstream forwarding
// (pci_std_enable_acs, drivers/pci/pci.c).
func ACSOff() *ACS { return &ACS{Capability: 0x5f} }

// ACSRedirect is described at ACSOff.
func ACSRedirect() *ACS { return &ACS{Capability: 0x5f, Control: 0x1d} }

// BAR is one window: a line of the file resource.
type BAR struct {
	Index int
	Bytes uint64
	// Flags are IORESOURCE_*; 0x14220c is memory, 64 bits, prefetchable.
	Flags uint64
}

// Function is one function of a device. Its fields may be changed until the
// tree is written.
type Function struct {
	Address        string
	Class          uint32
	Vendor, Device uint16
	Driver         string
	Port           Port
	Link           Link
	ACS            *ACS
	ATS            *bool
	BARs           []BAR
	// ResizableLog2MiB is the largest size of the second BAR that the
	// Resizable BAR capability offers; 0 is no such capability.
	ResizableLog2MiB int
	// Node is the NUMA node, -1 none. Group is the IOMMU group.
	Node, Group int
	// Masked makes a hypervisor's null entries of the extended capabilities.
	Masked bool
	// OffBus makes config space read as all ones.
	OffBus bool
	// ConfigBytes cuts config space off; 0 leaves it whole.
	ConfigBytes int
	// Physical is the physical function, of a virtual one.
	Physical *Function
	// Below is the bus below a bridge.
	Below *Bus

	dir string
}

// Root adds a host bridge and returns its bus. node is its NUMA node, or -1.
func (t *Tree) Root(domain, number, node int) *Bus {
	name := fmt.Sprintf("pci%04x:%02x", domain, number)
	last := number
	return &Bus{tree: t, domain: domain, number: number, node: node, dir: "/sys/devices/" + name, last: &last}
}

// Add puts a function on the bus. Address, Node, Group and the place are
// filled in.
func (b *Bus) Add(device, function int, f Function) *Function {
	f.Address = fmt.Sprintf("%04x:%02x:%02x.%x", b.domain, b.number, device, function)
	f.dir = path.Join(b.dir, f.Address)
	f.Node = b.node
	f.Group = len(b.tree.Functions)
	if f.Class>>8 == 0x0604 {
		*b.last++
		f.Below = &Bus{tree: b.tree, domain: b.domain, number: *b.last, node: b.node, dir: f.dir, last: b.last}
	}
	p := &f
	b.tree.Functions = append(b.tree.Functions, p)
	return p
}

// Bridge adds a port of an Intel root complex or a Broadcom switch.
func (b *Bus) Bridge(device int, port Port, link Link, acs *ACS) *Function {
	f := Function{Class: 0x060400, Vendor: 0x1000, Device: 0xc030, Driver: "pcieport", Port: port, Link: link, ACS: acs}
	if port == RootPort {
		f.Vendor, f.Device = 0x8086, 0x352a
	}
	return b.Add(device, 0, f)
}

// Switch adds a switch with the given number of downstream ports and returns
// them after the upstream port. All its links are alike.
func (b *Bus) Switch(ports int, link Link, acs *ACS) (up *Function, down []*Function) {
	up = b.Bridge(0, Upstream, link, nil)
	for i := range ports {
		down = append(down, up.Below.Bridge(i, Downstream, link, acs))
	}
	return up, down
}

// GPU adds an NVIDIA H100: 80 GB behind a BAR of 128 GiB.
func (b *Bus) GPU(device int, link Link) *Function {
	return b.Add(device, 0, Function{
		Class: 0x030200, Vendor: 0x10de, Device: 0x2330, Driver: "nvidia", Link: link,
		BARs: []BAR{{0, 16 << 20, 0x14220c}, {2, 128 << 30, 0x14220c}, {4, 32 << 20, 0x14220c}}, ResizableLog2MiB: 17,
	})
}

// NIC adds a ConnectX-7.
func (b *Bus) NIC(device int, link Link) *Function {
	ats := false
	return b.Add(device, 0, Function{
		Class: 0x020700, Vendor: 0x15b3, Device: 0x1021, Driver: "mlx5_core", Link: link, ATS: &ats,
		BARs: []BAR{{0, 32 << 20, 0x14220c}},
	})
}

// Other adds a function of the root complex that has no part in transfers,
// such as the many of a server processor's uncore.
func (b *Bus) Other(device, function int) *Function {
	return b.Add(device, function, Function{Class: 0x088000, Vendor: 0x8086, Device: 0x09a2, Port: NoExpress})
}

// Write writes the tree as a privileged process sees it, or as any other
// does.
func (t *Tree) Write(files *host.Memory, privileged bool) {
	files.AddDir("/sys/bus/pci/devices")
	files.AddDir("/sys/class/iommu")
	files.AddDir("/sys/kernel/iommu_groups")
	files.AddFile("/proc/cmdline", []byte(t.CommandLine+"\n"))
	for _, unit := range t.IOMMUUnits {
		files.AddDir("/sys/devices/virtual/iommu/" + unit)
		files.AddLink("/sys/class/iommu/"+unit, "../../devices/virtual/iommu/"+unit)
	}
	for i, n := range t.Nodes {
		dir := "/sys/devices/system/node/node" + strconv.Itoa(i)
		files.AddFile(dir+"/cpulist", []byte(n.CPUs+"\n"))
		files.AddFile(dir+"/meminfo", fmt.Appendf(nil, "Node %d MemTotal:       %d kB\nNode %d MemFree:        0 kB\n", i, n.MemoryKiB, i))
	}
	for _, f := range t.Functions {
		t.write(files, f, privileged)
	}
}

func (t *Tree) write(files *host.Memory, f *Function, privileged bool) {
	up := strings.Repeat("../", strings.Count(f.dir, "/"))
	text := func(name, format string, args ...any) {
		files.AddFile(f.dir+"/"+name, fmt.Appendf(nil, format+"\n", args...))
	}
	files.AddLink("/sys/bus/pci/devices/"+f.Address, "../../.."+strings.TrimPrefix(f.dir, "/sys"))
	text("class", "0x%06x", f.Class)
	text("vendor", "0x%04x", f.Vendor)
	text("device", "0x%04x", f.Device)
	text("numa_node", "%d", f.Node)
	text("resource", "%s", f.resource())
	config := f.Config()
	if !privileged {
		config = config[:64]
	}
	files.AddFile(f.dir+"/config", config)
	if f.Driver != "" {
		files.AddLink(f.dir+"/driver", up[:len(up)-len("../")]+"bus/pci/drivers/"+f.Driver)
	}
	if f.Physical != nil {
		files.AddLink(f.dir+"/physfn", "../"+f.Physical.Address)
	}
	if len(t.IOMMUUnits) > 0 && f.Group >= 0 {
		group := "/sys/kernel/iommu_groups/" + strconv.Itoa(f.Group)
		files.AddFile(group+"/type", []byte(t.IOMMUType+"\n"))
		files.AddLink(group+"/devices/"+f.Address, "../../../.."+strings.TrimPrefix(f.dir, "/sys"))
		files.AddLink(f.dir+"/iommu_group", up[:len(up)-len("../")]+strings.TrimPrefix(group, "/sys/"))
	}
	if f.Port != NoExpress && f.Port != Integrated {
		text("current_link_speed", "%s", f.speed(f.Link.Speed))
		text("max_link_speed", "%s", f.speed(f.Link.MaxSpeed))
		text("current_link_width", "%d", f.Link.Width)
		text("max_link_width", "%d", f.Link.MaxWidth)
	}
}

// speed writes a speed code as the kernel does (pci_speed_string,
// drivers/pci/probe.c).
func (f *Function) speed(code int) string {
	names := []string{1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}
	if f.OffBus || code < 1 || code >= len(names) {
		return "Unknown"
	}
	return names[code] + " GT/s PCIe"
}

// resource writes the file resource.
func (f *Function) resource() string {
	lines := make([]string, 7)
	for i := range lines {
		lines[i] = "0x0000000000000000 0x0000000000000000 0x0000000000000000"
	}
	const start = 0x100000000000
	for _, bar := range f.BARs {
		lines[bar.Index] = fmt.Sprintf("0x%016x 0x%016x 0x%016x", uint64(start), start+bar.Bytes-1, bar.Flags)
	}
	return strings.Join(lines, "\n")
}
