package patch

import (
	"maps"
	"slices"
	"strings"

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

// script is a shell script while it is changed: the variables that it sets, and the containers that it starts.
type script struct {
	*file
	commands []command
	// behind is the line behind which variables are set.
	behind int
}

// unread says why a setting is left to a person.
const unread = "it is set there in a form that is not read"

// read reads the commands of the text. It reports whether all of it is understood.
func (s *script) read() bool {
	read := shell.Parse(s.Text)
	s.commands = read.Commands
	return read.Whole
}

// edited makes the edits at a line, counted from 0, after which there must be as many words more.
func (s *script) edited(line, more int, note string) bool {
	words := func() (n int) {
		for i := range s.commands {
			n += len(s.commands[i].Words)
		}
		return n
	}
	want := words() + more
	ok := s.apply(line, func() bool { return s.read() && words() == want }, note)
	if !ok {
		s.read()
	}
	return ok
}

// proposeScript changes a script.
func proposeScript(f *file) error {
	s := &script{file: f}
	if !s.read() {
		return ErrQuote
	}
	s.behind = s.header()
	containers, others := 0, 0 // What it starts outside of containers; a script that starts nothing sets variables for others.
	target := "env"
	for i := range f.launches {
		switch f.launches[i].Kind {
		case "docker-run":
			containers++
		case "slurm":
			target = "slurm"
			others++
		case "shell":
		default:
			others++
		}
	}
	for i := range f.launches {
		if l := &f.launches[i]; l.Kind == "docker-run" && !s.isFull() {
			s.container(l, containers == 1)
		}
	}
	sets, _ := emit.Named(target)
	s.write("", func(w *Want) {
		switch {
		case w.Kind != plan.Variable && w.Kind != plan.Unset:
		case w.Kind == plan.Unset && (s.unset() || len(w.Values) > 0):
		case (others > 0 || containers == 0) && sets.Sets(w.Setting):
			s.export()
		}
	})
	return nil
}

// run is a command that starts a container.
type run struct {
	// command is its number.
	command int
	words   []word
	engine  string
	// options are the words at which its options begin, and at the end where the image stands; open is a variable that may stand for more.
	options []int
	open    string
}

// runOf is a command as one that starts a container; nil if it starts none.
func (s *script) runOf(k int) *run {
	r := &run{command: k, words: s.commands[k].Words}
	if r.engine, r.options, r.open = launch.DockerRun(s.commands[k].Values()); len(r.options) == 0 {
		return nil
	}
	return r
}

// runAt is the command that starts a container at a line of the original; nil if there is none, or two of them.
func (s *script) runAt(number int) (found *run) {
	for k := range s.commands {
		words := s.commands[k].Words
		if s.numbers[s.begin(s.lineOf(words[0].From))] > number || s.numbers[s.lineOf(words[len(words)-1].From)] < number {
			continue
		}
		r := s.runOf(k)
		if r == nil || s.numbers[s.begin(s.lineOf(r.words[r.options[0]-1].From))] != number {
			continue
		}
		if found != nil {
			return nil
		}
		found = r
	}
	return found
}

// container gives a container that the script starts what it lacks.
func (s *script) container(l *facts.Launch, only bool) {
	if !usesGPUs(l) && (!only || l.GPUs != nil || l.Processes == nil && l.TensorParallel == nil) {
		return
	}
	last := l.Line
	if r := s.runAt(l.Line); r != nil {
		last = s.numbers[s.lineOf(r.words[len(r.words)-1].From)]
	}
	target, _ := emit.Named("docker")
	var lacking []string
	s.write(strings.TrimSpace("docker run "+lines.Printable(l.Name, false)), func(w *Want) {
		switch value := l.Variables[w.Name]; {
		case w.Kind == plan.Unset || !target.Sets(w.Setting) || !w.concerns(l, l.Line, last) || has(l, w):
		case w.Kind == plan.Variable && value != "" && same(value, w.Value):
		default:
			r := s.runAt(l.Line)
			if r == nil || r.open != "" && slices.Contains(slices.Collect(maps.Values(l.Unknown)), r.open) { // Its value is not known.
				lacking = append(lacking, words(w))
			} else {
				s.option(r)
			}
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
		own, old, joined := strings.Cut(r.words[i].Value, "=")
		by := own + "=" + value
		if !joined && i+1 < r.options[j+1] {
			i++
			old, by = r.words[i].Value, value
		}
		switch isOnce := w.Kind == plan.SharedMemory || w.Kind == plan.Namespace || w.Kind == plan.Limit || w.Kind == plan.Variable; {
		case own != name && longer[own] != name:
		case w.Kind == plan.Group && mayBe(old, w.Name), old == value:
			return
		case !isOnce || isPair && !strings.HasPrefix(old, key+"="):
		case !stated(old):
			s.byHand(s.lineOf(r.words[i].From), "its value refers to a variable")
			return
		default:
			s.change(r, r.words[i], by)
			return
		}
	}
	s.insertOption(r, flag(w, r.engine))
}

// change replaces the value in a word.
func (s *script) change(r *run, old word, by string) {
	at := s.lineOf(old.From)
	written := remedies.Quote(by)
	if name, value, ok := strings.Cut(by, "="); ok {
		written = name + "=" + remedies.Quote(value)
	}
	s.replace(old.From, old.To, written)
	s.explain(r)
	s.edited(at, 0, unread)
}

// explain has the reason of the setting written above a command, if one may stand there.
func (s *script) explain(r *run) {
	at := s.lineOf(r.words[0].From)
	if s.commands[r.command].First && s.begin(at) == at {
		s.insert(at, s.comment(at, marginOf(s.lines[at]), false))
	}
}

// insertOption adds an option in front of the image, on a line of its own where the image has one.
func (s *script) insertOption(r *run, option string) {
	image := r.options[len(r.options)-1]
	behind := r.words[image-1].To
	if image == len(r.words) {
		s.byHand(s.lineOf(behind), "the command has no image")
		return
	}
	if s.lineOf(r.words[image].From) == s.lineOf(behind)+1 {
		at := s.lineOf(r.words[image].From)
		s.insert(at, []string{marginOf(s.lines[at]) + remedies.Quote(option) + ` \`})
	} else {
		s.replace(behind, behind, " "+remedies.Quote(option))
	}
	s.explain(r)
	s.edited(s.lineOf(r.words[0].From), 1, unread)
}

// assigned is a word that sets a variable.
type assigned struct {
	word
	value string
}

// assignments are the words that set the variable, outside of containers or in all commands, the last one first: what is changed at one leaves
// those before it where they are.
func (s *script) assignments(containers bool) (all []assigned) {
	for k, c := range s.commands {
		for _, w := range c.Words {
			value, ok := strings.CutPrefix(strings.TrimPrefix(w.Value, "--env="), s.want.Name+"=")
			if ok && (containers || s.runOf(k) == nil) {
				all = append(all, assigned{w, value})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b assigned) int { return b.From - a.From })
	return all
}

// settingLine is a line that sets one variable and nothing else: a command, or a part of one that stands on several lines.
var settingLine = lazy.New("^(\\s*(?:(?:export|readonly|-e|-x|--env)\\s+|--env=)?)(\\w+)=(?:\"[^\"$`\\\\]*\"|'[^']*'|[^\\s\"'$`\\\\;&|<>()#]*)(\\s*\\\\?|\\s+#.*)$")

// set changes the value on a line that sets nothing else, or removes the line. The end of what stands on several lines is left to a person: the sign
// at the end of the line above would have to go with it.
func (s *script) set(a assigned) {
	at, more := s.lineOf(a.From), 0
	m := settingLine.FindStringSubmatch(s.lines[at])
	above := strings.TrimRight(s.Text[:s.starts[at]], " \t\n")
	switch {
	case m == nil || m[2] != s.want.Name || s.begin(at) != at && strings.TrimSpace(m[3]) != `\` || strings.HasSuffix(above, "&&") || strings.HasSuffix(above, "|"):
		s.byHand(at, "something else stands on its line")
		return
	case s.want.Kind == plan.Unset:
		s.replace(s.starts[at], s.starts[at+1], "")
		for _, c := range s.commands {
			more -= len(lines.Filter(c.Words, func(w word) bool { return s.lineOf(w.From) == at }))
		}
	default:
		s.replace(s.starts[at], s.starts[at+1], m[1]+s.want.Name+"="+remedies.Quote(s.want.Value)+m[3]+"\n")
		s.insert(at, s.comment(at, marginOf(m[1]), false))
	}
	s.edited(at, more, "what stands around it needs its line")
}

// export sets or removes a variable at the beginning of the script, or changes the value that it has there.
func (s *script) export() {
	w := s.want
	all := s.assignments(false)
	isUnset := func(c command) bool { v := c.Values(); return v[0] == "unset" && slices.Contains(v, w.Name) }
	switch {
	case w.Kind == plan.Unset:
		if len(all) == 0 && !slices.ContainsFunc(s.commands, isUnset) {
			s.add("unset "+w.Name, 2)
		}
	case len(all) > 0:
		for _, a := range all {
			switch {
			case same(a.value, w.Value) || s.isFull():
			case !stated(a.value):
				s.byHand(s.lineOf(a.From), "its value refers to a variable")
			default:
				s.set(a)
			}
		}
	default:
		s.add("export "+w.Name+"="+remedies.Quote(w.Value), 2)
	}
}

// add adds a line of some words.
func (s *script) add(line string, words int) {
	added := append(s.comment(s.behind, "", true), line)
	s.insert(s.behind, added)
	if s.edited(s.behind-1, words, unread) {
		s.behind += len(added)
	}
}

// header is the line behind the header of a script.
func (s *script) header() (at int) {
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

// unset removes a variable wherever the script sets it so. It reports whether it is set.
func (s *script) unset() (found bool) {
	w := s.want
	isHere := func(at word) bool {
		line := s.lineOf(at.From)
		return w.within(s.numbers[s.begin(line)], s.numbers[line])
	}
	for _, a := range s.assignments(true) {
		if len(w.Values) > 0 && w.removes(w.Name, a.value) && isHere(a.word) && !s.isFull() {
			found = true
			s.set(a)
		}
	}
	isInside := func(word word) bool { // In quotes, or in a list of variables.
		return slices.ContainsFunc(w.Values, func(v string) bool {
			return strings.Index(strings.TrimPrefix(word.Value, "--env="), w.Name+"="+v) > 0
		})
	}
	for _, c := range s.commands {
		if i := slices.IndexFunc(c.Words, isInside); i >= 0 && isHere(c.Words[i]) {
			found = true
			s.byHand(s.lineOf(c.Words[i].From), unread)
		}
	}
	return found
}
