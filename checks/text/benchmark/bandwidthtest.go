package benchmark

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// bandwidthTestKind reads bandwidthTest of NVIDIA/cuda-samples (Samples/1_Utilities, up to
// CUDA 12; printResultsReadable). Its rates are of 10^9 bytes, those of older releases of
// 2^20.
var bandwidthTestKind = &parse.Kind{
	Name:    "bandwidthTest",
	Title:   "bandwidth between host memory and a GPU, from CUDA's bandwidthTest",
	Command: "./bandwidthTest",
	Gives:   []string{"benchmarks"},
	Anchors: []string{"Device Bandwidth, ", "Host Bandwidth, ", "] - Starting..."},
	Begins: parse.BeginsWith(func(text string) bool {
		return strings.Contains(text, "[CUDA Bandwidth Test] - Starting...") || bandwidthTestTitle.MatchString(text)
	}),
	Read: readBandwidthTest,
}

var (
	bandwidthTestTitle  = lazy.New(`^\s*(Host to Device|Device to Host|Device to Device) Bandwidth, (\d+) Device\(s\)\s*$`)
	bandwidthTestDevice = lazy.New(`^\s*Device (\d+): (\S.*?)\s*$`)
)

// bandwidthTests are its tables in the terms of gpudoctor.
var bandwidthTests = map[string]facts.Benchmark{
	"Host to Device":   {What: "host-to-gpu", Points: []facts.BenchmarkPoint{{A: "CPU", B: "GPU"}}},
	"Device to Host":   {What: "gpu-to-host", Points: []facts.BenchmarkPoint{{A: "GPU", B: "CPU"}}},
	"Device to Device": {What: "local", Points: []facts.BenchmarkPoint{{A: "GPU", B: "GPU"}}},
}

// maxBandwidthTest bounds the lines of a run; a table of all sizes has some eighty.
const maxBandwidthTest = 400

func readBandwidthTest(s *parse.Sink, in *parse.Lines) {
	device, name, ended := "0", "", false
	var tables []facts.Benchmark
	var ends facts.BenchmarkPoint // Of the last of them.
	unit := 0.0                   // Below its head.
	in.While(func(l parse.Line) bool {
		text, last := strings.TrimSpace(l.Text), len(tables)-1
		title := bandwidthTestTitle.FindStringSubmatch(l.Text)
		p, isRow := sizedRow(strings.Fields(text), 1, unit, l)
		switch {
		case ended || l.Number > in.First().Number+maxBandwidthTest || l.Number > in.First().Number && strings.Contains(text, "Starting..."):
			return false
		case title != nil:
			form := bandwidthTests[title[1]]
			b := facts.Benchmark{Tool: "bandwidthTest", Test: title[1], What: form.What, Source: s.Source(), Line: l.Number}
			if name != "" {
				b.GPUNames = []string{name}
			}
			if title[2] != "1" {
				b.What = "other" // The sum of several GPUs.
			}
			tables, ends, unit = append(tables, b), form.Points[0], 0
		case last >= 0 && unit == 0 && strings.HasSuffix(text, "Memory Transfers"):
			tables[last].Test += ", " + strings.ToLower(strings.Fields(text)[0])
		case last >= 0 && strings.HasPrefix(text, "Transfer Size (Bytes)"):
			if unit = 1; strings.Contains(text, "MB/s") {
				unit = binary
			}
		case unit > 0 && isRow:
			p.A, p.B = gpuOf(ends.A, device), gpuOf(ends.B, device)
			AddPoint(&tables[last], p)
			tables[last].Complete = true
		default:
			unit, ended = 0, strings.HasPrefix(text, "Result = ")
			if m := bandwidthTestDevice.FindStringSubmatch(l.Text); m != nil {
				device, name = m[1], m[2]
			}
		}
		return true
	})
	for _, b := range tables {
		Add(s, b)
	}
}

// gpuOf numbers the end of a copy that is the GPU.
func gpuOf(end, device string) string {
	if end == "GPU" {
		return end + device
	}
	return end
}
