package network

import (
	"cmp"
	"fmt"
	"math/bits"
	"net/netip"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// ifconfigKind is the output of ifconfig of net-tools, in its form since 2.10
// ("eth0: flags=4163<UP,BROADCAST>  mtu 1500").
var ifconfigKind = &parse.Kind{
	Name: "ifconfig", Title: "Network interfaces, from ifconfig", Command: "ifconfig -a", Gives: []string{"nics"},
	Anchors:  []string{": flags="},
	Commands: []string{"ifconfig"},
	Begins:   parse.BeginsLike(ifconfigHead),
	Read: func(s *parse.Sink, in *parse.Lines) {
		current := ""
		for _, l := range in.While(ifconfigBelongs) {
			current = ifconfigLine(s, current, l)
		}
	},
}

var (
	ifconfigHead    = lazy.New(`^\s*([A-Za-z][\w.-]{0,14})(?::\w+)?: flags=\d+<([A-Z0-9_,-]*)>\s*(?:mtu (\d{2,6}))?`)
	ifconfigInet    = lazy.New(`^\s*inet (\d{1,3}(?:\.\d{1,3}){3})(?:\s+netmask ([0-9.]+))?`)
	ifconfigInet6   = lazy.New(`^\s*inet6 ([0-9a-fA-F:.]+)(?:%\S+)?(?:/|\s+prefixlen )(\d{1,3})`)
	ifconfigType    = lazy.New(`^\s*(ether|infiniband|loop|unspec|tunnel|sit|ppp)\b`)
	ifconfigCounter = lazy.New(`^\s+(?:[RT]X (?:packets|errors|bytes)|collisions:|device interrupt)`)
)

// ifconfigBelongs holds of the lines of interfaces and of the empty lines
// between them.
func ifconfigBelongs(l parse.Line) bool {
	return strings.TrimSpace(l.Text) == "" || ifconfigHead.MatchString(l.Text) || ifconfigInet.MatchString(l.Text) ||
		ifconfigInet6.MatchString(l.Text) || ifconfigType.MatchString(l.Text) || ifconfigCounter.MatchString(l.Text)
}

// ifconfigLine reads one line and returns the interface to which the next one
// belongs.
func ifconfigLine(s *parse.Sink, current string, l parse.Line) string {
	if m := ifconfigHead.FindStringSubmatch(l.Text); m != nil {
		n := interfaceNamed(s, m[1], l)
		readFlags(n, m[2], "RUNNING")
		if n.State == "up" && n.Carrier == nil && n.Kind != "loopback" { // It is not RUNNING.
			n.Carrier = new(false)
		}
		n.MTU = parse.Number(m[3])
		n.Kind = cmp.Or(n.Kind, network.KindOfName(m[1]))
		return m[1]
	}
	if current == "" {
		return ""
	}
	n := interfaceNamed(s, current, l)
	switch {
	case ifconfigInet.MatchString(l.Text):
		m := ifconfigInet.FindStringSubmatch(l.Text)
		addAddress(n, m[1]+ifconfigPrefix(m[2]))
	case ifconfigInet6.MatchString(l.Text):
		m := ifconfigInet6.FindStringSubmatch(l.Text)
		addAddress(n, m[1]+"/"+m[2])
	case ifconfigType.MatchString(l.Text):
		switch strings.Fields(l.Text)[0] {
		case "infiniband":
			n.Kind = "infiniband"
		case "loop":
			n.Kind = "loopback"
		case "tunnel", "sit", "ppp":
			n.Kind = "tunnel"
		}
	}
	return current
}

// ifconfigPrefix turns a mask into a prefix length: "255.255.240.0" is "/20".
func ifconfigPrefix(mask string) string {
	a, err := netip.ParseAddr(mask)
	if err != nil || !a.Is4() {
		return "/32"
	}
	ones := 0
	for _, b := range a.As4() {
		ones += bits.OnesCount8(b)
	}
	return fmt.Sprintf("/%d", ones)
}
