package attempt

import (
	"net"
	"net/netip"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// link is a network interface that is up and has a carrier, as NCCL lists them (IFF_RUNNING).
type link struct {
	name      string
	addresses []netip.Addr
}

// chosen is the interface and the address that NCCL takes for its rendezvous: the first that
// ncclFindInterfaces returns (NCCL 2.30, src/misc/socket.cc and src/os/linux.cc). names and family
// are NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY.
func chosen(links []link, names, family string) (name string, address netip.Addr, ok bool) {
	lists := []string{"ib", "^docker,lo,virbr", "docker", "lo", "virbr"}
	if len(names) > 1 {
		lists = []string{names}
	}
	for _, list := range lists {
		for _, l := range links {
			i := slices.IndexFunc(l.addresses, func(a netip.Addr) bool { return usable(a, family) })
			if i >= 0 && facts.NCCLSelects(list, l.name) {
				return l.name, l.addresses[i], true
			}
		}
	}
	return "", netip.Addr{}, false
}

// usable reports whether NCCL takes an address: never the IPv6 loopback.
func usable(a netip.Addr, family string) bool {
	switch family {
	case "AF_INET":
		return a.Is4()
	case "AF_INET6":
		return a.Is6() && !a.IsLoopback()
	}
	return a.Is4() || !a.IsLoopback()
}

// links lists the interfaces with their addresses, in the kernel's order.
func links() ([]link, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var list []link
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagRunning == 0 {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			continue // It is gone by now.
		}
		l := link{name: i.Name}
		for _, a := range addresses {
			n, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				ip = ip.Unmap()
				if ip.Is6() && ip.IsLinkLocalUnicast() {
					ip = ip.WithZone(i.Name)
				}
				l.addresses = append(l.addresses, ip)
			}
		}
		list = append(list, l)
	}
	return list, nil
}
