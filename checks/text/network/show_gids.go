package network

import (
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// showGIDsKind is the table of GIDs by the script show_gids of MLNX_OFED. The
// IPv4 address and the interface may be missing from a row.
var showGIDsKind = &parse.Kind{
	Name:     "show_gids",
	Title:    "GIDs of RDMA ports, from show_gids",
	Command:  "show_gids",
	Gives:    []string{"nics"},
	Anchors:  []string{"INDEX", ":0000:", ":ffff:"},
	Commands: []string{"show_gids"},
	Begins:   parse.BeginsLike(showGIDsHead, showGIDsRow),
	Read:     showGIDsRead,
}

var (
	showGIDsHead = lazy.New(`^\s*DEV\s+PORT\s+INDEX\s+GID\b`)
	showGIDsRow  = lazy.New(`^\s*([\w.-]+)\s+(\d+)\s+(\d+)\s+((?:[0-9a-f]{4}:){7}[0-9a-f]{4})\s+(?:(\d+\.\d+\.\d+\.\d+)\s+)?(v1|v2)(?:\s+([\w.@-]+))?\s*$`)
	showGIDsRest = lazy.New(`^\s*(?:---[\s-]*|n_gids_found=\d+)\s*$`)
)

func showGIDsRead(s *parse.Sink, in *parse.Lines) {
	var ports []*facts.RDMAPort
	at := make(map[*facts.RDMAPort]parse.Line)
	byName := make(map[string]*facts.RDMAPort)
	flush := func() {
		for _, p := range ports {
			Merge(s, *p, at[p])
		}
		ports = nil
		clear(byName)
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
		number, err := strconv.Atoi(m[2])
		index, err2 := strconv.Atoi(m[3])
		if err != nil || err2 != nil || len(ports) >= parse.MaxEntries {
			return true
		}
		name := m[1] + " " + m[2]
		p := byName[name]
		if p == nil {
			p = &facts.RDMAPort{Device: m[1], Port: number, Netdev: m[7], LinkLayer: netdevLayer(m[7])}
			byName[name] = p
			ports = append(ports, p)
			at[p] = l
		}
		g := facts.GID{Index: index, GID: m[4], IPv4: m[5], Type: network.GIDType(m[6]), Netdev: m[7]}
		if strings.Contains(p.Netdev, ".") && !strings.Contains(m[7], ".") { // A VLAN's row came first.
			p.Netdev = m[7]
		}
		addGID(p, g)
		return true
	})
	flush()
}
