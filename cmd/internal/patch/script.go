package patch

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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
	text     string
	starts   []int // The bytes at which lines begin.
	commands []command
	isShell  bool
}

func newScript(f *file, form scriptForm) *script {
	s := &script{file: f, scriptForm: form, text: f.body()}
	at := 0
	for _, l := range f.lines {
		s.starts = append(s.starts, at)
		at += len(l.text) + 1
	}
	return s
}

// lineOf is the line, counted from 0, that a byte is on.
func (s *script) lineOf(at int) int {
	i, found := slices.BinarySearch(s.starts, at)
	if !found {
		i--
	}
	return max(i, 0)
}

// begin is the first of the lines that a backslash joins to one.
func (s *script) begin(at int) int {
	for at > 0 && strings.HasSuffix(strings.TrimRight(s.lines[at-1].text, " \t"), `\`) {
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
		switch t, m := strings.TrimSpace(l.text), envLine.FindStringSubmatch(l.text); {
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
		m := envLine.FindStringSubmatchIndex(l.text)
		if m == nil {
			continue
		}
		value := l.text[m[6]:m[7]]
		if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		w := word{Value: l.text[m[4]:m[5]] + "=" + value, From: s.starts[i] + m[4], To: s.starts[i] + m[7]}
		all = append(all, command{Words: []word{w}, Line: i + 1, First: true, Last: true})
	}
	return all
}

func (form scriptForm) propose(f *file) error {
	s := newScript(f, form)
	if form.plain {
		s.commands = s.plainCommands()
	} else if read := shell.Parse(s.text); read.Whole {
		s.commands, s.isShell = read.Commands, true
	} else {
		return ErrQuote
	}
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
			s.container(l, containers == 1)
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

// runOf is a command as one that starts a container; nil if it does not.
func runOf(c *command) *run {
	r := &run{command: c}
	if r.engine, r.options, r.open = launch.DockerRun(c.Values()); len(r.options) == 0 {
		return nil
	}
	return r
}

// runAt is the command that starts a container from a line; nil if there are two of them.
func (s *script) runAt(number int) (found *run) {
	for i := range s.commands {
		if r := runOf(&s.commands[i]); r != nil && s.begin(s.lineOf(r.Words[r.options[0]-1].From)) == number-1 {
			if found != nil {
				return nil
			}
			found = r
		}
	}
	return found
}

// container gives a container that the script starts what it lacks.
func (s *script) container(l *facts.Launch, only bool) {
	if !usesGPUs(l) && (!only || l.GPUs != nil || l.Processes == nil && l.TensorParallel == nil) {
		return
	}
	r, last := s.runAt(l.Line), l.Line
	if r != nil {
		last = s.lineOf(r.Words[len(r.Words)-1].From) + 1
	}
	target, _ := emit.Named("docker")
	var lacking []string
	s.write(strings.TrimSpace("docker run "+lines.Printable(l.Name, false)), func(w *Want) {
		switch value := l.Variables[w.Name]; {
		case w.Kind == plan.Unset || !target.Sets(w.Setting) || !s.concerns(w, l, l.Line, last) || has(l, w):
		case w.Kind == plan.Variable && value != "" && same(value, w.Value):
		case r == nil || r.open != "" && slices.Contains(slices.Collect(maps.Values(l.Unknown)), r.open): // Its value is not known.
			lacking = append(lacking, words(w))
		default:
			s.option(r)
		}
	})
	if len(lacking) > 0 {
		hidden := Remark{Line: s.origin(l.Line - 1), Where: s.where, What: strings.Join(lacking, " "), Note: "its options are not written out there"}
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

// alike are other names of options.
var alike = map[string]string{"-e": "--env", "--net": "--network", "-v": "--volume"}

// option gives a command an option, or replaces the value that it has there.
func (s *script) option(r *run) {
	w := s.want
	name, value, _ := strings.Cut(flag(w, r.engine), "=")
	for j, i := range r.options[:len(r.options)-1] {
		own, old, joined := strings.Cut(r.Words[i].Value, "=")
		if own != name && alike[own] != name {
			continue
		}
		if !joined {
			if i++; i == r.options[j+1] {
				continue
			}
			old = r.Words[i].Value
		}
		switch w.Kind {
		case plan.Variable, plan.Limit:
			key, _, set := strings.Cut(value, "=")
			if oldKey, _, oldSet := strings.Cut(old, "="); set && oldKey != key {
				continue
			} else if set && !oldSet {
				s.byHand(s.lineOf(r.Words[i].From), "its value comes from elsewhere")
				return
			}
		case plan.Group:
			if old == value || strings.Trim(old, "0123456789") == "" || !stated(old) { // A number may be that group's.
				return
			}
			continue
		case plan.Capability, plan.Device, plan.Mount, plan.GPUs:
			continue
		default: // It stands once.
		}
		by := remedies.Quote(value)
		if joined {
			by = own + "=" + by
		}
		switch {
		case old == value:
		case !stated(old):
			s.byHand(s.lineOf(r.Words[i].From), "its value refers to a variable")
		default:
			s.change(r.command, r.Words[i], by)
		}
		return
	}
	s.insert(r, remedies.Quote(flag(w, r.engine)))
}

// above is the line above which comments about a command may stand, and how it begins; -1 where none may.
func (s *script) above(c *command) (at int, margin string) {
	at = s.lineOf(c.Words[0].From)
	if !c.First || s.begin(at) != at {
		return -1, ""
	}
	return at, marginOf(s.lines[at].text)
}

// place is a command, for the comments above it.
func (s *script) place(c *command) string {
	return strconv.Itoa(s.origin(s.lineOf(c.Words[0].From)))
}

// replaced is the edit of a line that replaces bytes of the text.
func (s *script) replaced(from, to int, by string) *splice {
	at := s.lineOf(from)
	text := s.lines[at].text
	return &splice{at: at, del: 1, ins: []string{text[:from-s.starts[at]] + by + text[to-s.starts[at]:]}}
}

// change replaces a word.
func (s *script) change(c *command, old word, by string) {
	if at := s.lineOf(old.From); s.lineOf(old.To-1) != at {
		s.byHand(at, "it stands on several lines")
		return
	}
	above, margin := s.above(c)
	s.file.propose(s.place(c), above, margin, s.replaced(old.From, old.To, by))
}

// insert adds an option behind docker run and those that were added before: on a line of its
// own where the others have one.
func (s *script) insert(r *run, option string) {
	next := r.options[0]
	place := s.place(r.command) + "\x00" + s.where + "\x00"
	for next < len(r.Words) && s.added[place+s.text[r.Words[next].From:r.Words[next].To]] {
		next++
	}
	s.added[place+option] = true
	behind := r.Words[next-1].To
	at := s.lineOf(behind - 1)
	edit := s.replaced(behind, behind, " "+option)
	for next < len(r.Words) && s.lineOf(r.Words[next].From) == at {
		next++
	}
	end := r.Words[next-1].To
	if slices.Contains(r.options, next) && next < len(r.Words) && s.lineOf(end-1) == at && strings.TrimSpace(s.lines[at].text[end-s.starts[at]:]) == `\` {
		at++
		margin := marginOf(s.lines[at].text)
		for s.lines[at].origin == 0 && at+1 < len(s.lines) && strings.HasSuffix(s.lines[at].text, `\`) { // Behind what was added before.
			at++
		}
		edit = &splice{at: at, ins: []string{margin + option + ` \`}}
	}
	above, margin := s.above(r.command)
	s.file.propose(s.place(r.command), above, margin, edit)
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
		if !containers && runOf(c) != nil {
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
	if strings.HasPrefix(s.text[old.From:], "--env=") {
		prefix = "--env=" + prefix
	}
	value, ok := s.quoted(at)
	switch {
	case same(a.value, w.Value) || !ok:
	case !stated(a.value):
		s.byHand(at, "its value refers to a variable")
	case !strings.HasPrefix(s.text[old.From:old.To], prefix):
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
	switch at := s.inside(w.Name+"=", false); {
	case w.Kind == plan.Unset:
		if len(all) == 0 && !slices.ContainsFunc(s.commands, isUnset) {
			s.first("unset " + w.Name)
		}
	case slices.ContainsFunc(all, s.assign) || len(all) > 0:
	case at >= 0:
		s.byHand(s.lineOf(at), "it is set there in a form that is not read")
	default:
		value, ok := s.quoted(0)
		text := w.Name + "=" + value
		if !s.plain {
			text = "export " + text
		}
		if ok {
			s.first(text)
		}
	}
}

// first writes a line at the beginning of the script, behind its header and what was written
// before, and in a file of variables at its end.
func (s *script) first(text string) {
	if s.onlyVariables {
		s.file.propose("export", len(s.lines), "", &splice{at: len(s.lines), ins: []string{text}})
		return
	}
	at, added := 0, false
	for i, l := range s.lines {
		t := strings.TrimSpace(l.text)
		isComment := strings.HasPrefix(t, "#")
		isAdded := l.origin == 0 && (strings.HasPrefix(t, "export ") || strings.HasPrefix(t, "unset "))
		if isAdded || strings.HasPrefix(t, "#SBATCH") || isComment && at == i && l.origin > 0 {
			at, added = i+1, isAdded
		}
		if t != "" && !isComment && !isAdded {
			break
		}
	}
	edits := []*splice{{at: at, ins: []string{text}}}
	if !added && at < len(s.lines) && strings.TrimSpace(s.lines[at].text) != "" {
		edits[0].ins = append(edits[0].ins, "")
	}
	if !added && at > 0 {
		edits = append(edits, &splice{at: at, ins: []string{""}})
	}
	s.file.propose("export", at, "", edits...)
}

// unset removes a variable wherever the script sets it so. It reports whether it is set.
func (s *script) unset() (found bool) {
	w := s.want
	for _, a := range s.assignments(w.Name, true) {
		number := s.lineOf(a.Words[a.index].From)
		if len(w.Values) > 0 && w.removes(w.Name, a.value) && s.within(w, s.begin(number)+1, number+1) {
			found = true
			s.drop(a)
		}
	}
	for _, v := range w.Values { // Inside quotes, or in a list of variables.
		if at := s.inside(w.Name+"="+v, true); at >= 0 && s.within(w, s.begin(s.lineOf(at))+1, s.lineOf(at)+1) {
			s.byHand(s.lineOf(at), "it is set there in a form that is not read")
			found = true
		}
	}
	return found
}

// inside is the byte of a word that holds an assignment as a part; -1 where there is none.
func (s *script) inside(setting string, containers bool) int {
	for k := range s.commands {
		if c := &s.commands[k]; !s.plain && (containers || runOf(c) == nil) {
			for _, w := range c.Words {
				if strings.Index(strings.TrimPrefix(w.Value, "--env="), setting) > 0 {
					return w.From
				}
			}
		}
	}
	return -1
}

// drop removes an assignment from its command, and the command with the last one.
func (s *script) drop(a assigned) {
	i, old := a.index, a.Words[a.index]
	at, before := s.lineOf(old.From), ""
	if i > 0 {
		before = a.Words[i-1].Value
	}
	from := old.From
	if slices.Contains(options, before) {
		from = a.Words[i-1].From
	} else if i > 0 && !strings.HasPrefix(old.Value, "--env=") && !slices.Contains(setters, before) && !strings.Contains(before, "=") {
		s.byHand(at, "it is set there in a form that is not read")
		return
	}
	begin := s.lineOf(a.Words[0].From)
	text := s.lines[at].text
	isMoved := i == 1 && (before == "export" || before == "ENV")
	switch {
	case len(a.Words) == 1 || len(a.Words) == 2 && isMoved:
		if end := s.lineOf(old.To - 1); !a.First || !a.Last || s.begin(begin) != begin || !s.isLeft(begin, end) {
			s.byHand(at, "it does not stand on a line of its own")
		} else {
			s.remove(begin, end-begin+1)
		}
		return
	case s.lineOf(from) != at || s.lineOf(old.To-1) != at:
		s.byHand(at, "it stands on several lines")
		return
	}
	head, tail := text[:from-s.starts[at]], text[old.To-s.starts[at]:]
	edits := []*splice{{at: at, del: 1}}
	switch onOwnLine := strings.TrimSpace(head) == ""; {
	case onOwnLine && strings.TrimSpace(tail) == `\`:
	case onOwnLine && strings.TrimSpace(tail) == "" && i > 0: // The last one: the line above does not go on.
		above, goesOn := strings.CutSuffix(s.lines[at-1].text, `\`)
		if !goesOn || strings.HasPrefix(strings.TrimSpace(above), "#") {
			s.byHand(at, "a comment stands between it and the others")
			return
		}
		edits = []*splice{{at: at - 1, del: 1, ins: []string{strings.TrimRight(above, " \t")}}, {at: at, del: 1}}
	case onOwnLine:
		edits[0].ins = []string{head + strings.TrimLeft(tail, " \t")}
	default:
		edits[0].ins = []string{strings.TrimRight(head, " \t") + tail}
	}
	s.file.propose("", -1, "", edits...)
}

// isLeft reports whether what is left of a script without some lines is one: a branch or loop needs a command.
func (s *script) isLeft(from, to int) bool {
	return !s.isShell || shell.Parse(s.text[:s.starts[from]]+s.text[s.starts[to]+len(s.lines[to].text)+1:]).Whole
}
