package network

import (
	"cmp"
	"path"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// bondingKind is /proc/net/bonding/bond0 (drivers/net/bonding/bond_procfs.c).
var bondingKind = &parse.Kind{
	Name: "bonding", Title: "A bond of interfaces, from /proc/net/bonding", Command: "cat /proc/net/bonding/bond0", Gives: []string{"nics"},
	Anchors:  []string{"Ethernet Channel Bonding Driver:", "Bonding Mode: "},
	Commands: []string{"cat /proc/net/bonding"},
	Begins:   parse.BeginsLike(lazy.New(`^(?:Ethernet Channel Bonding Driver:|Bonding Mode: )`)),
	Read:     bondingRead,
}

// bondingModes are the kernel's words for the modes and their short names
// (drivers/net/bonding/bond_main.c: bond_mode_name; Documentation/networking/bonding.rst).
var bondingModes = map[string]string{
	"load balancing (round-robin)":          "balance-rr",
	"fault-tolerance (active-backup)":       "active-backup",
	"load balancing (xor)":                  "balance-xor",
	"fault-tolerance (broadcast)":           "broadcast",
	"IEEE 802.3ad Dynamic link aggregation": "802.3ad",
	"transmit load balancing":               "balance-tlb",
	"adaptive load balancing":               "balance-alb",
}

// bondingMaxMembers bounds the members of one bond.
const bondingMaxMembers = 64

var (
	bondingItem = lazy.New(`^\s*([A-Z][\w .()-]{1,60}?): ?(.*)$`)
	bondingName = lazy.New(`/proc/net/bonding/([A-Za-z][\w.-]{0,14})`)
	// bondingFile is the name of a text that was copied from there.
	bondingFile = lazy.New(`^(bond[\w.-]*?)(?:\.txt|\.log)?$`)
)

func bondingRead(s *parse.Sink, in *parse.Lines) {
	name := bondingName.First(in.Prompt().Command)
	if file := bondingFile.First(path.Base(in.Name())); name == "" && network.IsName(file) {
		name = file
	}
	bond := facts.Bond{Name: name, Host: s.Host(), Source: s.Source(), Line: in.First().Number}
	member := ""
	in.While(func(l parse.Line) bool {
		m := bondingItem.FindStringSubmatch(l.Text)
		if m == nil {
			return bondingBetween.MatchString(l.Text)
		}
		switch value := strings.TrimSpace(m[2]); m[1] {
		case "Ethernet Channel Bonding Driver":
			return l.Number == in.First().Number // Else it begins the next bond.
		case "Bonding Mode":
			mode, _, _ := strings.Cut(value, " (fail_over_mac")
			bond.Mode = bondingModes[mode]
		case "Transmit Hash Policy":
			bond.HashPolicy, _, _ = strings.Cut(escape.Printable(value, 32), " (")
		case "Number of ports":
			if member == "" {
				bond.Aggregated = parse.Optional(value)
			}
		case "Partner Mac Address":
			if member == "" {
				bond.Partner = escape.Printable(value, 32)
			}
		case "Slave Interface":
			member = ""
			if network.IsName(value) && len(bond.Members) < bondingMaxMembers {
				member = value
				bond.Members = append(bond.Members, value)
				n := interfaceNamed(s, value, l)
				n.Kind = cmp.Or(n.Kind, network.KindOfName(value))
			}
		case "MII Status":
			if member == "" {
				break // The bond itself.
			}
			up := value == "up"
			if interfaceNamed(s, member, l).Carrier = &up; !up {
				bond.Down = append(bond.Down, member)
			}
		}
		return true
	})
	if nics := s.NICs(); len(nics.Bonds) < maxInterfaces && (bond.Mode != "" || len(bond.Members) > 0) {
		nics.Bonds = append(nics.Bonds, bond)
	}
}

// bondingBetween are the lines that are no items: empty ones and the
// headings in lower case ("802.3ad info", "details actor lacp pdu:").
var bondingBetween = lazy.New(`^\s*(?:$|802\.3ad info\s*$|(?:details|system|port|oper) )`)
