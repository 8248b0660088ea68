package host

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/pci"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// xmlKind is a machine's topology in XML, as NCCL and RCCL write it to NCCL_TOPO_DUMP_FILE (src/graph/xml.cc).
var xmlKind = &parse.Kind{
	Name: "topology-xml", Title: "topology in XML, from NCCL_TOPO_DUMP_FILE", Command: "NCCL_TOPO_DUMP_FILE=topology.xml (in the environment of the job)", Gives: []string{"pci", "numa", "gpus", "links"},
	Anchors: []string{"<system version="},
	Begins:  parse.BeginsLike(xmlFirst),
	Read:    xmlRead,
}

var xmlFirst = lazy.New(`^\s*<system version="\d+"`)

func xmlRead(s *parse.Sink, in *parse.Lines) {
	document, _ := parse.XMLDocument(in, "</system>")
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

// xmlPlace is what the elements around others tell of these: the NUMA node and the nearest
// function above; empty without one.
type xmlPlace struct {
	node     *int
	function string
}

// walk reads the elements in another one.
func (r *topology) walk(n *parse.XMLNode, in xmlPlace) {
	for _, n := range n.Nodes {
		below := in
		switch n.Name {
		case "cpu":
			r.cpu(&below, n.Attributes, n.Line)
		case "pci":
			r.pci(&below, n.Attributes, n.Line)
		case "gpu":
			r.gpu(below.function, n.Attributes, n.Line)
		case "nvlink":
			r.nvlink(below.function, n.Attributes)
		}
		r.walk(n, below)
	}
}

// cpu is NCCL's element of a NUMA node.
func (r *topology) cpu(e *xmlPlace, a map[string]string, l parse.Line) {
	id := parse.Optional(a["numaid"])
	if id != nil && *id >= 0 {
		e.node = id
		r.s.NUMANode(*id, affinity.CPUList(affinity.ParseMask(a["affinity"])), l)
	}
	host := r.s.HostFacts()
	host.CPU = cmp.Or(host.CPU, &facts.CPU{})
	c := host.CPU
	r.s.Watch("host.cpu", c, l)
	c.Vendor = cmp.Or(c.Vendor, escape.Printable(a["vendor"], 64))
	host.Arch = cmp.Or(host.Arch, unameArch[a["arch"]])
}

// pci is NCCL's element of a function. Of the bridges NCCL keeps one for each
// switch, so what lies around an element is not the whole list of ancestors.
func (r *topology) pci(e *xmlPlace, a map[string]string, l parse.Line) {
	address := facts.Address(a["busid"])
	if address == "" || a["vendor"] == "0xffff" || strings.HasPrefix(address, "ffff:ff:") {
		return // A switch that a static topology makes up.
	}
	e.function = address
	d := r.s.Device(address, l)
	xmlSet(&d.Class, a["class"], 8)
	xmlSet(&d.Vendor, a["vendor"], 6)
	xmlSet(&d.Device, a["device"], 6)
	if d.Vendor == "" && a["vendor"] == "" && d.Class == "0x030200" {
		d.Vendor = "0x10de" // Those that NCCL's users write by hand name no vendor; RCCL's GPUs have another class.
	}
	d.NUMANode = cmp.Or(d.NUMANode, e.node)
	// The speed and width are max_link_speed and max_link_width (xml.cc, ncclTopoGetXmlFromSys).
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
