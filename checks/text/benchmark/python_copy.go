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
		Anchors: []string{"tensor(", "Tensor(", "device='cuda:", ".to(\"cuda:", ".to('cuda:", "torch.ones(", "torch.zeros("},
		Line:    func(s *parse.Sink, l parse.Line) bool { return pythonCopyLine(s, t, l) },
	}
}

var (
	pythonCopyTensor = lazy.New(`\btensor\(([\[\]0-9eE., +-]+),\s+device='cuda:(\d{1,2})'`)
	pythonCopyNumber = lazy.New(`[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?`)
	// pythonCopyMade is the call by which a program makes a tensor: with the
	// values, or of ones.
	pythonCopyMade = lazy.New(`\btorch\.(?:(?:tensor|Tensor|FloatTensor)\((\[[\[\]0-9eE., +-]+\])|ones\((\d{1,3})\b)`)
	// pythonCopyPlaced is the GPU on which a line of code puts a tensor.
	pythonCopyPlaced = lazy.New(`(?:\.to\(|device=)(?:torch\.device\()?["']?(?:cuda:)?(\d{1,2})["']?\)?`)
)

// pythonCopy is the last tensor with a value that a text showed on a GPU.
type pythonCopy struct {
	source, device string
	numbers        []float64
	line           int
}

const (
	// pythonCopyNear is how many lines may lie between the two: who copies by
	// hand prints at once.
	pythonCopyNear = 12
	// pythonCopyMost is how many numbers of a tensor are kept.
	pythonCopyMost = 256
)

// pythonCopyValues reads the numbers of a printed tensor. What is below the
// smallest normal float32 is the bits of something else, and counts as zero.
func pythonCopyValues(text string) []float64 {
	var values []float64
	for _, n := range pythonCopyNumber.FindAllString(text, pythonCopyMost) {
		v, err := facts.ParseFloat(n)
		if err != nil || math.Abs(v) < 1.1e-38 {
			v = 0
		}
		values = append(values, v)
	}
	return values
}

func pythonCopyLine(s *parse.Sink, t *pythonCopy, l parse.Line) bool {
	if m := pythonCopyTensor.FindStringSubmatch(l.Text); m != nil {
		return pythonCopyShown(s, t, l, pythonCopyValues(m[1]), m[2])
	}
	if strings.Contains(l.Text, "torch.zeros(") {
		*t = pythonCopy{} // What is printed next may be these zeros.
		return false
	}
	if m := pythonCopyMade.FindStringSubmatch(l.Text); m != nil {
		values := pythonCopyValues(m[1])
		if n := parse.Number(m[2]); m[2] != "" && n <= pythonCopyMost {
			values = slices.Repeat([]float64{1}, n)
		}
		*t = pythonCopy{}
		if !isZero(values) {
			*t = pythonCopy{source: s.Source(), numbers: values, line: l.Number}
		}
	}
	if m := pythonCopyPlaced.FindStringSubmatch(l.Text); m != nil && t.source == s.Source() && t.device == "" {
		t.device = m[1]
	}
	return false
}

func isZero(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return v != 0 })
}

// pythonCopyShown takes a tensor that was printed on a GPU.
func pythonCopyShown(s *parse.Sink, t *pythonCopy, l parse.Line, values []float64, device string) bool {
	before, zero := *t, isZero(values)
	near := before.source == s.Source() && before.device != "" && len(before.numbers) == len(values) && l.Number-before.line <= pythonCopyNear
	now := pythonCopy{source: s.Source(), device: device, numbers: values, line: l.Number}
	switch {
	case near && before.device != device && zero && !strings.Contains(l.Text, "zeros"):
		return pythonCopyWrong(s, before, now)
	case zero:
		return false
	}
	*t = now
	return true
}

// pythonCopyWrong enters a copy that did not arrive.
func pythonCopyWrong(s *parse.Sink, from, to pythonCopy) bool {
	for _, b := range s.Facts.Benchmarks {
		if b.Tool == "pytorch" && b.Source == s.Source() && b.Points[0].A == "GPU"+from.device && b.Points[0].B == "GPU"+to.device {
			return true
		}
	}
	Add(s, facts.Benchmark{
		Tool: "pytorch", Test: "a tensor copied by hand", What: "copy", Wrong: new(int64(len(to.numbers))), Complete: true, Source: s.Source(), Line: to.line,
		Lines:  map[string]int{"wrong": to.line},
		Points: []facts.BenchmarkPoint{{A: "GPU" + from.device, B: "GPU" + to.device, Line: to.line}},
	})
	return true
}
