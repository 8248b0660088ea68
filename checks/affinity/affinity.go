// Package affinity reads the NUMA nodes, and says from gathered facts which NICs, drives and
// processors are near each GPU.
package affinity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/pci"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// GPU is what is near a GPU.
type GPU struct {
	Address string
	// NICs and Drives are the nearest, all at the same distance; empty where no path is known.
	NICs, Drives []Near
	// CPUs are those of its NUMA node, as the kernel lists them.
	CPUs string
	// Host is its way to the processor; nil where it is not known.
	Host *facts.HostPath
}

// Near is a device near a GPU.
type Near struct {
	// Address is its PCI address, or its name where a text tells no address.
	Address string
	// Device is the name of the RDMA device; empty for other devices.
	Device string
	// Path is the type of the path, GBps the rate of its narrowest PCIe link; 0 where it is not known.
	Path string
	GBps float64
}

// Name is the name that people know the device by.
func (n Near) Name() string { return cmp.Or(n.Device, n.Address) }

// Of lists what is near each GPU that has a path to another device or to its processor, in the order of the facts.
func Of(f *facts.Facts) []GPU {
	if f.Links == nil {
		return nil
	}
	m := newMachine(f)
	for _, p := range f.Links.Pairs {
		switch {
		case p.Kind == "gpu-gpu":
			m.gpu(p.A)
			m.gpu(p.B)
		case p.Kind == "gpu-nic" && (len(m.carrying) == 0 || m.carrying[p.B]): // Where RDMA devices are known, only these can.
			g := m.gpu(p.A)
			g.NICs = nearer(g.NICs, m.near(&p))
		case p.Kind == "gpu-nvme":
			g := m.gpu(p.A)
			g.Drives = nearer(g.Drives, m.near(&p))
		}
	}
	for i := range f.Links.Hosts {
		m.gpu(f.Links.Hosts[i].GPU).Host = &f.Links.Hosts[i]
	}
	all := make([]GPU, 0, len(m.order))
	for _, g := range m.order {
		g.CPUs = CPUsOf(f, g.Address)
		all = append(all, *g)
	}
	return all
}

// nearer adds a device to the nearest ones, or replaces them where it is nearer.
func nearer(have []Near, n Near) []Near {
	rank := data.PathRank(n.Path)
	switch {
	case n.Path == "":
		return have
	case len(have) == 0 || rank < data.PathRank(have[0].Path):
		return []Near{n}
	case rank == data.PathRank(have[0].Path):
		return append(have, n)
	}
	return have
}

type machine struct {
	// rdma are the names of the RDMA devices by PCI address; carrying is true for each address
	// and name of one that can carry the traffic of GPUs between machines.
	rdma     map[string]string
	carrying map[string]bool
	gpus     map[string]*GPU
	order    []*GPU
}

func newMachine(f *facts.Facts) *machine {
	m := &machine{rdma: map[string]string{}, carrying: map[string]bool{}, gpus: map[string]*GPU{}}
	for _, p := range f.NICs.Ports() {
		m.carrying[p.Device] = true
		if p.Address != "" {
			m.carrying[p.Address] = true
			m.rdma[p.Address] = p.Device
		}
	}
	return m
}

func (m *machine) gpu(address string) *GPU {
	g := m.gpus[address]
	if g == nil {
		g = &GPU{Address: address}
		m.gpus[address] = g
		m.order = append(m.order, g)
	}
	return g
}

func (m *machine) near(p *facts.Pair) Near {
	n := Near{Address: p.B, Device: m.rdma[p.B], Path: p.Path}
	if p.Narrowest != nil {
		n.GBps = p.Narrowest.BestGBps
	}
	return n
}

// CPUsOf are the CPUs of the NUMA node of a GPU, as the kernel lists them; empty if not known.
func CPUsOf(f *facts.Facts, address string) string {
	node := NodeOf(f, address)
	if node == nil || f.NUMA == nil {
		return ""
	}
	if n := facts.Find(f.NUMA.Nodes, func(n *facts.NUMANode) bool { return n.ID == *node }); n != nil {
		return n.CPUs
	}
	return ""
}

// NodeOf is the NUMA node of a GPU; nil if it is not known.
func NodeOf(f *facts.Facts, address string) *int {
	if d, ok := pci.DeviceAt(f, address); ok {
		return d.NUMANode
	}
	if d := f.GPUs.At(address); d != nil {
		return d.NUMANode
	}
	return nil
}

// PathTo is the path between a GPU, named by its address or as "GPU4", and an RDMA device.
func PathTo(f *facts.Facts, gpu, device string) *facts.Pair {
	if gpu == "" {
		return nil
	}
	for _, a := range gpuNames(f, gpu) {
		for _, b := range nicNames(f, device) {
			if p := f.Links.Between(a, b); p != nil {
				return p
			}
		}
	}
	return nil
}

// gpuNames are the names of a GPU in pairs. perftest prints addresses without the PCI domain.
func gpuNames(f *facts.Facts, gpu string) []string {
	names := []string{gpu}
	if _, tail, ok := strings.Cut(gpu, ":"); ok {
		names = append(names, inDomains(f.GPUs.All(), tail)...)
	}
	for _, d := range f.GPUs.All() {
		if d.Index != nil && fmt.Sprintf("GPU%d", *d.Index) == gpu {
			names = append(names, d.Address)
		}
		if d.Index != nil && d.Address == gpu {
			names = append(names, fmt.Sprintf("GPU%d", *d.Index))
		}
	}
	return names
}

// inDomains is the GPU with an address in another PCI domain, if there is one such GPU.
func inDomains(devices []facts.GPU, tail string) []string {
	var found []string
	for _, d := range devices {
		if _, own, ok := strings.Cut(d.Address, ":"); ok && own == tail {
			found = append(found, d.Address)
		}
	}
	if len(found) > 1 {
		return nil
	}
	return found
}

func nicNames(f *facts.Facts, device string) []string {
	names := []string{device}
	for _, p := range f.NICs.Ports() {
		if p.Device == device && p.Address != "" {
			names = append(names, p.Address)
		}
	}
	return names
}

// PortRate is what an RDMA device carries to another machine in GB/s, and why: the slowest rate of its ports or,
// with one queue pair over a bond, that of one link.
func PortRate(f *facts.Facts, device string, queuePairs int) (gbps float64, basis string) {
	for _, p := range f.NICs.Ports() {
		if p.Device != device {
			continue
		}
		rate, why := p.RateGbps/8, "the port of "+device
		if rate == 0 {
			d, _ := pci.DeviceAt(f, p.Address)
			rate = data.Rates().EFA[d.Device] / 8
		}
		if b := bondOf(f, p.Netdev); b != nil && queuePairs == 1 {
			if one := slowestMember(f, b) / 8; one > 0 && (rate == 0 || one <= rate) {
				rate = one
				why = fmt.Sprintf("one of the %d links of %s (one queue pair uses one)", len(b.Members), b.Name)
			}
		}
		if rate > 0 && (gbps == 0 || rate < gbps) {
			gbps, basis = rate, why
		}
	}
	return gbps, basis
}

func bondOf(f *facts.Facts, name string) *facts.Bond {
	return facts.Find(f.NICs.Bonds, func(b *facts.Bond) bool {
		return name != "" && b.Name == name && len(b.Members) > 1 && b.Mode != "active-backup"
	})
}

// slowestMember is the rate in Gb/s of the slowest link of a bond; 0 where none is known.
func slowestMember(f *facts.Facts, b *facts.Bond) float64 {
	slowest := 0.0
	for _, n := range f.NICs.Interfaces {
		if n.SpeedGbps > 0 && slices.Contains(b.Members, n.Name) && (slowest == 0 || n.SpeedGbps < slowest) {
			slowest = n.SpeedGbps
		}
	}
	return slowest
}

// NetworkRate is the least that the nearest NICs of one GPU carry together in GB/s, and why; 0 if one is not known.
func NetworkRate(f *facts.Facts) (gbps float64, basis string) {
	for _, g := range Of(f) {
		sum := 0.0
		for _, n := range g.NICs {
			rate, _ := PortRate(f, n.Name(), 0)
			if rate == 0 {
				return 0, ""
			}
			sum += rate
		}
		if sum == 0 {
			return 0, ""
		}
		if gbps == 0 || sum < gbps {
			gbps, basis = sum, fmt.Sprintf("the %d NICs near each GPU", len(g.NICs))
			if len(g.NICs) == 1 {
				basis = "the NIC near each GPU"
			}
		}
	}
	return gbps, basis
}

// UplinkBasis names the narrowest link above a GPU as what its host copies are judged by: "the
// PCIe 4.0 x8 uplink of the switch at 0000:45:00.0".
func UplinkBasis(f *facts.Facts, h *facts.HostPath) string {
	link := data.PCIeName(h.SpeedGTs, h.Width)
	if d, _ := pci.DeviceAt(f, h.At); d.PortType == pci.PortUpstream {
		return fmt.Sprintf("the %s%s%s", link, ofSwitch, h.At)
	}
	return fmt.Sprintf("the %s link of the bridge at %s", link, h.At)
}

const ofSwitch = " uplink of the switch at "

// Uplink is the kind of uplink that all of some bases name: "PCIe 4.0 x8 uplink"; empty where they differ.
func Uplink(bases []string) string {
	kind := ""
	for i, basis := range bases {
		link, _, ok := strings.Cut(strings.TrimPrefix(basis, "the "), ofSwitch)
		if !ok || i > 0 && link != kind {
			return ""
		}
		kind = link
	}
	if kind == "" {
		return ""
	}
	return kind + " uplink"
}
