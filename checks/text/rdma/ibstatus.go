package rdma

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/rdma"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// ibstatusKind is the listing of ports by the script of infiniband-diags
// (rdma-core@691953d8d infiniband-diags/scripts/ibstatus).
var ibstatusKind = &parse.Kind{
	Name:    "ibstatus",
	Title:   "RDMA ports, from ibstatus",
	Command: "ibstatus",
	Gives:   []string{"nics"},
	Anchors: []string{"Infiniband device '"},
	Begins:  parse.BeginsLike(ibstatusHead),
	Read:    ibstatusRead,
}

var (
	ibstatusHead = lazy.New(`^\s*Infiniband device '([^']+)' port (\d+) status:`)
	ibstatusLine = lazy.New(`^\s*(default gid|base lid|sm lid|state|phys state|rate|link_layer):\s*(.*?)\s*$`)
)

func ibstatusRead(s *parse.Sink, in *parse.Lines) {
	ports := ports{sink: s}
	in.While(func(l parse.Line) bool {
		if strings.TrimSpace(l.Text) == "" {
			return ahead(in, func(text string) bool {
				return ibstatusHead.MatchString(text) || ibstatusLine.MatchString(text)
			})
		}
		if m := ibstatusHead.FindStringSubmatch(l.Text); m != nil {
			ports.flush()
			n, _ := rdma.LeadingNumber(m[2])
			ports.device = facts.RDMAPort{Device: m[1], Port: n}
			ports.begin(l)
			return true
		}
		m := ibstatusLine.FindStringSubmatch(l.Text)
		if m == nil {
			return false
		}
		switch value := m[2]; m[1] {
		case "default gid":
			if strings.Contains(value, ":") {
				addGID(ports.begin(l), facts.GID{Index: 0, GID: value})
			}
		case "base lid":
			ports.begin(l).LID = rdma.LID(value)
		case "sm lid":
			ports.begin(l).SMLID = rdma.LID(value)
		case "state":
			ports.begin(l).State = rdma.State(value)
		case "phys state":
			ports.begin(l).PhysicalState = rdma.PhysicalState(value)
		case "rate":
			ports.begin(l).RateGbps = rdma.Rate(value)
		case "link_layer":
			ports.begin(l).LinkLayer = rdma.LinkLayer(value)
		}
		return true
	})
	ports.flush()
}
