package nvidia

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvsmiListKind is the list of GPUs with the MIG devices on each:
//
//	GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-...)
//	  MIG 1g.5gb      Device  0: (UUID: MIG-...)
var nvsmiListKind = &parse.Kind{
	Name: "nvidia-smi-list", Title: "the list of NVIDIA GPUs, from nvidia-smi -L",
	Command: "nvidia-smi -L", Gives: []string{"gpus"},
	Anchors: []string{"(UUID: GPU-", "(UUID: MIG-"},
	Begins:  parse.BeginsLike(nvsmiListGPU),
	Read:    nvsmiListRead,
}

var (
	nvsmiListGPU = lazy.New(`^\s*GPU (\d{1,3}): (\S.*?) \(UUID: (GPU-[0-9A-Za-z-]+)[^)]{0,3}\)`)
	nvsmiListMIG = lazy.New(`^\s*MIG \S+\s+(?:Device\s+\d+: )?\(UUID: MIG-`)
)

func nvsmiListRead(s *parse.Sink, in *parse.Lines) {
	var last, listed int
	mig := false
	in.While(func(l parse.Line) bool {
		if m := nvsmiListGPU.FindStringSubmatch(l.Text); m != nil {
			last = parse.Number(m[1])
			g := s.GPUAt(last, l)
			g.Vendor, g.InNVML, g.Name, g.UUID = "nvidia", true, strings.TrimSpace(m[2]), m[3]
			if last == listed {
				listed++
			}
			return true
		}
		if nvsmiListMIG.MatchString(l.Text) {
			s.GPUAt(last, l).MIG, mig = new(true), true
			return true
		}
		return false
	})
	// -L lists every GPU that the process may see. A single line may be what is left of something longer.
	if listed == last+1 && (listed > 1 || mig || strings.Contains(in.Prompt().Command, "nvidia-smi -L")) {
		nvsmiAnswered(s, in.First())
	}
}
