package amd

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/benchmark"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// rocmBandwidthKind are the devices and the matrices of rocm-bandwidth-test (rocm_bandwidth_test_report.cpp, releases
// up to 2.6). Its numbers count the processors as well; here GPUs are counted from 0.
var rocmBandwidthKind = &parse.Kind{
	Name: "rocm-bandwidth-test", Title: "rates between AMD GPUs, from rocm-bandwidth-test", Command: "rocm-bandwidth-test", Gives: []string{"benchmarks", "gpus", "links"},
	Anchors: []string{"RocmBandwidthTest Version", "Inter-Device ", "directional copy peak bandwidth GB/s", "directional copy average bandwidth GB/s"},
	Begins:  parse.BeginsLike(rocmBandwidthTitle),
	Read:    rocmBandwidthRead,
}

var (
	rocmBandwidthTitle  = lazy.New(`^\s*(?:RocmBandwidthTest Version: \S+|Inter-Device (Access|Link Type|Link Hops|Numa Distance).*|(Uni|Bi)?directional copy (?:peak|average) bandwidth GB/s)\s*$`)
	rocmBandwidthDevice = lazy.New(`^\s*Device: (\d{1,3}),\s+(.*?)\s*$`)
	rocmBandwidthPlace  = lazy.New(`,\s+([0-9a-fA-F]{1,2}:[0-9a-fA-F]{1,2}\.[0-7])$`)
	rocmBandwidthIndex  = lazy.New(`^\s*D/D((?:\s+\d{1,3})+)\s*$`)
)

// rocmBandwidthReport is the run under way.
type rocmBandwidthReport struct {
	// names are those of the devices by their numbers: "CPU0", "GPU1".
	names map[int]string
	// at are the GPUs of the facts, by the same numbers.
	at    map[int]string
	table string
	bench *facts.Benchmark
}

func rocmBandwidthRead(s *parse.Sink, in *parse.Lines) {
	r := &rocmBandwidthReport{names: make(map[int]string), at: make(map[int]string)}
	gpus, cpus := 0, 0
	for {
		l, ok := in.Peek()
		if !ok {
			break
		}
		text := strings.TrimSpace(l.Text)
		switch {
		case text == "" || strings.HasPrefix(text, "Launch Command is:") || strings.Trim(text, ".") == "":
		case rocmBandwidthDevice.MatchString(l.Text):
			m := rocmBandwidthDevice.FindStringSubmatch(l.Text)
			if gpus+cpus >= gpuMax {
				break
			}
			place := rocmBandwidthPlace.FindStringSubmatch(m[2])
			if place == nil {
				r.names[parse.Number(m[1])] = "CPU" + strconv.Itoa(cpus)
				cpus++
				break
			}
			r.names[parse.Number(m[1])] = parse.GPUName(gpus)
			g := gpuAt(s, gpus, rocmBandwidthAddress(place[1]), l)
			name, _, _ := strings.Cut(m[2], ",")
			gpuSetName(g, name)
			r.at[parse.Number(m[1])] = g.Address
			gpus++
		case rocmBandwidthTitle.MatchString(l.Text):
			r.table, r.bench = rocmBandwidthTitle.FindStringSubmatch(l.Text)[1], nil
			if strings.Contains(text, "directional copy") {
				r.bench = &facts.Benchmark{Tool: "rocm-bandwidth-test", Test: text, What: "copy", Complete: true, Source: s.Source(), Line: l.Number}
				if strings.HasPrefix(text, "Bi") {
					r.bench.What = "bidirectional"
				}
			}
		case rocmBandwidthIndex.MatchString(l.Text):
			r.matrix(s, in)
			continue
		default:
			return
		}
		in.Next()
	}
}

// rocmBandwidthAddress completes the address, whose parts lack leading zeros.
func rocmBandwidthAddress(text string) string {
	var bus, device, function int
	if _, err := fmt.Sscanf(text, "%x:%x.%x", &bus, &device, &function); err != nil {
		return ""
	}
	return facts.Address(fmt.Sprintf("0000:%02x:%02x.%x", bus, device, function))
}

// name is a device's name; without a list of the devices its number alone is known, and whether it is a GPU is not.
func (r *rocmBandwidthReport) name(n int) string {
	return cmp.Or(r.names[n], "device "+strconv.Itoa(n))
}

// matrix reads the matrix below a title.
func (r *rocmBandwidthReport) matrix(s *parse.Sink, in *parse.Lines) {
	benchmark.Matrix(in, benchmark.IsNumber, func(row, column, cell string, l parse.Line) {
		from, to := parse.Number(row), parse.Number(column)
		if r.bench == nil {
			if p := gpuPair(s, r.at[from], r.at[to], l); p != nil && r.table != "" {
				setCell(p, r.table, cell)
			}
		} else if rate := benchmark.Amount(cell, 1); rate != nil && from != to {
			benchmark.AddPoint(r.bench, facts.BenchmarkPoint{A: r.name(from), B: r.name(to), GBps: rate, Line: l.Number})
		}
	})
	if r.bench != nil && len(r.bench.Points) > 0 {
		benchmark.Add(s, *r.bench)
	}
	r.bench, r.table = nil, ""
}
