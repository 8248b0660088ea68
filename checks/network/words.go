package network

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// The link layers.
const (
	layerInfiniBand = "InfiniBand"
	layerEthernet   = "Ethernet"
)

// PortState gives a port's state in one word, whichever program printed it:
// "PORT_ACTIVE (4)", "Active", "4: ACTIVE", "Initializing".
func PortState(text string) string {
	return stateIn(strings.ToLower(text), [][2]string{{"active", "active"}, {"down", "down"}, {"init", "init"}, {"arm", "armed"}})
}

// stateIn is the state of the first of some words that is in a text; empty if none is.
func stateIn(text string, states [][2]string) string {
	for _, s := range states {
		if strings.Contains(text, s[0]) {
			return s[1]
		}
	}
	return ""
}

// PhysicalState gives the state of the physical link as ibstat spells it
// (rdma-core@691953d8d infiniband-diags/ibstat.c, libibverbs/examples/devinfo.c).
func PhysicalState(text string) string {
	plain := strings.ToLower(strings.NewReplacer("_", "", " ", "", "-", "").Replace(text))
	return stateIn(plain, [][2]string{
		{"linkup", "LinkUp"},
		{"polling", "Polling"},
		{"disabled", "Disabled"},
		{"sleep", "Sleep"},
		{"linkerrorrecovery", "LinkErrorRecovery"},
		{"configuration", "PortConfigurationTraining"},
		{"phytest", "PhyTest"},
	})
}

// LinkLayer gives the link layer, or nothing.
func LinkLayer(text string) string {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "infiniband", "ib":
		return layerInfiniBand
	case "ethernet":
		return layerEthernet
	}
	return ""
}

// GIDType gives the type of a GID, or nothing: "v2", "RoCE v2", "IB/RoCE v1".
func GIDType(text string) string {
	switch {
	case strings.Contains(text, "v2"):
		return "RoCE v2"
	case strings.Contains(text, "v1"):
		return "RoCE v1"
	}
	return ""
}

// NameGIDTypes tells the two meanings of the kernel's "IB/RoCE v1" apart,
// which show_gids prints as "v1" for InfiniBand as well.
func NameGIDTypes(p *facts.RDMAPort) {
	if p.LinkLayer != layerInfiniBand {
		return
	}
	for i := range p.GIDs {
		p.GIDs[i].Type = "IB"
	}
}

// LeadingNumber reads the leading decimal or hexadecimal number of a value such as "4096 (5)" or "0x5".
func LeadingNumber(text string) (int, bool) {
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

// ParseLID reads an SM LID or a LID, which have 16 bits.
func ParseLID(text string) *int {
	n, ok := LeadingNumber(text)
	if !ok || n > 0xffff {
		return nil
	}
	return &n
}

// ParseRate reads a rate in Gb/s: "200", "200 Gb/sec (4X HDR)", "2.5".
func ParseRate(text string) float64 {
	text = strings.TrimSpace(text)
	if i := strings.IndexAny(text, " \t("); i >= 0 {
		text = text[:i]
	}
	f, err := facts.ParseFloat(text)
	if err != nil || !(f > 0 && f < 1e5) {
		return 0
	}
	return f
}

// linkCounters and transportCounters report lost or repeated packets and failed links, in ports/N/counters and
// hw_counters; the latter are those of mlx5 (drivers/infiniband/hw/mlx5/counters.c, retrans_q_cnts and basic_q_cnts).
var (
	linkCounters = []string{
		"symbol_error", "link_downed", "link_error_recovery", "port_rcv_errors", "port_rcv_remote_physical_errors",
		"port_xmit_discards", "local_link_integrity_errors", "excessive_buffer_overrun_errors",
	}
	transportCounters = []string{
		"rnr_nak_retry_err", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err", "out_of_sequence", "out_of_buffer",
		"duplicate_request", "req_cqe_error", "resp_cqe_error", "roce_adp_retrans", "roce_adp_retrans_to", "rx_icrc_encapsulated",
	}
)

// PortCounter notes a counter of a port, and reports whether it is one of errors.
func PortCounter(p *facts.RDMAPort, name, value string) bool {
	return (slices.Contains(linkCounters, name) || slices.Contains(transportCounters, name)) && note(p, name, value)
}

func note(p *facts.RDMAPort, name, value string) bool {
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	if err != nil || n < 0 {
		return false
	}
	facts.Put(&p.Counters, name, n)
	return true
}

// pathHeaders are the bytes that RoCE takes of an Ethernet frame's payload, and least and most
// the path MTUs (Linux include/rdma/ib_addr.h, iboe_get_mtu: GRH 40, UDP 8, BTH 12, XRC 4, atomic
// 28, ICRC 4; include/rdma/ib_verbs.h, enum ib_mtu).
const (
	pathHeaders = 96
	leastPath   = 256
	mostPath    = 4096
)

// pathMTU is the largest path MTU of RoCE that fits into an Ethernet MTU, 0 if none does: a power
// of two, as drivers compute it.
func pathMTU(ethernet int) int {
	room := min(ethernet-pathHeaders, mostPath)
	if room < leastPath {
		return 0
	}
	return 1 << (bits.Len(uint(room)) - 1)
}

// The kinds of interfaces that are used in more than one place.
const (
	loopback   = "loopback"
	infiniBand = "infiniband"
	ethernet   = "ethernet"
	tunnel     = "tunnel"
	bond       = "bond"
)

// IsName reports whether a text is the name of an interface as the kernel allows it
// (IFNAMSIZ is 16: net/core/dev.c, dev_valid_name), in the characters that are in use.
func IsName(s string) bool { return interfaceName.MatchString(s) }

var interfaceName = lazy.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$`)

// kindsOfNames tell an interface's kind by the names that programs give, where nothing says more.
var kindsOfNames = []struct {
	kind  string
	names *lazy.Regexp
}{
	{loopback, lazy.New(`^lo\d*$`)},
	{"bridge", lazy.New(`^(?:docker|br-|br\d|virbr|cni|cbr|lxcbr|lxdbr|incusbr|podman|kube-bridge|vmbr|ovs|ovn|nerdctl|weave|mpqemubr)`)},
	{"veth", lazy.New(`^(?:veth|cali|lxc|vnet|tap|vif|azv)`)},
	{tunnel, lazy.New(`^(?:tun|wg|tailscale|zt|flannel|vxlan|cilium|tunl|ip6tnl|gre|sit|ppp|ipip|nebula|utun|geneve|erspan|wt\d)`)},
	{"other", lazy.New(`^(?:dummy|nodelocaldns|kube-ipvs|ifb|vmnet|vboxnet)`)},
	{bond, lazy.New(`^(?:bond|team)\d*$`)},
	{"wireless", lazy.New(`^(?:wl|wwan|ww)`)},
	{infiniBand, lazy.New(`^(?:ib|ibp|ibs)\d`)},
	{"vlan", lazy.New(`^(?:[\w-]+\.\d+|vlan\d+)$`)},
}

// KindOfName is the kind of interface that a name belongs to.
func KindOfName(name string) string {
	for _, k := range kindsOfNames {
		if k.names.MatchString(name) {
			return k.kind
		}
	}
	return ethernet
}

// types are the hardware types that are no Ethernet (include/uapi/linux/if_arp.h), and
// kindsOfDevices the kinds that drivers name in DEVTYPE of uevent.
var (
	types = map[int64]string{
		32: infiniBand, 772: loopback, 801: "wireless", 802: "wireless", 803: "wireless",
		512: tunnel, 768: tunnel, 769: tunnel, 776: tunnel, 778: tunnel, 823: tunnel, 65534: tunnel,
	}
	kindsOfDevices = map[string]string{
		"bond": bond, "bridge": "bridge", "vlan": "vlan", "wlan": "wireless", "wwan": "wireless",
		"vxlan": tunnel, "geneve": tunnel, "gtp": tunnel, "wireguard": tunnel,
	}
)

// Modules are the kernel modules that affect RDMA and the access of NICs to GPU memory.
var Modules = []string{
	"nvidia_peermem", "nv_peer_mem", "efa_nv_peermem", "ib_peer_mem", "gdrdrv", "nvidia_fs", "nvidia", "nvidia_uvm", "amdgpu",
	"ib_core", "ib_uverbs", "ib_umad", "ib_cm", "ib_ipoib", "iw_cm", "rdma_cm", "rdma_ucm", "mlx4_core", "mlx4_ib", "mlx5_core", "mlx5_ib",
	"efa", "irdma", "bnxt_re", "ionic_rdma", "qedr", "hns_roce", "siw", "rdma_rxe", "mlx_compat",
}

// word is the first of the words of a file of bonding: "802.3ad 4".
var word = lazy.New(`^([a-z0-9][a-z0-9.+-]{1,31})(?: \d+)?$`)
