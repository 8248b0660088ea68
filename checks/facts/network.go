package facts

// NICFacts is the network: as the kernel shows it (package checks/network), or as its tools print it
// (checks/text/network). Both fill the same types. Below, "or" stands between the file of the kernel and the tools. An
// entry's Source is the folder that it was read from, or the text, with the Line; Line is 0 for a folder.
type NICFacts struct {
	// RDMA are the ports of RDMA devices, of /sys/class/infiniband (or ibv_devinfo, ibstat, ibdev2netdev, show_gids,
	// NCCL's own list); empty means that there is none, nil that it is not known.
	RDMA []RDMAPort `json:"rdma,omitzero"`
	// Interfaces are the network interfaces of this network namespace, of /sys/class/net
	// (or ip addr, ip link); nil means not known.
	Interfaces []Interface `json:"interfaces,omitzero"`
	// InterfacesLeft counts the virtual interfaces that are not listed, because there are too many.
	InterfacesLeft int `json:"interfaces_left,omitempty"`
	// Bonds are of /sys/class/net/*/bonding (or /proc/net/bonding).
	Bonds []Bond `json:"bonds,omitzero"`
	// Modules are the kernel modules that affect RDMA and are loaded, from /sys/module (or lsmod); nil means not shown.
	Modules []string `json:"modules,omitzero"`
	// ModulesPartial is true if a filter may have hidden the modules of GPUDirect RDMA (nvidia_peermem, nv_peer_mem):
	// one that is not listed may still be loaded.
	ModulesPartial bool `json:"modules_partial,omitempty"`
	// QoS is the flow control of Ethernet interfaces: of those of RoCE ports, from
	// DCB_CMD_IEEE_GET over rtnetlink (or mlnx_qos).
	QoS []QoS `json:"qos,omitempty"`
	// Providers are those of libfabric, as fi_info lists them; empty means that it found none, nil that it was not run.
	Providers []string `json:"providers"`
}

// Ports are those of RDMA devices; none where they are not known.
func (f *NICFacts) Ports() []RDMAPort {
	if f == nil {
		return nil
	}
	return f.RDMA
}

// RDMAPort is one port of an RDMA device. Its files are below /sys/class/infiniband/DEVICE/ports/PORT.
type RDMAPort struct {
	// Device is its name ("mlx5_0"), Port its number, Host where it is; Host is empty for this machine.
	Device string `json:"device"`
	Port   int    `json:"port"`
	Host   string `json:"host,omitempty"`
	// LinkLayer is "InfiniBand" or "Ethernet", from link_layer; empty for others (EFA).
	LinkLayer string `json:"link_layer,omitempty"`
	// State is "active", "down", "init", "armed", from state; PhysicalState such as
	// "LinkUp", "Polling", "Disabled", from phys_state.
	State         string `json:"state,omitempty"`
	PhysicalState string `json:"physical_state,omitempty"`
	// RateGbps is the rate in 10^9 bits per second, from rate.
	RateGbps float64 `json:"rate_gbps,omitempty"`
	// MTU and MaxMTU are the active and the largest path MTU in bytes, which no file shows.
	// AllowedMTU is the largest path MTU of a RoCE port that the MTU of its interface allows:
	// drivers take it unless the device supports only a smaller one.
	MTU        int `json:"mtu,omitempty"`
	MaxMTU     int `json:"max_mtu,omitempty"`
	AllowedMTU int `json:"allowed_mtu,omitempty"`
	// SMLID is of InfiniBand, from sm_lid; nil not shown.
	SMLID *int `json:"sm_lid,omitempty"`
	// Netdev is the network interface of a RoCE port, from gid_attrs/ndevs or device/net. NetdevUp is whether
	// ibdev2netdev reports it as up. The interface of an InfiniBand port may be down while the port is active.
	Netdev   string `json:"netdev,omitempty"`
	NetdevUp *bool  `json:"netdev_up,omitempty"`
	// Firmware and Model ("MT4129") are of the device, from fw_ver and hca_type of the device.
	Firmware string `json:"firmware,omitempty"`
	Model    string `json:"model,omitempty"`
	// Address is its PCI address, from where the link /sys/class/infiniband/DEVICE leads.
	Address string `json:"address,omitempty"`
	// GIDs are its addresses, from gids; entries of zeros are left out. Empty means that all are zero, nil not shown.
	GIDs []GID `json:"gids,omitzero"`
	// Counters are its counters of errors by name ("out_of_sequence"), from counters and hw_counters, since the driver
	// was loaded or they were reset; only those of links and of the transport.
	Counters map[string]int64 `json:"counters,omitempty"`
	Source   string           `json:"source"`
	Line     int              `json:"line"`
}

// GID is an address of an RDMA port.
type GID struct {
	Index int    `json:"index"`
	GID   string `json:"gid"`
	// Type is "IB", "RoCE v1" or "RoCE v2", from gid_attrs/types.
	Type string `json:"type,omitempty"`
	// Netdev is the interface that it belongs to, from gid_attrs/ndevs.
	Netdev string `json:"netdev,omitempty"`
}

// QoS is the flow control of an Ethernet interface.
type QoS struct {
	Interface string `json:"interface,omitempty"`
	Host      string `json:"host,omitempty"`
	// PFC are the priorities with priority flow control; empty means none, nil not shown.
	PFC []int `json:"pfc,omitzero"`
	// ECN are the priorities with RoCE's congestion control, from
	// /sys/class/net/INTERFACE/ecn/roce_np/enable, which only MLNX_OFED has; nil not shown.
	ECN    []int  `json:"ecn,omitzero"`
	Source string `json:"source"`
	Line   int    `json:"line"`
}

// Interface is a network interface. Its files are below /sys/class/net/NAME.
type Interface struct {
	Name string `json:"name"`
	Host string `json:"host,omitempty"`
	// State is "up" or "down", from operstate and flags; Carrier false if the cable is out, from carrier.
	State   string `json:"state,omitempty"`
	Carrier *bool  `json:"carrier,omitempty"`
	// MTU is from mtu, SpeedGbps in 10^9 bits per second from speed.
	MTU       int     `json:"mtu,omitempty"`
	SpeedGbps float64 `json:"speed_gbps,omitempty"`
	// Kind is "ethernet", "loopback", "infiniband", "bridge", "veth",
	// "tunnel", "bond", "vlan", "wireless" or "other", from type and uevent.
	Kind string `json:"kind,omitempty"`
	// Addresses are its IP addresses with prefix length, from RTM_GETADDR of rtnetlink.
	Addresses []string `json:"addresses,omitempty"`
	Source    string   `json:"source"`
	Line      int      `json:"line"`
}

// Bond is a bond of interfaces. Its files are below /sys/class/net/NAME/bonding.
type Bond struct {
	Name string `json:"name"`
	Host string `json:"host,omitempty"`
	// Mode is the kernel's name: "802.3ad", "active-backup", "balance-rr", from mode.
	Mode string `json:"mode,omitempty"`
	// HashPolicy is how it distributes what it sends over its members: "layer2", "layer3+4", from xmit_hash_policy.
	HashPolicy string `json:"hash_policy,omitempty"`
	// Members are its interfaces, from slaves; Down those without a link, from their bonding_slave/mii_status.
	Members []string `json:"members,omitempty"`
	Down    []string `json:"down,omitempty"`
	// Partner is the address of the switch, from ad_partner_mac: zeros if none speaks LACP. Aggregated counts the
	// members that LACP joined, from ad_num_ports. Both are shown only to root, and only for 802.3ad.
	Partner    string `json:"partner,omitempty"`
	Aggregated *int   `json:"aggregated,omitempty"`
	Source     string `json:"source"`
	Line       int    `json:"line"`
}
