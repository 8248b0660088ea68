package network

import (
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// ibdev2netdevKind is the map from RDMA ports to network interfaces by the script of MLNX_OFED, short or with -v.
var ibdev2netdevKind = &parse.Kind{
	Name: "ibdev2netdev", Title: "RDMA ports and their interfaces, from ibdev2netdev",
	Command: "ibdev2netdev -v", Gives: []string{"nics"},
	Anchors: []string{" ==> "},
	Line:    parse.LineLike(ibdev2netdevLine, ibdev2netdevRead),
}

var (
	ibdev2netdevLine  = lazy.New(`^\s*(?:([0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]) )?([A-Za-z][\w.-]*) ((?:port|\().*)==> (\S+) \((Up|Down)\)`)
	ibdev2netdevPort  = lazy.New(`\bport (\d+)(?: \(([A-Z]+) *\))?`)
	ibdev2netdevModel = lazy.New(`^\((MT\d+) `)
	ibdev2netdevFW    = lazy.New(`\bfw (\d[\d.]+)`)
)

func ibdev2netdevRead(s *parse.Sink, l parse.Line, m []string) bool {
	port := ibdev2netdevPort.FindStringSubmatch(m[3])
	if port == nil {
		return false
	}
	p := facts.RDMAPort{
		Device: m[2], Netdev: m[4], NetdevUp: new(m[5] == "Up"), LinkLayer: netdevLayer(m[4]), State: network.PortState(port[2]), Address: facts.Address(m[1]),
		Model: ibdev2netdevModel.First(m[3]), Firmware: ibdev2netdevFW.First(m[3]),
	}
	p.Port, _ = network.LeadingNumber(port[1])
	Merge(s, p, l)
	return true
}
