package benchmark

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/finite"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// ncclTestsKind reads the tables of nccl-tests and rccl-tests, of all their
// layouts (src/common.cu of NVIDIA/nccl-tests 1.0 to 2.17).
var ncclTestsKind = &parse.Kind{
	Name:    "nccl-tests",
	Title:   "bus bandwidth of collectives, from nccl-tests or rccl-tests",
	Command: "./build/all_reduce_perf -b 8 -e 1G -f 2 -g <GPUs>",
	Gives:   []string{"benchmarks"},
	Anchors: []string{"nThread ", "Using devices", "out-of-place", "Collective test starting", "algbw"},
	Begins: func(in *parse.Lines) bool {
		l, _ := in.Peek()
		return ncclTestsHead.MatchString(l.Text) || ncclTestsColumns.MatchString(l.Text)
	},
	Read: ncclTestsRead,
}

var (
	ncclTestsHead = lazy.New(`^\W*(?:nThread \d+ nGpus \d+|Using devices\s*$|Collective test starting|out-of-place\s+in-place)`)
	// ncclTestsColumns is the line of the columns' names, with which a table
	// begins that was cut out of its log.
	ncclTestsColumns = lazy.New(`^\W*size +count +(?:\(elements\) +)?type\b.* algbw +busbw\b`)
	ncclTestsDevice  = lazy.New(`Rank +(\d+) (?:Group +\d+ )?(?:Pid +\d+ )?(?:on +(\S+) |uses )device +(\d+) \[(\S+?)\] (.+?)\s*$`)
	ncclTestsWrong   = lazy.New(`Out of bounds values : (\d+)`)
	ncclTestsPeak    = lazy.New(`Avg bus bandwidth +: ([0-9.]+)`)
	ncclTestsName    = lazy.New(`\b(\w+)_perf\b`)
)

// ncclTestsTypes are the data types of a row (test_typenames).
var ncclTestsTypes = []string{
	"int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "fp8_e4m3", "fp8_e5m2",
	"f8e4m3", "f8e5m2", "char", "int",
}

func ncclTestsRead(s *parse.Sink, in *parse.Lines) {
	first, _ := in.Peek()
	b := facts.Benchmark{Tool: "nccl-tests", What: "collective", Test: "collective", Source: s.Source(), Line: first.Number}
	if m := ncclTestsName.FindStringSubmatch(in.Prompt().Command); m != nil {
		b.Test = m[1]
	}
	hosts := map[string]bool{}
	var wrong int64
	checked, rows := false, 0
	// Processes that do not know of each other write their lists at once, before
	// anything else is written. What follows may be of another run.
	jobs, begun := 0, false
	for {
		l, ok := in.Peek()
		if !ok {
			break
		}
		text := strings.TrimSpace(strings.TrimLeft(l.Text, "# "))
		switch {
		case ncclTestsDevice.MatchString(l.Text):
			m := ncclTestsDevice.FindStringSubmatch(l.Text)
			if len(b.GPUNames) < parse.MaxEntries {
				b.GPUNames = append(b.GPUNames, m[5])
			}
			b.Ranks++
			if m[1] == "0" && !begun {
				jobs++
				if jobs == 2 {
					stands(&b, "jobs", l.Number)
				}
			}
			if m[2] != "" {
				hosts[m[2]] = true
			}
			if strings.Contains(m[5], "AMD") {
				b.Tool = "rccl-tests"
			}
		case strings.HasPrefix(text, "rccl-tests"):
			b.Tool = "rccl-tests"
		case ncclTestsRow(&b, l, &wrong, &checked):
			rows++
			begun = true
			if wrong > 0 {
				stands(&b, "wrong", l.Number)
			}
		case ncclTestsWrong.MatchString(l.Text):
			n, err := strconv.ParseInt(ncclTestsWrong.FindStringSubmatch(l.Text)[1], 10, 64)
			if err == nil {
				if n > 0 && n >= wrong {
					delete(b.Lines, "wrong")
					stands(&b, "wrong", l.Number)
				}
				wrong, checked = max(wrong, n), true
			}
		case ncclTestsPeak.MatchString(l.Text):
			b.Complete = true
		case strings.Contains(l.Text, "Collective test concluded"):
			b.Complete = true
			if m := ncclTestsName.FindStringSubmatch(l.Text); m != nil {
				b.Test = m[1]
			}
		case strings.HasPrefix(text, "Collective test starting"):
			if m := ncclTestsName.FindStringSubmatch(l.Text); m != nil {
				b.Test = m[1]
			}
		case ncclTestsHead.MatchString(l.Text) && rows > 0 && (b.Complete || strings.HasPrefix(text, "nThread")), strings.HasPrefix(l.Text, "##"):
			goto done // The next run's, or somebody's heading over it.
		case text == "" || strings.HasPrefix(strings.TrimSpace(l.Text), "#") || ncclTestsHead.MatchString(l.Text):
		case ncclTestsForeign(l.Text) || ncclTestsGoesOn(in):
			// Lines of NCCL, MPI or a launcher between those of the table.
			begun = begun || jobs > 0
		default:
			goto done
		}
		in.Next()
	}
done:
	b.Nodes = len(hosts)
	if jobs > 1 {
		b.Jobs = jobs
	}
	if checked {
		b.Wrong = &wrong
	}
	Add(s, b)
}

// ncclTestsForeign reports whether a line is of a program that writes between
// the rows.
func ncclTestsForeign(line string) bool {
	return strings.Contains(line, " NCCL ") || strings.Contains(line, "NCCL version")
}

// ncclTestsGoesOn reports whether a row or a closing line of the table is
// among the next lines.
func ncclTestsGoesOn(in *parse.Lines) bool {
	for _, l := range in.Ahead(20)[1:] {
		var b facts.Benchmark
		var wrong int64
		var checked bool
		if ncclTestsHead.MatchString(l.Text) {
			return false
		}
		if ncclTestsRow(&b, l, &wrong, &checked) || ncclTestsPeak.MatchString(l.Text) || ncclTestsDevice.MatchString(l.Text) {
			return true
		}
	}
	return false
}

// ncclTestsRow reads a row: size, count, type, the operation and the root where
// there are any, then time, algorithm bandwidth, bus bandwidth and the count of
// wrong values, out of place and in place.
func ncclTestsRow(b *facts.Benchmark, l parse.Line, wrong *int64, checked *bool) bool {
	fields := strings.Fields(l.Text)
	if len(fields) < 7 || len(fields) > 16 {
		return false
	}
	size, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || size < 0 || !slices.Contains(ncclTestsTypes, fields[2]) {
		return false
	}
	values := fields[3:]
	for len(values) > 0 && len(values)%4 != 0 { // The operation, and the root.
		values = values[1:]
	}
	if len(values) > 8 {
		values = values[len(values)-8:]
	}
	var best *facts.BenchmarkPoint
	for len(values) >= 4 {
		p := facts.BenchmarkPoint{Bytes: size, Line: l.Number}
		var ok [3]bool
		var v [3]float64
		for i := range 3 {
			n, err := finite.Parse(values[i])
			v[i], ok[i] = n, err == nil && n >= 0 && n < 1e15
		}
		if !ok[0] || !ok[1] || !ok[2] {
			return false
		}
		p.Microseconds, p.GBps = &v[0], &v[2] // Between them stands the algorithm bandwidth.
		if n, err := finite.Parse(values[3]); err == nil && n >= 0 && n < 1e15 {
			*checked = true
			// Up to 2.12 the column held the largest deviation, not a count: a
			// value below one is rounding.
			if n >= 1 {
				*wrong += int64(n)
			}
		}
		if best == nil || *p.GBps > *best.GBps {
			best = &p
		}
		values = values[4:]
	}
	if best == nil {
		return false
	}
	if len(b.Points) < parse.MaxEntries {
		b.Points = append(b.Points, *best)
	}
	return true
}
