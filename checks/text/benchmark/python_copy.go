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
	// pythonCopyOpened and pythonCopyClosed are the first and the last line of a
	// tensor of several rows.
	pythonCopyOpened = lazy.New(`\btensor\((\[[\[\]0-9eE., +-]+),$`)
	pythonCopyClosed = lazy.New(`^\s+(\[[\[\]0-9eE., +-]+\]), device='cuda:(\d{1,2})'`)
	// pythonCopyEnded is the last line of one whose device stands alone.
	pythonCopyEnded = lazy.New(`^\s+device='cuda:(\d{1,2})'`)
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
	// open are the numbers of the rows of a tensor whose end has not come.
	open []float64
	// doubted is what was printed elsewhere with other values. It was a bad copy
	// if the same text then shows the first values on that GPU, as they arrive by
	// way of the host.
	doubted *pythonCopy
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
	if row := pythonCopyOpened.First(l.Text); row != "" {
		t.open = pythonCopyValues(row)
		return true
	}
	if m := pythonCopyEnded.FindStringSubmatch(l.Text); m != nil && len(t.open) > 0 {
		values := t.open
		t.open = nil
		return pythonCopyShown(s, t, l, values, m[1])
	}
	if m := pythonCopyClosed.FindStringSubmatch(l.Text); m != nil && len(t.open) > 0 {
		// The first row alone tells the shape: rows between are not always
		// printed, nor does the last always stand with the device.
		values, last := t.open, pythonCopyValues(m[1])
		t.open = nil
		if !isZero(last) && isZero(values) {
			return false
		}
		return len(values) <= pythonCopyMost && pythonCopyShown(s, t, l, values, m[2])
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
	before := *t
	near := before.source == s.Source() && before.device != "" && len(before.numbers) == len(values) && l.Number-before.line <= pythonCopyNear
	zero := isZero(values)
	now := pythonCopy{source: s.Source(), device: device, numbers: values, line: l.Number}
	switch {
	case near && before.device != device && zero && !strings.Contains(l.Text, "zeros"):
		return pythonCopyWrong(s, before, now)
	case zero:
		return false
	case near && before.device != device && !slices.Equal(before.numbers, values) && before.doubted == nil:
		t.doubted = &now
		return true
	case near && before.doubted != nil && before.doubted.device == device && slices.Equal(before.numbers, values):
		t.doubted = nil
		return pythonCopyWrong(s, before, *before.doubted)
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
