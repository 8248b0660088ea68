package rdma

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/rdma"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// ibstatKind is the listing of RDMA devices by infiniband-diags
// (rdma-core@691953d8d infiniband-diags/ibstat.c).
var ibstatKind = &parse.Kind{
	Name:     "ibstat",
	Title:    "RDMA ports, from ibstat",
	Command:  "ibstat",
	Gives:    []string{"nics"},
	Anchors:  []string{"CA '", "Physical state: "},
	Commands: []string{"ibstat"},
	Begins: func(in *parse.Lines) bool {
		l, ok := in.Peek()
		return ok && ibstatBelongs(l.Text)
	},
	Read: ibstatRead,
}

var (
	ibstatHead = lazy.New(`^\s*(?:CA|Switch|Router) '([^']+)'\s*$`)
	ibstatPort = lazy.New(`^\s*Port (\d+):\s*$`)
	ibstatLine = lazy.New(`^\s*(CA type|Number of ports|Firmware version|Hardware version|Node GUID|System image GUID|State|Physical state|Rate|Effective speed|Base lid|LMC|SM lid|Capability mask|Port GUID|Link layer):\s*(.*?)\s*$`)
)

func ibstatBelongs(line string) bool {
	return ibstatLine.MatchString(line) || ibstatHead.MatchString(line) || ibstatPort.MatchString(line)
}

func ibstatRead(s *parse.Sink, in *parse.Lines) {
	ports := ports{sink: s}
	if words := strings.Fields(in.Prompt().Command); len(words) > 1 && words[0] == "ibstat" && !strings.HasPrefix(words[1], "-") && words[1] != "|" {
		ports.device.Device = words[1]
	}
	in.While(func(l parse.Line) bool {
		if strings.TrimSpace(l.Text) == "" {
			return ahead(in, ibstatBelongs)
		}
		if m := ibstatHead.FindStringSubmatch(l.Text); m != nil {
			ports.flush()
			ports.device = facts.RDMAPort{Device: m[1]}
			return true
		}
		if m := ibstatPort.FindStringSubmatch(l.Text); m != nil {
			ports.flush()
			ports.begin(l).Port, _ = rdma.LeadingNumber(m[1])
			return true
		}
		m := ibstatLine.FindStringSubmatch(l.Text)
		if m == nil {
			return false
		}
		switch value := m[2]; m[1] {
		case "CA type":
			ports.device.Model = value
		case "Firmware version":
			ports.device.Firmware = value
		case "State":
			if ports.stated() { // A filter hid the heads.
				ports.flush()
			}
			ports.begin(l).State = rdma.State(value)
		case "Physical state":
			if ports.port != nil && ports.port.PhysicalState != "" {
				ports.flush()
			}
			ports.begin(l).PhysicalState = rdma.PhysicalState(value)
		case "Rate":
			ports.begin(l).RateGbps = rdma.Rate(value)
		case "Base lid":
			ports.begin(l).LID = rdma.LID(value)
		case "SM lid":
			ports.begin(l).SMLID = rdma.LID(value)
		case "Link layer":
			ports.begin(l).LinkLayer = rdma.LinkLayer(value)
		}
		return true
	})
	ports.flush()
}

// ibstatGUIDsKind is a list of port GUIDs (ibstat -p) under the name of each
// virtual machine, as superbenchmark gathers it for its map of a fabric. It
// tells no state, and nothing is taken from it.
var ibstatGUIDsKind = &parse.Kind{
	Name:    "ibstat-guids",
	Title:   "GUIDs of RDMA ports by host, from ibstat -p",
	Command: "ibstat -p",
	Gives:   []string{"nics"},
	Anchors: []string{"VM_hostname "},
	Begins:  parse.BeginsLike(ibstatGUIDsHead),
	Read: func(_ *parse.Sink, in *parse.Lines) {
		in.While(func(l parse.Line) bool {
			return ibstatGUIDsHead.MatchString(l.Text) || ibstatGUID.MatchString(l.Text)
		})
	},
}

var (
	ibstatGUIDsHead = lazy.New(`^VM_hostname \S+\s*$`)
	ibstatGUID      = lazy.New(`^\s*(?:0x)?[0-9a-f]{16}\s*$`)
)
