package nvidia

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvlinkStateKind is what nvidia-smi nvlink -s says about the links of each GPU; of -e and -c, that a link is there.
//
//	GPU 0: NVIDIA H200 (UUID: GPU-...)
//		 Link 0: 26.562 GB/s
//		 Link 1: <inactive>
var nvlinkStateKind = &parse.Kind{
	Name: "nvidia-smi-nvlink", Title: "the state of NVLinks, from nvidia-smi nvlink",
	Command: "nvidia-smi nvlink -s", Gives: []string{"gpus"},
	Anchors: []string{"(UUID: GPU-", "Link 0: ", "Link 0, "},
	Begins: func(in *parse.Lines) bool {
		lines := in.Ahead(4)
		if !nvlinkGPU.MatchString(lines[0].Text) {
			return false
		}
		for _, l := range lines[1:] {
			if nvlinkLine.MatchString(l.Text) || nvlinkNone.MatchString(l.Text) {
				return true
			}
			if strings.TrimSpace(l.Text) != "" {
				return false
			}
		}
		return false
	},
	Read: nvlinkStateRead,
}

var (
	nvlinkGPU   = nvsmiListGPU
	nvlinkLine  = lazy.New(`^\s*Link (\d{1,2})[:,] (.*)$`)
	nvlinkSpeed = lazy.New(`^(\d+(?:\.\d+)?) GB/s`)
	nvlinkCount = lazy.New(`^(?:Replay|Recovery|CRC) Errors: \d+`)
	// nvlinkNone is what it prints for a GPU none of whose links is up, which includes a card without a bridge.
	nvlinkNone = lazy.New(`(?i)Unable to retrieve NVLink information as all links are inActive`)
)

func nvlinkStateRead(s *parse.Sink, in *parse.Lines) {
	var g *facts.GPU
	in.While(func(l parse.Line) bool {
		if m := nvlinkGPU.FindStringSubmatch(l.Text); m != nil {
			g = s.GPUAt(parse.Number(m[1]), l)
			g.Vendor, g.InNVML, g.Name, g.UUID = "nvidia", true, strings.TrimSpace(m[2]), m[3]
			return true
		}
		if strings.TrimSpace(l.Text) == "" {
			return true
		}
		m := nvlinkLine.FindStringSubmatch(l.Text)
		if m == nil || g == nil {
			return nvlinkNone.MatchString(l.Text) || m != nil
		}
		s.Watch("gpus.devices["+g.Address+"]", g, l)
		nvlinkEnter(g, parse.Number(m[1]), m[2])
		return true
	})
}

// nvlinkEnter enters what a line says about a link.
func nvlinkEnter(g *facts.GPU, link int, text string) {
	if link >= 64 { // NVML_NVLINK_MAX_LINKS is 18, or 36 since driver 590.
		return
	}
	speed, inactive := nvlinkSpeed.First(text), strings.HasPrefix(text, "<inactive>")
	if speed == "" && !inactive && !nvlinkCount.MatchString(text) {
		return // A capability, a counter of newer links: nothing of the state.
	}
	i := slices.IndexFunc(g.NVLinks, func(n facts.NVLink) bool { return n.Link == link })
	if i < 0 {
		g.NVLinks = append(g.NVLinks, facts.NVLink{Link: link, Active: true}) // Errors are counted of links that are up.
		i = len(g.NVLinks) - 1
	}
	n := &g.NVLinks[i]
	if n.Active = n.Active && !inactive || speed != ""; speed != "" {
		if gb, err := facts.ParseFloat(speed); err == nil && gb < 1e4 {
			n.SpeedMBps = int(gb*1000 + 0.5)
		}
	}
}
