package death

import (
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// stepsKind reads the lines in which training, or a server, reports its steps. They hold that a
// process went on behind an exception.
var stepsKind = &parse.Kind{
	Name: "training-steps", Title: "steps of a training job", Gives: []string{"logs"},
	Anchors: []string{"loss", "Step ", "step ", "step=", "step:", "iteration ", "Iteration ", "Epoch", "epoch", "Avg generation throughput: "},
	Line: func(s *parse.Sink, l parse.Line) bool {
		if len(l.Whole()) > maxStep || !stepForm.MatchString(l.Whole()) {
			return false
		}
		s.Step(l)
		return true
	},
}

// maxStep is longer than a line of a step.
const maxStep = 600

// stepForm are "step 12", "epoch: 3", "iteration 100/ 5000" and "'loss': 0.1". Progress bars
// do not count: downloads also have them. A vLLM server reports its throughput, which is 0.0
// while it is idle.
var stepForm = lazy.New(`(?i)Avg generation throughput: (?:[1-9]|0\.[1-9])|\b(?:global[_ ]?step|step|iter(?:ation)?|epoch)s?["']?\s*[:=#\[(]?\s*\d+|\bloss["']?\s*[:= ]\s*-?\d+\.\d`)
