package amd

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// rocmSMITopologyKind are the matrices of rocm-smi --showtopo and its parts
// (python_smi_tools/rocm_smi.py of ROCm/rocm_smi_lib).
var rocmSMITopologyKind = &parse.Kind{
	Name: "rocm-smi-topology", Title: "links between AMD GPUs, from rocm-smi --showtopo", Command: "rocm-smi --showtopo", Gives: []string{"gpus", "links"},
	Anchors: []string{"between two GPUs ="},
	Begins:  parse.BeginsLike(rocmSMIMatrix),
	Read: func(s *parse.Sink, in *parse.Lines) {
		readMatrix(s, in, rocmSMIMatrix, func(_ int, text string, l parse.Line) string {
			number, ok := strings.CutPrefix(text, "GPU")
			if !ok || parse.Number(number) >= gpuMax {
				return ""
			}
			return gpuAt(s, parse.Number(number), "", l).Address
		})
	},
}

var rocmSMIMatrix = lazy.New(`^\s*=+ (Weight|Hops|Link Type|Link accessibility) between two GPUs =+\s*$`)

// rocmSMILineKind are the lines of rocm-smi by GPU: "GPU[0]  : GFX Version: gfx90a".
var rocmSMILineKind = &parse.Kind{
	Name: "rocm-smi", Title: "AMD GPUs, from rocm-smi", Command: "rocm-smi -a", Gives: []string{"gpus"},
	Anchors: []string{
		": Device Name:", ": Device ID:", ": Card series:", ": Card Series:", ": Card model:", ": Card Model:", ": GFX Version:", ": PCI Bus:",
		": (Topology) Numa", ": XGMI Error", ": GPU use (%)", ": Unique ID:", ": GUID:",
	},
	Line: parse.LineLike(rocmSMIEntry, rocmSMILine),
}

var rocmSMIEntry = lazy.New(`^\s*GPU\[(\d{1,3})\]\s*: ([^:]{1,60}?):\s*(.*?)\s*$`)

func rocmSMILine(s *parse.Sink, l parse.Line, m []string) bool {
	if parse.Number(m[1]) >= gpuMax {
		return false
	}
	address := ""
	if m[2] == "PCI Bus" {
		address = m[3]
	}
	// Once the address is known, what was said under the number belongs to it: join does that.
	rocmSMISet(gpuAt(s, parse.Number(m[1]), address, l), m[2], m[3])
	return true
}

// rocmSMIFields says which entry fills what, for text and JSON alike.
var rocmSMIFields = map[string]func(g *facts.GPU, value string){
	"card series": gpuSetName, "device name": gpuSetName, // Before ROCm 6 the series is the id where the name is not known.
	"gfx version":      gpuSetArchitecture,
	"xgmi error count": gpuSetXGMIErrors, "xgmi error status": gpuSetXGMIErrors,
}

// rocmSMISet notes one entry of a GPU.
func rocmSMISet(g *facts.GPU, key, value string) {
	if set := rocmSMIFields[strings.ToLower(key)]; set != nil {
		set(g, value)
	}
}
