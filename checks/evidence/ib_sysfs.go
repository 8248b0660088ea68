package evidence

import (
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// ibSysfsKind is what grep prints of files below /sys/class/infiniband: a path
// and a value in one line.
var ibSysfsKind = &Kind{
	Name:    "ib-sysfs",
	Title:   "RDMA ports, from /sys/class/infiniband",
	Command: "grep . /sys/class/infiniband/*/ports/*/*",
	Gives:   []string{"nics"},
	Anchors: []string{"class/infiniband/"},
	Line: func(s *Sink, l Line) bool {
		m := ibSysfsLine.FindStringSubmatch(l.Text)
		return m != nil && ibSysfsNote(s, m[1], m[2], m[3], m[4], l)
	},
}

// ibSysfsCatKind is the value of one such file that cat showed.
var ibSysfsCatKind = &Kind{
	Name:     "ib-sysfs-cat",
	Title:    "a file below /sys/class/infiniband",
	Gives:    []string{"nics"},
	Commands: []string{"cat", "more", "head"},
	Begins: func(in *Lines) bool {
		return ibSysfsPath.MatchString(in.Prompt().Command)
	},
	Read: func(s *Sink, in *Lines) {
		m := ibSysfsPath.FindStringSubmatch(in.Prompt().Command)
		if l, ok := in.Next(); ok && m != nil {
			ibSysfsNote(s, m[1], m[2], m[3], l.Text, l)
		}
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
func ibSysfsNote(s *Sink, device, number, file, value string, l Line) bool {
	p := facts.RDMAPort{Device: device}
	p.Port, _ = rdmaNumber(number)
	folder, name := "", file
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		folder, name = file[:i], file[i+1:]
	}
	switch {
	case file == "state":
		p.State = rdmaState(value)
	case file == "phys_state":
		p.PhysicalState = rdmaPhysicalState(value)
	case file == "rate":
		p.RateGbps = rdmaRate(value)
	case file == "link_layer":
		p.LinkLayer = rdmaLinkLayer(value)
	case file == "lid":
		p.LID = rdmaLID(value)
	case file == "sm_lid":
		p.SMLID = rdmaLID(value)
	case folder == "counters" || folder == "hw_counters":
		// Notifications of congestion are of RoCE: a port that has counted some
		// is none of InfiniBand. The counters are there on both.
		n, err := strconv.ParseInt(value, 10, 64)
		if congestion := ibSysfsCongestion[name]; congestion && err == nil && n > 0 {
			p.LinkLayer = "Ethernet"
		} else if !rdmaCounter(&p, name, value) {
			return false
		}
	case folder == "gids" || folder == "gid_attrs/types" || folder == "gid_attrs/ndevs":
		index, err := strconv.Atoi(name)
		if err != nil || index >= rdmaMaxGIDs {
			return false
		}
		g := facts.GID{Index: index}
		switch folder {
		case "gids":
			if !strings.Contains(value, ":") {
				return false
			}
			g.GID = value
		case "gid_attrs/types":
			if g.Type = rdmaGIDType(value); g.Type == "" {
				return false
			}
		default:
			if strings.ContainsAny(value, " :") {
				return false
			}
			g.Netdev = value
		}
		rdmaAddGID(&p, g)
	default:
		return false
	}
	rdmaMerge(s, p, l)
	return true
}

// cmaRoCEModeKind is what cma_roce_mode of MLNX_OFED prints: the type of GID
// that rdma_cm takes on a port.
var cmaRoCEModeKind = &Kind{
	Name:     "cma_roce_mode",
	Title:    "the RoCE version of rdma_cm, from cma_roce_mode",
	Command:  "cma_roce_mode -d mlx5_0 -p 1",
	Gives:    []string{"nics"},
	Commands: []string{"cma_roce_mode"},
	Begins: func(in *Lines) bool {
		l, ok := in.Peek()
		return ok && rdmaFlag(in.Prompt().Command, "-d") != "" && cmaRoCEModeLine.MatchString(l.Text)
	},
	Read: func(s *Sink, in *Lines) {
		command := in.Prompt().Command
		if l, ok := in.Next(); ok {
			p := facts.RDMAPort{Device: rdmaFlag(command, "-d"), DefaultRoCE: rdmaGIDType(l.Text), LinkLayer: "Ethernet"}
			p.Port, _ = rdmaNumber(rdmaFlag(command, "-p"))
			rdmaMerge(s, p, l)
		}
	},
}

var cmaRoCEModeLine = lazy.New(`^\s*(?:IB/)?RoCE v[12]\s*$`)
