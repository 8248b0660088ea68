// Package topology is the picture of a machine: its NUMA nodes, root ports, PCIe switches, GPUs and NICs, the links
// between them, and what is wrong where. It is drawn as a tree of text, and as nested boxes for a page.
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
	Root   *Node   // The processors, which hold everything else.
	Joins  []Join  // The links between GPUs that are not PCIe: NVLink and xGMI.
	Near   []Near  // What is near each GPU.
	Hidden bool    // The real PCIe paths cannot be seen.
	Faults []Fault // Those that the machine was drawn with.
}

// Node is one part of the machine.
type Node struct {
	Kind    Kind
	Address string  // Of PCI; empty for processors and NUMA nodes.
	Name    string  // What people call it: "GPU 0", "NUMA node 1", "Switch".
	Detail  string  // The model, or the CPUs of a NUMA node.
	Links   string  // How a GPU is joined to others beside PCIe: "NVLink 4 x18".
	Up      *Link   // The way to the node above; nil where nothing is known of it.
	NICs    string  // Those near a GPU.
	Faults  []Fault // Those that lie here.
	Below   []*Node
}

// Link is the way from a node to the one above it.
type Link struct {
	Port   string  // The switch's downstream port at its upper end; empty elsewhere.
	Speed  string  // Its generation and width: "5.0 x16", "1.0 x8 of 5.0 x16".
	Rate   string  // What it carries in one direction: "63 GB/s".
	Short  bool    // It has fewer lanes than both its ends can use.
	Faults []Fault // Those that lie on it or at its port.
}

// Join is GPUs that are joined beside PCIe, alike.
type Join struct {
	how
	Whole bool        // Each of GPUs is joined to each other one.
	GPUs  []string    // By name.
	Pairs [][2]string // Those that are joined.
}

// how is the way in which a pair is joined; without a name where it is not.
type how struct {
	Name     string  // "NVLink", "NVLink 4" or "xGMI".
	Switched bool    // The links go through NVSwitches.
	Links    int     // 0 where they are not known.
	GBps     float64 // In one direction; 0 where it is not known.
}

// Fault is something that is wrong at a place of the picture.
type Fault struct {
	Number          int // That of the finding, from 1.
	Severity, Title string
	Rule            string
	Places          []string // The PCI addresses at which it lies.
	OnLink          bool     // The link above a device is at fault, not the device.
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
	if len(m.Joins) == 0 && !slices.ContainsFunc(m.Root.Below, func(n *Node) bool { return n.Up != nil || len(n.Below) > 0 }) {
		return nil
	}
	b.nearby(m)
	return m
}

type builder struct {
	facts    *facts.Facts
	faults   []Fault
	names    map[string]string // Of the GPUs, by address.
	nodes    map[string]*Node  // What is drawn, by address or name.
	links    map[string]string // How each GPU is joined to others beside PCIe, by name.
	oneModel bool              // All GPUs are of one model.
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
	slices.SortFunc(nics, CompareAddresses)
	return slices.Concat(gpus, nics)
}

// CompareAddresses orders PCI addresses, or names that end in a number: "node2" before "node10".
func CompareAddresses(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// name names the GPUs: by the management library's index where each has one, else by their place in the list.
func (b *builder) name(gpus []string) {
	slices.SortFunc(gpus, CompareAddresses)
	index := func(address string) *int {
		if g := b.facts.GPUs.At(address); g != nil {
			return g.Index
		}
		return nil
	}
	unnumbered := slices.ContainsFunc(gpus, func(a string) bool { return index(a) == nil })
	for i, address := range gpus {
		if !unnumbered {
			i = *index(address)
		}
		b.names[address] = fmt.Sprintf("GPU %d", i)
	}
}

func (b *builder) processors() *Node {
	switch h := b.facts.Host; {
	case h == nil || h.CPU == nil:
		return &Node{Kind: Processors, Name: "Processors"}
	case h.CPU.Sockets > 1:
		return &Node{Kind: Processors, Name: fmt.Sprintf("%d processors", h.CPU.Sockets), Detail: h.CPU.Model}
	default:
		return &Node{Kind: Processors, Name: "Processor", Detail: h.CPU.Model}
	}
}

// drawNUMA draws the NUMA nodes of the devices, if there are several.
func (b *builder) drawNUMA(root *Node, leaves []string) {
	byID := map[int]*Node{}
	for _, address := range leaves {
		if id := affinity.NodeOf(b.facts, address); id != nil {
			byID[*id] = &Node{Kind: NUMANode, Name: numaName(*id), Detail: lines.Behind("CPUs ", affinity.CPUsOf(b.facts, address))}
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
	n := &Node{Kind: NIC, Address: address, Name: "NIC", Detail: d.Driver}
	ports := b.facts.NICs.Ports()
	if i := slices.IndexFunc(ports, func(p facts.RDMAPort) bool { return p.Address == address }); i >= 0 {
		n.Detail = cmp.Or(ports[i].Device, d.Driver)
	}
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

// bridge names the i-th of the bridges above a device; empty for a downstream port. Where config space cannot be
// read, the kinds follow from the order, as a switch is an upstream port above a downstream port.
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

// descend returns the node of that address below another one, and draws it where it is not there yet.
func (b *builder) descend(above, n *Node, port string) *Node {
	if have := b.nodes[n.Address]; have != nil {
		return have
	}
	if n.Kind != RootPort {
		n.Up = b.link(n.Address, port, above)
	}
	n.Faults = lines.Filter(b.faults, func(f Fault) bool {
		return slices.Contains(f.Places, n.Address) && (!f.OnLink || n.Up == nil)
	})
	b.nodes[n.Address] = n
	above.Below = append(above.Below, n)
	return n
}

// link describes the way above a device, at a port of the switch above it or at the
// root port itself; nil where nothing is known of it.
func (b *builder) link(address, port string, above *Node) *Link {
	l := &Link{Port: port, Faults: lines.Filter(b.faults, func(f Fault) bool {
		return port != "" && slices.Contains(f.Places, port) || f.OnLink && slices.Contains(f.Places, address)
	})}
	b.describe(l, b.pcie(address), b.pcie(cmp.Or(port, above.Address)))
	if l.Speed == "" && l.Port == "" && len(l.Faults) == 0 {
		return nil
	}
	return l
}

// pcie is what a function says of its link. The management library tells of a GPU whose config space cannot be read.
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

// describe says how fast a link is and how fast it could be. A GPU that is idle lowers its speed and not its width:
// unless a fault lies on the link, the speed is the one that both ends can do.
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

// model is the model of a GPU; where all have the same, which is said elsewhere, its memory.
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
