package network

import (
	"cmp"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// ipAddrKind is the output of "ip addr" and "ip link" of iproute2 (ip/ipaddress.c: print_linkinfo, print_addrinfo),
// also that of -o and of grep.
var ipAddrKind = &parse.Kind{
	Name: "ip-addr", Title: "Network interfaces, from ip addr or ip link", Command: "ip addr", Gives: []string{"nics"},
	Anchors:  []string{"> mtu ", "inet ", "inet6 "},
	Commands: []string{"ip a", "ip addr", "ip address", "ip link", "ip l", "ip -4", "ip -6", "ip -d", "ip -s", "ip -o"},
	Begins:   parse.BeginsLike(ipAddrHead, ipAddrOneLine, ipAddrLabelled),
	Read: func(s *parse.Sink, in *parse.Lines) {
		var current string
		for _, l := range in.While(ipAddrBelongs) {
			current = ipAddrLine(s, current, l)
		}
	},
}

var (
	// ipAddrHead begins an interface: "2: eth0@if5: <BROADCAST,UP> mtu 1500 ...".
	ipAddrHead = lazy.New(`^\s*(\d{1,6}): ([^\s:@]+)(?:@(\S+))?: <([A-Z0-9_,-]*)>(.*)$`)
	// ipAddrOneLine is the form of -o: "2: eth0    inet 10.0.0.5/24 brd ...".
	ipAddrOneLine = lazy.New(`^\s*\d{1,6}: (\S+)\s+inet6? ([0-9A-Fa-f.:]+/\d{1,3})\s`)
	// ipAddrLabelled is what grep leaves of an IPv4 address; the label, which is the interface's name, ends it.
	ipAddrLabelled = lazy.New(`^\s*inet ([\d.]+/\d{1,2}) .*\bscope \w+ (?:(?:secondary|dynamic|noprefixroute|deprecated|tentative) )*([A-Za-z][\w.-]*)(?::\w+)?\s*$`)
	// ipAddrInet is an address below its interface.
	ipAddrInet = lazy.New(`^\s*inet6? ([0-9A-Fa-f.:]+/\d{1,3})(?:\s|$)`)
	// ipAddrLink is the line of the hardware address.
	ipAddrLink = lazy.New(`(?:^|\\)\s*link/(\S+)`)
	ipAddrMTU  = lazy.New(`\bmtu (\d{2,6})\b`)
	ipAddrDown = lazy.New(`\bstate (?:DOWN|LOWERLAYERDOWN|DORMANT|NOTPRESENT)\b`)
	// ipAddrDetail are the lines of -d and of -s that belong to an interface.
	ipAddrDetail = lazy.New(`^\s+(?:valid_lft|altname|link/|inet|vf \d+|bridge|bridge_slave|bond |bond_slave|veth|vxlan|vlan |tun |macvlan|ipvlan|dummy|ipip|sit|gre|RX:|TX:|alias|promiscuity|permaddr|parent(?:bus|dev)|\d+\s+\d+)`)
)

func ipAddrBelongs(l parse.Line) bool {
	return ipAddrHead.MatchString(l.Text) || ipAddrOneLine.MatchString(l.Text) || ipAddrInet.MatchString(l.Text) ||
		ipAddrDetail.MatchString(l.Text) || strings.HasPrefix(strings.TrimSpace(l.Text), "link/")
}

// ipAddrLine reads one line that belongs to the interface current, and returns the one to which the next line belongs.
func ipAddrLine(s *parse.Sink, current string, l parse.Line) string {
	if m := ipAddrHead.FindStringSubmatch(l.Text); m != nil {
		if !network.IsName(m[2]) {
			return ""
		}
		n := interfaceNamed(s, m[2], l)
		ipAddrRead(n, m[3], m[4], m[5])
		return m[2]
	}
	if m := ipAddrOneLine.FindStringSubmatch(l.Text); m != nil {
		name, _, _ := strings.Cut(m[1], ":")
		if network.IsName(name) {
			addAddress(interfaceNamed(s, name, l), m[2])
		}
		return current
	}
	if m := ipAddrLabelled.FindStringSubmatch(l.Text); m != nil && current == "" {
		if network.IsName(m[2]) {
			n := interfaceNamed(s, m[2], l)
			n.Kind = cmp.Or(n.Kind, network.KindOfName(m[2]))
			addAddress(n, m[1])
		}
		return ""
	}
	if current == "" {
		return ""
	}
	n := interfaceNamed(s, current, l)
	if m := ipAddrInet.FindStringSubmatch(l.Text); m != nil {
		addAddress(n, m[1])
	} else if m := ipAddrLink.FindStringSubmatch(l.Text); m != nil {
		ipAddrKindOf(n, m[1])
	}
	return current
}

// ipAddrRead reads the rest of an interface's first line.
func ipAddrRead(n *facts.Interface, peer, flags, rest string) {
	readFlags(n, flags)
	n.MTU = cmp.Or(parse.Number(ipAddrMTU.First(rest)), n.MTU)
	// The operational state (RFC 2863) says more than the will; UNKNOWN is
	// that of interfaces without one, which work (lo, tunnels).
	if ipAddrDown.MatchString(rest) {
		n.State = "down"
	}
	if n.Kind == "" {
		n.Kind = network.KindOfName(n.Name)
		// The end of a pair of which the other end is in another namespace is
		// called "eth0@if5"; "eth0.100@eth0" is a VLAN.
		if n.Kind == "ethernet" && peer != "" && !strings.HasPrefix(peer, "if") && strings.Contains(n.Name, ".") {
			n.Kind = "vlan"
		}
	}
	ipAddrKindOf(n, ipAddrLink.First(rest))
}

// ipAddrKindOf reads the type of the hardware address (ARPHRD_*, as iproute2 names them in lib/ll_types.c).
func ipAddrKindOf(n *facts.Interface, hardware string) {
	switch {
	case hardware == "loopback" || hardware == "infiniband":
		n.Kind = hardware
	case hardware == "none" || hardware == "ppp" || hardware == "sit" || hardware == "gre" || strings.HasPrefix(hardware, "ipip") || strings.HasPrefix(hardware, "tunnel") || strings.HasPrefix(hardware, "gre"):
		n.Kind = "tunnel"
	}
}

// ipBriefKind is the output of "ip -br addr" and "ip -br link".
var ipBriefKind = &parse.Kind{
	Name: "ip-brief", Title: "Network interfaces, from ip -br addr", Command: "ip -br addr", Gives: []string{"nics"},
	Anchors:  []string{" UP ", " DOWN", " UNKNOWN "},
	Commands: []string{"ip -br", "ip -brief", "ip --brief", "ip -4 -br", "ip -c -br"},
	Begins:   parse.BeginsWith(func(text string) bool { return ipBriefLine.MatchString(text) && ipBriefPlausible(text) }),
	Read: func(s *parse.Sink, in *parse.Lines) {
		for _, l := range in.While(func(l parse.Line) bool { return ipBriefLine.MatchString(l.Text) }) {
			m := ipBriefLine.FindStringSubmatch(l.Text)
			n := interfaceNamed(s, m[1], l)
			n.State = "up"
			if m[2] != "UP" && m[2] != "UNKNOWN" {
				n.State = "down"
			}
			n.Kind = network.KindOfName(m[1])
			for word := range strings.FieldsSeq(m[3]) {
				switch {
				case ipBriefAddress.MatchString(word):
					addAddress(n, word)
				case strings.HasPrefix(word, "<") && strings.HasSuffix(word, ">"):
					readFlags(n, strings.Trim(word, "<>"))
					if m[2] == "DOWN" {
						n.State = "down"
					}
				}
			}
		}
	},
}

var (
	ipBriefLine = lazy.New(`^\s*([A-Za-z][\w.-]{0,14})(?:@\S+)?\s+(UP|DOWN|UNKNOWN|LOWERLAYERDOWN|DORMANT|NOTPRESENT)(?:\s+(.*?))?\s*$`)
	// ipBriefAddress is an address with prefix length.
	ipBriefAddress = lazy.New(`^(?:\d{1,3}(?:\.\d{1,3}){3}/\d{1,2}|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}/\d{1,3})$`)
	// ipBriefHardware is the hardware address of "ip -br link".
	ipBriefHardware = lazy.New(`^[0-9a-f]{2}(?::[0-9a-f]{2}){5,19}$`)
)

// ipBriefPlausible tells a line of ip from another program's that says "X is
// UP": it shows an address, flags or nothing more, in columns.
func ipBriefPlausible(line string) bool {
	words := strings.Fields(line)
	if len(words) < 3 {
		return len(words) == 2 && strings.Contains(line, "    ") && network.KindOfName(words[0]) != "ethernet"
	}
	return ipBriefAddress.MatchString(words[2]) || ipBriefHardware.MatchString(words[2])
}
