package benchmark

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
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
	Begins:  parse.BeginsLike(ncclTestsHead, ncclTestsColumns),
	Read:    ncclTestsRead,
}

var (
	ncclTestsHead = lazy.New(`^\W*(?:nThread \d+ nGpus \d+|Using devices\s*$|Collective test starting|out-of-place\s+in-place)`)
	// ncclTestsColumns is the line of the columns' names, with which a table begins that was cut out of its log.
	ncclTestsColumns = lazy.New(`^\W*size +count +(?:\(elements\) +)?type\b.* algbw +busbw\b`)
	ncclTestsDevice  = lazy.New(`Rank +(\d+) (?:Group +\d+ )?(?:Pid +\d+ )?(?:on +(\S+) |uses )device +(\d+) \[(\S+?)\] (.+?)\s*$`)
	// ncclTestsRow is a size, a count, a type (test_typenames), the operation and the root where there are any,
	// then time, algorithm bandwidth, bus bandwidth and the count of wrong values, out of place and in place.
	ncclTestsRow = lazy.New(`^\s*(\d{1,18})\s+\d+\s+(?:u?int(?:8|32|64)?|half|float|double|bfloat16|fp?8_?e[45]m[23]|char)` +
		`(?:\s+[a-z]\w*)?(?:\s+-?\d+)?((?:\s+[\d.]{1,15}){3}\s+\S+)?((?:\s+[\d.]{1,15}){3}\s+\S+)\s*$`)
	ncclTestsWrong = lazy.New(`Out of bounds values : (\d{1,18})\b`)
	ncclTestsPeak  = lazy.New(`Avg bus bandwidth +: ([0-9.]+)`)
	ncclTestsName  = lazy.New(`\b(\w+)_perf\b`)
)

// ncclTests is a table that is being read.
type ncclTests struct {
	facts.Benchmark

	hosts map[string]bool
	// Processes that do not know of each other write their lists at once, before
	// anything else is written. What follows may be of another run.
	jobs  int
	begun bool
}

func ncclTestsRead(s *parse.Sink, in *parse.Lines) {
	t := &ncclTests{hosts: map[string]bool{}}
	t.Benchmark = facts.Benchmark{Tool: "nccl-tests", What: "collective", Test: "collective", Source: s.Source(), Line: in.First().Number}
	t.named(in.Prompt().Command)
	in.While(func(l parse.Line) bool { return t.takes(l, in) })
	if t.Nodes = len(t.hosts); t.jobs > 1 {
		t.Jobs = t.jobs
	}
	Add(s, t.Benchmark)
}

// takes reads a line, and reports whether it is part of the table.
func (t *ncclTests) takes(l parse.Line, in *parse.Lines) bool {
	text := strings.TrimSpace(strings.TrimLeft(l.Text, "# "))
	isHead := ncclTestsHead.MatchString(l.Text)
	switch {
	case t.device(l), t.row(l):
	case strings.HasPrefix(text, "rccl-tests"):
		t.Tool = "rccl-tests"
	case ncclTestsWrong.MatchString(l.Text):
		n, _ := strconv.ParseInt(ncclTestsWrong.FindStringSubmatch(l.Text)[1], 10, 64) // It has at most 18 digits.
		if t.check(0); n > 0 && n >= *t.Wrong {
			*t.Wrong = n
			facts.Put(&t.Lines, "wrong", l.Number)
		}
	case ncclTestsPeak.MatchString(l.Text):
		t.Complete = true
	case strings.Contains(text, "Collective test concluded"):
		t.Complete = true
		t.named(text)
	case strings.HasPrefix(text, "Collective test starting"):
		t.named(text)
	case isHead && len(t.Points) > 0 && (t.Complete || strings.HasPrefix(text, "nThread")), strings.HasPrefix(l.Text, "##"):
		return false // The next run's, or somebody's heading over it.
	case text == "" || strings.HasPrefix(strings.TrimSpace(l.Text), "#") || isHead:
	case strings.Contains(l.Text, " NCCL ") || strings.Contains(l.Text, "NCCL version") || ncclTestsGoesOn(in):
		t.begun = t.begun || t.jobs > 0 // Lines of NCCL, MPI or a launcher between those of the table.
	default:
		return false
	}
	return true
}

// named takes the name of the test.
func (t *ncclTests) named(text string) { t.Test = cmp.Or(ncclTestsName.First(text), t.Test) }

// device reads the line of a rank.
func (t *ncclTests) device(l parse.Line) bool {
	m := ncclTestsDevice.FindStringSubmatch(l.Text)
	if m == nil {
		return false
	}
	if len(t.GPUNames) < parse.MaxEntries {
		t.GPUNames = append(t.GPUNames, m[5])
	}
	t.Ranks++
	if m[1] == "0" && !t.begun {
		if t.jobs++; t.jobs == 2 {
			stands(&t.Benchmark, "jobs", l.Number)
		}
	}
	if m[2] != "" {
		t.hosts[m[2]] = true
	}
	if strings.Contains(m[5], "AMD") {
		t.Tool = "rccl-tests"
	}
	return true
}

// row reads a row, of which the faster of both ways counts.
func (t *ncclTests) row(l parse.Line) bool {
	m := ncclTestsRow.FindStringSubmatch(l.Text)
	if m == nil {
		return false
	}
	size, _ := strconv.ParseInt(m[1], 10, 64) // It has at most 18 digits.
	var best *facts.BenchmarkPoint
	for _, columns := range m[2:] {
		values := strings.Fields(columns)
		if len(values) == 0 {
			continue
		}
		p := facts.BenchmarkPoint{Bytes: size, Line: l.Number, Microseconds: Amount(values[0], 1), GBps: Amount(values[2], 1)}
		if p.Microseconds == nil || p.GBps == nil {
			return false
		}
		if n := Amount(values[3], 1); n != nil {
			t.check(*n)
		}
		if best == nil || *p.GBps > *best.GBps {
			best = &p
		}
	}
	AddPoint(&t.Benchmark, *best)
	if t.begun = true; t.Wrong != nil && *t.Wrong > 0 {
		stands(&t.Benchmark, "wrong", l.Number)
	}
	return true
}

// check counts wrong values. Up to 2.12 their column held the largest deviation, not a count: a value below one is rounding.
func (t *ncclTests) check(wrong float64) {
	t.Wrong = cmp.Or(t.Wrong, new(int64))
	*t.Wrong += int64(wrong)
}

// ncclTestsGoesOn reports whether a row or a closing line of the table is among the next lines.
func ncclTestsGoesOn(in *parse.Lines) bool {
	for _, l := range in.Ahead(20)[1:] {
		if ncclTestsHead.MatchString(l.Text) {
			return false
		}
		if ncclTestsRow.MatchString(l.Text) || ncclTestsPeak.MatchString(l.Text) || ncclTestsDevice.MatchString(l.Text) {
			return true
		}
	}
	return false
}
