package patch

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/launch"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
	"github.com/gpudoctor/gpudoctor/cmd/internal/emit"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

type (
	word    = shell.Word
	command = shell.Command
)

// scriptForm changes shell scripts: the variables that they export, and the containers that they start; and files that hold
// variables and nothing else.
type scriptForm struct {
	// target is the target of gpudoctor advise --for that sets the same.
	target string
	// onlyVariables is true of a file of variables, and plain if no shell reads it.
	onlyVariables, plain bool
}

// script is a file that consists of commands, while it is changed.
type script struct {
	*file
	scriptForm
	commands []command
	runs     []*run // Of each command; nil for one that starts no container.
	// added are the lines that set variables, behind a line; said is the last reason among them.
	added  []string
	behind int
	said   string
	// gone are the words that are removed, by the byte at which they begin.
	gone map[int]bool
}

func newScript(f *file, form scriptForm) *script {
	return &script{file: f, scriptForm: form, gone: map[int]bool{}}
}

// begin is the first of the lines that a backslash joins to one.
func (s *script) begin(at int) int {
	for at > 0 && strings.HasSuffix(strings.TrimRight(s.lines[at-1], " \t"), `\`) {
		at--
	}
	return at
}

var (
	envLine = lazy.New(`^\s*(export\s+)?([A-Za-z_]\w*)=(.*?)\s*$`)
	unset   = lazy.New(`^\s*unset\s+[A-Za-z_]\w*\s*$`)
)

// configurations are the names of the files that NCCL and RCCL read.
var configurations = []string{"nccl.conf", ".nccl.conf", "rccl.conf", ".rccl.conf"}

// ofVariables is how a file is changed that holds variables and nothing else: of communication, or by its name those of an
// environment. A shell or a container engine reads it, or NCCL.
func ofVariables(f *file) (form scriptForm, ok bool) {
	base := path.Base(filepath.ToSlash(f.Name))
	form = scriptForm{target: "env", onlyVariables: true, plain: true}
	if slices.Contains(configurations, base) {
		form.target, f.bare = "nccl.conf", "="
	}
	ok = form.target == "nccl.conf" || strings.Contains(strings.ToLower(base), "env")
	for _, l := range f.lines {
		switch t, m := strings.TrimSpace(l), envLine.FindStringSubmatch(l); {
		case strings.HasPrefix(t, "#!") || unset.MatchString(t):
			form.plain = false
		case m != nil:
			ok = ok || env.SteersCommunication(m[2])
			form.plain = form.plain && m[1] == ""
		case t != "" && t[0] != '#':
			return form, false
		}
	}
	return form, ok
}

// plainCommands are the lines of a file of variables that no shell reads, as commands.
func (s *script) plainCommands() (all []command) {
	for i, l := range s.lines {
		m := envLine.FindStringSubmatchIndex(l)
		if m == nil {
			continue
		}
		value := l[m[6]:m[7]]
		if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		w := word{Value: l[m[4]:m[5]] + "=" + value, From: s.starts[i] + m[4], To: s.starts[i] + m[7]}
		all = append(all, command{Words: []word{w}, Line: i + 1, First: true, Last: true})
	}
	return all
}

func (form scriptForm) propose(f *file) error {
	s := newScript(f, form)
	s.behind = s.header()
	if form.plain {
		s.commands = s.plainCommands()
	} else if read := shell.Parse(s.Text); read.Whole {
		s.commands = read.Commands
	} else {
		return ErrQuote
	}
	s.findRuns()
	runs := s.runsByLine()
	containers, ranks := 0, form.onlyVariables // Whether it starts something outside of containers.
	for i := range f.launches {
		switch f.launches[i].Kind {
		case "docker-run":
			containers++
		case "shell":
		default:
			ranks = true
		}
	}
	for i := range f.launches {
		if l := &f.launches[i]; l.Kind == "docker-run" {
			s.container(runs[l.Line], l, containers == 1)
		}
	}
	target, _ := emit.Named(form.target)
	s.write("", func(w *Want) {
		switch {
		case w.Kind != plan.Variable && w.Kind != plan.Unset:
		case w.Kind == plan.Unset && (s.unset() || len(w.Values) > 0):
		case w.Kind == plan.Unset && form.plain:
			f.note(words(w), "Such a file cannot remove a variable that is set elsewhere.")
		case ranks && target.Sets(w.Setting):
			s.export()
		}
	})
	s.finish(!form.onlyVariables)
	return nil
}

// run is a command that starts a container.
type run struct {
	*command
	engine string
	// options are the words at which its options begin, and at the end where the image stands; open is a variable that may stand for more.
	options []int
	open    string
}

// findRuns finds the commands that start containers.
func (s *script) findRuns() {
	for i := range s.commands {
		r := &run{command: &s.commands[i]}
		if r.engine, r.options, r.open = launch.DockerRun(r.Values()); len(r.options) == 0 {
			r = nil
		}
		s.runs = append(s.runs, r)
	}
}

// runsByLine are the commands that start containers, by the line where each begins; nil if there are two of them.
func (s *script) runsByLine() map[int]*run {
	all := map[int]*run{}
	for _, r := range s.runs {
		if r == nil {
			continue
		}
		line := s.begin(s.lineOf(r.Words[r.options[0]-1].From)) + 1
		if _, isSecond := all[line]; isSecond {
			r = nil
		}
		all[line] = r
	}
	return all
}

// container gives a container that the script starts what it lacks.
func (s *script) container(r *run, l *facts.Launch, only bool) {
	if !usesGPUs(l) && (!only || l.GPUs != nil || l.Processes == nil && l.TensorParallel == nil) {
		return
	}
	last := l.Line
	if r != nil {
		last = s.lineOf(r.Words[len(r.Words)-1].From) + 1
	}
	target, _ := emit.Named("docker")
	var lacking []string
	s.write(strings.TrimSpace("docker run "+lines.Printable(l.Name, false)), func(w *Want) {
		switch value := l.Variables[w.Name]; {
		case w.Kind == plan.Unset || !target.Sets(w.Setting) || !w.concerns(l, l.Line, last) || has(l, w):
		case w.Kind == plan.Variable && value != "" && same(value, w.Value):
		case r == nil || r.open != "" && slices.Contains(slices.Collect(maps.Values(l.Unknown)), r.open): // Its value is not known.
			lacking = append(lacking, words(w))
		default:
			s.option(r)
		}
	})
	if len(lacking) > 0 {
		hidden := Remark{Line: l.Line, Where: s.where, What: strings.Join(lacking, " "), Note: "its options are not written out there"}
		s.manual = appendNew(s.manual, hidden)
	}
}

// flag is the option of a container engine that makes a setting.
func flag(w *Want, engine string) string {
	switch {
	case w.Kind == plan.GPUs && engine == "podman": // Podman reads a CDI file.
		return "--device=nvidia.com/gpu=" + w.Value
	case w.Kind == plan.Variable:
		return "--env=" + emit.Words(w.Setting)
	}
	return emit.Words(w.Setting)
}

// longer are the long names of options.
var longer = map[string]string{"-e": "--env", "--net": "--network", "-v": "--volume"}

// option gives a command an option, or replaces the value that it has there.
func (s *script) option(r *run) {
	w := s.want
	name, value, _ := strings.Cut(flag(w, r.engine), "=")
	key, _, isPair := strings.Cut(value, "=")
	for j, i := range r.options[:len(r.options)-1] {
		own, old, joined := strings.Cut(r.Words[i].Value, "=")
		by := own + "=" + remedies.Quote(value)
		if !joined && i+1 < r.options[j+1] {
			i++
			old, by = r.Words[i].Value, remedies.Quote(value)
		}
		switch isOnce := w.Kind == plan.SharedMemory || w.Kind == plan.Namespace || w.Kind == plan.Limit || w.Kind == plan.Variable; {
		case own != name && longer[own] != name:
		case w.Kind == plan.Group && mayBe(old, w.Name), old == value:
			return
		case !isOnce || isPair && !strings.HasPrefix(old, key+"="):
		case !stated(old):
			s.byHand(s.lineOf(r.Words[i].From), "its value refers to a variable")
			return
		default:
			s.change(r.command, r.Words[i], by)
			return
		}
	}
	s.insert(r, remedies.Quote(flag(w, r.engine)))
}

// touched notes that a command has the setting, with the reason above it if one may stand there.
func (s *script) touched(c *command) {
	at := s.lineOf(c.Words[0].From)
	if c.First && s.begin(at) == at {
		s.explain(at)
	}
	s.changed(at)
}

// change replaces a word.
func (s *script) change(c *command, old word, by string) {
	if at := s.lineOf(old.From); s.lineOf(old.To-1) != at {
		s.byHand(at, "it stands on several lines")
		return
	}
	s.replace(old.From, old.To, by)
	s.touched(c)
}

// insert adds an option in front of the image, on a line of its own where the image has one.
func (s *script) insert(r *run, option string) {
	image := r.options[len(r.options)-1]
	behind := r.Words[image-1].To
	if image < len(r.Words) && s.lineOf(r.Words[image].From) == s.lineOf(behind)+1 {
		at := s.lineOf(r.Words[image].From)
		s.file.insert(at, []string{marginOf(s.lines[at]) + option + ` \`})
	} else {
		s.replace(behind, behind, " "+option)
	}
	s.touched(r.command)
}

// setters are the words behind which assignments stand, and options those among them that go with the assignment.
var (
	setters = []string{"export", "declare", "typeset", "readonly", "local", "env", "ENV"}
	options = []string{"-e", "--env", "-x", "-genv", "-env"}
)

// assigned is where a command sets a variable.
type assigned struct {
	*command
	index int
	value string
}

// assignments are the places where the script sets a variable, outside of containers or in
// all commands.
func (s *script) assignments(name string, containers bool) (all []assigned) {
	for k := range s.commands {
		c := &s.commands[k]
		if !containers && s.runs[k] != nil {
			continue
		}
		for i, w := range c.Words {
			if value, ok := strings.CutPrefix(strings.TrimPrefix(w.Value, "--env="), name+"="); ok {
				all = append(all, assigned{c, i, value})
			}
		}
	}
	return all
}

// assign gives a variable its value where it is set. It reports whether it was changed.
func (s *script) assign(a assigned) bool {
	w, old := s.want, a.Words[a.index]
	at := s.lineOf(old.From)
	prefix := w.Name + "="
	if strings.HasPrefix(s.Text[old.From:], "--env=") {
		prefix = "--env=" + prefix
	}
	value, ok := s.quoted(at)
	switch {
	case same(a.value, w.Value) || !ok:
	case !stated(a.value):
		s.byHand(at, "its value refers to a variable")
	case !strings.HasPrefix(s.Text[old.From:old.To], prefix):
		s.byHand(at, "its value has another form there")
	default:
		s.change(a.command, old, prefix+value)
		return true
	}
	return false
}

// quoted is the value of a variable as the file has it.
func (s *script) quoted(at int) (value string, ok bool) {
	if !s.plain {
		return remedies.Quote(s.want.Value), true
	}
	if strings.ContainsAny(s.want.Value, " \t#$'\"\\`") {
		s.byHand(at, "programs that read such files disagree on how to quote it")
		return "", false
	}
	return s.want.Value, true
}

// export sets or removes a variable at the beginning of the script or the end of a file of variables, or changes the
// value that it has there.
func (s *script) export() {
	w := s.want
	all := s.assignments(w.Name, false)
	isUnset := func(c command) bool { v := c.Values(); return v[0] == "unset" && slices.Contains(v, w.Name) }
	switch {
	case w.Kind == plan.Unset:
		if len(all) == 0 && !slices.ContainsFunc(s.commands, isUnset) {
			s.add("unset " + w.Name)
		}
	case slices.ContainsFunc(all, s.assign) || len(all) > 0:
	default:
		value, ok := s.quoted(0)
		setting := w.Name + "=" + value
		if !s.plain {
			setting = "export " + setting
		}
		if ok {
			s.add(setting)
		}
	}
}

// add adds a line that sets a variable.
func (s *script) add(text string) {
	if why := s.want.comment(); why != s.said {
		s.said = why
		s.added = append(s.added, s.reason("", why)...)
	}
	s.added = append(s.added, text)
	s.changed(s.behind - 1)
}

// header is the line behind the header of a script, and the end of a file of variables.
func (s *script) header() (at int) {
	if s.onlyVariables {
		return len(s.lines)
	}
	for i, l := range s.lines {
		t := strings.TrimSpace(l)
		isComment := strings.HasPrefix(t, "#")
		if strings.HasPrefix(t, "#SBATCH") || isComment && at == i {
			at = i + 1
		}
		if t != "" && !isComment {
			break
		}
	}
	return at
}

// finish makes the edits that were gathered: the lines that are added at a line, with blank lines around them, and reasons.
func (s *script) finish(isApart bool) {
	at := s.behind
	if isApart && len(s.added) > 0 && at < len(s.lines) && strings.TrimSpace(s.lines[at]) != "" {
		s.added = append(s.added, "")
	}
	if isApart && len(s.added) > 0 && at > 0 {
		s.added = append([]string{""}, s.added...)
	}
	s.file.insert(at, s.added)
	s.writeReasons()
}

// unset removes a variable wherever the script sets it so. It reports whether it is set.
func (s *script) unset() (found bool) {
	w := s.want
	for _, a := range s.assignments(w.Name, true) {
		number := s.lineOf(a.Words[a.index].From)
		if len(w.Values) > 0 && w.removes(w.Name, a.value) && w.within(s.begin(number)+1, number+1) {
			found = true
			s.drop(a)
		}
	}
	isInside := func(word word) bool { // In quotes, or in a list of variables.
		return slices.ContainsFunc(w.Values, func(v string) bool {
			return strings.Index(strings.TrimPrefix(word.Value, "--env="), w.Name+"="+v) > 0
		})
	}
	for _, c := range s.commands {
		i := slices.IndexFunc(c.Words, isInside)
		if i < 0 || s.plain {
			continue
		}
		if at := s.lineOf(c.Words[i].From); w.within(s.begin(at)+1, at+1) {
			found = true
			s.byHand(at, "it is set there in a form that is not read")
		}
	}
	return found
}

// drop removes an assignment from its command, and the command with the last one.
func (s *script) drop(a assigned) {
	first, last := a.index, a.Words[a.index]
	at, before := s.lineOf(last.From), ""
	if first > 0 {
		before = a.Words[first-1].Value
	}
	if slices.Contains(options, before) {
		first--
	} else if first > 0 && !strings.HasPrefix(last.Value, "--env=") && !slices.Contains(setters, before) && !strings.Contains(before, "=") {
		s.byHand(at, "it is set there in a form that is not read")
		return
	}
	others := a.Words
	if others[0].Value == "export" || others[0].Value == "ENV" {
		others = others[1:]
	}
	if !slices.ContainsFunc(others, func(w word) bool { return w.From != last.From && !s.gone[w.From] }) {
		s.dropCommand(a.command, at)
		return
	}
	edit, gap := s.cut(a, first)
	isOther := func(l string) bool {
		return strings.Trim(l, " \t\\") != "" && !remark.MatchString(strings.TrimSpace(l))
	}
	meets := func(e udiff.Edit) bool { return e.Start < edit.End && edit.Start < e.End }
	if slices.ContainsFunc(strings.Split(gap, "\n"), isOther) || slices.ContainsFunc(s.edits, meets) {
		s.byHand(at, "something else stands between it and the others")
		return
	}
	s.gone[last.From] = true
	s.edits = append(s.edits, edit)
	s.changed(at)
}

// cut is the edit that removes an assignment, from a word on, and what else that removes: the line ends and comments in front of it, or
// behind one that stands in front of a command.
func (s *script) cut(a assigned, first int) (edit udiff.Edit, gap string) {
	isArgument := func(w word) bool { return strings.HasPrefix(w.Value, "-") || !strings.Contains(w.Value, "=") }
	assignment := a.Words[a.index]
	if a.index+1 < len(a.Words) && !slices.ContainsFunc(a.Words[:a.index], isArgument) {
		next := a.Words[a.index+1].From
		return udiff.Edit{Start: assignment.From, End: next}, s.Text[assignment.To:next]
	}
	from := a.Words[first].From
	if first > 0 {
		from = a.Words[first-1].To
	}
	return udiff.Edit{Start: from, End: assignment.To}, s.Text[from:a.Words[first].From]
}

// dropCommand removes a command with its lines, and what was removed from it before.
func (s *script) dropCommand(c *command, at int) {
	from, to := s.lineOf(c.Words[0].From), s.lineOf(c.Words[len(c.Words)-1].To-1)
	before := strings.TrimRight(s.Text[:s.starts[from]], " \t\n")
	switch {
	case !c.First || !c.Last || s.begin(from) != from || strings.HasSuffix(before, "&&") || strings.HasSuffix(before, "|"):
		s.byHand(at, "it does not stand on a line of its own")
	case c.Block > 0 || c.Maybe:
		s.byHand(at, "it may be the only command of a branch or a loop")
	default:
		edit := s.removal(from, to-from+1)
		s.edits = slices.DeleteFunc(s.edits, func(e udiff.Edit) bool { return edit.Start <= e.Start && e.End <= edit.End })
		s.edits = append(s.edits, edit)
		s.changed(at)
	}
}
