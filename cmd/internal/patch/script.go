package patch

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/emit"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// scriptForm changes shell scripts: the variables that they export, and the containers that
// they start.
type scriptForm struct{ batch bool }

// target is the target of gpudoctor advise --for that sets the same.
func (form scriptForm) target() string {
	if form.batch {
		return "slurm"
	}
	return "env"
}

// script is a shell script while it is changed.
type script struct {
	*file
	text     string
	starts   []int // The bytes at which lines begin.
	commands []command
	closed   bool
}

func newScript(f *file, instruction bool) *script {
	s := &script{file: f, text: f.body()}
	at := 0
	for _, l := range f.lines {
		s.starts = append(s.starts, at)
		at += len(l.text) + 1
	}
	if !instruction {
		s.commands, s.closed = commandsOf(s.text, false)
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

func (form scriptForm) propose(f *file) error {
	ranks, given := form.ranks(f)
	s := newScript(f, false)
	if !s.closed {
		return ErrQuote
	}
	containers := 0
	for i := range f.launches {
		if f.launches[i].Kind == "docker-run" {
			containers++
		}
	}
	for i := range f.launches {
		if l := &f.launches[i]; l.Kind == "docker-run" {
			s.container(l, containers == 1)
		}
	}
	for k := range f.Wants {
		w := &f.Wants[k]
		if w.Kind != plan.Variable && w.Kind != plan.Unset {
			continue
		}
		before := len(f.splices)
		if w.Kind == plan.Unset && s.remove(w) || !given || !ranks.Sets(w.Setting) || w.Kind == plan.Unset && len(w.Values) > 0 {
			if len(f.splices) > before {
				return nil
			}
			continue
		}
		s.export(w)
		if len(f.splices) > before {
			return nil
		}
	}
	return nil
}

// ranks is the target that sets what the script itself starts, if it starts something
// outside of containers.
func (form scriptForm) ranks(f *file) (*emit.Target, bool) {
	target, _ := emit.Named(form.target())
	return &target, slices.ContainsFunc(f.launches, func(l facts.Launch) bool { return l.Kind != "docker-run" && l.Kind != "shell" })
}

// dockerRun is where the options of docker run begin among the words of a command; -1 if it
// is another.
func dockerRun(c *command) int {
	for i := 0; i+1 < len(c.Words); i++ {
		if !slices.Contains(engines, path.Base(c.Words[i].Value)) {
			continue
		}
		if c.Words[i+1].Value == "container" {
			i++
		}
		if i+1 < len(c.Words) && (c.Words[i+1].Value == "run" || c.Words[i+1].Value == "create") {
			return i + 2
		}
		return -1
	}
	return -1
}

// engines are the programs that start containers with the options of docker run.
var engines = []string{"docker", "podman", "nerdctl", "nvidia-docker"}

// container gives a container that the script starts what it lacks.
func (s *script) container(l *facts.Launch, only bool) {
	where := "docker run"
	if l.Name != "" {
		where += " " + lines.Printable(l.Name, false)
	}
	starts := l.Processes != nil || l.TensorParallel != nil
	if !usesGPUs(l) && (!only || l.GPUs != nil || !starts) {
		return
	}
	var c *command
	for i := range s.commands {
		if at := dockerRun(&s.commands[i]); at >= 0 && s.begin(s.lineOf(s.commands[i].Words[at-1].From)) == l.Line-1 {
			if c != nil {
				c = nil
				break // Two of them on one line.
			}
			c = &s.commands[i]
		}
	}
	target, _ := emit.Named("docker")
	var lacking []string
	for k := range s.Wants {
		w := &s.Wants[k]
		from, to := l.Line, l.Line
		if c != nil {
			to = s.lineOf(c.Words[len(c.Words)-1].From) + 1
		}
		if w.Kind == plan.Unset || !target.Sets(w.Setting) || !s.concerns(w, l, from, to) || has(l, w) {
			continue
		}
		if w.Kind == plan.Variable && (same(l.Variables[w.Name], w.Value) && l.Variables[w.Name] != "") {
			continue
		}
		if c == nil || s.hidden(l, c) {
			lacking = append(lacking, words(w))
			continue
		}
		before := len(s.splices)
		s.option(l, c, w, where)
		if len(s.splices) > before {
			return
		}
	}
	if len(lacking) > 0 {
		s.manual = append(s.manual, Remark{Line: s.origin(l.Line - 1), Where: where, What: strings.Join(lacking, " "), Note: "its options are not written out there"})
	}
}

// hidden reports whether a variable of the script may hold options of a command: one that
// stands without quotes before them, or all words of a list.
func (s *script) hidden(l *facts.Launch, c *command) bool {
	for i := dockerRun(c); i < len(c.Words); i++ {
		w := c.Words[i]
		if strings.Contains(w.Value, "[@]}") || strings.Contains(w.Value, "[*]}") || w.Value == "$@" || w.Value == "$*" {
			return true
		}
		if w.Value != l.Image {
			continue
		}
		if !strings.HasPrefix(s.text[w.From:], "$") { // In quotes, it is one word.
			return false
		}
		for _, part := range []string{"ARG", "OPT", "FLAG", "PARAM"} {
			if strings.Contains(strings.ToUpper(w.Value), part) {
				return true
			}
		}
		name, _, _ := strings.Cut(strings.Join(l.Command[:min(1, len(l.Command))], ""), "=")
		return strings.HasPrefix(name, "$") || slices.Contains(bareOptions, name) || slices.Contains(valuedOptions, name)
	}
	return false
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

// option gives a command an option, or replaces the value that it has there.
func (s *script) option(l *facts.Launch, c *command, w *Want, where string) {
	run := dockerRun(c)
	engine := path.Base(c.Words[run-2].Value)
	if engine == "container" {
		engine = path.Base(c.Words[run-3].Value)
	}
	name, value, _ := strings.Cut(flag(w, engine), "=")
	names := map[string][]string{"--env": {"--env", "-e"}, "--network": {"--network", "--net"}, "--volume": {"--volume", "-v"}}[name]
	if names == nil {
		names = []string{name}
	}
	for i := run; i < len(c.Words) && c.Words[i].Value != l.Image; i++ {
		word := c.Words[i]
		own, old, joined := strings.Cut(word.Value, "=")
		if !slices.Contains(names, own) {
			continue
		}
		if !joined {
			if i++; i >= len(c.Words) {
				break
			}
			word, old = c.Words[i], c.Words[i].Value
		}
		switch w.Kind {
		case plan.Variable, plan.Limit:
			key, _, set := strings.Cut(value, "=")
			if oldKey, _, oldSet := strings.Cut(old, "="); set && oldKey != key {
				continue
			} else if set && !oldSet {
				s.byHand(w, where, s.lineOf(word.From), "its value comes from elsewhere")
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
		if old == value {
			return
		}
		if !stated(old) {
			s.byHand(w, where, s.lineOf(word.From), "its value refers to a variable")
			return
		}
		by := remedies.Quote(value)
		if joined {
			by = own + "=" + by
		}
		s.change(c, word, by, w, where)
		return
	}
	s.insert(l, c, run, remedies.Quote(flag(w, engine)), w, where)
}

// comment proposes the reason as comments above a command, where one may stand.
func (s *script) comment(c *command, w *Want, where string) []*splice {
	at := s.lineOf(c.Words[0].From)
	before := s.text[s.starts[at]:c.Words[0].From]
	if !c.First || strings.TrimSpace(before) != "" || s.begin(at) != at || s.said[s.place(c, where)] == w.comment() {
		return nil
	}
	return []*splice{{at: at, ins: reason(w, before, "")}}
}

// place is a command, for the comments above it.
func (s *script) place(c *command, where string) string {
	return where + "\x00" + strconv.Itoa(s.origin(s.lineOf(c.Words[0].From)))
}

// reason is why a setting is made, as comments, without the characters that they must not
// have.
func reason(w *Want, margin, bare string) []string {
	text := strings.Map(func(r rune) rune {
		if strings.ContainsRune(bare, r) {
			return ' '
		}
		return r
	}, w.comment())
	var all []string
	for _, l := range lines.Paragraphs(text, max(width-len(margin)-2, 40)) {
		all = append(all, margin+"# "+lines.Printable(l, false))
	}
	return all
}

// change replaces a word.
func (s *script) change(c *command, old word, by string, w *Want, where string) {
	at := s.lineOf(old.From)
	if s.lineOf(old.To-1) != at {
		s.byHand(w, where, at, "it stands on several lines")
		return
	}
	text := s.lines[at].text
	all := append(s.comment(c, w, where), &splice{
		at: at, del: 1, ins: []string{text[:old.From-s.starts[at]] + by + text[old.To-s.starts[at]:]},
		change: w.remark(where),
	})
	if s.splice(all...) {
		s.said[s.place(c, where)] = w.comment()
	}
}

// insert adds an option behind docker run and those that were added before: on a line of its
// own where the others have one.
func (s *script) insert(l *facts.Launch, c *command, run int, option string, w *Want, where string) {
	for run < len(c.Words) && s.added[s.place(c, where)+"\x00"+s.text[c.Words[run].From:c.Words[run].To]] {
		run++
	}
	last := c.Words[run-1]
	at := s.lineOf(last.To - 1)
	text := s.lines[at].text
	change := w.remark(where)
	edit := &splice{at: at, del: 1, ins: []string{text[:last.To-s.starts[at]] + " " + option + text[last.To-s.starts[at]:]}, change: change}
	if end, ok := s.complete(l, c, run, at); ok && strings.TrimSpace(text[end-s.starts[at]:]) == `\` && at+1 < len(s.lines) {
		next := s.lines[at+1].text
		margin := next[:len(next)-len(strings.TrimLeft(next, " \t"))]
		for at+2 < len(s.lines) && s.lines[at+1].origin == 0 && strings.HasSuffix(s.lines[at+1].text, `\`) {
			at++ // Behind what was added before.
		}
		edit = &splice{at: at + 1, ins: []string{margin + option + ` \`}, change: change}
	}
	if s.splice(append(s.comment(c, w, where), edit)...) {
		s.said[s.place(c, where)] = w.comment()
		s.added[s.place(c, where)+"\x00"+option] = true
	}
}

// complete reports whether the options on a line have their values there, and the image is
// below. end is the byte behind the last word of the line.
func (s *script) complete(l *facts.Launch, c *command, run, at int) (end int, ok bool) {
	end = c.Words[run-1].To
	open := false // Whether the word before may take a value.
	for _, word := range c.Words[run:] {
		if s.lineOf(word.From) != at {
			break
		}
		if s.lineOf(word.To-1) != at {
			return end, false
		}
		end = word.To
		isOption := strings.HasPrefix(word.Value, "-")
		if word.Value == l.Image || !isOption && !open {
			return end, false
		}
		open = isOption && !strings.Contains(word.Value, "=") && !slices.Contains(bareOptions, word.Value)
	}
	return end, !open
}

// bareOptions are options of docker run without a value.
var bareOptions = []string{"--rm", "--init", "--privileged", "--interactive", "--tty", "--detach", "-i", "-t", "-d", "-it", "-ti", "-dit", "-itd"}

// valuedOptions are the most frequent ones with a value.
var valuedOptions = []string{
	"--cap-add", "--device", "--env", "--env-file", "--gpus", "--group-add", "--hostname", "--ipc", "--mount", "--name", "--net", "--network", "--pid",
	"--publish", "--runtime", "--security-opt", "--shm-size", "--ulimit", "--user", "--volume", "--workdir", "-e", "-h", "-p", "-u", "-v", "-w",
}

// setters are the words behind which assignments stand.
var setters = []string{"export", "declare", "typeset", "readonly", "local", "env", "-x", "-e", "--env", "-genv", "-env"}

// assigned is where a command sets a variable.
type assigned struct {
	command *command
	index   int
	value   string
}

// assignments are the places where the script sets a variable, outside of containers or in
// all commands.
func (s *script) assignments(name string, containers bool) []assigned {
	var all []assigned
	for k := range s.commands {
		c := &s.commands[k]
		run := dockerRun(c)
		if !containers && run >= 0 {
			continue
		}
		for i, w := range c.Words {
			v := w.Value
			if rest, ok := strings.CutPrefix(v, "--env="); ok {
				v = rest
			}
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				all = append(all, assigned{c, i, value})
			}
		}
	}
	return all
}

// export sets or removes a variable at the beginning of the script, or changes the value that
// it has there.
func (s *script) export(w *Want) {
	if w.Kind == plan.Unset {
		for _, c := range s.commands {
			if len(c.Words) > 1 && c.Words[0].Value == "unset" && slices.ContainsFunc(c.Words, func(o word) bool { return o.Value == w.Name }) {
				return
			}
		}
		if len(s.assignments(w.Name, false)) == 0 {
			s.first(w, "unset "+w.Name)
		}
		return
	}
	all := s.assignments(w.Name, false)
	for _, a := range all {
		old := a.command.Words[a.index]
		switch {
		case same(a.value, w.Value):
		case !stated(a.value):
			s.byHand(w, "", s.lineOf(old.From), "its value refers to a variable")
		default:
			name, _, _ := strings.Cut(s.text[old.From:old.To], "=")
			if name == "--env" {
				name += "=" + w.Name
			}
			if name != w.Name && name != "--env="+w.Name {
				s.byHand(w, "", s.lineOf(old.From), "its value has another form there")
				continue
			}
			s.change(a.command, old, name+"="+remedies.Quote(w.Value), w, "")
			return
		}
	}
	if len(all) > 0 {
		return
	}
	if at := s.within(w.Name+"=", false); at >= 0 {
		s.byHand(w, "", s.lineOf(at), "it is set there in a form that is not read")
		return
	}
	s.first(w, "export "+w.Name+"="+remedies.Quote(w.Value))
}

// first writes a line at the beginning of the script, behind its header and what was written
// before.
func (s *script) first(w *Want, text string) {
	at, added := 0, false
	for i, l := range s.lines {
		t := strings.TrimSpace(l.text)
		if strings.HasPrefix(t, "#SBATCH") || strings.HasPrefix(t, "#") && at == i && l.origin > 0 {
			at = i + 1
		}
		if t != "" && !strings.HasPrefix(t, "#") {
			break
		}
	}
	for i := at; i < len(s.lines) && (s.lines[i].origin == 0 || s.lines[i].text == ""); i++ {
		if t := s.lines[i].text; s.lines[i].origin == 0 && (strings.HasPrefix(t, "export ") || strings.HasPrefix(t, "unset ")) {
			at, added = i+1, true
		}
	}
	var ins []string
	if !added && at > 0 {
		ins = append(ins, "")
	}
	if s.said["export"] != w.comment() {
		ins = append(ins, reason(w, "", "")...)
	}
	ins = append(ins, text)
	if !added && at < len(s.lines) && strings.TrimSpace(s.lines[at].text) != "" {
		ins = append(ins, "")
	}
	if s.splice(&splice{at: at, ins: ins, change: w.remark("")}) {
		s.said["export"] = w.comment()
	}
}

// remove removes a variable wherever the script sets it so. It reports whether it is set.
func (s *script) remove(w *Want) bool {
	if len(w.Values) == 0 {
		return false
	}
	found := false
	for _, a := range s.assignments(w.Name, true) {
		old := a.command.Words[a.index]
		if number := s.lineOf(old.From); !w.removes(w.Name, a.value) || !s.file.within(w, s.begin(number)+1, number+1) {
			continue
		}
		found = true
		s.drop(a, w)
	}
	for _, v := range w.Values { // Inside quotes, or in a list of variables.
		if at := s.within(w.Name+"="+v, true); at >= 0 && s.file.within(w, s.begin(s.lineOf(at))+1, s.lineOf(at)+1) {
			s.byHand(w, "", s.lineOf(at), "it is set there in a form that is not read")
			found = true
		}
	}
	return found
}

// within is the byte of a word that holds an assignment as a part; -1 where there is none.
func (s *script) within(setting string, containers bool) int {
	for k := range s.commands {
		c := &s.commands[k]
		if !containers && dockerRun(c) >= 0 {
			continue
		}
		for _, w := range c.Words {
			if at := strings.Index(strings.TrimPrefix(w.Value, "--env="), setting); at > 0 {
				return w.From
			}
		}
	}
	return -1
}

// drop removes an assignment from its command, and the command with the last one.
func (s *script) drop(a assigned, w *Want) {
	c := a.command
	old := c.Words[a.index]
	at := s.lineOf(old.From)
	change := w.remark("")
	from := old.From
	if i := a.index; i > 0 && slices.Contains([]string{"-e", "--env", "-x", "-genv", "-env"}, c.Words[i-1].Value) {
		from = c.Words[i-1].From
	} else if i > 0 && !strings.HasPrefix(old.Value, "--env=") && !slices.Contains(setters, c.Words[i-1].Value) && !strings.Contains(c.Words[i-1].Value, "=") {
		s.byHand(w, "", at, "it is set there in a form that is not read")
		return
	}
	whole := len(c.Words) == 1 || len(c.Words) == 2 && a.index == 1 && c.Words[0].Value == "export"
	if whole {
		begin := s.lineOf(c.Words[0].From)
		if !c.First || !c.Last || s.begin(begin) != begin || s.onlyCommand(begin, at) {
			s.byHand(w, "", at, "it does not stand on a line of its own")
			return
		}
		s.splice(s.removal(begin, at-begin+1, w, ""))
		return
	}
	if s.lineOf(from) != at || s.lineOf(old.To-1) != at {
		s.byHand(w, "", at, "it stands on several lines")
		return
	}
	text := s.lines[at].text
	before, after := text[:from-s.starts[at]], text[old.To-s.starts[at]:]
	switch {
	case strings.TrimSpace(before) == "" && strings.TrimSpace(after) == `\`: // A line of its own.
		s.splice(&splice{at: at, del: 1, change: change})
	case strings.TrimSpace(before) == "" && strings.TrimSpace(after) == "" && at > 0 && strings.HasSuffix(s.lines[at-1].text, `\`):
		above := strings.TrimRight(strings.TrimSuffix(s.lines[at-1].text, `\`), " \t")
		s.splice(&splice{at: at - 1, del: 1, ins: []string{above}, change: change}, &splice{at: at, del: 1})
	case strings.TrimSpace(before) == "":
		s.splice(&splice{at: at, del: 1, ins: []string{before + strings.TrimLeft(after, " \t")}, change: change})
	default:
		s.splice(&splice{at: at, del: 1, ins: []string{strings.TrimRight(before, " \t") + after}, change: change})
	}
}

// onlyCommand reports whether the lines are all that a branch or loop around them has.
func (s *script) onlyCommand(from, to int) bool {
	opens, closes := false, false
	for i := from - 1; i >= 0; i-- {
		if t := strings.TrimSpace(s.lines[i].text); t != "" && !strings.HasPrefix(t, "#") {
			opens = slices.ContainsFunc([]string{"then", "do", "else", "{", "(", ")", "in"}, func(end string) bool { return strings.HasSuffix(t, end) })
			break
		}
	}
	for i := to + 1; i < len(s.lines); i++ {
		if t := strings.TrimSpace(s.lines[i].text); t != "" && !strings.HasPrefix(t, "#") {
			closes = slices.ContainsFunc([]string{"fi", "done", "else", "elif", "}", ")", ";;", "esac"}, func(begin string) bool { return strings.HasPrefix(t, begin) })
			break
		}
	}
	return opens && closes
}
