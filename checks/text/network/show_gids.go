package network

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// showGIDsKind is the table of GIDs by the script show_gids of MLNX_OFED. The
// IPv4 address and the interface may be missing from a row.
var showGIDsKind = &parse.Kind{
	Name: "show_gids", Title: "GIDs of RDMA ports, from show_gids",
	Command: "show_gids", Gives: []string{"nics"},
	Anchors:  []string{"INDEX", ":0000:", ":ffff:"},
	Commands: []string{"show_gids"},
	Begins:   parse.BeginsLike(showGIDsHead, showGIDsRow),
	Read:     showGIDsRead,
}

var (
	showGIDsHead = lazy.New(`^\s*DEV\s+PORT\s+INDEX\s+GID\b`)
	showGIDsRow  = lazy.New(`^\s*([\w.-]+)\s+(\d{1,3})\s+(\d{1,4})\s+((?:[0-9a-f]{4}:){7}[0-9a-f]{4})\s+(?:\d+\.\d+\.\d+\.\d+\s+)?(v1|v2)(?:\s+([\w.@-]+))?\s*$`)
	showGIDsRest = lazy.New(`^\s*(?:---[\s-]*|n_gids_found=\d+)\s*$`)
)

func showGIDsRead(s *parse.Sink, in *parse.Lines) {
	var port facts.RDMAPort // The one under way: its rows follow each other.
	flush := func() {
		if port.Device != "" {
			Merge(s, port, parse.Line{Number: port.Line})
		}
		port = facts.RDMAPort{}
	}
	in.While(func(l parse.Line) bool {
		if showGIDsHead.MatchString(l.Text) { // Another table is of another machine.
			flush()
			return true
		}
		m := showGIDsRow.FindStringSubmatch(l.Text)
		if m == nil {
			return showGIDsRest.MatchString(l.Text)
		}
		number, index := parse.Number(m[2]), parse.Number(m[3])
		if port.Device != m[1] || port.Port != number {
			flush()
			port = facts.RDMAPort{Device: m[1], Port: number, Netdev: m[6], LinkLayer: netdevLayer(m[6]), Line: l.Number}
		}
		if strings.Contains(port.Netdev, ".") && !strings.Contains(m[6], ".") { // A VLAN's row came first.
			port.Netdev = m[6]
		}
		addGID(&port, facts.GID{Index: index, GID: m[4], Type: network.GIDType(m[5]), Netdev: m[6]})
		return true
	})
	flush()
}
