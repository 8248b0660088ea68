package rdma

import (
	"maps"
	"net/netip"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/rdma"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// ports reads a listing of ports below the devices that they belong to.
type ports struct {
	sink *parse.Sink
	// device is what the lines above the ports say; each port begins with it.
	device facts.RDMAPort
	// port is the one under way, and at is where it began.
	port *facts.RDMAPort
	at   parse.Line
}

// begin returns the port under way, or begins one.
func (r *ports) begin(l parse.Line) *facts.RDMAPort {
	if r.port == nil {
		r.port, r.at = new(r.device), l
	}
	return r.port
}

// stated reports whether the state of the port under way was told: another one
// is of the next port, whose head a filter hid.
func (r *ports) stated() bool { return r.port != nil && r.port.State != "" }

// flush ends the port under way.
func (r *ports) flush() {
	if r.port != nil {
		Merge(r.sink, *r.port, r.at)
		r.port = nil
	}
}

// Merge adds what a text says about a port of an RDMA device. Texts that
// agree are one port; where two contradict each other they describe different
// machines, or of different times, and both stay.
func Merge(s *parse.Sink, p facts.RDMAPort, l parse.Line) {
	if p.Host == "" {
		p.Host = s.Host()
	}
	if p.Port == 0 {
		p.Port = 1
	}
	p.Source, p.Line = s.Source(), l.Number
	nics := s.NICs()
	for i := range nics.RDMA {
		if known := &nics.RDMA[i]; agree(known, &p) {
			fill(known, &p)
			rdma.NameTypes(known)
			return
		}
	}
	if len(nics.RDMA) >= parse.MaxEntries {
		return
	}
	rdma.NameTypes(&p)
	nics.RDMA = append(nics.RDMA, p)
}

// agree reports whether two reports can be of the same port of the same
// machine.
func agree(a, b *facts.RDMAPort) bool {
	if a.Device != b.Device || a.Port != b.Port || a.Host != b.Host {
		return false
	}
	for _, pair := range [][2]string{
		{a.LinkLayer, b.LinkLayer},
		{a.State, b.State},
		{a.PhysicalState, b.PhysicalState},
		{a.Netdev, b.Netdev},
		{a.Firmware, b.Firmware},
		{a.Address, b.Address},
	} {
		if pair[0] != "" && pair[1] != "" && pair[0] != pair[1] {
			return false
		}
	}
	if a.MTU != 0 && b.MTU != 0 && a.MTU != b.MTU || a.LID != nil && b.LID != nil && *a.LID != *b.LID {
		return false
	}
	if a.NetdevUp != nil && b.NetdevUp != nil && *a.NetdevUp != *b.NetdevUp {
		return false
	}
	for _, g := range b.GIDs {
		for _, known := range a.GIDs {
			if known.Index == g.Index && known.GID != "" && g.GID != "" && !sameGID(known.GID, g.GID) {
				return false
			}
		}
	}
	return true
}

// sameGID compares two spellings of a GID: programs print it in full or
// shortened as an IPv6 address.
func sameGID(a, b string) bool {
	x, err := netip.ParseAddr(a)
	if err != nil {
		return a == b
	}
	y, err := netip.ParseAddr(b)
	return err == nil && x == y
}

// fill adds to a port what another report knows beyond it.
func fill(to, from *facts.RDMAPort) {
	for _, f := range []struct{ to, from *string }{
		{&to.LinkLayer, &from.LinkLayer},
		{&to.State, &from.State},
		{&to.PhysicalState, &from.PhysicalState},
		{&to.Netdev, &from.Netdev},
		{&to.Firmware, &from.Firmware},
		{&to.Model, &from.Model},
		{&to.Address, &from.Address},
		{&to.DefaultRoCE, &from.DefaultRoCE},
	} {
		if *f.to == "" {
			*f.to = *f.from
		}
	}
	if to.RateGbps == 0 {
		to.RateGbps = from.RateGbps
	}
	if to.MTU == 0 {
		to.MTU = from.MTU
	}
	if to.MaxMTU == 0 {
		to.MaxMTU = from.MaxMTU
	}
	if to.LID == nil {
		to.LID = from.LID
	}
	if to.SMLID == nil {
		to.SMLID = from.SMLID
	}
	if to.NetdevUp == nil {
		to.NetdevUp = from.NetdevUp
	}
	for _, g := range from.GIDs {
		addGID(to, g)
	}
	if len(from.Counters) > 0 {
		if to.Counters == nil {
			to.Counters = make(map[string]int64)
		}
		maps.Copy(to.Counters, from.Counters)
	}
}

// maxGIDs bounds the GIDs of one port. A table has 256 entries at most on
// the devices that are known (gid_tbl_len of ibv_devinfo -v).
const maxGIDs = 1024

// addGID adds a GID to a port, or what is known about one beyond its index.
func addGID(p *facts.RDMAPort, g facts.GID) {
	if a, err := netip.ParseAddr(g.GID); err == nil && a.Is4In6() && g.IPv4 == "" {
		g.IPv4 = a.Unmap().String()
	}
	for i := range p.GIDs {
		known := &p.GIDs[i]
		if known.Index != g.Index {
			continue
		}
		if known.GID == "" {
			known.GID, known.IPv4 = g.GID, g.IPv4
		}
		if known.Type == "" {
			known.Type = g.Type
		}
		if known.Netdev == "" {
			known.Netdev = g.Netdev
		}
		return
	}
	if len(p.GIDs) < maxGIDs {
		p.GIDs = append(p.GIDs, g)
	}
}

// netdevLayer is the link layer that an interface's name tells: the
// kernel and systemd call InfiniBand interfaces ib0, ibp59s0, ibs1.
func netdevLayer(name string) string {
	switch {
	case strings.HasPrefix(name, "ib"):
		return "InfiniBand"
	case strings.HasPrefix(name, "en"), strings.HasPrefix(name, "eth"), strings.HasPrefix(name, "bond"):
		return "Ethernet"
	}
	return ""
}

// ahead reports whether one of the next lines, after blank ones, is part
// of the block. It does not look past three of them.
func ahead(in *parse.Lines, belongs func(string) bool) bool {
	for _, l := range in.Ahead(4) {
		if strings.TrimSpace(l.Text) != "" {
			return belongs(l.Text)
		}
	}
	return false
}

// flag returns what follows a flag in a command line: "-d" of
// "ibv_devinfo -d mlx5_0".
func flag(command, flag string) string {
	words := strings.Fields(command)
	for i, w := range words {
		if w == flag && i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}
