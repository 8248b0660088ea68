package launch

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
)

// This file reads what a Dockerfile makes of an image: that of its last stage, and of the stages that this one begins from.

// Image is what is in force in the image that is built without --target.
type Image struct {
	// Base is the image that it begins from, outside of the file. It refers to a variable if the file does not show it.
	Base string
	// Stage is the name of its last stage.
	Stage string
	// User is the last USER, and UserLine its line.
	User     string
	UserLine int
	// Variables are those of ENV, by name.
	Variables map[string]Variable
	// Runs are the lines of its RUN instructions, of each together, without what is no part of a command.
	Runs [][]parse.Line
}

// Variable is a value of ENV with its line. A value that the file does not show refers to a variable.
type Variable struct {
	Value string
	Line  int
}

type stage struct {
	Image
	// args are the values of ARG that the file shows.
	args map[string]string
}

const (
	// maxStages bounds the stages of a file, maxVariables the variables of each.
	maxStages    = 200
	maxVariables = 1000
)

// Image is what the file makes.
func (f *Dockerfile) Image() *Image {
	global := &stage{args: map[string]string{}, Image: Image{Variables: map[string]Variable{}}}
	now := global
	var stages []*stage
	for _, in := range f.instructions {
		switch in.name {
		case "FROM":
			if len(stages) == maxStages {
				return &now.Image
			}
			now = begin(stages, global, in.joined())
			stages = append(stages, now)
		case "ARG":
			now.argument(global, in)
		case "ENV":
			now.environment(in)
		case "USER":
			now.User, now.UserLine = now.expand(in.joined()), in.lines[0].Number
		case "RUN":
			now.Runs = append(now.Runs, in.lines)
		}
	}
	return &now.Image
}

var fromForm = lazy.New(`^(?i)(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*$`)

// begin begins a stage: from an earlier one, by its name in any case or by its number, or else from an image (BuildKit,
// frontend/dockerfile/dockerfile2llb/convert.go, and buildah, which names a stage without a name by its number).
func begin(stages []*stage, global *stage, text string) *stage {
	m := fromForm.FindStringSubmatch(text)
	if m == nil {
		m = []string{"", strings.TrimSpace(text), ""}
	}
	image := shell.Expand(strings.Trim(m[1], `"'`), global.lookup)
	found := &stage{args: map[string]string{}, Image: Image{Base: image, Variables: map[string]Variable{}}}
	if from := named(stages, image); from != nil {
		found.Image = from.Image
		found.Variables, found.Runs, found.args = maps.Clone(from.Variables), slices.Clip(from.Runs), maps.Clone(from.args)
	}
	found.Stage = m[2]
	return found
}

// named is the last stage of a name.
func named(stages []*stage, name string) *stage {
	for _, s := range slices.Backward(stages) {
		if s.Stage != "" && strings.EqualFold(s.Stage, name) {
			return s
		}
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(stages) && strconv.Itoa(n) == name {
		return stages[n]
	}
	return nil
}

func (s *stage) lookup(name string) (string, shell.State) {
	if v, ok := s.Variables[name]; ok {
		if shell.Refers(v.Value) {
			return "", shell.Unknown
		}
		return v.Value, shell.Known
	}
	if value, ok := s.args[name]; ok {
		return value, shell.Known
	}
	return "", shell.Unset // Only --build-arg gives it a value, so that a default applies.
}

func (s *stage) expand(text string) string {
	text = shell.Expand(text, s.lookup)
	return text[:min(len(text), maxValue)]
}

// argument reads ARG. Without a value, it is that of an ARG before the first stage.
func (s *stage) argument(global *stage, in instruction) {
	words, _ := in.words()
	for _, w := range words {
		if len(s.args) >= maxVariables {
			return
		}
		name, value, ok := strings.Cut(w.Value, "=")
		if value = s.expand(value); !ok {
			value, ok = global.args[name]
		}
		if s.args[name] = value; !ok || shell.Refers(value) {
			delete(s.args, name)
		}
	}
}

// valueOf is the value of a variable. A search path that continues one of the base image keeps its reference to it.
func (s *stage) valueOf(name, value string) string {
	before, ok := s.Variables[name]
	if !strings.HasSuffix(name, "PATH") || ok && !shell.Refers(before.Value) {
		return s.expand(value)
	}
	return shell.Expand(value, func(other string) (string, shell.State) {
		switch {
		case other != name:
			return s.lookup(other)
		case ok && len(before.Value) < maxValue:
			return before.Value, shell.Known
		}
		return "", shell.Unknown
	})
}

// environment reads ENV, in both of its forms. The values are those before the instruction.
func (s *stage) environment(in instruction) {
	set := map[string]Variable{}
	words, line := in.words()
	if len(words) > 0 && !strings.Contains(words[0].Value, "=") { // ENV NAME value
		name, rest, _ := strings.Cut(in.joined(), " ")
		set[name] = Variable{s.valueOf(name, strings.Trim(strings.TrimSpace(rest), `"'`)), line(words[0])}
		words = nil
	}
	for _, w := range words {
		if name, value, ok := strings.Cut(w.Value, "="); ok {
			if !w.Literal {
				value = s.valueOf(name, value)
			}
			set[name] = Variable{value, line(w)}
		}
	}
	if len(s.Variables)+len(set) <= maxVariables {
		maps.Copy(s.Variables, set)
	}
}
