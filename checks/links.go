package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/pci"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

var linksCheck = &gather.Check{Name: "links", After: []string{"pci", "numa", "gpus"}, Gather: gatherLinks}

// The kinds of pairs.
const (
	pairGPUs = "gpu-gpu"
	pairNIC  = "gpu-nic"
	pairNVMe = "gpu-nvme"
)

// The path types of nvidia-smi topo -m.
const (
	pathPIX  = "PIX"  // At most one PCIe switch.
	pathPXB  = "PXB"  // Several PCIe switches, no host bridge.
	pathPHB  = "PHB"  // Through one PCIe host bridge.
	pathNODE = "NODE" // Through host bridges of one NUMA node.
	pathSYS  = "SYS"  // Between NUMA nodes.
)

// maxPairs bounds the work for a nonsensical recording: 128 GPUs have
// 8128 pairs, of which rules take some 3 s. A host of 16 GPUs and 64 NICs has 1144.
const maxPairs = 1 << 13

func gatherLinks(ctx context.Context, g *gather.Gathering) error {
	if g.Facts.PCI == nil && g.Facts.GPUs == nil {
		return errors.New("neither the PCI tree nor the GPUs are known")
	}
	t := newTopology(g.Facts)
	t.amd = readAMDLinks(ctx, g)
	f := &facts.LinkFacts{Pairs: []facts.Pair{}, Hosts: t.hosts(), VirtualTopology: t.virtual()}
	var noPath, noLink []string
	for p := range t.pairs(func(string) bool { return true }) {
		if ctx.Err() != nil {
			return fmt.Errorf("pair devices: %w", ctx.Err())
		}
		if p.Kind == pairGPUs && p.Path == "" {
			noPath = append(noPath, p.A+" - "+p.B)
		}
		if p.Kind == pairGPUs && p.Narrowest == nil {
			noLink = append(noLink, p.A+" - "+p.B)
		}
		f.Pairs = append(f.Pairs, p)
	}
	if len(noPath) > 0 {
		g.Unknown("links", "pairs.path", "the PCI tree and the NUMA nodes do not show the path: "+gather.SomeOf(noPath), "")
	}
	if len(noLink) > 0 {
		g.Unknown("links", "pairs.narrowest", "a PCIe link on the path reports no speed: "+gather.SomeOf(noLink), "")
	}
	if len(f.Pairs) >= maxPairs {
		g.Unknown("links", "pairs", fmt.Sprintf("more than %d pairs; the rest was left out", maxPairs), "")
	}
	g.Facts.Links = f
	return nil
}

// pairs are the pairs of the devices that are included, those of GPUs first, and at most maxPairs.
func (t *topology) pairs(included func(address string) bool) iter.Seq[facts.Pair] {
	return func(yield func(facts.Pair) bool) {
		n := 0
		for _, kind := range []struct {
			name, other string
		}{{pairGPUs, pci.KindGPU}, {pairNIC, pci.KindNIC}, {pairNVMe, pci.KindNVMe}} {
			for i, a := range t.addresses[pci.KindGPU] {
				others := t.addresses[kind.other]
				if kind.name == pairGPUs {
					others = others[i+1:]
				}
				for _, b := range others {
					if !included(a) || !included(b) {
						continue
					}
					if n == maxPairs || !yield(t.pair(a, b, kind.name)) {
						return
					}
					n++
				}
			}
		}
	}
}

type topology struct {
	devices   map[string]*facts.PCIDevice
	gpus      map[string]*facts.GPU
	peers     map[[2]string]*facts.GPUPeer
	amd       *amdLinks
	nodes     int                 // NUMA nodes; 0 where not known.
	switches  int                 // NVSwitches; 0 where none or not known.
	addresses map[string][]string // By kind, sorted.
}

func newTopology(f *facts.Facts) *topology {
	t := &topology{
		devices: make(map[string]*facts.PCIDevice),
		gpus:    make(map[string]*facts.GPU),
		peers:   make(map[[2]string]*facts.GPUPeer),

		addresses: make(map[string][]string),
	}
	for i := range f.PCI.All() {
		d := &f.PCI.Devices[i]
		t.devices[d.Address] = d
		if !lent(d) {
			t.addresses[d.Kind] = append(t.addresses[d.Kind], d.Address)
		}
	}
	if f.GPUs != nil {
		for i := range f.GPUs.Devices {
			gpu := &f.GPUs.Devices[i]
			if gpu.Address == "" {
				continue // NVML counts it and cannot say which it is.
			}
			t.gpus[gpu.Address] = gpu
			if t.devices[gpu.Address] == nil {
				t.addresses[pci.KindGPU] = append(t.addresses[pci.KindGPU], gpu.Address) // Where /sys hides it.
			}
		}
		for i := range f.GPUs.P2P {
			p := &f.GPUs.P2P[i]
			t.peers[[2]string{p.A, p.B}] = p
		}
		if f.GPUs.NVSwitches != nil {
			t.switches = *f.GPUs.NVSwitches
		}
	}
	if f.NUMA != nil {
		t.nodes = len(f.NUMA.Nodes)
	}
	for kind, all := range t.addresses {
		slices.Sort(all)
		t.addresses[kind] = slices.Compact(all)
	}
	return t
}

// lent reports whether a device carries no traffic of this kernel: a driver passes it through to a guest (vfio-pci
// and its variants, pci-stub, Xen's pciback), or it is an unused virtual function.
func lent(d *facts.PCIDevice) bool {
	return d.Virtual && d.Driver == "" || strings.Contains(d.Driver, "vfio") ||
		d.Driver == "pci-stub" || d.Driver == "pciback"
}

// virtual reports whether the PCI paths between GPUs are not the real ones; nil if fewer than two are in the tree.
func (t *topology) virtual() *bool {
	flat, placed := true, 0
	for _, address := range t.addresses[pci.KindGPU] {
		if d := t.devices[address]; d != nil && d.RootBus != "" {
			placed++
			flat = flat && len(d.Ancestors) == 0
		}
	}
	if placed < 2 {
		return nil
	}
	return &flat
}

func (t *topology) pair(a, b, kind string) facts.Pair {
	p := facts.Pair{A: a, B: b, Kind: kind}
	t.joinPCIe(&p)
	if kind == pairGPUs {
		t.joinNVLinks(&p)
		p.P2P = worse(t.peers[[2]string{a, b}], t.peers[[2]string{b, a}])
		if t.amd != nil && t.vendor(a) == pci.VendorAMD && t.vendor(b) == pci.VendorAMD {
			t.amd.joinAMD(t, &p)
		}
	}
	return p
}

// hop is a PCIe link of a path; the port at its upper end may not be known.
type hop struct{ lower, upper *facts.PCIDevice }

// portTypes returns the port type of each ancestor of a device. Where config space hides it, the order of a PCIe tree
// decides: below the host bridge is a root port, below that or a downstream port an upstream port, and below that its
// downstream ports. Below a bridge to conventional PCI it stays empty.
func (t *topology) portTypes(ancestors []string) []string {
	types := make([]string, len(ancestors))
	for i, address := range ancestors {
		if d := t.devices[address]; d != nil {
			types[i] = d.PortType
		}
		switch {
		case types[i] != "":
		case i == 0:
			types[i] = pci.PortRoot
		case types[i-1] == pci.PortUpstream:
			types[i] = pci.PortDownstream
		case types[i-1] == pci.PortRoot || types[i-1] == pci.PortDownstream:
			types[i] = pci.PortUpstream
		}
	}
	return types
}

// isSwitch reports whether a bridge of this port type is the upper end of a switch, or one to conventional PCI, which counts
// as a switch.
func isSwitch(portType string) bool {
	return portType != pci.PortRoot && portType != pci.PortDownstream
}

// joinPCIe fills in the PCIe path of a pair, if the places of both devices are known.
func (t *topology) joinPCIe(p *facts.Pair) {
	da, db := t.devices[p.A], t.devices[p.B]
	if da == nil || db == nil || da.RootBus == "" || db.RootBus == "" {
		return
	}
	shared := 0 // Length of the common part of both lists of ancestors.
	if da.RootBus == db.RootBus {
		for shared < min(len(da.Ancestors), len(db.Ancestors)) && da.Ancestors[shared] == db.Ancestors[shared] {
			shared++
		}
	}
	typesA, typesB := t.portTypes(da.Ancestors), t.portTypes(db.Ancestors)
	p.Bridges = []string{}
	for _, address := range slices.Backward(da.Ancestors[shared:]) {
		p.Bridges = append(p.Bridges, address)
	}
	p.Bridges = append(p.Bridges, db.Ancestors[shared:]...)
	hopsB := t.hops(db, typesB, shared)
	slices.Reverse(hopsB)
	p.Narrowest = narrowest(append(t.hops(da, typesA, shared), hopsB...))
	if shared == 0 {
		p.Path = t.throughRoot(da, db)
		return
	}
	p.CommonBridge = da.Ancestors[shared-1]
	// Each switch has one upstream port, be it on a riser or on the card itself.
	switches := slices.DeleteFunc(slices.Concat(typesA[shared-1:], typesB[shared:]), func(p string) bool { return !isSwitch(p) })
	p.Path = pathPIX
	if len(switches) > 1 {
		p.Path = pathPXB
	}
}

func (t *topology) throughRoot(a, b *facts.PCIDevice) string {
	if a.RootBus == b.RootBus {
		return pathPHB
	}
	nodeA, nodeB := t.node(a), t.node(b)
	switch {
	case t.nodes == 1:
		return pathNODE // There is no other node to be on.
	case nodeA == nil || nodeB == nil:
		return "" // The firmware names no node, which says nothing.
	case *nodeA == *nodeB:
		return pathNODE
	}
	return pathSYS
}

// node is the NUMA node of a device, or of the nearest bridge above that has one.
func (t *topology) node(d *facts.PCIDevice) *int {
	if d.NUMANode != nil {
		return d.NUMANode
	}
	for _, address := range slices.Backward(d.Ancestors) {
		if above := t.devices[address]; above != nil && above.NUMANode != nil {
			return above.NUMANode
		}
	}
	return nil
}

// hops lists the PCIe links from a device up to its shared ancestors. A switch's downstream port has no link above
// it, nor has a root port or an endpoint of the root complex.
func (t *topology) hops(d *facts.PCIDevice, portTypes []string, shared int) []hop {
	var hops []hop
	port := func(i int) *facts.PCIDevice {
		if i < 0 {
			return nil
		}
		return t.devices[d.Ancestors[i]]
	}
	if d.PortType != pci.PortIntegrated {
		hops = append(hops, hop{d, port(len(d.Ancestors) - 1)})
	}
	for i := len(d.Ancestors) - 1; i >= shared; i-- {
		if i > 0 && isSwitch(portTypes[i]) {
			hops = append(hops, hop{port(i), port(i - 1)})
		}
	}
	return hops
}

// narrowest returns the slowest link of a path; nil if the path has no link, or one does not report its speed.
func narrowest(hops []hop) *facts.NarrowestLink {
	var slowest *facts.NarrowestLink
	best := math.Inf(1)
	for _, h := range hops {
		now, highest := h.speeds()
		if now == nil {
			return nil
		}
		best = min(best, highest.GBps())
		if rate := data.PCIeGBps(now.SpeedGTs, now.Width); slowest == nil || rate < slowest.GBps {
			slowest = &facts.NarrowestLink{At: h.lower.Address, SpeedGTs: now.SpeedGTs, Width: now.Width, GBps: rate}
		}
	}
	if slowest != nil {
		slowest.BestGBps = best
	}
	return slowest
}

// speeds returns what a link has negotiated, nil if neither end reports it, and the lower of the maxima of its ends. A port whose best is below
// what its partner has negotiated is emulated by a hypervisor, and is ignored.
func (h hop) speeds() (now *facts.PCIeLink, best data.LinkRate) {
	if h.lower == nil {
		return nil, best
	}
	lower, upper := h.lower.Link, (*facts.PCIeLink)(nil)
	if h.upper != nil {
		upper = h.upper.Link
	}
	if lower == nil || lower.SpeedGTs == 0 || lower.Width == 0 {
		lower, upper = upper, nil
	}
	if lower == nil || lower.SpeedGTs == 0 || lower.Width == 0 {
		return nil, best
	}
	// A device that does not report its maximum can at least run at its current rate.
	best.GTs = max(lower.MaxSpeedGTs, lower.SpeedGTs)
	best.Lanes = max(lower.MaxWidth, lower.Width)
	if upper != nil && upper.MaxSpeedGTs >= lower.SpeedGTs && upper.MaxWidth >= lower.Width {
		best.GTs = min(best.GTs, upper.MaxSpeedGTs)
		best.Lanes = min(best.Lanes, upper.MaxWidth)
	}
	return lower, best
}

// thousandths rounds to three digits after the point.
func thousandths(v float64) float64 { return math.Round(v*1000) / 1000 }

func (t *topology) joinNVLinks(p *facts.Pair) {
	a, b := t.gpus[p.A], t.gpus[p.B]
	n, through := 0, false
	switch {
	case t.vendor(p.A) != pci.VendorNVIDIA || t.vendor(p.B) != pci.VendorNVIDIA:
		// Only NVIDIA has NVLinks.
	case a == nil || b == nil || a.NVLinks == nil || b.NVLinks == nil:
		return
	default:
		var known bool
		if n, through, known = t.joined(a, b); !known {
			return
		}
	}
	p.NVLinks = &n
	if n > 0 {
		p.NVSwitch = through
		p.NVLinkGBps = thousandths(float64(n) * min(slowestNVLink(a.NVLinks), slowestNVLink(b.NVLinks)))
	}
}

// vendor is a GPU's vendor id, empty if it is not known.
func (t *topology) vendor(address string) string {
	if d := t.devices[address]; d != nil {
		return d.Vendor
	}
	if gpu := t.gpus[address]; gpu != nil {
		return map[string]string{"nvidia": pci.VendorNVIDIA, "amd": pci.VendorAMD}[gpu.Vendor]
	}
	return ""
}

// joined counts the NVLinks that connect two GPUs. Direct links name the other GPU; links to switches connect all
// GPUs that have them, unless the driver refuses NVLink to the pair, as between partitions of a fabric. In a
// virtual machine the remote ends are hidden: the driver's status decides whether links connect the two, and only a
// switch shows how many.
func (t *topology) joined(a, b *facts.GPU) (n int, through, known bool) {
	toB, toSwitchA, hiddenA := remotes(a, b.Address)
	toA, toSwitchB, hiddenB := remotes(b, a.Address)
	if direct := max(toA, toB); direct > 0 {
		if toA > 0 && toB > 0 {
			direct = min(toA, toB)
		}
		return direct, false, true
	}
	status := ""
	if p := worse(t.peers[[2]string{a.Address, b.Address}], t.peers[[2]string{b.Address, a.Address}]); p != nil {
		status = p.NVLink
	}
	refused := status != "" && status != "ok" && status != "unknown"
	links := min(toSwitchA+hiddenA, toSwitchB+hiddenB)
	switch {
	case links == 0 || refused:
		return 0, false, true
	case toSwitchA > 0 && toSwitchB > 0:
		return min(toSwitchA, toSwitchB), true, true
	case status != "ok":
		return 0, false, false
	case t.switches > 0 || inFabric(a) && inFabric(b):
		return links, true, true
	case len(t.addresses[pci.KindGPU]) == 2:
		return links, false, true // There is nowhere else for them to lead.
	}
	return 0, false, false
}

// remotes counts a GPU's active links to a peer, to switches, and to hidden ends.
func remotes(gpu *facts.GPU, peer string) (direct, toSwitch, hidden int) {
	for _, link := range gpu.NVLinks {
		switch {
		case !link.Active:
		case link.RemoteAddress == peer:
			direct++
		case link.RemoteType == "switch":
			toSwitch++
		case link.RemoteType == "" && link.RemoteAddress == "":
			hidden++
		}
	}
	return direct, toSwitch, hidden
}

func inFabric(g *facts.GPU) bool { return g.Fabric != nil && g.Fabric.State == "completed" }

// slowestNVLink returns the usable rate of the slowest active link.
func slowestNVLink(links []facts.NVLink) float64 {
	slowest := math.Inf(1)
	for _, link := range links {
		if link.Active {
			slowest = min(slowest, usableGBps(&link))
		}
	}
	if math.IsInf(slowest, 1) {
		return 0
	}
	return slowest
}

// usableGBps is what the link carries in one direction. NVML reports the raw rate, up to 6.25 % more (26.5625 for
// 25, 53.125 for 50), so that the generation's rate counts, unless the raw one is lower, as of the x4 links of
// GA102 (14.0625). Without a generation, it is the nearest usable rate below the raw one.
func usableGBps(l *facts.NVLink) float64 {
	raw := float64(l.SpeedMBps) / 1000
	rates := data.Rates()
	if l.Version > 0 && l.Version <= len(rates.NVLinkGBps) {
		usable := rates.NVLinkGBps[l.Version-1]
		if raw > 0 {
			usable = min(usable, raw)
		}
		return usable
	}
	for _, usable := range rates.NVLinkGBps {
		if raw >= usable && raw <= usable*rates.NVLinkRaw {
			return usable
		}
	}
	return raw
}

// p2pRanks are NVML's answers up to the best. All others are refusals, which are worse.
var p2pRanks = []string{"unknown", "ok", ""}

func worseWord(a, b string) string {
	rank := func(s string) int { return slices.Index(p2pRanks, s) }
	return slices.MinFunc([]string{a, b}, func(x, y string) int { return cmp.Compare(rank(x), rank(y)) })
}

// worse joins the answers for both directions of a pair.
func worse(forth, back *facts.GPUPeer) *facts.P2PStatus {
	if forth == nil && back == nil {
		return nil
	}
	forth, back = cmp.Or(forth, &facts.GPUPeer{}), cmp.Or(back, &facts.GPUPeer{})
	return &facts.P2PStatus{
		Read:   worseWord(forth.Read, back.Read),
		Write:  worseWord(forth.Write, back.Write),
		NVLink: worseWord(forth.NVLink, back.NVLink),
	}
}

// hosts are the ways between each GPU and its processor, as far as the tree shows their links.
func (t *topology) hosts() []facts.HostPath {
	var all []facts.HostPath
	for _, address := range t.addresses[pci.KindGPU] {
		if d := t.devices[address]; d != nil && d.RootBus != "" {
			if h := t.host(d); h != nil {
				all = append(all, *h)
			}
		}
	}
	return all
}

// host finds the narrowest link between a GPU and the root complex, of several the one nearest to the processor. It
// is nil if a link is not known, or a hypervisor makes it up.
func (t *topology) host(d *facts.PCIDevice) *facts.HostPath {
	var h *facts.HostPath
	for _, link := range t.hops(d, t.portTypes(d.Ancestors), 0) {
		now, best := link.speeds()
		if now == nil || link.lower.Kind == pci.KindBridge && slices.Contains(data.Rates().EmulatedVendors, link.lower.Vendor) {
			return nil
		}
		if rate := best.GBps(); h == nil || rate <= h.GBps {
			h = &facts.HostPath{GPU: d.Address, At: link.lower.Address, SpeedGTs: best.GTs, Width: best.Lanes, GBps: rate}
		}
	}
	return h
}
