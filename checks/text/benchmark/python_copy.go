package benchmark

import (
	"math"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// pythonCopyKind is a tensor that somebody copied from GPU to GPU by hand and
// printed before and after: the check that people do when results are wrong.
func pythonCopyKind(t *pythonCopy) *parse.Kind {
	return &parse.Kind{
		Name: "tensor-copy", Title: "a tensor copied from GPU to GPU in Python", Gives: []string{"benchmarks"},
		Anchors: []string{"device='cuda:", "torch.zeros("},
		Line:    t.read,
	}
}

var (
	pythonCopyTensor = lazy.New(`\btensor\(([\[\]0-9eE., +-]+),\s+device='cuda:(\d{1,2})'`)
	pythonCopyNumber = lazy.New(`[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?`)
)

// pythonCopy is the last tensor that a text showed on a GPU and that is not zero.
type pythonCopy struct {
	source, device string
	// size is how many numbers it has, at most pythonCopyMost.
	size, line int
}

const (
	// pythonCopyNear is how many lines may lie between the two: who copies by hand prints at once.
	pythonCopyNear = 12
	pythonCopyMost = 256
)

// isZero reports whether a number is zero. What is below the smallest normal float32 is the bits of something else.
func isZero(number string) bool {
	v, err := facts.ParseFloat(number)
	return err != nil || math.Abs(v) < 1.1e-38
}

func (t *pythonCopy) read(s *parse.Sink, l parse.Line) bool {
	m := pythonCopyTensor.FindStringSubmatch(l.Text)
	if m == nil {
		if strings.Contains(l.Text, "torch.zeros(") { // What is printed next may be these zeros.
			*t = pythonCopy{}
		}
		return false
	}
	numbers := pythonCopyNumber.FindAllString(m[1], pythonCopyMost)
	now, before := pythonCopy{s.Source(), m[2], len(numbers), l.Number}, *t
	switch {
	case slices.ContainsFunc(numbers, func(n string) bool { return !isZero(n) }):
		*t = now
		return true
	case before.source != now.source || before.device == now.device || before.size != now.size || now.line-before.line > pythonCopyNear || strings.Contains(l.Text, "zeros"):
		return false
	}
	pair := facts.BenchmarkPoint{A: "GPU" + before.device, B: "GPU" + now.device, Line: now.line}
	if !slices.ContainsFunc(s.Facts.Benchmarks, func(b facts.Benchmark) bool {
		return b.Tool == "pytorch" && b.Source == now.source && b.Points[0].A == pair.A && b.Points[0].B == pair.B
	}) {
		Add(s, facts.Benchmark{
			Tool: "pytorch", Test: "a tensor copied by hand", What: "copy", Wrong: new(int64(now.size)), Complete: true, Source: now.source, Line: now.line,
			Lines: map[string]int{"wrong": now.line}, Points: []facts.BenchmarkPoint{pair},
		})
	}
	return true
}
