package amd

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// What the texts of AMD's tools have in common. None of it was tried on AMD
// hardware: the forms are from the tools' sources and from public reports.

const (
	// gpuMax bounds the GPUs of one table. A node of MI300X in CPX mode has
	// 64 partitions, each of which counts as a GPU.
	gpuMax = 128
	// gpuVendor is facts.GPU's word.
	gpuVendor = "amd"
)

// gpuArchitecture is an architecture, alone or with features ("gfx942:sramecc+:xnack-").
var gpuArchitecture = lazy.New(`\bgfx(?:[0-9a-f]{3,4})\b`)

// gpuAt returns the GPU with this index, and where the text tells it, this address.
func gpuAt(s *parse.Sink, index int, address string, l parse.Line) *facts.GPU {
	var g *facts.GPU
	if address = facts.Address(address); address != "" {
		g = s.GPU(address, l)
		gpuSetIndex(s, g, index)
	} else {
		// Another part of the text may have told the address.
		if g = s.KnownGPU(s.AddressOf(index, gpuVendor)); g == nil {
			g = s.GPUAt(index, l)
		}
		s.Watch("gpus.devices["+g.Address+"]", g, l)
	}
	g.Vendor = gpuVendor
	return g
}

// gpuSetIndex gives a GPU its index, unless it has one or another GPU has
// the same: the tools of AMD do not always count alike.
func gpuSetIndex(s *parse.Sink, g *facts.GPU, index int) {
	if g.Index == nil && !s.Indexed(index) {
		g.Index = &index
	}
}

// gpuSetName notes a model. Tools print ids or "N/A" where they know none.
func gpuSetName(g *facts.GPU, name string) {
	name = strings.TrimSpace(name)
	if name == "" || name == "N/A" || strings.HasPrefix(name, "0x") || g.Name != "" {
		return
	}
	g.Name = escape.Printable(name, 100)
}

func gpuSetXGMIErrors(g *facts.GPU, value string) { g.XGMIErrors = cmp.Or(gpuInt(value), g.XGMIErrors) }

// gpuSetArchitecture notes an architecture.
func gpuSetArchitecture(g *facts.GPU, text string) {
	name := gpuArchitecture.FindString(text)
	if name == "" || name == "gfx000" || g.Architecture != "" {
		return
	}
	g.Architecture = name
	if slices.Contains(data.GPUModels().AMDIntegrated, name) && g.Integrated == nil {
		g.Integrated = new(true)
	}
}

// gpuPair returns the pair of two GPUs, new if need be; nil when there are too many pairs or the two are one.
func gpuPair(s *parse.Sink, a, b string, l parse.Line) *facts.Pair {
	return s.Pair(min(a, b), max(a, b), "gpu-gpu", l)
}

// gpuSetLink notes how two GPUs are joined, in the tools' words: "XGMI",
// "PCIE" (rsmi and amd-smi), "X" and "P" (rocm-bandwidth-test).
func gpuSetLink(p *facts.Pair, word string) {
	switch strings.ToUpper(word) {
	case "XGMI", "X":
		p.LinkType = "xgmi"
	case "PCIE", "P":
		p.LinkType = "pcie"
	}
}

// gpuWorst reads whether a pair or a link can do something. One direction that cannot is enough.
func gpuWorst(known *bool, word string) *bool {
	var can bool
	switch strings.ToUpper(word) {
	case "T", "TRUE", "ENABLED", "1":
		can = known == nil || *known
	case "F", "FALSE", "DISABLED", "0":
	default:
		return known
	}
	return &can
}

// gpuNumber reads a number that stands before a unit ("16", "32 GT/s", "64289 MB").
func gpuNumber(text string) (float64, bool) {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	v, err := facts.ParseFloat(word)
	if err != nil || v < 0 || v > 1e15 || v != v {
		return 0, false
	}
	return v, true
}

// gpuInt is gpuNumber for what counts.
func gpuInt(text string) *int {
	v, ok := gpuNumber(text)
	if !ok || v > 1e9 {
		return nil
	}
	return new(int(v))
}

// gpuGeneration is the PCIe generation of a speed in GT/s.
func gpuGeneration(gts float64) int {
	return slices.IndexFunc([]float64{2.5, 5, 8, 16, 32, 64, math.Inf(1)}, func(next float64) bool { return gts < next })
}
