package network

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// Merge adds what a text says about a port of an RDMA device. Texts that agree are one port; where two contradict
// each other they describe different machines, or of different times, and both stay.
func Merge(s *parse.Sink, p facts.RDMAPort, l parse.Line) {
	p.Host = cmp.Or(p.Host, s.Host())
	p.Port = cmp.Or(p.Port, 1)
	p.Source, p.Line = s.Source(), l.Number
	nics := s.NICs()
	if known := facts.Find(nics.RDMA, func(known *facts.RDMAPort) bool { return agree(known, &p) }); known != nil {
		for _, g := range p.GIDs {
			addGID(known, g)
		}
		if known.Counters != nil {
			maps.Copy(known.Counters, p.Counters)
		}
		parse.Fill(known, &p)
		network.NameGIDTypes(known)
		return
	}
	if len(nics.RDMA) >= parse.MaxEntries {
		return
	}
	network.NameGIDTypes(&p)
	nics.RDMA = append(nics.RDMA, p)
}

// agree reports whether two reports can be of the same port of the same machine.
func agree(a, b *facts.RDMAPort) bool {
	if a.Device != b.Device || a.Port != b.Port || a.Host != b.Host {
		return false
	}
	if contradict(a.LinkLayer, b.LinkLayer) || contradict(a.State, b.State) || contradict(a.PhysicalState, b.PhysicalState) || contradict(a.Netdev, b.Netdev) ||
		contradict(a.Firmware, b.Firmware) || contradict(a.Address, b.Address) || contradict(a.MTU, b.MTU) ||
		a.NetdevUp != nil && b.NetdevUp != nil && *a.NetdevUp != *b.NetdevUp {
		return false
	}
	return !slices.ContainsFunc(b.GIDs, func(g facts.GID) bool {
		return slices.ContainsFunc(a.GIDs, func(known facts.GID) bool {
			return known.Index == g.Index && known.GID != "" && g.GID != "" && !sameGID(known.GID, g.GID)
		})
	})
}

// contradict reports whether two values are known and differ.
func contradict[T comparable](a, b T) bool {
	var unknown T
	return a != unknown && b != unknown && a != b
}

// sameGID compares two spellings of a GID: programs print it in full or shortened as an IPv6 address.
func sameGID(a, b string) bool {
	x, errA := netip.ParseAddr(a)
	y, errB := netip.ParseAddr(b)
	return a == b || errA == nil && errB == nil && x == y
}

// maxGIDs bounds the GIDs of one port. A table has 256 entries at most on
// the devices that are known (gid_tbl_len of ibv_devinfo -v).
const maxGIDs = 1024

// addGID adds a GID to a port, or what is known about one beyond its index.
func addGID(p *facts.RDMAPort, g facts.GID) {
	if known := facts.Find(p.GIDs, func(known *facts.GID) bool { return known.Index == g.Index }); known != nil {
		known.GID = cmp.Or(known.GID, g.GID)
		known.Type = cmp.Or(known.Type, g.Type)
		known.Netdev = cmp.Or(known.Netdev, g.Netdev)
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

// flag returns what follows a flag in a command line: "-d" of "ibv_devinfo -d mlx5_0".
func flag(command, flag string) string {
	_, after, _ := strings.Cut(" "+strings.Join(strings.Fields(command), " "), " "+flag+" ")
	value, _, _ := strings.Cut(after, " ")
	return value
}
