package runs

import (
	_ "embed"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

//go:embed ends.yaml
var endsYAML []byte

// endForm is how a launcher, a shell or a library says that a process ended.
type endForm struct {
	Reporter string
	Anchors  []string
	Form     lazy.Regexp
}

// endTable has the forms, the names of signals in words, and those of their numbers.
var endTable = lazy.Table[struct {
	Forms   []endForm
	Names   map[string]string
	Signals map[int]string
}](endsYAML)

// ends are what launchers say of the ends of processes, in one reading.
type ends struct {
	// process is the rank that Open MPI named last, in the line above the exit code.
	process *int
	line    int
	// running is the process that Hydra named last, above its exit code and what that means.
	running facts.Death
}

// processName is Open MPI's and PRRTE's name of a process: "[[26867,1],3]", "[prterun-node7-1234@1,3]".
var processName = lazy.New(`^\s*Process name: \[(?:\[\d+,\d+\]|[\w@.-]+),(\d+)\]\s*$`)

// running is how Hydra begins to tell of a process: MPICH's without the rank, Intel's with it.
var running = lazy.New(`^=\s+(?:RANK (\d+) )?PID (\d+) RUNNING AT (\S+)`)

// kind reads what launchers and others say of the ends of processes.
func (e *ends) kind() *parse.Kind {
	return &parse.Kind{
		Name: "process-ends", Title: "how the processes of a job ended, from launchers, shells and assertions", Gives: []string{"logs"},
		Anchors: endAnchors(),
		Line:    e.read,
	}
}

func (e *ends) read(s *parse.Sink, l parse.Line) bool {
	if m := processName.FindStringSubmatch(l.Text); m != nil {
		e.process, e.line = parse.Optional(m[1]), l.Number
		return true
	}
	if m := running.FindStringSubmatch(l.Text); m != nil {
		e.running = facts.Death{Rank: parse.Optional(m[1]), PID: parse.Number(m[2]), Host: m[3]}
		return true
	}
	for i := range endTable().Forms {
		f := &endTable().Forms[i]
		if m := f.Form.FindStringSubmatch(l.Text); m != nil {
			return e.note(s, l, f, m)
		}
	}
	return false
}

func endAnchors() []string {
	all := []string{"  Process name: [", " RUNNING AT "}
	for i := range endTable().Forms {
		all = append(all, endTable().Forms[i].Anchors...)
	}
	return all
}

// note notes the end of a process, unless it ended well.
func (e *ends) note(s *parse.Sink, l parse.Line, f *endForm, m []string) bool {
	g := make(map[string]string)
	for i, name := range f.Form.Get().SubexpNames() {
		if name != "" {
			g[name] = m[i]
		}
	}
	code, signal := parse.Optional(g["code"]), endTable().Signals[parse.Number(g["signal"])]
	if name := g["name"]; name != "" {
		if signal = endTable().Names[name]; strings.HasPrefix(name, "SIG") {
			signal = name
		}
		if signal == "" {
			return false
		}
	}
	if code != nil && *code == 0 {
		return false
	}
	d := ended(code, signal)
	d.Said = g["said"]
	if g["words"] != "" {
		d = facts.Death{What: "assertion", Said: g["words"], FileLine: parse.Number(g["line"]), Function: g["function"]}
	}
	d.Reporter, d.First, d.File, d.Host, d.PID, d.Rank = f.Reporter, g["first"] != "", g["file"], g["host"], parse.Number(g["pid"]), parse.Optional(g["rank"])
	if _, named := g["rank"]; !named && f.Reporter == "mpirun" && l.Number == e.line+1 {
		d.Rank = e.process
	}
	if f.Reporter == "mpiexec" {
		d.Rank, d.PID, d.Host = e.running.Rank, e.running.PID, e.running.Host
	}
	s.Death(d, l)
	return true
}
