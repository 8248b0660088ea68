package amd

import (
	"cmp"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
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
		readMatrix(s, in, rocmSMIMatrix, rocmSMINames, func(_ int, text string, l parse.Line) string {
			number, ok := strings.CutPrefix(text, "GPU")
			if !ok || parse.Number(number) >= gpuMax {
				return ""
			}
			return gpuAt(s, parse.Number(number), "", l).Address
		})
	},
}

var (
	rocmSMIMatrix = lazy.New(`^\s*=+ (Weight|Hops|Link Type|Link accessibility) between two GPUs =+\s*$`)
	rocmSMINames  = lazy.New(`^\s*(?:GPU\d{1,3}\s*)+$`)
)

// rocmSMILineKind are the lines of rocm-smi by GPU: "GPU[0]  : GFX Version:
// gfx90a".
var rocmSMILineKind = &parse.Kind{
	Name: "rocm-smi", Title: "AMD GPUs, from rocm-smi", Command: "rocm-smi -a", Gives: []string{"gpus"},
	Anchors: []string{
		": Device Name:", ": Device ID:", ": Card series:", ": Card Series:", ": Card model:", ": Card Model:", ": GFX Version:", ": PCI Bus:",
		": (Topology) Numa", ": XGMI Error", ": GPU use (%)", ": Unique ID:", ": GUID:", "Driver version:",
	},
	Line: rocmSMILine,
}

var (
	rocmSMIEntry  = lazy.New(`^\s*GPU\[(\d{1,3})\]\s*: ([^:]{1,60}?):\s*(.*?)\s*$`)
	rocmSMIDriver = lazy.New(`^Driver version:\s*(\S+)\s*$`)
)

func rocmSMILine(s *parse.Sink, l parse.Line) bool {
	if version := rocmSMIDriver.First(l.Text); version != "" {
		smiDriver(s, version, l)
		return true
	}
	m := rocmSMIEntry.FindStringSubmatch(l.Text)
	if m == nil || parse.Number(m[1]) >= gpuMax {
		return false
	}
	address := ""
	if m[2] == "PCI Bus" {
		address = m[3]
	}
	// Once the address is known, what was said under the number belongs to it:
	// join does that.
	rocmSMISet(gpuAt(s, parse.Number(m[1]), address, l), m[2], m[3])
	return true
}

// rocmSMISet notes one entry of a GPU.
func rocmSMISet(g *facts.GPU, key, value string) {
	switch strings.ToLower(key) {
	case "card series", "device name":
		// Before ROCm 6 the series is the id where the name is not known.
		gpuSetName(g, value)
	case "device id", "card model":
		if gpuInstinct(value) != "" {
			gpuSetName(g, value)
		}
	case "gfx version":
		gpuSetArchitecture(g, value)
	case "unique id":
		if g.UUID == "" && value != "N/A" {
			g.UUID = escape.Printable(value, 64)
		}
	case "xgmi error count", "xgmi error status":
		g.XGMIErrors = cmp.Or(gpuInt(value), g.XGMIErrors)
	}
}

// rocmSMITableKind is what rocm-smi prints without arguments.
var rocmSMITableKind = &parse.Kind{
	Name: "rocm-smi-table", Title: "AMD GPUs, the table of rocm-smi", Command: "rocm-smi", Gives: []string{"gpus"},
	Anchors: []string{"= Concise Info =", "= Concise Hardware Info ="},
	Begins:  parse.BeginsWith(func(text string) bool { return strings.Contains(text, "= Concise") }),
	Read:    rocmSMITableRead,
}

// rocmSMIRow is a row: the number of the GPU, in ROCm 6 and newer that of the
// node and the ids of device and GPU, and its temperature.
var rocmSMIRow = lazy.New(`^\s*(\d{1,3})\s+(?:(?:\d+\s+)?\[?(0x[0-9a-fA-F]{4})\b.*|\S*\d\S*\s.*)$`)

func rocmSMITableRead(s *parse.Sink, in *parse.Lines) {
	in.Next()
	ended := false
	in.While(func(l parse.Line) bool {
		text := strings.TrimSpace(l.Text)
		switch m := rocmSMIRow.FindStringSubmatch(l.Text); {
		case ended:
			return false
		case m != nil && parse.Number(m[1]) < gpuMax:
			gpuSetName(gpuAt(s, parse.Number(m[1]), "", l), m[2])
		case text == "", strings.HasPrefix(text, "="), strings.HasPrefix(text, "GPU"), strings.HasPrefix(text, "Device"), strings.HasPrefix(text, "("):
		default:
			return false
		}
		ended = strings.Contains(text, "End of ROCm SMI")
		return true
	})
}
