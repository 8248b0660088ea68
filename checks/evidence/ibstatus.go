package evidence

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// ibstatusKind is the listing of ports by the script of infiniband-diags
// (rdma-core@691953d8d infiniband-diags/scripts/ibstatus).
var ibstatusKind = &Kind{
	Name:    "ibstatus",
	Title:   "RDMA ports, from ibstatus",
	Command: "ibstatus",
	Gives:   []string{"nics"},
	Anchors: []string{"Infiniband device '"},
	Begins:  beginsLike(ibstatusHead),
	Read:    ibstatusRead,
}

var (
	ibstatusHead = lazy.New(`^\s*Infiniband device '([^']+)' port (\d+) status:`)
	ibstatusLine = lazy.New(`^\s*(default gid|base lid|sm lid|state|phys state|rate|link_layer):\s*(.*?)\s*$`)
)

func ibstatusRead(s *Sink, in *Lines) {
	ports := rdmaPorts{sink: s}
	in.While(func(l Line) bool {
		if strings.TrimSpace(l.Text) == "" {
			return rdmaAhead(in, func(text string) bool {
				return ibstatusHead.MatchString(text) || ibstatusLine.MatchString(text)
			})
		}
		if m := ibstatusHead.FindStringSubmatch(l.Text); m != nil {
			ports.flush()
			n, _ := rdmaNumber(m[2])
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
				rdmaAddGID(ports.begin(l), facts.GID{Index: 0, GID: value})
			}
		case "base lid":
			ports.begin(l).LID = rdmaLID(value)
		case "sm lid":
			ports.begin(l).SMLID = rdmaLID(value)
		case "state":
			ports.begin(l).State = rdmaState(value)
		case "phys state":
			ports.begin(l).PhysicalState = rdmaPhysicalState(value)
		case "rate":
			ports.begin(l).RateGbps = rdmaRate(value)
		case "link_layer":
			ports.begin(l).LinkLayer = rdmaLinkLayer(value)
		}
		return true
	})
	ports.flush()
}
