// Package network reads what tools print about RDMA devices, their ports and their modules, about IP networks and about libfabric.
package network

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// New makes the kinds of this package for one reading.
func New(*parse.Sink) parse.Family {
	return parse.Family{Kinds: []*parse.Kind{
		ibvDevinfoKind,
		ibstatKind,
		ibstatusKind,
		ibdev2netdevKind,
		showGIDsKind,
		linkKind,
		lsmodKind,
		lsmodPromptKind,
		mlnxQoSKind,
		gdscheckKind,
		ipAddrKind, ipBriefKind, ethtoolKind, bondingKind, fiInfoKind,
		(&pings{arrived: map[string]int{}, lost: map[string]int{}}).kind(),
	}}
}

// maxInterfaces bounds the interfaces that are kept, of all hosts
// together: each line of a text is compared with all of them.
const maxInterfaces = 512

// maxAddresses bounds the addresses of one interface.
const maxAddresses = 64

// interfaceNamed returns the interface of a name on the host of the shell
// prompt, new if need be. What is beyond the bound is returned, but not kept.
func interfaceNamed(s *parse.Sink, name string, l parse.Line) *facts.Interface {
	nics, host := s.NICs(), s.Host()
	n := facts.Find(nics.Interfaces, func(n *facts.Interface) bool { return n.Name == name && n.Host == host })
	if n == nil {
		fresh := facts.Interface{Name: name, Host: host, Source: s.Source(), Line: l.Number}
		if len(nics.Interfaces) >= maxInterfaces {
			return &fresh
		}
		nics.Interfaces = append(nics.Interfaces, fresh)
		n = &nics.Interfaces[len(nics.Interfaces)-1]
	}
	s.Watch("nics.interfaces["+name+"]", n, l)
	return n
}

// addAddress adds an address with its prefix length.
func addAddress(n *facts.Interface, address string) {
	if len(n.Addresses) < maxAddresses && len(address) <= 64 && !slices.Contains(n.Addresses, address) {
		n.Addresses = append(n.Addresses, address)
	}
}

// readFlags reads the flags of an interface, as the kernel names them (include/uapi/linux/if.h): UP is the
// administrator's will, LOWER_UP is the carrier.
func readFlags(n *facts.Interface, flags string) {
	set := strings.FieldsFunc(flags, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	n.State = "down"
	if slices.Contains(set, "UP") {
		n.State = "up"
	}
	switch {
	case slices.Contains(set, "LOOPBACK"):
		n.Kind = "loopback"
	case slices.Contains(set, "NO-CARRIER"):
		n.Carrier = new(false)
	case slices.Contains(set, "LOWER_UP"):
		n.Carrier = new(true)
	}
}
