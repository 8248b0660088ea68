package launch

import (
	"cmp"
	_ "embed"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
)

//go:embed programs.yaml
var programsYAML []byte

type family struct {
	Kind                                   string
	Programs, Second, Modules, Bare, Pairs []string
	Letters                                string
	Lone                                   bool
	Sets                                   map[string]string
}

type programTable struct {
	Programs []family
	Ranks    map[string]string
}

var programs = lazy.Table[programTable](programsYAML)

// byName are the families by the names of their programs.
var byName = sync.OnceValue(func() map[string]*family {
	all := map[string]*family{}
	for i, f := range programs().Programs {
		for _, name := range f.Programs {
			all[name] = &programs().Programs[i]
		}
	}
	return all
})

// familyOf is the family of a program; an empty one if it is of none.
func familyOf(program string) *family { return cmp.Or(byName()[baseName(program)], &family{}) }

// setByRanks is what an option or a variable sets by which a program is told how many ranks to run, or on what.
func (f *family) setByRanks(name, value string) string {
	own := ""
	if f.Kind == "command" {
		own = f.Sets[name]
	}
	return cmp.Or(own, programs().Ranks[name], programs().Ranks[name+"="+value])
}

// anchors are what a line holds that starts a container or a job.
func (t *programTable) anchors() (all []string) {
	for _, f := range t.Programs {
		for _, name := range f.Programs {
			if !f.Lone {
				name += " "
			}
			all = append(all, name)
		}
		for _, name := range f.Modules {
			all = append(all, strings.TrimSuffix(name, "*"))
		}
	}
	return all
}

// programOf is what a command line runs, as a kind of launch: empty for what starts no job.
func programOf(words []string) string {
	if len(words) == 0 {
		return ""
	}
	f, behind := familyOf(words[0]), words[1:]
	if len(behind) > 1 && behind[0] == "container" { // "docker container run"
		behind = behind[1:]
	}
	if len(behind) > 0 && slices.Contains([]string{"is", "was", "will", "has"}, behind[0]) { // A sentence.
		return ""
	}
	if f.Kind != "" && (f.Second == nil || len(behind) > 0 && slices.Contains(f.Second, behind[0])) {
		return f.Kind
	}
	i := slices.Index(words, "-m")
	if !strings.HasPrefix(baseName(words[0]), "python") || i < 0 || i+1 == len(words) {
		return ""
	}
	isModule := func(form string) bool { is, _ := path.Match(form, words[i+1]); return is }
	for _, f := range programs().Programs {
		if slices.ContainsFunc(f.Modules, isModule) {
			return f.Kind
		}
	}
	return ""
}

// options goes through the options at the front of a command, and leaves the words behind them.
func (f *family) options(words *[]string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for len(*words) > 0 && strings.HasPrefix((*words)[0], "-") {
			if (*words)[0] == "--" {
				*words = (*words)[1:]
				return
			}
			var name, value string
			name, value, *words = f.next(*words)
			what, fixed, _ := strings.Cut(f.Sets[name], "=")
			if !yield(what, cmp.Or(fixed, value)) {
				return
			}
		}
	}
}

// next splits the option at the front off. An option that is not known takes the next word as its value.
func (f *family) next(words []string) (name, value string, rest []string) {
	name, value, joined := strings.Cut(words[0], "=")
	rest = words[1:]
	if f.Letters == "" { // Its options are words behind one dash.
		name = "-" + strings.TrimLeft(name, "-")
	}
	isShort := f.Letters != "" && !strings.HasPrefix(name, "--")
	switch {
	case joined || slices.Contains(f.Bare, name):
		return name, value, rest
	case isShort && len(name) > 2 && !strings.Contains(f.Letters, name[1:2]):
		return name[:2], name[2:], rest // "-p8080:80".
	case isShort && strings.Trim(name[1:], f.Letters) == "":
		return name, "", rest
	case isShort && len(name) > 2: // "-itv a:b".
		name = "-" + name[len(name)-1:]
	}
	if len(rest) == 0 {
		return name, "", nil
	}
	value, rest = rest[0], rest[1:]
	if slices.Contains(f.Pairs, name) && len(rest) > 0 && !strings.Contains(value, "=") {
		value, rest = value+"="+rest[0], rest[1:]
	}
	return name, value, rest
}

// wrappers are programs that run the command behind them, with those of their options that take a value.
var wrappers = map[string][]string{
	"sudo": {"-u", "-g"}, "env": {"-u"}, "nohup": nil, "time": nil, "exec": nil, "stdbuf": nil, "unbuffer": nil,
	"uv": {"--with", "--extra", "--group", "--python"}, "poetry": nil, "pixi": nil, "conda": {"-n", "-p", "--name", "--prefix"},
	"numactl": {"-N", "-m", "-C", "-i"}, "nsys": nil, "ncu": nil, "timeout": {"-k", "-s"}, "taskset": nil, "setsid": nil,
}

// stripWrappers takes variables and programs that only run the command behind them off its front.
func stripWrappers(words []string) (variables [][2]string, rest []string) {
	for len(words) > 0 {
		if name, value, ok := assignment(words[0]); ok {
			variables = append(variables, [2]string{name, value})
			words = words[1:]
			continue
		}
		valued, wrapper := wrappers[baseName(words[0])]
		if !wrapper {
			break
		}
		if words = words[1:]; len(words) > 0 && words[0] == "run" { // "uv run"
			words = words[1:]
		}
		for len(words) > 0 && strings.HasPrefix(words[0], "-") {
			n := 1
			if slices.Contains(valued, words[0]) {
				n = 2
			}
			words = words[min(n, len(words)):]
		}
		if len(words) > 0 && durationForm.MatchString(words[0]) { // "timeout 60 torchrun ..."
			words = words[1:]
		}
	}
	return variables, words
}

// durationForm is a length of time, as timeout takes it.
var durationForm = lazy.New(`^\d{1,9}(?:\.\d+)?[smhd]?$`)

// Starts splits a command line into the variables that it sets for its program, and the program with its arguments.
func Starts(line string) (variables [][2]string, words []string) {
	return stripWrappers(shell.Words(line))
}

func baseName(word string) string { return word[strings.LastIndexByte(word, '/')+1:] }
