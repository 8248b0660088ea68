package launch

import (
	"cmp"
	"path"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
)

// unresolved notes a part whose value the file does not show; it reports false where the text is a value.
func unresolved(l *facts.Launch, part, text string) bool {
	if !shell.Refers(text) {
		return false
	}
	leaveOpen(l, text, part)
	return true
}

// leaveOpen notes parts that are not known, and the text that stands for their values.
func leaveOpen(l *facts.Launch, text string, parts ...string) {
	for _, part := range parts {
		if len(l.Unknown) >= maxList || part == "" || text == "" { // No rule judges a part without a name.
			return
		}
		facts.Put(&l.Unknown, part, cmp.Or(l.Unknown[part], escape.Printable(text, 300)))
	}
}

// ruled are the parts of a launch that rules judge and that may be absent.
var ruled = []string{
	"gpus", "shm_bytes", "mounts", "ipc", "network", "runtime", "privileged", "cap_add", "devices", "memlock_bytes", "user", "resources",
	"processes", "tasks", "nodes", "tensor_parallel", "variables",
}

// ofContainer are those of them that options of a container program set.
var ofContainer = slices.DeleteFunc(slices.Clone(ruled), func(part string) bool { return slices.Contains(counts, part) || part == "tasks" || part == "resources" })

// refersTo reports whether the value of a variable is not shown. The value that a search path
// had before ends it or begins it, and of its folders the name must be known.
func refersTo(name, value string) bool {
	if name != searchPath {
		return shell.Refers(value)
	}
	folders := strings.Split(ownPath.ReplaceAllString(value, ""), ":")
	return slices.ContainsFunc(folders, func(folder string) bool { return shell.Refers(baseName(folder)) })
}

// counts are those that options of a command give.
var counts = []string{"processes", "nodes", "tensor_parallel"}

// valueOf is a part of a launch that is one value; it is not valid for a list.
func valueOf(l *facts.Launch, part string) reflect.Value {
	return reflect.Indirect(reflect.ValueOf(map[string]any{
		"gpus": &l.GPUs, "processes": &l.Processes, "tasks": &l.Tasks, "nodes": &l.Nodes, "tensor_parallel": &l.TensorParallel,
		"pipeline_parallel": &l.PipelineParallel, "data_parallel": &l.DataParallel, "shm_bytes": &l.SHMBytes, "memlock_bytes": &l.MemlockBytes,
		"memory_bytes": &l.MemoryBytes, "cpus": &l.CPUs, "ipc": &l.IPC, "pid": &l.PID, "network": &l.Network, "runtime": &l.Runtime, "user": &l.User,
		"privileged": &l.Privileged,
	}[part]))
}

func isPart(name string) bool {
	return slices.Contains(ruled, name) || valueOf(&facts.Launch{}, name).IsValid()
}

// set gives a part of a launch the value that a text states: the last one counts.
func set(l *facts.Launch, part, text string) {
	v := valueOf(l, part)
	if text == "" || unresolved(l, part, text) || !v.IsValid() {
		return
	}
	before := v.Interface()
	switch at := v.Addr().Interface().(type) {
	case *string:
		*at = escape.Printable(text, 300)
	case *bool:
		*at = text == "true"
	case **int:
		*at = cmp.Or(parseCount(text), *at)
	case **int64:
		*at = cmp.Or(parse.ByteSize(text), *at)
	case **float64:
		*at = cmp.Or(cores(text), *at)
	}
	if v.Interface() != before {
		delete(l.Unknown, part)
	}
}

// leaveRestOpen notes that whatever a launch does not state of some parts may stand where a text does.
func leaveRestOpen(l *facts.Launch, text string, parts []string) {
	for _, part := range parts {
		if v := valueOf(l, part); !v.IsValid() || v.IsZero() {
			leaveOpen(l, text, part)
		}
	}
}

// settle leaves of a launch with unknown parts no value that may not hold.
func settle(l *facts.Launch) {
	for part := range l.Unknown {
		name, isVariable := strings.CutPrefix(part, "variables[")
		name = strings.TrimSuffix(name, "]")
		switch {
		case !isVariable:
			if v := valueOf(l, part); v.IsValid() {
				v.SetZero()
			}
		case !env.SteersCommunication(name):
			delete(l.Unknown, part) // No rule reads it.
		case name != searchPath:
			delete(l.Variables, name)
		}
	}
	if len(l.Unknown) == 0 {
		l.Unknown = nil
	}
}

// searchPath is the one variable of which a part may be known: a list of folders.
const searchPath = "LD_LIBRARY_PATH"

// openNodes is a mapping of a description. Parts of a launch are not known where a template or a
// variable stands for all of it ("resources: {{ toYaml .Values.resources }}").
func openNodes(l *facts.Launch, n *yaml.Node, parts ...string) map[string]*yaml.Node {
	if text := parse.YAMLText(n); shell.Refers(text) {
		leaveOpen(l, text, parts...)
	}
	return parse.YAMLMapping(n)
}

// optionsVariable reports whether a word stands for options of a command: "$ARGS", "$@", "${OPTS[@]}".
func optionsVariable(word string) bool {
	return (strings.HasPrefix(word, "$") || strings.HasPrefix(word, "{{")) && optionsName.MatchString(word)
}

var (
	optionsName = lazy.New(`(?i)[@*]|ARG|OPT|FLAG|PARAM|EXTRA`)
	// imageName is how a word that refers to a variable names an image: "$IMAGE", "$REPO/train:1".
	imageName = lazy.New(`(?i)[/:]|IMAGE|IMG|CONTAINER|REPO|TAG`)
)

// standsForOptions reports whether a variable stands for options at the front of a container program's arguments.
func standsForOptions(words []string) bool {
	return len(words) > 1 && shell.Refers(words[0]) && (optionsVariable(words[0]) || !imageName.MatchString(words[0]))
}

// variables returns what a script's variables are before a line. Those that Slurm sets are not known.
func (s *reading) variables(line int) shell.Lookup {
	return s.script().At(line).Or(func(name string) (string, shell.State) {
		if strings.HasPrefix(name, "SLURM_") {
			return "", shell.Unknown
		}
		return "", shell.Unset
	})
}

func (s *reading) script() *shell.Variables {
	if s.assigned.source != s.Source() || s.assigned.script == nil {
		s.assigned.source, s.assigned.script = s.Source(), shell.ReadVariables(s.Text())
	}
	return s.assigned.script
}

// isDockerfile reports whether all of the text is a Dockerfile, by its name.
func (s *reading) isDockerfile() bool {
	base := strings.ToLower(path.Base(s.Source()))
	return s.Form() == parse.Program && (strings.HasPrefix(base, "dockerfile") || strings.HasPrefix(base, "containerfile") || path.Ext(base) == ".dockerfile")
}

// inDockerfile reports whether a line belongs to a Dockerfile, whose reader knows which of its stages are in force.
func (s *reading) inDockerfile(l parse.Line) bool {
	first := dockerfileStart.FindString(s.Text())
	above, _, _ := strings.Cut(s.Text(), first)
	return first != "" && strings.Count(above+first, "\n") < l.Number
}
