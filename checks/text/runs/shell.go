package runs

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// shellState is what a shell hands to the programs that it starts.
type shellState struct {
	// exported are the variables that programs have, and unexported those that the shell
	// has: a program may have them or not.
	exported, unexported map[string]string
	// folder is where it is, as far as the text tells, and before where it was.
	folder, before string
}

func newShell() *shellState {
	return &shellState{exported: map[string]string{}, unexported: map[string]string{}}
}

// assign takes a variable that the shell sets for itself: programs have it only once it is
// exported.
func (sh *shellState) assign(name, value string) {
	if _, exported := sh.exported[name]; exported {
		sh.exported[name] = value
	} else {
		sh.unexported[name] = value
	}
}

// export takes a word of an export: a variable with its value, or one that has it already.
func (sh *shellState) export(word string) {
	name, value, ok := strings.Cut(word, "=")
	if !ok {
		value, ok = sh.unexported[name]
	}
	if ok && env.SteersCommunication(name) {
		delete(sh.unexported, name)
		sh.exported[name] = value
	}
}

func (sh *shellState) unset(names []string) {
	for _, name := range names {
		delete(sh.exported, name)
		delete(sh.unexported, name)
	}
}

// doubt makes what the shell exports uncertain: another shell takes its place, with the same
// prompt.
func (sh *shellState) doubt() {
	maps.Copy(sh.unexported, sh.exported)
	clear(sh.exported)
}

// enter goes to another folder.
func (sh *shellState) enter(words []string) {
	to := "~"
	if len(words) > 1 {
		to = words[1]
	}
	switch {
	case to == "-":
		to = sh.before
	case !strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "~"):
		to = path.Join(sh.folder, to)
	}
	sh.folder, sh.before = to, sh.folder
}

// builtin carries out a command of the shell itself, and reports whether it is one.
func (sh *shellState) builtin(words []string) bool {
	switch words[0] {
	case "export", "declare", "set":
		for _, w := range words[1:] {
			sh.export(w)
		}
	case "unset":
		sh.unset(words[1:])
	case "cd", "pushd":
		sh.enter(words)
	default:
		return false
	}
	return true
}

var (
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
	// changedForm is what people write of a change of the machine.
	changedForm = lazy.New(`(?i)\breboot(?:ed|ing)?\b|\bpower[- ]cycled?\b|\b(?:upgraded|downgraded|re-?installed|swapped)\b`)
)

// shellAt is the shell of a host.
func (s *session) shellAt(host string) *shellState {
	if s.shells[host] == nil {
		s.shells[host] = newShell()
	}
	return s.shells[host]
}

// asks reports whether a heading does not say what was done but what might be.
func asks(title string) bool { return strings.HasSuffix(title, "?") || asksForm.MatchString(title) }

var asksForm = lazy.New(`(?i)\b(?:please|could|can|would|should|shall|does|did you|what|whether|if|maybe|perhaps|suggest|recommend)\b|\btry\b(?: [^\d\s]|$)`)

// inherits sets for a run what its shell hands to its program.
func (r *run) inherits(sh *shellState) {
	r.folder = sh.folder
	r.doubtful = maps.Clone(sh.unexported)
	for name, value := range sh.exported {
		r.set(name, value)
	}
}

// doubts makes what a run has of its shell uncertain: sudo and containers may leave it out.
func (r *run) doubts(sh *shellState) {
	for _, name := range slices.Collect(maps.Keys(sh.exported)) {
		delete(r.Variables, name)
		r.doubtful[name] = sh.exported[name]
	}
}
