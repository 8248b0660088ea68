package runs

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/launch"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

const (
	// maxRuns bounds the runs of the facts, the lists of a run, and the hosts of a text with their variables.
	maxRuns = 64
	// maxMarks bounds the marks of a run.
	maxMarks = 4096
	// maxSet bounds the variables that a text is known to set.
	maxSet = 1 << 14
	// maxValue bounds the value of a variable.
	maxValue = 200
)

// run is a run under construction.
type run struct {
	facts.Run
	// text is the line with which it begins, and end the number of its last one.
	text string
	end  int
	// identity is the program with its arguments, without what counts GPUs; empty if no command was seen.
	identity string
	// upto is the largest message that a test of nccl-tests was asked for, as its command writes it.
	upto string
	// changes is how often the machine or the folder of a shell was changed before, and quoted how many times the run is quoted.
	changes, quoted int
	// logged are the variables that the library says it read, and made is true once it made a communicator.
	logged map[string]string
	made   bool
	// named is true for a run that the name of a file distinguishes.
	named bool
	// begun is true once the program wrote its banner.
	begun bool
	marks []mark
	// unclear is true if it is not known what was set for it, or whether what follows is its output.
	unclear bool
	// mixed is true if the same was run again, with another outcome.
	mixed bool
	// plain is true if a text says that something failed, and not what was set for it.
	plain bool
	// presumed is true if a text does not say the outcome in words that are known here.
	presumed bool
	// when is true if a text says that it fails when a variable is set: without it, it works.
	when bool
	// base is true of the run without settings to which what a text tells is compared.
	base bool
}

// over reports whether anything tells the outcome of a run: what starts then is another.
func (r *run) over() bool {
	return slices.ContainsFunc(r.marks, func(m mark) bool { return m.kind >= finished })
}

// add gives a run a mark. Of several of a kind in a row the first counts and the last, and steps are counted together.
func (r *run) add(m mark) {
	n := len(r.marks)
	switch {
	case m.kind == step && n > 0 && r.marks[n-1].kind == step:
		last := &r.marks[n-1]
		if m.number > last.number {
			last.count++
		}
		last.line, last.text, last.number = m.line, m.text, m.number
	case n > 1 && r.marks[n-1].kind == m.kind && r.marks[n-2].kind == m.kind && (m.kind != complaint || stalls(r.marks[n-1].name) == stalls(m.name)):
		r.marks[n-1] = m
	case n < maxMarks:
		r.marks = append(r.marks, m)
	}
}

// shellState is what a shell hands to the programs that it starts.
type shellState struct {
	exported map[string]string
	// unsure is true once it is not known whether programs have a variable.
	unsure bool
}

// session takes the marks of a text, in the order of lines, and makes runs of them.
type session struct {
	name string
	// recent are marks that are not in order yet, and enough is how many of them are put in order together.
	recent []mark
	enough int
	// shell is that of the last prompt, of those of all hosts, and context what the last heading says.
	shell   *shellState
	shells  map[string]*shellState
	context mark
	// quoted is how many times what is being said is quoted: others say it.
	quoted int
	// prompt is the line of the last shell prompt, and indented its indentation.
	prompt, indented int
	// changes counts what changed the machine, or the folder of a shell.
	changes int
	// file is what the text's name says.
	file    mark
	current *run
	runs    []*run
	// aside is true in the output of a command that is no run.
	aside bool
	// set are the variables that the text sets, and configured those that it shows to be set for all: "NAME=value".
	set, configured map[string]bool
}

func newSession(name string) *session {
	s := &session{name: name, enough: leastRecent, shells: map[string]*shellState{}, set: map[string]bool{}, configured: map[string]bool{}}
	s.shell = s.shellAt("")
	title := fileTitle(name)
	s.file.titled(title)
	if len(s.file.settings)+len(s.file.removed) > 0 || plainly.MatchString(title) {
		s.file.kind = heading
	}
	return s
}

// shellAt is the shell of a host.
func (s *session) shellAt(host string) *shellState {
	if s.shells[host] == nil {
		if len(s.shells) >= maxRuns {
			clear(s.shells)
		}
		s.shells[host] = &shellState{exported: map[string]string{}}
	}
	return s.shells[host]
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
	return strings.NewReplacer("_", " ", "-", " ", ".", " ").Replace(name)
}

func (s *session) take(m mark) {
	r := s.current
	if m.quoted != s.quoted && (m.kind != variable || m.logged) && m.line != s.prompt { // Another person says it.
		s.close(m.line - 1)
		s.quoted, s.context, s.aside = m.quoted, mark{}, false
		clear(s.shells)
		s.shell, r = s.shellAt(""), nil
	}
	switch m.kind {
	case prompt:
		s.typed(m)
	case command:
		s.started(m)
	case heading:
		if r != nil && r.By == "command" && !r.over() && !m.ofVariables() {
			return // The program itself writes of its GPUs.
		}
		if s.context = m; m.asked {
			s.context = mark{line: m.line}
		}
		r = s.begin("heading", m)
		r.unclear = r.unclear || m.asked
	case banner:
		switch {
		case r == nil && !s.aside:
			s.begin("output", m).begun = true
		case r != nil:
			r.begun = true
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

// ofVariables reports whether a heading is about more than GPUs and versions.
func (m *mark) ofVariables() bool {
	return len(m.settings) == 0 || len(m.removed) > 0 || slices.ContainsFunc(m.settings, func(v [2]string) bool {
		return !slices.Contains([]string{devicesName, countName, "nccl", "rccl"}, v[0])
	})
}

// close ends the run under way at a line.
func (s *session) close(line int) {
	if s.current != nil {
		s.current.end = line
	}
	s.current = nil
}

// begin begins a run with what is set for it.
func (s *session) begin(by string, m mark) *run {
	s.close(m.line - 1)
	r := &run{
		Run:  facts.Run{By: by, Source: s.name, Line: m.line, Variables: map[string]string{}, Outcome: unknown},
		text: m.text, logged: map[string]string{}, quoted: s.quoted, changes: s.changes, named: s.file.kind == heading, unclear: s.shell.unsure,
	}
	if r.named && by == "output" {
		r.By = "file"
	}
	for name, value := range s.shell.exported {
		r.set(name, value)
	}
	for _, m := range []mark{s.file, s.context} {
		for _, v := range m.settings {
			r.set(v[0], v[1])
		}
		for _, name := range m.removed {
			delete(r.Variables, name)
		}
	}
	s.current, s.aside = r, false
	s.runs = append(s.runs, r)
	return r
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
	case slices.Contains(data.Experiments().Ignored, name), r.By != "text" && slices.Contains(data.Experiments().Places, name):
	case steers(name) || name == strings.ToLower(name):
		if len(r.Variables) < maxRuns {
			r.Variables[name] = value
		}
	}
}

// count reads a small number; 0 if it cannot.
func count(text string) int {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

// typed takes a command behind a prompt: it may start a run, or change what is set for those that follow.
func (s *session) typed(m mark) {
	if m.line == s.prompt {
		return // The same without "node7: ", which may be part of it.
	}
	// A program may print one: of which of the two an outcome is, is not known.
	printed := s.current != nil && s.current.By == "command" && m.indented > s.indented
	if printed {
		s.current.unclear = true
	}
	s.close(m.line - 1)
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
		case words[0] == "cd" || words[0] == "pushd", changing.MatchString(part) && !installed.MatchString(part):
			s.changes++
		case s.shell.builtin(words):
		case installed.MatchString(part):
			s.shell.export("nccl", installed.First(part))
		case m.host == "" && otherShell.MatchString(strings.Join(words, " ")): // With the same prompt.
			s.shell.unsure = s.shell.unsure || len(s.shell.exported) > 0
			clear(s.shell.exported)
		case runnable(words):
			r := s.begin("command", m)
			r.Host = m.host
			r.unclear = r.unclear || printed || withoutVariables.MatchString(part) && len(s.shell.exported) > 0
			for _, v := range variables {
				r.set(v[0], v[1])
				if !env.SteersCommunication(v[0]) { // EXTRA="-x NCCL_P2P_DISABLE=1", for a script.
					for _, in := range assigns.Get().FindAllStringSubmatch(v[1], maxRuns) {
						r.set(in[1], in[2])
					}
				}
			}
			r.commanded(words)
			return
		}
	}
}

// assign takes a variable that the shell sets for itself: programs have it only once it is exported.
func (sh *shellState) assign(name, value string) {
	if _, exported := sh.exported[name]; exported {
		sh.exported[name] = value
	} else {
		sh.unsure = sh.unsure || env.SteersCommunication(name)
	}
}

func (sh *shellState) export(name, value string) {
	if len(sh.exported) < maxRuns {
		sh.exported[name] = value
	}
}

func (sh *shellState) unset(names []string) {
	for _, name := range names {
		delete(sh.exported, name)
	}
}

// builtin carries out a command of the shell itself, and reports whether it is one.
func (sh *shellState) builtin(words []string) bool {
	switch words[0] {
	case "export", "declare", "set":
		for _, w := range words[1:] {
			if name, value, ok := strings.Cut(w, "="); ok && env.SteersCommunication(name) {
				sh.export(name, value)
			}
		}
	case "unset":
		sh.unset(words[1:])
	default:
		return false
	}
	return true
}

var (
	// installed is a version of NCCL that a package manager is told to install.
	installed = lazy.New(`\binstall\b.*\b(?:nvidia-nccl-cu\d+=|libnccl2|libnccl|nccl)[=-](\d+\.\d+(?:\.\d+)?)`)
	// otherShell begins or ends a shell that does not have the variables of this one.
	otherShell = lazy.New(`^(?:ssh|exit|logout|su|chroot|nsenter|(?:docker|podman|nerdctl|kubectl|oc|crictl) exec)\b|^(?:docker|podman|nerdctl) run\b.*\b(?:bash|sh)$`)
	// withoutVariables runs a program without variables of the shell.
	withoutVariables = lazy.New(`\bsudo (?:-[^E\s]\S* )*[^-\s]|\benv -[iu]\b`)
	// changing are commands that change the machine, its software or what is run: a run
	// after one differs from those before it in that as well.
	changing = lazy.New(`^(?:(?:sudo|time) )*(?:` +
		`(?:reboot|shutdown|poweroff|modprobe|rmmod|insmod|setpci|source|\.|module|ml|make|cmake|ninja|vim?|nvim|nano|emacs|patch|ulimit|iptables|ufw|firewall-cmd|mlxconfig|service|mount|umount|cp|mv|ln|rm|update-grub)\b(?: |$)` +
		`|systemctl (?:start|stop|restart|reload|isolate)\b|ethtool -[A-Zs]|sed -i|sysctl (?:-\w+ )*\S+=|git (?:pull|checkout|switch|reset|apply|stash)\b` +
		`|ip .*\b(?:set|add|del|change|replace)\b|ifconfig \S+ \S+|nvidia-smi .*(?:-r\b|--gpu-reset|-pm\b|-mig\b|-c \d|-lgc\b|-pl\b)|(?:echo|printf|cat) .*>|(?:.*\| *)(?:sudo )?tee ` +
		`|(?:python[\d.]* -m )?(?:pip3?|uv|conda|mamba|apt|apt-get|yum|dnf|zypper|dpkg|rpm) .*\b(?:install|uninstall|remove|purge|update|upgrade|dist-upgrade|activate|-[iU]\w*)\b` +
		`|(?:docker|podman) (?:pull|build|restart|stop|start|compose)\b|\S*NVIDIA-Linux\S*\.run\b)`)
	// programs are those that move data between GPUs, or may run what does, and scripts those of a user's own.
	programs = lazy.New(`^(?:python[\d.]*|torchrun|mpirun|mpiexec(?:\.hydra)?|orterun|prterun|horovodrun|srun|accelerate|deepspeed|vllm|sglang|trtllm-serve|lmdeploy|swift|llamafactory-cli|\w+_perf|p2pBandwidthLatencyTest|simpleP2P|nvbandwidth|TransferBench|ucx_perftest|osu_\w+|ib_\w+_(?:bw|lat))$`)
	scripts  = lazy.New(`^\.{0,2}/\S+$`)
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
		r.Line, r.text = m.line, m.text
	default:
		r = s.begin("command", m)
	}
	for _, v := range m.settings {
		r.set(v[0], v[1])
	}
	if m.launch != nil {
		r.launched(m.launch)
		r.unclear = r.unclear || m.launch.Kind == "docker-run" && len(s.shell.exported) > 0
	} else if _, words := launch.Starts(m.value); len(words) > 0 {
		r.commanded(words)
	}
}

// launched notes what the command of a launch sets and starts.
func (r *run) launched(l *facts.Launch) {
	for _, name := range slices.Sorted(maps.Keys(l.Variables)) {
		r.set(name, l.Variables[name])
	}
	contained := map[string]string{"ipc": l.IPC, "pid": l.PID, "network": l.Network, "cap-add": strings.Join(l.CapAdd, ",")}
	if l.Privileged {
		contained["privileged"] = "on"
	}
	if l.SHMBytes != nil {
		contained["shm-size"] = strconv.FormatInt(*l.SHMBytes, 10)
	}
	if l.MemlockBytes != nil {
		contained["memlock"] = strconv.FormatInt(*l.MemlockBytes, 10)
	}
	for _, name := range slices.Sorted(maps.Keys(contained)) {
		if contained[name] != "" {
			r.set(name, contained[name])
		}
	}
	words := l.Command
	for len(words) > 0 { // "mpirun -np 2 env A=1 prog"
		name, value, ok := strings.Cut(words[0], "=")
		if words[0] != "env" && (!ok || !env.SteersCommunication(name)) {
			break
		}
		r.set(name, value)
		words = words[1:]
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

// counting are options that say how many processes or GPUs there are, or where they meet.
var counting = lazy.New(`^(?:-g|-np|-n|-N|--?n[-_]?proc[-_]?per[-_]?node|--?nproc|--num[-_](?:gpus|processes|nodes|machines)|--nnodes|-tp|--tp|--tp[-_]size|--tensor[-_]parallel[-_]size|--(?:master|main|rdzv)\S*|--port)(=.*)?$`)

// sizing are the options of nccl-tests that say how large messages are, and how often they are sent.
var sizing = lazy.New(`^-[befiwm]$`)

// commanded notes what a run's command starts.
func (r *run) commanded(words []string) {
	r.Program = escape.Printable(words[0][strings.LastIndexByte(words[0], '/')+1:], maxValue)
	if n := slices.Index(words, "-g"); n >= 0 && n+1 < len(words) && strings.HasSuffix(r.Program, "_perf") {
		r.GPUs = count(words[n+1])
	}
	kept, ofSizes := []string{r.Program}, strings.HasSuffix(r.Program, "_perf")
	for i := 1; i < len(words) && len(kept) < maxRuns; i++ {
		m := counting.FindStringSubmatch(words[i])
		switch {
		case ofSizes && sizing.MatchString(words[i]) && i+1 < len(words):
			if i++; words[i-1] == "-e" {
				r.upto = words[i]
			}
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
	setting := m.name + "=" + m.value
	if len(s.set) < maxSet {
		s.set[setting] = true
	}
	switch {
	case m.logged:
		if r == nil && !s.aside {
			r = s.begin("output", m)
		}
		if r != nil && len(r.logged) < maxRuns {
			r.logged[m.name] = m.value
		}
	case m.line == s.prompt || m.line == s.context.line || r != nil && (r.Line == m.line || r.Variables[m.name] == m.value):
	case r != nil && len(r.marks) == 0 && r.By == "command": // A further line of the command.
	case m.quoted != s.quoted: // Somebody else's.
	default:
		s.shell.export(m.name, m.value)
		if s.aside && len(s.configured) < maxSet { // The output of env.
			s.configured[setting] = true
		}
	}
}

// attach gives a mark to the run under way.
func (s *session) attach(m mark) {
	r := s.current
	switch {
	case r == nil && (s.aside || s.file.kind != heading && (m.kind == word || m.kind == step || m.kind == exit)):
		return
	case r == nil:
		r = s.begin("output", m)
	}
	switch m.kind {
	case version:
		value := escape.Printable(strings.SplitN(m.value, "+", 2)[0], maxValue) // Without what it was built for: "2.28.9+cuda13.0".
		if r.Version == "" || r.Library == m.name && strings.HasPrefix(value, r.Version) {
			r.Library, r.Version = m.name, value
		} else if r.Library == m.name && r.Version != value {
			r.Version = "several"
		}
	case made:
		r.made = true
		fallthrough
	default:
		r.add(m)
	}
}
