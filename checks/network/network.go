// Package network reads interfaces, bonds and addresses, the kernel modules of RDMA, and the ports of RDMA devices.
// The words of the kernel, which its tools print as well, are read here for both.
package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
)

// Check is the check of the section "nics".
var Check = &gather.Check{Name: section, Gather: collect}

const (
	section       = "nics"
	interfaces    = "/sys/class/net"
	virtualFolder = "/sys/devices/virtual/net"
	modules       = "/sys/module"
)

const (
	// maxHardware and maxVirtual bound the interfaces that are read: a node of Kubernetes has a thousand ends of pairs.
	maxHardware = 256
	maxVirtual  = 64
	// maxAddresses bounds the addresses of one interface.
	maxAddresses = 64
	maxMembers   = 64
)

var errNoNetwork = errors.New("/sys/class/net is not visible here")

func collect(ctx context.Context, g *gather.Gathering) error {
	r := &reader{Section: gather.Section{Gathering: g, Name: section}}
	names, err := r.Host.Dir(interfaces)
	switch {
	case errors.Is(err, host.ErrNotRecorded):
		return host.ErrNotRecorded // The recording is older than this check.
	case errors.Is(err, fs.ErrNotExist):
		return errNoNetwork
	case err != nil:
		return err
	}
	f := &facts.NICFacts{}
	if err := r.ask(ctx, AskAddresses, func(context.Context) (any, error) { return addresses() }, &r.addresses); err != nil {
		r.Failed("interfaces.addresses", err)
	}
	r.readInterfaces(f, names)
	r.readModules(f)
	if f.RDMA, err = readPorts(g); errors.Is(err, fs.ErrNotExist) {
		f.RDMA = []facts.RDMAPort{} // The kernel has no RDMA device: ib_core is not loaded.
	} else if err != nil {
		r.Failed("rdma", err)
	}
	DeriveMTU(f)
	r.readFlowControl(ctx, f)
	g.Facts.NICs = f
	return nil
}

// reader reads the interfaces.
type reader struct {
	gather.Section
	addresses map[string][]string
	hangs     bool
}

// ask puts a question of rtnetlink, which answers under one lock: where one hangs, the next is not asked.
func (r *reader) ask(ctx context.Context, question string, by host.Answerer, answer any) error {
	if r.hangs {
		return host.ErrSlow
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deadline.File, host.ErrSlow)
	defer cancel()
	err := r.Host.AskBy(ctx, question, by, answer)
	r.hangs = errors.Is(err, host.ErrSlow)
	return err
}

// readInterfaces reads all interfaces of hardware, and of the others those that a program is likely to take.
func (r *reader) readInterfaces(f *facts.NICFacts, names []string) {
	virtual, err := r.Host.Dir(virtualFolder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Failed("interfaces", err)
	}
	var hardware []string
	var ranked [ranks][]string
	for _, name := range names {
		if !IsName(name) {
			continue
		}
		if _, isVirtual := slices.BinarySearch(virtual, name); isVirtual {
			ranked[r.rank(name)] = append(ranked[r.rank(name)], name)
		} else {
			hardware = append(hardware, name)
		}
	}
	others := slices.Concat(ranked[:]...)
	f.Interfaces, f.Bonds = []facts.Interface{}, []facts.Bond{}
	for _, name := range hardware[:min(len(hardware), maxHardware)] {
		f.Interfaces = append(f.Interfaces, r.read(name, true))
	}
	for _, name := range others[:min(len(others), maxVirtual)] {
		f.Interfaces = append(f.Interfaces, r.read(name, false))
		if f.Interfaces[len(f.Interfaces)-1].Kind == bond {
			f.Bonds = append(f.Bonds, r.bond(name))
		}
	}
	f.InterfacesLeft = max(len(hardware)-maxHardware, 0) + max(len(others)-maxVirtual, 0)
}

const ranks = 3

// rank orders interfaces without hardware, from 0 to below ranks: bonds and the loopback interface,
// others with an IPv4 address, the rest.
func (r *reader) rank(name string) int {
	switch kind := KindOfName(name); {
	case kind == bond || kind == loopback:
		return 0
	case slices.ContainsFunc(r.addresses[name], func(a string) bool { return !strings.Contains(a, ":") }):
		return 1
	}
	return 2
}

// addresses lists the IP addresses of the interfaces in this network namespace, by their names, with the lengths of their
// prefixes. The ends of pairs that lead to containers are left out: each takes a question, and a node of Kubernetes has a thousand.
func addresses() (map[string][]string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	list := make(map[string][]string)
	for _, i := range interfaces {
		if KindOfName(i.Name) == "veth" {
			continue
		}
		own, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("list addresses: %w", err)
		}
		for _, a := range own {
			list[i.Name] = append(list[i.Name], a.String())
		}
	}
	return list, nil
}

func (r *reader) read(name string, hardware bool) facts.Interface {
	dir := path.Join(interfaces, name)
	n := facts.Interface{Name: name, Source: dir, Kind: r.kind(dir, name, hardware)}
	if mtu, err := r.Host.Int(dir + "/mtu"); err != nil {
		r.Missing("interfaces.mtu", err)
	} else if mtu > 0 && mtu < 1<<20 {
		n.MTU = int(mtu)
	}
	r.readState(&n, dir)
	if hardware || n.Kind == bond {
		// Without a link, a driver gives EINVAL or -1.
		if mbps, err := r.Host.Int(dir + "/speed"); err == nil && mbps > 0 && mbps < 1<<30 {
			n.SpeedGbps = float64(mbps) / 1000
		}
	}
	for _, a := range r.addresses[name] {
		if len(n.Addresses) < maxAddresses {
			n.Addresses = append(n.Addresses, escape.Printable(a, 64))
		}
	}
	return n
}

func (r *reader) kind(dir, name string, hardware bool) string {
	if n, err := r.Host.Int(dir + "/type"); err == nil && types[n] != "" {
		return types[n]
	}
	if uevent, err := r.Host.Text(dir + "/uevent"); err == nil {
		for line := range strings.Lines(uevent) {
			if kind, found := strings.CutPrefix(strings.TrimSpace(line), "DEVTYPE="); found && kindsOfDevices[kind] != "" {
				return kindsOfDevices[kind]
			}
		}
	}
	if hardware {
		return ethernet
	}
	return KindOfName(name)
}

// readState reads whether an interface works: operstate, or IFF_UP of flags for those that have none. The carrier
// of one that is switched off cannot be read.
func (r *reader) readState(n *facts.Interface, dir string) {
	state, err := r.Host.Text(dir + "/operstate")
	if err != nil {
		r.Missing("interfaces.state", err)
		return
	}
	switch state {
	case "down", "lowerlayerdown", "dormant", "notpresent":
		n.State = "down"
	case "up":
		n.State = "up"
	default:
		const up = 1
		if flags, err := r.Host.Int(dir + "/flags"); err == nil {
			n.State = map[bool]string{true: "up", false: "down"}[flags&up == up]
		}
	}
	if n.Kind == loopback {
		return
	}
	if carrier, err := r.Host.Int(dir + "/carrier"); err == nil {
		n.Carrier = new(carrier == 1)
	}
}

// bond reads a bond (Documentation/networking/bonding.rst; drivers/net/bonding/bond_sysfs.c). The
// files of LACP are empty to all but root.
func (r *reader) bond(name string) facts.Bond {
	dir := path.Join(interfaces, name, "bonding")
	b := facts.Bond{Name: name, Source: dir}
	text := func(file string) string { return r.Text("bonds."+file, dir+"/"+file) }
	b.Mode, b.HashPolicy = word.First(text("mode")), word.First(text("xmit_hash_policy"))
	for member := range strings.FieldsSeq(text("slaves")) {
		if !IsName(member) || len(b.Members) == maxMembers {
			continue
		}
		status, err := r.Host.Text(path.Join(interfaces, member, "bonding_slave", "mii_status"))
		if err != nil { // Members whose state is not known would count as up.
			r.Failed("bonds.members", err)
			b.Members, b.Down = nil, nil
			break
		}
		b.Members = append(b.Members, member)
		if status != "up" {
			b.Down = append(b.Down, member)
		}
	}
	if b.Mode == "802.3ad" {
		b.Partner = escape.Printable(text("ad_partner_mac"), 32)
		if n, err := r.Host.Int(dir + "/ad_num_ports"); err == nil && n >= 0 && n <= maxMembers {
			b.Aggregated = new(int(n))
		}
	}
	return b
}

// readModules reads which modules are loaded: each has a folder.
func (r *reader) readModules(f *facts.NICFacts) {
	names, err := r.Host.Dir(modules)
	if err != nil {
		r.Failed("modules", err)
		return
	}
	f.Modules = slices.DeleteFunc(append([]string{}, names...), func(name string) bool { return !slices.Contains(Modules, name) })
}

// DeriveMTU adds to the RoCE ports the path MTU that their interfaces allow.
func DeriveMTU(f *facts.NICFacts) {
	for i := range f.RDMA {
		if p := &f.RDMA[i]; p.LinkLayer == layerEthernet {
			if n := interfaceOf(f, p); n != nil {
				p.AllowedMTU = pathMTU(n.MTU)
			}
		}
	}
}

// interfaceOf is the interface of a port, nil if it is not known.
func interfaceOf(f *facts.NICFacts, p *facts.RDMAPort) *facts.Interface {
	return facts.Find(f.Interfaces, func(n *facts.Interface) bool { return n.Name == p.Netdev && n.Host == p.Host })
}

// readFlowControl reads the flow control of the interfaces of RoCE ports.
func (r *reader) readFlowControl(ctx context.Context, f *facts.NICFacts) {
	var asked []string
	for i := range f.RDMA {
		if p := &f.RDMA[i]; p.LinkLayer != layerEthernet || interfaceOf(f, p) == nil {
			continue // It may be in another network namespace.
		}
		for _, name := range hardwareBelow(f, f.RDMA[i].Netdev) {
			if !slices.Contains(asked, name) && len(asked) < maxHardware {
				asked = append(asked, name)
				r.flowControl(ctx, f, name)
			}
		}
	}
}

// hardwareBelow are the interfaces that carry what an interface sends: the members of a bond, and
// that below a VLAN of the usual name.
func hardwareBelow(f *facts.NICFacts, name string) []string {
	if b := facts.Find(f.Bonds, func(b *facts.Bond) bool { return b.Name == name }); b != nil {
		return b.Members
	}
	parent, _, _ := strings.Cut(name, ".")
	return []string{parent}
}

// flowControl reads the flow control of an interface, if its driver shows any.
func (r *reader) flowControl(ctx context.Context, f *facts.NICFacts, name string) {
	var answer FlowControl
	q := facts.QoS{Interface: name, Source: path.Join(interfaces, name)}
	if err := r.ask(ctx, AskFlowControl+name, func(context.Context) (any, error) { return flowControlOf(name) }, &answer); err != nil {
		r.Failed("qos.pfc", err)
	} else {
		q.PFC = append([]int{}, answer.Priorities...)
	}
	q.ECN = r.congestionControl(path.Join(interfaces, name, "ecn", "roce_np", "enable"))
	if q.PFC != nil || q.ECN != nil {
		f.QoS = append(f.QoS, q)
	}
}

// congestionControl lists the priorities for which a NIC tells senders of congestion, nil if that is not shown.
func (r *reader) congestionControl(dir string) []int {
	names, err := r.Host.Dir(dir)
	if err != nil {
		return nil
	}
	list := []int{}
	for i := range 8 {
		name := strconv.Itoa(i)
		if !slices.Contains(names, name) {
			return nil
		}
		on, err := r.Host.Int(path.Join(dir, name))
		if err != nil {
			r.Failed("qos.ecn", err)
			return nil
		}
		if on == 1 {
			list = append(list, i)
		}
	}
	return list
}

// The questions, as a recording names them.
const (
	// AskAddresses is answered with a map from the network interfaces of this network
	// namespace to their IP addresses, "10.0.0.5/24".
	AskAddresses = "addresses"
	// AskFlowControl takes the name of an interface and is answered with a FlowControl.
	AskFlowControl = "flow-control:"
)

// FlowControl is priority flow control of a network interface.
type FlowControl struct {
	// Priorities are those that have it, from 0.
	Priorities []int `json:"priorities"`
}
