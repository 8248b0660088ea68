package benchmark

import (
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/finite"
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
	Begins: func(in *parse.Lines) bool {
		l, _ := in.Peek()
		return strings.Contains(l.Text, "[CUDA Bandwidth Test] - Starting...") || bandwidthTestTitle.MatchString(l.Text)
	},
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
	first, _ := in.Peek()
	device, name := "0", ""
	for {
		l, ok := in.Peek()
		if !ok || l.Number > first.Number+maxBandwidthTest {
			return
		}
		if m := bandwidthTestTitle.FindStringSubmatch(l.Text); m != nil {
			in.Next()
			readBandwidthTable(s, in, m, device, name, l)
			continue
		}
		if l.Number > first.Number && strings.Contains(l.Text, "Starting...") {
			return
		}
		if m := bandwidthTestDevice.FindStringSubmatch(l.Text); m != nil {
			device, name = m[1], m[2]
		}
		in.Next()
		if strings.HasPrefix(strings.TrimSpace(l.Text), "Result = ") {
			return
		}
	}
}

// readBandwidthTable reads one table after its title: the kind of memory, the head with the
// unit, and a row for each size.
func readBandwidthTable(s *parse.Sink, in *parse.Lines, title []string, device, name string, at parse.Line) {
	form := bandwidthTests[title[1]]
	b := facts.Benchmark{Tool: "bandwidthTest", Test: title[1], What: form.What, Source: s.Source(), Line: at.Number}
	if name != "" {
		b.GPUNames = []string{name}
	}
	if title[2] != "1" {
		b.What = "other" // The sum of several GPUs.
	}
	unit := 0.0
	for {
		l, ok := in.Peek()
		if !ok || l.Number > at.Number+maxBandwidthTest {
			break
		}
		text := strings.TrimSpace(l.Text)
		switch {
		case strings.HasSuffix(text, "Memory Transfers") && unit == 0:
			b.Test += ", " + strings.ToLower(strings.Fields(text)[0])
		case strings.HasPrefix(text, "Transfer Size (Bytes)"):
			if unit = 1; strings.Contains(text, "MB/s") {
				unit = 1.048576 / 1000
			}
		case unit > 0 && bandwidthRow(&b, form.Points[0], device, text, unit, l):
			b.Complete = true
		case unit > 0 || text != "":
			Add(s, b)
			return
		}
		in.Next()
	}
	Add(s, b)
}

// bandwidthRow reads "32000000  12.3".
func bandwidthRow(b *facts.Benchmark, ends facts.BenchmarkPoint, device, text string, unit float64, l parse.Line) bool {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return false
	}
	size, err := strconv.ParseInt(fields[0], 10, 64)
	rate, errRate := finite.Parse(fields[1])
	if err != nil || errRate != nil || size <= 0 || rate < 0 {
		return false
	}
	rate *= unit
	p := facts.BenchmarkPoint{A: gpuOf(ends.A, device), B: gpuOf(ends.B, device), Bytes: size, GBps: &rate, Line: l.Number}
	if len(b.Points) < parse.MaxEntries {
		b.Points = append(b.Points, p)
	}
	return true
}

// gpuOf numbers the end of a copy that is the GPU.
func gpuOf(end, device string) string {
	if end == "GPU" {
		return end + device
	}
	return end
}
