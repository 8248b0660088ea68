package evidence

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks"
)

// pythonCopyKind is a tensor that somebody copied from GPU to GPU by hand and
// printed before and after: the check that people do when results are wrong.
var pythonCopyKind = &Kind{
	Name: "tensor-copy", Title: "a tensor copied from GPU to GPU in Python", Gives: []string{"benchmarks"},
	Anchors: []string{"tensor("},
	Line:    pythonCopyLine,
}

var (
	pythonCopyTensor = regexp.MustCompile(`\btensor\(([\[\]0-9eE., +-]+), device='cuda:(\d{1,2})'`)
	pythonCopyNumber = regexp.MustCompile(`[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?`)
)

// pythonCopy is the last tensor with a value that a text showed on a GPU.
type pythonCopy struct {
	source, device string
	values         int
	line           int
}

// pythonCopyNear is how many lines may lie between the two: who copies by hand
// prints at once.
const pythonCopyNear = 12

func pythonCopyLine(s *Sink, l Line) bool {
	m := pythonCopyTensor.FindStringSubmatch(l.Text)
	if m == nil {
		return false
	}
	numbers := pythonCopyNumber.FindAllString(m[1], 256)
	zeros := 0
	for _, n := range numbers {
		if v, err := strconv.ParseFloat(n, 64); err == nil && v == 0 {
			zeros++
		}
	}
	before := s.tensor
	if zeros < len(numbers) {
		s.tensor = pythonCopy{source: s.name, device: m[2], values: len(numbers), line: l.Number}
		return true
	}
	if before.source != s.name || before.device == m[2] || before.values != len(numbers) || l.Number-before.line > pythonCopyNear ||
		strings.Contains(l.Text, "zeros") || len(s.Facts.Benchmarks) >= maxEntries {
		return false
	}
	for _, b := range s.Facts.Benchmarks {
		if b.Tool == "pytorch" && b.Source == s.name && b.Points[0].A == "GPU"+before.device && b.Points[0].B == "GPU"+m[2] {
			return true
		}
	}
	wrong := int64(len(numbers))
	s.Facts.Benchmarks = append(s.Facts.Benchmarks, checks.Benchmark{
		Tool: "pytorch", Test: "a tensor copied by hand", What: "copy", Wrong: &wrong, Complete: true, Source: s.name, Line: l.Number,
		Points: []checks.BenchmarkPoint{{A: "GPU" + before.device, B: "GPU" + m[2], Line: l.Number}},
	})
	return true
}
