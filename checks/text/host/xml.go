package host

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/pci"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// xmlKind is a machine's topology in XML: what NCCL and RCCL write to
// NCCL_TOPO_DUMP_FILE (src/graph/xml.cc), and lstopo's own format (hwloc).
var xmlKind = &parse.Kind{
	Name: "topology-xml", Title: "topology in XML, from NCCL_TOPO_DUMP_FILE or lstopo", Command: "lstopo --of xml", Gives: []string{"pci", "numa", "gpus", "links"},
	Anchors: []string{"<system version=", "<topology"},
	Begins:  parse.BeginsLike(xmlFirst),
	Read:    xmlRead,
}

var xmlFirst = lazy.New(`^\s*<(?:system version="\d+"|topology[ >])`)

func xmlRead(s *parse.Sink, in *parse.Lines) {
	end := "</system>"
	if strings.Contains(in.First().Text, "<topology") {
		end = "</topology>"
	}
	document, _ := parse.XMLDocument(in, end)
	r := &topology{s: s, links: make(map[string]map[string]int)}
	r.walk(document, xmlPlace{})
	r.join()
}

// topology is the reading of one topology.
type topology struct {
	s *parse.Sink
	// links are the NVLinks of each GPU by what they lead to.
	links    map[string]map[string]int
	switches bool
	gpus     []string
}

// xmlPlace is what the elements around others tell of these: the NUMA node, the root bus and
// the functions above.
type xmlPlace struct {
	node  *int
	root  string
	above []string
}

// function is the nearest function above; empty without one.
func (p *xmlPlace) function() string {
	if len(p.above) == 0 {
		return ""
	}
	return p.above[len(p.above)-1]
}

// walk reads the elements in another one.
func (r *topology) walk(n *parse.XMLNode, in xmlPlace) {
	in.above = slices.Clip(in.above)
	for _, n := range n.Nodes {
		below := in
		switch n.Name {
		case "cpu":
			r.cpu(&below, n.Attributes, n.Line)
		case "pci":
			r.pci(&below, n.Attributes, n.Line)
		case "gpu":
			r.gpu(below.function(), n.Attributes, n.Line)
		case "nvlink":
			r.nvlink(below.function(), n.Attributes)
		case "object":
			r.object(&below, n.Attributes, n.Line)
		}
		r.walk(n, below)
	}
}

// cpu is NCCL's element of a NUMA node.
func (r *topology) cpu(e *xmlPlace, a map[string]string, l parse.Line) {
	id := parse.Optional(a["numaid"])
	if id != nil && *id >= 0 {
		e.node = id
		r.s.NUMANode(*id, xmlMask(a["affinity"]), l)
	}
	host := r.s.HostFacts()
	host.CPU = cmp.Or(host.CPU, &facts.CPU{})
	c := host.CPU
	r.s.Watch("host.cpu", c, l)
	c.Vendor = cmp.Or(c.Vendor, escape.Printable(a["vendor"], 64))
	c.Family = cmp.Or(c.Family, parse.Number(a["familyid"]))
	c.ModelNumber = cmp.Or(c.ModelNumber, parse.Number(a["modelid"]))
	host.Arch = cmp.Or(host.Arch, unameArch[a["arch"]])
}

// xmlMask writes a set of CPUs in words of 32 bits, the highest first
// ("000000ff,ffff0000"), as the kernel lists them: "16-39".
func xmlMask(mask string) string {
	words := strings.Split(mask, ",")
	if mask == "" || len(words) > 256 {
		return ""
	}
	var b strings.Builder
	for i, word := range slices.Backward(words) {
		set, err := strconv.ParseUint(word, 16, 32)
		if err != nil {
			return ""
		}
		for bit := range 32 {
			if set&(1<<bit) != 0 {
				fmt.Fprintf(&b, "%d ", 32*(len(words)-1-i)+bit)
			}
		}
	}
	return numactlList(b.String())
}

// pci is NCCL's element of a function. Of the bridges NCCL keeps one for each
// switch, so what lies around an element is not the whole list of ancestors.
func (r *topology) pci(e *xmlPlace, a map[string]string, l parse.Line) {
	address := facts.Address(a["busid"])
	if address == "" || a["vendor"] == "0xffff" || strings.HasPrefix(address, "ffff:ff:") {
		return // A switch that a static topology makes up.
	}
	e.above = append(e.above, address)
	d := r.s.Device(address, l)
	xmlSet(&d.Class, a["class"], 8)
	xmlSet(&d.Vendor, a["vendor"], 6)
	xmlSet(&d.Device, a["device"], 6)
	if d.Vendor == "" && a["vendor"] == "" && d.Class == "0x030200" {
		d.Vendor = "0x10de" // Those that NCCL's users write by hand name no vendor; RCCL's GPUs have another class.
	}
	d.NUMANode = cmp.Or(d.NUMANode, e.node)
	// The speed and width are max_link_speed and max_link_width (xml.cc,
	// ncclTopoGetXmlFromSys).
	if speed, width := pci.LinkSpeed(a["link_speed"]), pci.LinkWidth(a["link_width"]); d.Link == nil && speed > 0 && width > 0 {
		d.Link = &facts.PCIeLink{MaxSpeedGTs: speed, MaxWidth: width, Source: fmt.Sprintf("%s:%d", r.s.Source(), l.Number)}
	}
}

// xmlSet takes a hexadecimal number of a length over.
func xmlSet(field *string, value string, length int) {
	if *field == "" && len(value) == length && xmlHex.MatchString(value) {
		*field = value
	}
}

var xmlHex = lazy.New(`^0x[0-9a-f]+$`)

// gpu is NCCL's element of a GPU inside its function's.
func (r *topology) gpu(address string, a map[string]string, l parse.Line) {
	if address == "" {
		return
	}
	d, g := r.s.Device(address, l), r.s.GPU(address, l)
	g.Vendor, g.InPCI = cmp.Or(g.Vendor, pci.VendorName(d.Vendor)), true
	if dev := parse.Optional(a["dev"]); dev != nil && g.Index == nil && *dev >= 0 {
		g.Index = dev
	}
	if sm := parse.Number(a["sm"]); g.Vendor == "nvidia" && g.ComputeCapability == "" && sm >= 30 && sm < 1000 {
		g.ComputeCapability = fmt.Sprintf("%d.%d", sm/10, sm%10)
	}
	if !slices.Contains(r.gpus, address) {
		r.gpus = append(r.gpus, address)
		r.links[address] = make(map[string]int)
	}
}

// nvlink is NCCL's element of the NVLinks from a GPU to one other end.
func (r *topology) nvlink(from string, a map[string]string) {
	to := facts.Address(a["target"])
	if from == "" || to == "" || r.links[from] == nil || len(r.links[from]) > 64 {
		return
	}
	if strings.HasPrefix(a["tclass"], "0x0680") { // An NVSwitch (PCI class 0680).
		r.switches, to = true, "switch"
	}
	r.links[from][to] += max(parse.Number(a["count"]), 1)
}

// join notes the pairs of GPUs that NVLinks join, and those that none joins.
func (r *topology) join() {
	if len(r.gpus) < 2 || len(r.gpus) > 64 {
		return
	}
	for i, a := range r.gpus {
		for _, b := range r.gpus[i+1:] {
			if d := r.s.KnownDevice(a); d == nil || d.Vendor != "0x10de" || r.s.Facts.Links.Between(a, b) != nil {
				continue
			}
			n := max(r.links[a][b], r.links[b][a])
			through := false
			if n == 0 && r.switches {
				n = min(r.links[a]["switch"], r.links[b]["switch"])
				through = n > 0
			}
			p := facts.Pair{A: min(a, b), B: max(a, b), Kind: "gpu-gpu", NVLinks: &n, NVSwitch: through}
			r.s.Links().Pairs = append(r.s.Links().Pairs, p)
		}
	}
}

// xmlBridge finds the buses below one of hwloc's bridges.
var (
	xmlBridge = lazy.New(`^([0-9a-f]{4,8}):\[([0-9a-f]{2})-([0-9a-f]{2})\]$`)
	xmlType   = lazy.New(`^([0-9a-f]{4}).*\[([0-9a-f]{4}):([0-9a-f]{4})\]`)
	xmlBit    = lazy.New(`^0x0*([0-9a-f]{1,8})$`)
)

// object is hwloc's element of everything: packages, NUMA nodes, bridges and
// PCI functions (hwloc/topology-xml.c).
func (r *topology) object(e *xmlPlace, a map[string]string, l parse.Line) {
	if set, err := strconv.ParseUint(xmlBit.First(a["nodeset"]), 16, 32); err == nil && bits.OnesCount64(set) == 1 {
		e.node = new(bits.TrailingZeros64(set))
	}
	switch a["type"] {
	case "NUMANode":
		if id := parse.Optional(a["os_index"]); id != nil && *id >= 0 {
			n := r.s.NUMANode(*id, xmlMask(strings.ReplaceAll(a["cpuset"], "0x", "")), l)
			if memory, err := strconv.ParseInt(a["local_memory"], 10, 64); err == nil && memory > 0 {
				n.MemoryBytes = cmp.Or(n.MemoryBytes, memory)
			}
		}
	case "Bridge":
		buses := xmlBridge.FindStringSubmatch(a["bridge_pci"])
		if strings.HasPrefix(a["bridge_type"], "0-") && buses != nil {
			e.root = "pci" + buses[1] + ":" + buses[2]
			return
		}
		r.function(e, a, "0x060400", l)
	case "PCIDev":
		r.function(e, a, "", l)
	}
}

// function notes a function that hwloc shows. hwloc leaves no bridge out above
// a function that it keeps, unless it was asked to (topology-pci.c).
func (r *topology) function(e *xmlPlace, a map[string]string, class string, l parse.Line) {
	address := facts.Address(a["pci_busid"])
	if address == "" {
		return
	}
	above := e.above
	e.above = append(e.above, address)
	d := r.s.Device(address, l)
	if m := xmlType.FindStringSubmatch(a["pci_type"]); m != nil {
		xmlSet(&d.Class, "0x"+m[1]+"00", 8)
		xmlSet(&d.Vendor, "0x"+m[2], 6)
		xmlSet(&d.Device, "0x"+m[3], 6)
	}
	d.Class = cmp.Or(d.Class, class)
	d.NUMANode = cmp.Or(d.NUMANode, e.node)
	if e.root != "" && d.RootBus == "" {
		d.RootBus, d.Ancestors = e.root, above
	}
}
