package evidence

import (
	"regexp"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks"
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
	ibstatusHead = regexp.MustCompile(`^\s*Infiniband device '([^']+)' port (\d+) status:`)
	ibstatusLine = regexp.MustCompile(`^\s*(default gid|base lid|sm lid|state|phys state|rate|link_layer):\s*(.*?)\s*$`)
)

func ibstatusRead(s *Sink, in *Lines) {
	var port *checks.RDMAPort
	var at Line
	flush := func() {
		if port != nil {
			rdmaMerge(s, *port, at)
			port = nil
		}
	}
	in.While(func(l Line) bool {
		if strings.TrimSpace(l.Text) == "" {
			return rdmaAhead(in, func(text string) bool {
				return ibstatusHead.MatchString(text) || ibstatusLine.MatchString(text)
			})
		}
		if m := ibstatusHead.FindStringSubmatch(l.Text); m != nil {
			flush()
			n, _ := rdmaNumber(m[2])
			port, at = &checks.RDMAPort{Device: m[1], Port: n}, l
			return true
		}
		m := ibstatusLine.FindStringSubmatch(l.Text)
		if m == nil {
			return false
		}
		switch value := m[2]; m[1] {
		case "default gid":
			if strings.Contains(value, ":") {
				rdmaAddGID(port, checks.GID{Index: 0, GID: value})
			}
		case "base lid":
			port.LID = rdmaLID(value)
		case "sm lid":
			port.SMLID = rdmaLID(value)
		case "state":
			port.State = rdmaState(value)
		case "phys state":
			port.PhysicalState = rdmaPhysicalState(value)
		case "rate":
			port.RateGbps = rdmaRate(value)
		case "link_layer":
			port.LinkLayer = rdmaLinkLayer(value)
		}
		return true
	})
	flush()
}
