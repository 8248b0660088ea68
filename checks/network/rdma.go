package network

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/pci"
)

// rdmaFolder is the folder of all RDMA devices; it is there once ib_core is loaded. What its files
// hold is in the kernel's Documentation/ABI/stable/sysfs-class-infiniband.
const rdmaFolder = "/sys/class/infiniband"

const (
	// maxDevices, maxPorts and maxGIDs bound what is read: a machine has up to 18 adapters, each with up to 127
	// virtual functions.
	maxDevices = 256
	maxPorts   = 8
	maxGIDs    = 256
	// gapOfGIDs are zeros in a row, behind an entry, after which a table is taken to be at its end:
	// the kernel fills the first free entry (drivers/infiniband/core/cache.c, find_gid).
	gapOfGIDs = 32
	// portReaders bounds the devices that are read at a time: one whose firmware does not answer must
	// not delay the others.
	portReaders = 16
	maxWord     = 64
)

// readPorts reads the ports of all devices, in order of their names. The error is that of the list.
func readPorts(g *gather.Gathering) ([]facts.RDMAPort, error) {
	names, err := g.Host.Dir(rdmaFolder)
	if err != nil {
		return nil, err
	}
	r := &portReader{host: g.Host}
	names = slices.DeleteFunc(names, func(n string) bool { return !rdmaName.MatchString(n) })
	if len(names) > maxDevices {
		g.Unknown("nics", "rdma", fmt.Sprintf("only the first %d of %d RDMA devices were read", maxDevices, len(names)), "")
		names = names[:maxDevices]
	}
	ports := make([][]facts.RDMAPort, len(names))
	var wg sync.WaitGroup
	for first := range min(portReaders, len(names)) {
		wg.Go(func() {
			for i := first; i < len(names); i += portReaders {
				ports[i] = r.device(names[i])
			}
		})
	}
	wg.Wait()
	r.gaps.Report(g)
	return append([]facts.RDMAPort{}, slices.Concat(ports...)...), nil
}

// rdmaName is the name of a device, which the kernel takes from its driver or from the user
// (rdma dev set); IB_DEVICE_NAME_MAX is 64.
var rdmaName = lazy.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)

// portReader reads devices and collects what could not be read.
type portReader struct {
	host *host.Host
	gaps gather.Gaps // Of ports.
}

// missing notes why a fact of a port is not known; a file that does not exist is no gap.
func (r *portReader) missing(port, fact string, err error) {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, host.ErrNotRecorded) {
		r.gaps.Add(port, section, "rdma."+fact, gather.Cause(err), gather.HintFor(err))
	}
}

func (r *portReader) device(device string) []facts.RDMAPort {
	dir := path.Join(rdmaFolder, device)
	base := facts.RDMAPort{Device: device, Firmware: r.word(dir + "/fw_ver"), Model: r.word(dir + "/hca_type")}
	if target, err := r.host.Link(dir); err == nil {
		base.Address = addressIn(target)
	}
	numbers, err := r.host.Dir(dir + "/ports")
	if err != nil {
		r.missing(device, "ports", err)
		return nil
	}
	var ports []facts.RDMAPort
	for _, number := range numbers {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || len(ports) == maxPorts {
			continue
		}
		p := base
		p.Port, p.Source = n, path.Join(dir, "ports", number)
		r.port(&p)
		ports = append(ports, p)
	}
	return ports
}

// addressIn is the last PCI address in a path: an RDMA device lies below the device that it is made of.
func addressIn(target string) string {
	for _, component := range slices.Backward(strings.Split(target, "/")) {
		if pci.IsAddress(component) {
			return component
		}
	}
	return ""
}

// word reads a small file, empty if that fails.
func (r *portReader) word(file string) string {
	s, _ := r.host.Text(file)
	return escape.Printable(s, maxWord)
}

func (r *portReader) port(p *facts.RDMAPort) {
	label := p.Device + ":" + strconv.Itoa(p.Port)
	text := func(file string) string {
		s, err := r.host.Text(p.Source + "/" + file)
		if err != nil {
			r.missing(label, file, err)
		}
		return s
	}
	p.LinkLayer = LinkLayer(text("link_layer"))
	p.State = PortState(text("state"))
	p.PhysicalState = PhysicalState(text("phys_state"))
	p.RateGbps = ParseRate(text("rate"))
	if p.LinkLayer == layerInfiniBand {
		p.SMLID = ParseLID(text("sm_lid"))
	}
	r.readGIDs(p, label)
	if p.LinkLayer == layerEthernet && p.Netdev == "" {
		// Without a GID, the interface is that of the device, if it has just one.
		if names, err := r.host.Dir(path.Join(rdmaFolder, p.Device, "device", "net")); err == nil && len(names) == 1 {
			p.Netdev = escape.Printable(names[0], maxWord)
		}
	}
	r.readCounters(p, label, "counters", linkCounters)
	r.readCounters(p, label, "hw_counters", transportCounters)
}

// readGIDs reads the table of GIDs up to a long gap, or its end.
func (r *portReader) readGIDs(p *facts.RDMAPort, label string) {
	zeros := 0
	for i := range maxGIDs {
		text, err := r.host.Text(fmt.Sprintf("%s/gids/%d", p.Source, i))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, host.ErrNotRecorded) {
			return
		}
		address, invalid := netip.ParseAddr(text)
		switch {
		case err != nil:
			r.missing(label, "gids", err)
			if p.GIDs == nil {
				return // The first one fails as all others will.
			}
			continue
		case p.GIDs == nil:
			p.GIDs = []facts.GID{}
		}
		if zeros++; invalid != nil || address.Zone() != "" || address.IsUnspecified() {
			if len(p.GIDs) > 0 && zeros >= gapOfGIDs {
				return
			}
			continue
		}
		zeros = 0
		p.GIDs = append(p.GIDs, r.gid(p, i, text))
	}
}

func (r *portReader) gid(p *facts.RDMAPort, index int, text string) facts.GID {
	g := facts.GID{Index: index, GID: text}
	switch p.LinkLayer {
	case layerInfiniBand:
		g.Type = "IB"
	case layerEthernet:
		g.Type = GIDType(r.word(fmt.Sprintf("%s/gid_attrs/types/%d", p.Source, index)))
		g.Netdev = r.word(fmt.Sprintf("%s/gid_attrs/ndevs/%d", p.Source, index))
		if p.Netdev == "" || strings.Contains(p.Netdev, ".") && !strings.Contains(g.Netdev, ".") && g.Netdev != "" {
			p.Netdev = g.Netdev // A VLAN's entry came first.
		}
	}
	return g
}

// readCounters reads those of some counters that a folder of the port has.
func (r *portReader) readCounters(p *facts.RDMAPort, label, folder string, wanted []string) {
	names, err := r.host.Dir(p.Source + "/" + folder)
	if err != nil {
		r.missing(label, "counters", err)
		return
	}
	for _, counter := range wanted {
		if !slices.Contains(names, counter) {
			continue
		}
		text, err := r.host.Text(p.Source + "/" + folder + "/" + counter)
		if err != nil {
			r.missing(label, "counters", err)
			continue
		}
		note(p, counter, text)
	}
}
