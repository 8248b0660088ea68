package rdma

import (
	"maps"
	"net/netip"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/finite"
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
			nameTypes(known)
			return
		}
	}
	if len(nics.RDMA) >= parse.MaxEntries {
		return
	}
	nameTypes(&p)
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

// nameTypes tells the two meanings of the kernel's "IB/RoCE v1" apart,
// which show_gids prints as "v1" for InfiniBand as well.
func nameTypes(p *facts.RDMAPort) {
	if p.LinkLayer != "InfiniBand" {
		return
	}
	for i := range p.GIDs {
		p.GIDs[i].Type = "IB"
	}
}

// State gives a port's state in one word, whichever program printed it:
// "PORT_ACTIVE (4)", "Active", "4: ACTIVE", "Initializing".
func State(text string) string {
	text = strings.ToLower(text)
	for _, form := range []struct{ word, state string }{
		{"active", "active"},
		{"down", "down"},
		{"init", "init"},
		{"arm", "armed"},
	} {
		if strings.Contains(text, form.word) {
			return form.state
		}
	}
	return ""
}

// PhysicalState gives the state of the physical link as ibstat spells it
// (rdma-core@691953d8d infiniband-diags/ibstat.c, libibverbs/examples/devinfo.c).
func PhysicalState(text string) string {
	plain := strings.ToLower(strings.NewReplacer("_", "", " ", "", "-", "").Replace(text))
	for _, form := range []struct{ word, state string }{
		{"linkup", "LinkUp"},
		{"polling", "Polling"},
		{"disabled", "Disabled"},
		{"sleep", "Sleep"},
		{"linkerrorrecovery", "LinkErrorRecovery"},
		{"configuration", "PortConfigurationTraining"},
		{"phytest", "PhyTest"},
	} {
		if strings.Contains(plain, form.word) {
			return form.state
		}
	}
	return ""
}

// LinkLayer gives the link layer, or nothing.
func LinkLayer(text string) string {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "infiniband", "ib":
		return "InfiniBand"
	case "ethernet":
		return "Ethernet"
	}
	return ""
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

// gidType gives the type of a GID, or nothing: "v2", "RoCE v2",
// "IB/RoCE v1".
func gidType(text string) string {
	switch {
	case strings.Contains(text, "v2"):
		return "RoCE v2"
	case strings.Contains(text, "v1"):
		return "RoCE v1"
	}
	return ""
}

// leadingNumber reads the leading decimal or hexadecimal number of a value such
// as "4096 (5)" or "0x5".
func leadingNumber(text string) (int, bool) {
	text = strings.TrimSpace(text)
	if i := strings.IndexAny(text, " \t("); i >= 0 {
		text = text[:i]
	}
	n, err := strconv.ParseInt(text, 0, 32)
	if err != nil || n < 0 {
		return 0, false
	}
	return int(n), true
}

// lid reads an SM LID or a LID, which have 16 bits.
func lid(text string) *int {
	n, ok := leadingNumber(text)
	if !ok || n > 0xffff {
		return nil
	}
	return &n
}

// rate reads a rate in Gb/s: "200", "200 Gb/sec (4X HDR)", "2.5".
func rate(text string) float64 {
	text = strings.TrimSpace(text)
	if i := strings.IndexAny(text, " \t("); i >= 0 {
		text = text[:i]
	}
	f, err := finite.Parse(text)
	if err != nil || !(f > 0 && f < 1e5) {
		return 0
	}
	return f
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

// counters are the counters that report lost or repeated packets, and of
// links that failed. The others of ports/N/counters and hw_counters count
// traffic. rnr_nak_retry_err and those below it are mlx5's.
var counters = map[string]bool{
	"symbol_error": true, "link_downed": true, "link_error_recovery": true, "port_rcv_errors": true,
	"port_rcv_remote_physical_errors": true, "port_xmit_discards": true, "local_link_integrity_errors": true,
	"excessive_buffer_overrun_errors": true,
	"rnr_nak_retry_err":               true, "packet_seq_err": true, "implied_nak_seq_err": true, "local_ack_timeout_err": true,
	"out_of_sequence": true, "out_of_buffer": true, "duplicate_request": true, "req_cqe_error": true, "resp_cqe_error": true,
	"roce_adp_retrans": true, "roce_adp_retrans_to": true, "rx_icrc_encapsulated": true,
}

// counter notes a counter of a port, if it is one of errors.
func counter(p *facts.RDMAPort, name, value string) bool {
	if !counters[name] {
		return false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	if err != nil || n < 0 {
		return false
	}
	if p.Counters == nil {
		p.Counters = make(map[string]int64)
	}
	p.Counters[name] = n
	return true
}
