package runs

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/launch"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// run is a run under construction.
type run struct {
	facts.Run
	// text is the line with which it begins.
	text string
	// identity is the program with its arguments, without what counts GPUs; empty if no
	// command was seen.
	identity string
	// doubtful are variables that the run may have or not.
	doubtful map[string]string
	// folder is where the shell was, changes how often the machine was changed before, and
	// quoted how many times it is quoted.
	folder          string
	changes, quoted int
	// logged are the variables that the library says it read, and made is true once it
	// made a communicator.
	logged map[string]string
	made   bool
	// named is true for a run that the name of a file distinguishes.
	named bool
	// begun is true once the program wrote its banner.
	begun bool
	marks []mark
	// end is its last line, and followed whether something else comes after it.
	end      int
	followed bool
	// cut is true if marks of it are missing.
	cut bool
	// mixed is true if the same was run again, with another outcome.
	mixed bool
}

// over reports whether anything tells the outcome of a run: what starts then is another.
func (r *run) over() bool {
	return slices.ContainsFunc(r.marks, func(m mark) bool { return m.kind >= finished })
}

// session walks over the marks of a text and makes runs of them.
type session struct {
	transcript *transcript
	tables     *tables
	// shell is that of the last prompt, of those of all hosts, and context what the last
	// heading says.
	shell   *shellState
	shells  map[string]*shellState
	context mark
	// quoted is how many times what is being said is quoted: others say it.
	quoted int
	// indented is the indentation of the last prompt.
	indented int
	// changes counts what changed the machine.
	changes int
	// file is what the text's name says.
	file    mark
	current *run
	runs    []*run
	// aside is true in the output of a command that is no run.
	aside bool
	// text is the line under way, and prompt that of the last shell prompt.
	text   string
	prompt int
	// configured are variables that the text shows to be set for all: "NAME=value".
	configured map[string]bool
}

// maxRuns bounds the runs of the facts.
const maxRuns = 64

// runsOf makes the runs of a text.
func runsOf(t *transcript, lines int, of *tables) (list []*run, configured map[string]bool) {
	s := &session{transcript: t, tables: of, shells: map[string]*shellState{}, configured: map[string]bool{}}
	s.shell = s.shellAt("")
	s.file.titled(fileTitle(t.name))
	s.file.kind = prompt
	if len(s.file.settings)+len(s.file.removed) > 0 || plainly.MatchString(fileTitle(t.name)) {
		s.file.kind = heading
	}
	for _, m := range t.marks {
		s.take(m)
		if len(s.runs) > 2*maxRuns {
			break
		}
	}
	if s.current != nil {
		s.current.cut = s.current.cut || t.full
	}
	s.close(lines, false)
	for _, r := range s.runs {
		r.settle(of, t.name)
	}
	return s.runs, s.configured
}

// fileTitle is the name of a file as a heading.
func fileTitle(name string) string {
	name = name[strings.LastIndexAny(name, "/:")+1:]
	for _, ending := range []string{".gz", ".txt", ".log", ".out", ".err", ".md"} {
		name = strings.TrimSuffix(name, ending)
	}
	if strings.Contains(name, "=") {
		return name
	}
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == '.' {
			return ' '
		}
		return c
	}, name)
}

func (s *session) take(m mark) {
	s.text = m.text
	if m.quoted != s.quoted && (m.kind != variable || m.logged) && m.line != s.prompt {
		s.heard(m)
	}
	switch m.kind {
	case prompt:
		s.typed(m)
	case command:
		s.started(m)
	case heading:
		if r := s.current; r != nil && r.By == "command" && !r.over() && !m.ofVariables() {
			return // The program itself writes of its GPUs.
		}
		s.close(m.line-1, true)
		s.context, s.aside = m, false
		if m.asked {
			s.context = mark{line: m.line}
		}
		s.begin("heading", m.line).cut = m.asked
	case banner:
		switch {
		case s.aside:
		case s.current == nil:
			s.begin("output", m.line)
		case s.current.begun && between(s.tables.rows[s.transcript.name], s.current.Line, m.line):
			s.again(m.line)
		}
		if s.current != nil {
			s.current.begun = true
		}
	case variable:
		s.assigned(m)
	case unset:
		s.shell.unset(m.removed)
	case change:
		s.changes++
	default:
		s.attach(m)
	}
}

// heard begins what another person says.
func (s *session) heard(m mark) {
	s.close(m.line-1, true)
	s.quoted, s.context, s.aside = m.quoted, mark{}, false
	clear(s.shells)
	s.shell = s.shellAt("")
}

// ofVariables reports whether a heading is about more than GPUs and versions.
func (m *mark) ofVariables() bool {
	return len(m.settings)+len(m.removed) == 0 || len(m.removed) > 0 || slices.ContainsFunc(m.settings, func(s setting) bool {
		return !slices.Contains([]string{devicesName, countName, "nccl", "rccl"}, s.name)
	})
}

// close ends the run under way at a line.
func (s *session) close(line int, followed bool) {
	if r := s.current; r != nil {
		r.end, r.followed = line, followed
		if r.By == "heading" && len(r.marks) == 0 && !s.tables.any(s.transcript.name, r.Line, line) {
			s.runs = s.runs[:len(s.runs)-1] // A heading over a command, or over none.
		}
	}
	s.current = nil
}

// begin begins a run with what is set for it.
func (s *session) begin(by string, line int) *run {
	s.close(line-1, true)
	r := &run{text: s.text, Run: facts.Run{By: by, Source: s.transcript.name, Line: line, Variables: map[string]string{}}, logged: map[string]string{}, quoted: s.quoted, changes: s.changes}
	r.named = s.file.kind == heading
	if r.named && by == "output" {
		r.By = "file"
	}
	r.inherits(s.shell)
	for _, m := range []mark{s.file, s.context} {
		for _, v := range m.settings {
			r.set(v.name, v.value)
		}
		for _, name := range m.removed {
			delete(r.Variables, name)
		}
	}
	s.current, s.aside = r, false
	s.runs = append(s.runs, r)
	return r
}

// again begins a run of the same program with the same settings.
func (s *session) again(line int) {
	before := s.current
	r := s.begin(before.By, line)
	r.identity, r.Program, r.Host = before.identity, before.Program, before.Host
	r.Devices, r.GPUs, r.Nodes = before.Devices, before.GPUs, before.Nodes
	r.Variables = maps.Clone(before.Variables)
}

// set sets a variable of a run, or what a heading says about it.
func (r *run) set(name, value string) {
	value = escape.Printable(value, maxValue)
	switch {
	case name == devicesName || slices.Contains(data.Experiments().Devices, name):
		r.Devices = nil
		for d := range strings.SplitSeq(value, ",") {
			if d = strings.TrimSpace(d); d != "" && d != "all" && len(r.Devices) < maxRuns {
				r.Devices = append(r.Devices, d)
			}
		}
	case name == countName:
		r.GPUs = count(value)
	case name == "nccl" || name == "rccl":
		r.Library, r.Version = name, value
	case slices.Contains(data.Experiments().Ignored, name):
	case env.SteersCommunication(name) || name == strings.ToLower(name):
		if len(r.Variables) < maxRuns {
			r.Variables[name] = value
		}
	}
}

const maxValue = 200

// count reads a small number; 0 if it cannot.
func count(text string) int {
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' || n > 1<<16 {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// typed takes a command behind a prompt: it may start a run, or change what is set for
// those that follow.
func (s *session) typed(m mark) {
	if m.line == s.prompt {
		return // The same without "node7: ", which may be part of it.
	}
	// A program may print one: of which of the two an outcome is, is not known.
	printed := s.current != nil && s.current.By == "command" && m.indented > s.indented
	if printed {
		s.current.cut = true
	}
	s.close(m.line-1, true)
	s.prompt, s.aside, s.indented = m.line, true, m.indented
	s.shell = s.shellAt(m.host)
	for _, c := range shell.Line(m.value) {
		if c.Piped {
			continue
		}
		part := m.value[min(c.Words[0].From, len(m.value)):]
		variables, words := launch.Starts(part)
		switch {
		case len(words) == 0:
			for _, v := range variables {
				s.shell.assign(v[0], v[1])
			}
		case s.shell.builtin(words):
		case installed.MatchString(part):
			s.shell.exported["nccl"] = installed.FindStringSubmatch(part)[1]
		case changing.MatchString(part):
			s.changes++
		case m.host == "" && otherShell.MatchString(strings.Join(words, " ")):
			s.shell.doubt()
		case runnable(words):
			r := s.begin("command", m.line)
			r.Host, r.cut = m.host, printed
			if withoutVariables.MatchString(part) {
				r.doubts(s.shell)
			}
			for _, v := range settingsOf(variables) {
				r.set(v.name, v.value)
			}
			r.commanded(words)
			return
		}
	}
}

var (
	// installed is a version of NCCL that pip is told to install.
	installed = lazy.New(`\bpip3? install\b.*\bnvidia-nccl-cu\d+==(\d+\.\d+(?:\.\d+)?)`)
	// programs are those that move data between GPUs, or may run what does.
	programs = lazy.New(`^(?:python[\d.]*|torchrun|mpirun|mpiexec(?:\.hydra)?|orterun|prterun|horovodrun|srun|accelerate|deepspeed|vllm|sglang|trtllm-serve|lmdeploy|swift|llamafactory-cli|\w+_perf|p2pBandwidthLatencyTest|simpleP2P|nvbandwidth|TransferBench|ucx_perftest|osu_\w+|ib_\w+_(?:bw|lat)|pytest)$`)
	// scripts are programs of a user's own.
	scripts = lazy.New(`^\.{0,2}/\S+$`)
	// system are folders whose programs look at the machine.
	system = lazy.New(`^/(?:usr/)?s?bin/|^/(?:proc|sys|etc)/`)
)

// runnable reports whether a command may move data between GPUs.
func runnable(words []string) bool {
	name := words[0]
	switch base := name[strings.LastIndexByte(name, '/')+1:]; {
	case programs.MatchString(base):
		return true
	case base == "bash" || base == "sh":
		return len(words) > 1
	}
	return scripts.MatchString(name) && !system.MatchString(name)
}

// started takes a command line that a kind of launches understood, or one without a prompt.
func (s *session) started(m mark) {
	r := s.current
	switch {
	case r != nil && r.Line == m.line:
	case r != nil && len(r.marks) > 0 && !r.over():
		return // What the program itself starts.
	case r != nil && len(r.marks) == 0 && r.By == "command" && s.prompt == r.Line: // A script shows what it runs.
		own := r.Variables
		s.runs = s.runs[:len(s.runs)-1]
		s.current = nil
		r = s.begin("command", m.line)
		maps.Copy(r.Variables, own)
	default:
		host := ""
		if s.prompt == m.line && r != nil {
			host = r.Host
		}
		r = s.begin("command", m.line)
		r.Host = host
	}
	for _, v := range m.settings {
		r.set(v.name, v.value)
	}
	if m.launch == nil {
		if _, words := launch.Starts(m.value); len(words) > 0 {
			r.commanded(words)
		}
		return
	}
	l := m.launch
	if l.Kind == "docker-run" {
		r.doubts(s.shell)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Variables)) {
		r.set(name, l.Variables[name])
	}
	variables, words := stripped(l.Command)
	for _, v := range variables {
		r.set(v[0], v[1])
	}
	for _, o := range data.Experiments().Options {
		if i := slices.Index(words, o.Flag); i >= 0 {
			r.set(o.Name, o.Value)
			words = slices.Delete(slices.Clone(words), i, i+1)
		}
	}
	if len(words) > 0 {
		r.commanded(words)
	}
	if l.Image != "" {
		r.identity = l.Image + " " + r.identity
	}
	r.GPUs, r.Nodes = 0, 0
	if n := cmp.Or(l.Processes, l.TensorParallel, l.GPUs); n != nil && *n > 0 {
		r.GPUs = *n
		if l.Nodes != nil {
			r.Nodes = *l.Nodes
			r.GPUs *= *l.Nodes
		}
	}
}

// stripped takes the variables off words that a launcher runs: "mpirun -np 2 env A=1 prog".
func stripped(words []string) (variables [][2]string, rest []string) {
	for len(words) > 0 {
		name, value, ok := strings.Cut(words[0], "=")
		switch {
		case words[0] == "env":
		case ok && env.SteersCommunication(name):
			variables = append(variables, [2]string{name, value})
		default:
			return variables, words
		}
		words = words[1:]
	}
	return variables, words
}

// counting are options that say how many processes or GPUs there are, or where they meet.
var counting = lazy.New(`^(?:-g|-np|-n|-N|--?n[-_]?proc[-_]?per[-_]?node|--?nproc|--num[-_](?:gpus|processes|nodes|machines)|--nnodes|-tp|--tp|--tp[-_]size|--tensor[-_]parallel[-_]size|--(?:master|main|rdzv)\S*|--port)(=.*)?$`)

// commanded notes what a run's command starts.
func (r *run) commanded(words []string) {
	r.Program = escape.Printable(words[0][strings.LastIndexByte(words[0], '/')+1:], maxValue)
	if n := slices.Index(words, "-g"); n >= 0 && n+1 < len(words) && strings.HasSuffix(r.Program, "_perf") {
		r.GPUs = count(words[n+1])
	}
	kept := []string{r.Program}
	for i := 1; i < len(words) && len(kept) < maxRuns; i++ {
		m := counting.FindStringSubmatch(words[i])
		switch {
		case m == nil:
			kept = append(kept, words[i])
		case m[1] == "":
			i++
		}
	}
	r.identity = strings.Join(kept, " ")
}

// assigned takes a variable.
func (s *session) assigned(m mark) {
	r := s.current
	switch {
	case m.logged:
		if r == nil && !s.aside {
			r = s.begin("output", m.line)
		}
		if r != nil && len(r.logged) < maxRuns {
			r.logged[m.name] = m.value
		}
	case m.line == s.prompt || m.line == s.context.line || r != nil && (r.Line == m.line || r.Variables[m.name] == m.value):
	case r != nil && len(r.marks) == 0 && r.By == "command": // A further line of the command.
	case m.quoted != s.quoted: // Somebody else's.
	default:
		s.shell.exported[m.name] = m.value
		if s.aside { // The output of env.
			s.configured[m.name+"="+m.value] = true
		}
	}
}

// attach gives a mark to the run under way.
func (s *session) attach(m mark) {
	r := s.current
	switch {
	case r != nil && m.kind == version && r.Version != "" && r.Library == m.name && r.Version != trimmed(m.value) && r.over():
		s.again(m.line)
		r = s.current
	case r == nil && (s.aside || s.file.kind != heading && (m.kind == word || m.kind == step || m.kind == exit)):
		return
	case r == nil:
		r = s.begin("output", m.line)
	}
	switch m.kind {
	case version:
		if r.Version == "" || r.Library == m.name && strings.HasPrefix(trimmed(m.value), r.Version) {
			r.Library, r.Version = m.name, trimmed(m.value)
		} else if r.Library == m.name && r.Version != trimmed(m.value) {
			r.Version = "several"
		}
	case made:
		r.made = true
		r.marks = append(r.marks, m)
	default:
		r.marks = append(r.marks, m)
	}
}

// trimmed is a version without what it was built for: "2.28.9+cuda13.0".
func trimmed(version string) string {
	version, _, _ = strings.Cut(version, "+")
	return escape.Printable(version, maxValue)
}
