package patch

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/launch/dockerfile"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// stage is the last one of a Dockerfile.
type stage struct {
	// from is the line where it begins, counted from 1, and behind the last one of its last ENV, or of FROM.
	from, behind int
	// env are the texts of its ENV instructions.
	env []string
}

// readDockerfile reads the instructions that set variables, as commands, and returns the last stage.
func (s *script) readDockerfile() (last stage) {
	var read dockerfile.File
	for i, l := range s.lines {
		read.Line(parse.Line{Number: i + 1, Text: l})
	}
	for _, in := range read.Instructions() {
		from, to := s.starts[in.First-1], s.starts[in.Last-1]+len(s.lines[in.Last-1])
		switch in.Name {
		case "FROM":
			last = stage{from: in.First, behind: in.Last}
		case "ENV":
			last.behind, last.env = in.Last, append(last.env, s.Text[from:to])
			from += len(marginOf(s.lines[in.First-1]))
			c := command{Line: in.First, First: true, Last: true, Words: []word{{Value: "ENV", From: from, To: from + len("ENV")}}}
			for _, w := range in.Words {
				c.Words = append(c.Words, word{Value: w.Text, From: s.starts[w.Line-1] + w.From, To: s.starts[w.Last-1] + w.To})
			}
			if len(c.Words) > 2 && !strings.Contains(c.Words[1].Value, "=") { // ENV NAME value
				_, old, _ := strings.Cut(strings.TrimSpace(s.Text[c.Words[1].From:to]), c.Words[1].Value)
				c.Words = append(c.Words[:1], word{Value: c.Words[1].Value + "=" + strings.TrimSpace(old), From: c.Words[1].From, To: c.Words[len(c.Words)-1].To})
			}
			s.commands = append(s.commands, c)
		}
	}
	return last
}

// proposeDockerfile changes the variables that an image sets.
func proposeDockerfile(f *file) error {
	at := slices.IndexFunc(f.launches, func(l facts.Launch) bool { return l.Kind == "dockerfile" })
	s := newScript(f, scriptForm{})
	last := s.readDockerfile()
	s.behind = last.behind
	if at < 0 || last.from == 0 {
		return ErrKind
	}
	escape := slices.IndexFunc(f.lines, func(l string) bool {
		return strings.HasPrefix(strings.ToLower(strings.ReplaceAll(l, " ", "")), "#escape=")
	})
	image := &f.launches[at]
	f.write("", func(w *Want) {
		value, set := image.Variables[w.Name]
		number := image.Lines["variables["+w.Name+"]"]
		all := s.assignments(w.Name, true)
		i := slices.IndexFunc(all, func(a assigned) bool { return s.lineOf(a.Words[a.index].From) == number-1 })
		isThere := func(env string) bool { return strings.Contains(env, w.Name) }
		switch {
		case w.Kind == plan.Unset && (!set || len(w.Values) == 0 || !w.removes(w.Name, value)):
		case w.Kind == plan.Unset && i >= 0:
			for _, a := range all { // A stage may begin from another.
				if w.removes(w.Name, a.value) {
					s.drop(a)
				}
			}
		case w.Kind == plan.Unset:
			f.byHand(max(number-1, 0), "it is set there in a form that is not read")
		case w.Kind != plan.Variable || !w.IsFor("docker") || set && same(value, w.Value) || !w.within(1, len(f.lines)):
		case escape >= 0:
			f.byHand(escape, "the file has an escape character of its own")
		case set && number >= last.from && i >= 0:
			s.assign(all[i])
		case slices.ContainsFunc(last.env, isThere): // It may refer to a variable of the build.
			f.byHand(max(number, last.from)-1, "it is set there in a form that is not read")
		default:
			s.add("ENV " + w.Name + "=" + remedies.Quote(w.Value))
		}
	})
	s.finish(false)
	return nil
}
