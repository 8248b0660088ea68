package facts

import "strings"

// NCCLSelects reports whether a list of interfaces or RDMA devices selects a name: "eth0,ib" by prefix, "=eth0" exactly, "^docker"
// all but those. What follows a colon is a port (NCCL src/misc/socket.cc, parseStringList and
// matchIfList; NCCL_SOCKET_IFNAME and NCCL_IB_HCA).
func NCCLSelects(list, name string) bool {
	list, not := strings.CutPrefix(list, "^")
	list, exact := strings.CutPrefix(list, "=")
	found := false
	for entry := range strings.SplitSeq(list, ",") {
		entry, _, _ = strings.Cut(entry, ":")
		found = found || entry != "" && (name == entry || !exact && strings.HasPrefix(name, entry))
	}
	return found != not
}
