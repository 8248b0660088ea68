package network

import (
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

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
