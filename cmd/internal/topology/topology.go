// Package topology is the picture of a machine: its NUMA nodes, root ports, PCIe
// switches, GPUs and NICs, the links between them, and what is wrong where. It is
// drawn as a tree of text for a terminal and as nested boxes for a page.
package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/pci"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// Kind is what a node of the picture stands for.
type Kind string

// The kinds.
const (
	Processors Kind = "processors"
	NUMANode   Kind = "numa"
	RootPort   Kind = "root-port"
	Switch     Kind = "switch"
	Bridge     Kind = "bridge"
	GPU        Kind = "gpu"
	NIC        Kind = "nic"
)

// Machine is the picture of a machine.
type Machine struct {
	// Root holds everything else: the processors.
	Root *Node
	// Joins are the links between GPUs that are not PCIe: NVLink and xGMI.
	Joins []Join
	// Near says what is near each GPU, Notes what follows from how the machine is built.
	Near  []Near
	Notes []string
	// Hidden is true where the real PCIe paths cannot be seen.
	Hidden bool
	// Faults are those that the machine was drawn with.
	Faults []Fault
}

// Node is one part of the machine.
type Node struct {
	Kind Kind
	// Address is its PCI address; empty for processors and NUMA nodes.
	Address string
	// Name is what people call it: "GPU 0", "NUMA node 1", "Switch".
	Name string
	// Detail says more: the model, the processors of a NUMA node.
	Detail string
	// Links says how a GPU is joined to others beside PCIe: "NVLink 4 x18".
	Links string
	// Up is the way to the node above; nil where nothing is known of it.
	Up *Link
	// NICs are those near a GPU.
	NICs string
	// Faults are those that lie here.
	Faults []Fault
	// Below are the nodes below it.
	Below []*Node
}

// Link is the way from a node to the one above it.
type Link struct {
	// Port is the switch's downstream port at its upper end; empty elsewhere.
	Port string
	// Speed is its generation and width: "5.0 x16", "1.0 x8 of 5.0 x16". Between
	// NUMA nodes it is empty.
	Speed string
	// Rate is what it carries in one direction: "63 GB/s".
	Rate string
	// Short is true where it has fewer lanes than both its ends can use.
	Short bool
	// Faults are those that lie on it or at its port.
	Faults []Fault
}

// Join is GPUs that are joined beside PCIe, alike.
type Join struct {
	// Name is "NVLink", "NVLink 4" or "xGMI".
	Name string
	// Switched is true where the links go through NVSwitches.
	Switched bool
	// Links and GBps are the links of a pair and their rate in one direction; 0
	// where they are not known.
	Links int
	GBps  float64
	// Whole is true where each of GPUs is joined to each other one.
	Whole bool
	// GPUs are the names of the GPUs, Pairs those of each pair.
	GPUs  []string
	Pairs [][2]string
}

// Fault is something that is wrong at a place of the picture.
type Fault struct {
	// Number is the number of the finding, from 1.
	Number   int
	Severity string
	Title    string
	// Rule is the id of the rule that found it.
	Rule string
	// Places are the PCI addresses at which it lies.
	Places []string
	// OnLink is true where it is the link above a device that is at fault, not the
	// device.
	OnLink bool
}

// HiddenPaths says why no bridges are shown.
const HiddenPaths = "The real PCIe paths are hidden, as in a virtual machine: no bridge above the GPUs is visible."

// addresses finds PCI addresses, and GPUs of which a text tells the number alone.
var addresses = lazy.New(`\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b|\bGPU[0-9]+\b`)

// Addresses are the places that a text names.
func Addresses(text string) []string { return addresses.FindAllString(text, -1) }

// Label names a node with its address.
func (n *Node) Label() string { return lines.Joined("  ", n.Name, n.PCI()) }

// PCI is the address of a node; empty where it has none, or a text tells only the number of a GPU.
func (n *Node) PCI() string {
	if strings.HasPrefix(n.Address, "GPU") {
		return ""
	}
	return n.Address
}

// New draws a machine; nil where no GPU is known, or nothing of how they are connected.
func New(f *facts.Facts, faults []Fault) *Machine {
	b := &builder{facts: f, faults: faults, names: map[string]string{}, nodes: map[string]*Node{}, links: map[string]string{}}
	leaves := b.leaves()
	if len(b.names) == 0 {
		return nil
	}
	m := &Machine{Root: b.processors(), Joins: b.joins(), Faults: faults}
	m.Hidden = f.Links != nil && f.Links.VirtualTopology != nil && *f.Links.VirtualTopology
	b.describeJoins(m.Joins)
	b.drawNUMA(m.Root, leaves)
	for _, address := range leaves {
		above := m.Root
		if id := affinity.NodeOf(f, address); id != nil {
			above = cmp.Or(b.nodes[numaName(*id)], m.Root)
		}
		b.attach(above, address)
	}
	isConnected := func(n *Node) bool { return n.Up != nil || len(n.Below) > 0 }
	if len(m.Joins) == 0 && !slices.ContainsFunc(m.Root.Below, isConnected) {
		return nil
	}
	b.nearby(m)
	return m
}

type builder struct {
	facts  *facts.Facts
	faults []Fault
	// names are the names of the GPUs by address.
	names map[string]string
	// nodes are what is drawn, by address or name.
	nodes map[string]*Node
	// links says of each GPU, by name, how it is joined to others beside PCIe.
	links map[string]string
	// oneModel is true where all GPUs are of one model.
	oneModel bool
}

// device is what is known of the function at an address; nothing where the PCI tree lacks it.
func (b *builder) device(address string) facts.PCIDevice {
	d, _ := pci.DeviceAt(b.facts, address)
	return d
}

// The vendors of GPUs that compute; another display adapter is a console.
var vendors = []string{"0x10de", "0x1002"}

// leaves names the GPUs, and returns their addresses and then those of the NICs, in order.
func (b *builder) leaves() []string {
	var gpus, nics []string
	models := map[string]bool{}
	for _, g := range b.facts.GPUs.All() {
		if g.Address != "" {
			gpus = append(gpus, g.Address)
			models[g.Name] = true
		}
	}
	for _, d := range b.facts.PCI.All() {
		switch {
		case d.Kind == "gpu" && slices.Contains(vendors, d.Vendor) && b.facts.GPUs.At(d.Address) == nil && !d.Virtual:
			gpus = append(gpus, d.Address)
		case d.Kind == "nic" && !d.Virtual:
			nics = append(nics, d.Address)
		}
	}
	b.oneModel = len(models) == 1
	b.name(gpus)
	slices.SortFunc(nics, compareAddresses)
	return slices.Concat(gpus, nics)
}

// compareAddresses orders PCI addresses, and behind them GPUs that only have a number.
func compareAddresses(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// name names the GPUs: by the management library's index where each has one, else by
// their place in the list.
func (b *builder) name(gpus []string) {
	slices.SortFunc(gpus, compareAddresses)
	index := func(address string) *int {
		if g := b.facts.GPUs.At(address); g != nil {
			return g.Index
		}
		return nil
	}
	indexed := !slices.ContainsFunc(gpus, func(a string) bool { return index(a) == nil })
	for i, address := range gpus {
		if indexed {
			i = *index(address)
		}
		b.names[address] = fmt.Sprintf("GPU %d", i)
	}
}

func (b *builder) processors() *Node {
	n := &Node{Kind: Processors, Name: "Processors"}
	if h := b.facts.Host; h != nil && h.CPU != nil {
		n.Name = "Processor"
		if h.CPU.Sockets > 1 {
			n.Name = fmt.Sprintf("%d processors", h.CPU.Sockets)
		}
		n.Detail = h.CPU.Model
	}
	return n
}

// drawNUMA draws the NUMA nodes of the devices, if there are several.
func (b *builder) drawNUMA(root *Node, leaves []string) {
	byID := map[int]*Node{}
	for _, address := range leaves {
		if id := affinity.NodeOf(b.facts, address); id != nil {
			byID[*id] = &Node{Kind: NUMANode, Name: numaName(*id)}
			if cpus := affinity.CPUsOf(b.facts, address); cpus != "" {
				byID[*id].Detail = "CPUs " + cpus
			}
		}
	}
	if len(byID) < 2 && (b.facts.NUMA == nil || len(b.facts.NUMA.Nodes) < 2) {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		b.nodes[byID[id].Name] = byID[id]
		root.Below = append(root.Below, byID[id])
	}
}

func numaName(id int) string { return fmt.Sprintf("NUMA node %d", id) }

// attach draws a device and the bridges above it.
func (b *builder) attach(above *Node, address string) {
	d := b.device(address)
	n := &Node{Kind: NIC, Address: address, Name: "NIC", Detail: cmp.Or(b.rdma(address), d.Driver)}
	if name := b.names[address]; name != "" {
		n.Kind, n.Name, n.Detail = GPU, name, b.model(address)
		n.Links = b.links[name]
	}
	port := ""
	for i, a := range d.Ancestors {
		kind := b.bridge(d.Ancestors, i)
		if kind == "" { // The downstream port of a switch belongs to the link below it.
			port = a
			continue
		}
		above = b.descend(above, &Node{Kind: kind, Address: a, Name: bridgeNames[kind]}, port)
		port = ""
	}
	b.descend(above, n, port)
}

var bridgeNames = map[Kind]string{RootPort: "Root port", Switch: "Switch", Bridge: "Bridge"}

// bridge is the kind of the i-th of the bridges above a device; empty for a
// downstream port. Where config space cannot be read, the kinds follow from the
// order, as a switch is an upstream port above a downstream port.
func (b *builder) bridge(ancestors []string, i int) Kind {
	switch kind := b.device(ancestors[i]).PortType; {
	case kind == "root-port" || kind == "" && i == 0:
		return RootPort
	case kind == "upstream-port" || kind == "" && i%2 == 1 && i+1 < len(ancestors):
		return Switch
	case kind == "downstream-port" || kind == "" && i%2 == 0:
		return ""
	}
	return Bridge
}

// rdma is the name of the RDMA device at an address; empty where there is none.
func (b *builder) rdma(address string) string {
	for _, p := range b.facts.NICs.Ports() {
		if p.Address == address {
			return p.Device
		}
	}
	return ""
}

// descend returns the node of that address below another one, and draws it where it
// is not there yet.
func (b *builder) descend(above, n *Node, port string) *Node {
	if have := b.nodes[n.Address]; have != nil {
		return have
	}
	if n.Kind != RootPort {
		n.Up = b.link(n.Address, port, above)
	}
	for _, f := range b.faults {
		if slices.Contains(f.Places, n.Address) && (!f.OnLink || n.Up == nil) {
			n.Faults = append(n.Faults, f)
		}
	}
	b.nodes[n.Address] = n
	above.Below = append(above.Below, n)
	return n
}

// link describes the way above a device, at a port of the switch above it or at the
// root port itself; nil where nothing is known of it.
func (b *builder) link(address, port string, above *Node) *Link {
	l := &Link{Port: port}
	for _, f := range b.faults {
		if port != "" && slices.Contains(f.Places, port) || f.OnLink && slices.Contains(f.Places, address) {
			l.Faults = append(l.Faults, f)
		}
	}
	b.describe(l, b.pcie(address), b.pcie(cmp.Or(port, above.Address)))
	if l.Speed == "" && l.Port == "" && len(l.Faults) == 0 {
		return nil
	}
	return l
}

// pcie is what a function says of its link. The management library tells of a GPU
// whose config space cannot be read.
func (b *builder) pcie(address string) facts.PCIeLink {
	if l := b.device(address).Link; l != nil && l.Width > 0 && l.SpeedGTs > 0 {
		return *l
	}
	if g := b.facts.GPUs.At(address); g != nil && g.PCIe != nil {
		p := g.PCIe
		return facts.PCIeLink{
			SpeedGTs: data.PCIeSpeedGTs(cmp.Or(p.Generation, p.MaxGeneration)), Width: cmp.Or(p.Width, p.MaxWidth),
			MaxSpeedGTs: data.PCIeSpeedGTs(p.MaxGeneration), MaxWidth: p.MaxWidth,
		}
	}
	return facts.PCIeLink{}
}

// describe says how fast a link is and how fast it could be. A GPU that is idle lowers
// its speed and not its width: unless a fault lies on the link, the speed is the one
// that both ends can do.
func (b *builder) describe(l *Link, lower, upper facts.PCIeLink) {
	if lower.SpeedGTs == 0 || lower.Width == 0 {
		return
	}
	speed, width := max(lower.SpeedGTs, lower.MaxSpeedGTs), max(lower.Width, lower.MaxWidth)
	if upper.MaxSpeedGTs >= lower.SpeedGTs && upper.MaxWidth >= lower.Width {
		speed, width = min(speed, upper.MaxSpeedGTs), min(width, upper.MaxWidth)
	}
	l.Short = lower.Width < width
	now := speed
	if len(l.Faults) > 0 {
		now = lower.SpeedGTs
	}
	l.Speed, l.Rate = speedOf(now, lower.Width), rate(data.PCIeGBps(now, lower.Width))
	switch {
	case now < speed:
		l.Speed += " of " + speedOf(speed, width)
	case l.Short:
		l.Speed += fmt.Sprintf(" of x%d", width)
	}
}

// speedOf names a speed and a width: "5.0 x16".
func speedOf(speedGTs float64, width int) string {
	return strings.TrimPrefix(data.PCIeName(speedGTs, width), "PCIe ")
}

// rate writes a rate with at most two digits that matter below 100.
func rate(gbps float64) string {
	if gbps < 10 {
		return fmt.Sprintf("%.1f GB/s", gbps)
	}
	return fmt.Sprintf("%.0f GB/s", gbps)
}

// model is the model of a GPU; where all have the same, which is said elsewhere, its
// memory.
func (b *builder) model(address string) string {
	g := b.facts.GPUs.At(address)
	switch {
	case g == nil || b.oneModel && g.MemoryBytes == 0:
		return ""
	case b.oneModel:
		return fmt.Sprintf("%d GiB", (g.MemoryBytes+1<<29)>>30)
	}
	return strings.TrimPrefix(strings.TrimPrefix(g.Name, "NVIDIA "), "AMD ")
}
