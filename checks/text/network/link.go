package network

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// linkKind is the listing of ports by iproute2 (rdma link), and its counters (rdma statistic).
var linkKind = &parse.Kind{
	Name: "rdma-link", Title: "RDMA ports, from rdma link",
	Command: "rdma link", Gives: []string{"nics"},
	Anchors: []string{"physical_state", "out_of_sequence", "local_ack_timeout_err"},
	Line:    parse.LineLike(linkHead, linkRead),
}

// linkHead is "link mlx5_0/1 ", or "1/1: mlx5_0/1: " before iproute2 5.0, with what follows it.
var linkHead = lazy.New(`^\s*(?:link |\d+/\d+: )([\w.-]+)/(\d+):? (.*)$`)

func linkRead(s *parse.Sink, l parse.Line, m []string) bool {
	p := facts.RDMAPort{Device: m[1]}
	p.Port, _ = network.LeadingNumber(m[2])
	words := strings.Fields(m[3])
	known := false
	for i := 0; i+1 < len(words); i += 2 {
		switch key, value := words[i], words[i+1]; key {
		case "netdev":
			p.Netdev = value
			p.LinkLayer = netdevLayer(value)
		case "subnet_prefix":
			p.LinkLayer = "InfiniBand"
		case "netdev_index":
		default:
			known = setField(&p, key, value) && strings.HasSuffix(key, "state") || network.PortCounter(&p, key, value) || known
		}
	}
	if !known {
		return false
	}
	if p.LinkLayer == "" && p.Netdev != "" && !slices.Contains(words, "lid") {
		p.LinkLayer = "Ethernet"
	}
	Merge(s, p, l)
	return true
}
