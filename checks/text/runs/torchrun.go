package runs

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// torchrunKind reads the summary in which torchrun names the rank that failed first (ChildFailedError.format_msg of
// torch/distributed/elastic/multiprocessing/errors/__init__.py).
func torchrunKind(t *tracebacks) *parse.Kind {
	return &parse.Kind{
		Name:    "torchrun-failure",
		Title:   "the rank that failed first, from torchrun's summary",
		Gives:   []string{"logs"},
		Anchors: []string{"Root Cause (first observed failure)"},
		Begins:  parse.BeginsWith(func(text string) bool { return strings.Contains(text, "Root Cause (first observed failure)") }),
		Read:    t.readTorchrun,
	}
}

// torchrunField is a line of the summary: "  rank      : 1 (local_rank: 1)", "  exitcode  : -7 (pid: 3327)".
var torchrunField = lazy.New(`^\W*(time|host|rank|exitcode|traceback)\s*: (\S+)(?: \((?:pid|local_rank): (\d+)\))?(?:.*\b(SIG[A-Z]+)\b)?`)

func (t *tracebacks) readTorchrun(s *parse.Sink, in *parse.Lines) {
	first, _ := in.Next()
	fields := map[string]string{}
	exit, pid := first, ""
	for _, l := range in.Ahead(8) {
		m := torchrunField.FindStringSubmatch(l.Text)
		if m == nil {
			if strings.Contains(l.Text, "=====") {
				break
			}
			continue
		}
		if m[4] != "" {
			fields["signal"] = m[4]
		}
		switch m[1] {
		case "traceback":
			if strings.Contains(l.Text, head) { // The program's own, below.
				t.nextIs(parse.Optional(fields["rank"]), l)
			}
			continue
		case "exitcode":
			exit, pid = l, m[3]
		case "rank":
			if m[3] != "" {
				fields["local_rank"] = m[3]
			}
		}
		fields[m[1]] = escape.Printable(m[2], 80)
	}
	if fields["rank"] == "" {
		return
	}
	s.Message("torch-first-failure", fields, first)
	d := ended(parse.Optional(fields["exitcode"]), fields["signal"])
	d.Reporter, d.First, d.Rank, d.Host = "torchrun", true, parse.Optional(fields["rank"]), fields["host"]
	d.PID, d.Time = parse.Number(pid), strings.Replace(fields["time"], "_", "T", 1)
	if d.Code != nil || d.Class != "" {
		s.Death(d, exit)
	}
}

// ended is the end of a process by its exit code, which is negative for signals as
// Python's subprocess has it, and 128 and more as shells do.
func ended(code *int, signal string) facts.Death {
	const shells = 128
	d := facts.Death{What: "exit", Code: code, Class: signal}
	if code != nil && d.Class == "" {
		d.Class = endTable().Signals[-*code]
		if *code > shells {
			d.Class = endTable().Signals[*code-shells]
		}
	}
	if d.Class != "" {
		d.What = "signal"
	}
	return d
}
