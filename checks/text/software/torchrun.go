package software

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// torchrunKind reads the summary in which torchrun names the rank that failed
// first (ChildFailedError.format_msg of
// torch/distributed/elastic/multiprocessing/errors/__init__.py).
var torchrunKind = &parse.Kind{
	Name:    "torchrun-failure",
	Title:   "the rank that failed first, from torchrun's summary",
	Gives:   []string{"logs"},
	Anchors: []string{"Root Cause (first observed failure)"},
	Begins: func(in *parse.Lines) bool {
		l, _ := in.Peek()
		return strings.Contains(l.Text, "Root Cause (first observed failure)")
	},
	Read: readTorchrun,
}

// torchrunField is a line of the summary: "  rank      : 1 (local_rank: 1)".
var torchrunField = lazy.New(`^\W*(time|host|rank|exitcode|traceback)\s*: (\S+)(?:.*\b(SIG[A-Z]+)\b)?`)

func readTorchrun(s *parse.Sink, in *parse.Lines) {
	head, _ := in.Next()
	fields := map[string]string{}
	for _, l := range in.Ahead(8) {
		if m := torchrunField.FindStringSubmatch(l.Text); m != nil {
			if m[1] != "traceback" {
				fields[m[1]] = escape.Printable(m[2], 80)
			}
			if m[3] != "" {
				fields["signal"] = m[3]
			}
			continue
		}
		if strings.Contains(l.Text, "=====") {
			break
		}
	}
	if fields["rank"] != "" {
		s.Message("torch-first-failure", fields, head)
	}
}
