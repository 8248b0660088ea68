package nvidia

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvsmiListKind is the list of GPUs with the MIG devices on each, from nvidia-smi -L, or with what nvidia-smi nvlink -s says about the
// links of each; of nvlink -e and -c, that a link is there.
//
//	GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-...)
//	  MIG 1g.5gb      Device  0: (UUID: MIG-...)
//	GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-...)
//		 Link 0: 25 GB/s
//		 Link 1: <inactive>
var nvsmiListKind = &parse.Kind{
	Name: "nvidia-smi-list", Title: "the list of NVIDIA GPUs, also with the state of their NVLinks",
	Command: "nvidia-smi -L; nvidia-smi nvlink -s", Gives: []string{"gpus"},
	Anchors: []string{"(UUID: GPU-", "(UUID: MIG-"},
	Begins:  parse.BeginsLike(nvsmiListGPU),
	Read:    nvsmiListRead,
}

var (
	nvsmiListGPU = lazy.New(`^\s*GPU (\d{1,3}): (\S.*?) \(UUID: (GPU-[0-9A-Za-z-]+)[^)]{0,3}\)`)
	nvsmiListMIG = lazy.New(`^\s*MIG \S+\s+(?:Device\s+\d+: )?\(UUID: MIG-`)
	nvlinkLine   = lazy.New(`^\s*Link (\d{1,2})[:,] (.*)$`)
	nvlinkSpeed  = lazy.New(`^(\d+(?:\.\d+)?) GB/s`)
	nvlinkCount  = lazy.New(`^(?:Replay|Recovery|CRC) Errors: \d+`)
)

func nvsmiListRead(s *parse.Sink, in *parse.Lines) {
	var g *facts.GPU
	var last, listed int
	mig, links := false, false
	in.While(func(l parse.Line) bool {
		link := nvlinkLine.FindStringSubmatch(l.Text)
		switch m := nvsmiListGPU.FindStringSubmatch(l.Text); {
		case m != nil:
			last = parse.Number(m[1])
			g = s.GPUAt(last, l)
			g.Vendor, g.InNVML, g.Name, g.UUID = "nvidia", true, strings.TrimSpace(m[2]), m[3]
			if last == listed {
				listed++
			}
		case nvsmiListMIG.MatchString(l.Text):
			g.MIG, mig = new(true), true
		case link != nil:
			s.Watch("gpus.devices["+g.Address+"]", g, l)
			nvlinkEnter(g, parse.Number(link[1]), link[2])
			links = true
		default: // Lists of errors have empty lines.
			next := in.Ahead(2)[1:]
			return strings.TrimSpace(l.Text) == "" && len(next) > 0 && nvlinkLine.MatchString(next[0].Text)
		}
		return true
	})
	// -L lists every GPU that the process may see. A single line may be what is left of something longer.
	if !links && listed == last+1 && (listed > 1 || mig || strings.Contains(in.Prompt().Command, "nvidia-smi -L")) {
		nvsmiAnswered(s, in.First())
	}
}

// nvlinkEnter enters what a line says about a link.
func nvlinkEnter(g *facts.GPU, link int, text string) {
	speed, inactive := nvlinkSpeed.First(text), strings.HasPrefix(text, "<inactive>")
	if speed == "" && !inactive && !nvlinkCount.MatchString(text) {
		return // A capability, a counter of newer links: nothing of the state.
	}
	n := facts.Find(g.NVLinks, func(n *facts.NVLink) bool { return n.Link == link })
	if n == nil {
		g.NVLinks = append(g.NVLinks, facts.NVLink{Link: link, Active: true}) // Errors are counted of links that are up.
		n = &g.NVLinks[len(g.NVLinks)-1]
	}
	if n.Active = n.Active && !inactive || speed != ""; speed != "" {
		if gb, err := facts.ParseFloat(speed); err == nil && gb < 1e4 {
			n.SpeedMBps = int(gb*1000 + 0.5)
		}
	}
}
