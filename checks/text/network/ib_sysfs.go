package network

import (
	"path"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// ibSysfsKind is what grep prints of files below /sys/class/infiniband: a path and a value in one line.
var ibSysfsKind = &parse.Kind{
	Name: "ib-sysfs", Title: "RDMA ports, from /sys/class/infiniband",
	Command: "grep . /sys/class/infiniband/*/ports/*/*", Gives: []string{"nics"},
	Anchors: []string{"class/infiniband/"},
	Line:    parse.LineLike(ibSysfsLine, func(s *parse.Sink, l parse.Line, m []string) bool { return ibSysfsNote(s, m[1], m[2], m[3], m[4], l) }),
}

// ibSysfsCatKind is the value of one such file that cat showed.
var ibSysfsCatKind = &parse.Kind{
	Name: "ib-sysfs-cat", Title: "a file under /sys/class/infiniband",
	Gives:    []string{"nics"},
	Commands: []string{"cat", "more", "head"},
	Begins:   func(in *parse.Lines) bool { return ibSysfsPath.MatchString(in.Prompt().Command) },
	Read: func(s *parse.Sink, in *parse.Lines) {
		m := ibSysfsPath.FindStringSubmatch(in.Prompt().Command)
		l, _ := in.Next()
		ibSysfsNote(s, m[1], m[2], m[3], l.Text, l)
	},
}

// ibSysfsCongestion are the counters of RoCE's congestion control (mlx5:
// drivers/infiniband/hw/mlx5/counters.c of Linux, cong_cnts).
var ibSysfsCongestion = map[string]bool{"np_cnp_sent": true, "np_ecn_marked_roce_packets": true, "rp_cnp_handled": true}

var (
	ibSysfsLine = lazy.New(`^/sys/class/infiniband/([\w.-]+)/ports/(\d+)/([\w/]+):\s*(.*?)\s*$`)
	ibSysfsPath = lazy.New(` /sys/class/infiniband/([\w.-]+)/ports/(\d+)/([\w/]+)\s*$`)
)

// ibSysfsNote takes one file of a port. What the files hold is in the kernel's
// Documentation/ABI/stable/sysfs-class-infiniband.
func ibSysfsNote(s *parse.Sink, device, number, file, value string, l parse.Line) bool {
	p := facts.RDMAPort{Device: device}
	p.Port, _ = network.LeadingNumber(number)
	folder, name := path.Split(file)
	switch {
	case setField(&p, file, value):
	case folder == "counters/" || folder == "hw_counters/":
		// Congestion notifications belong to RoCE: a port that has counted some
		// is not InfiniBand. Both kinds of ports have the counters.
		n, err := strconv.ParseInt(value, 10, 64)
		if congestion := ibSysfsCongestion[name]; congestion && err == nil && n > 0 {
			p.LinkLayer = "Ethernet"
		} else if !network.PortCounter(&p, name, value) {
			return false
		}
	case folder == "gids/" || folder == "gid_attrs/types/" || folder == "gid_attrs/ndevs/":
		index, err := strconv.Atoi(name)
		if err != nil || index >= maxGIDs {
			return false
		}
		g := facts.GID{Index: index}
		switch isGID := strings.Contains(value, ":"); {
		case folder == "gids/" && isGID:
			g.GID = value
		case folder == "gid_attrs/types/" && network.GIDType(value) != "":
			g.Type = network.GIDType(value)
		case folder == "gid_attrs/ndevs/" && !isGID && !strings.Contains(value, " "):
			g.Netdev = value
		default:
			return false
		}
		addGID(&p, g)
	default:
		return false
	}
	Merge(s, p, l)
	return true
}
