package patch

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// dockerForm changes Dockerfiles: the variables that an image sets.
type dockerForm struct{}

// instruction is one of a Dockerfile, with its lines, counted from 0.
type instruction struct {
	name     string
	from, to int
	// args is the byte at which its arguments begin.
	args int
}

var (
	instructionLine = lazy.New(`^\s*([A-Za-z]+)\s+`)
	hereDocument    = lazy.New(`<<-?["']?([A-Za-z_]\w*)["']?`)
)

// instructions are those of a Dockerfile. Those with a text below them end where it ends.
func (s *script) instructions() []instruction {
	var all []instruction
	for i := 0; i < len(s.lines); i++ {
		t := strings.TrimSpace(s.lines[i].text)
		m := instructionLine.FindStringSubmatchIndex(s.lines[i].text)
		if t == "" || strings.HasPrefix(t, "#") || m == nil {
			continue
		}
		in := instruction{name: strings.ToUpper(s.lines[i].text[m[2]:m[3]]), from: i, to: i, args: s.starts[i] + m[1]}
		for in.to+1 < len(s.lines) && s.goesOn(in.from, in.to) {
			in.to++
		}
		if here := hereDocument.FindStringSubmatch(s.lines[i].text); here != nil && (in.name == "RUN" || in.name == "COPY" || in.name == "ADD") {
			for in.to+1 < len(s.lines) && strings.TrimSpace(s.lines[in.to].text) != here[1] {
				in.to++
			}
		}
		all = append(all, in)
		i = in.to
	}
	return all
}

// goesOn reports whether an instruction goes on below a line: blank lines and comments
// between its lines do not end it.
func (s *script) goesOn(from, at int) bool {
	for ; at >= from; at-- {
		if t := strings.TrimSpace(s.lines[at].text); at == from || t != "" && !strings.HasPrefix(t, "#") {
			return strings.HasSuffix(t, `\`)
		}
	}
	return false
}

func (dockerForm) propose(f *file) error {
	i := slices.IndexFunc(f.lines, func(l line) bool {
		return strings.HasPrefix(strings.ToLower(strings.ReplaceAll(l.text, " ", "")), "#escape=")
	})
	s := newScript(f, true)
	all := s.instructions()
	begin := -1
	for j, in := range all {
		if in.name == "FROM" {
			begin = j
		}
	}
	if begin < 0 {
		return ErrKind
	}
	at := slices.IndexFunc(f.launches, func(l facts.Launch) bool { return l.Kind == "dockerfile" })
	if at < 0 {
		return ErrKind
	}
	l := &f.launches[at]
	for k := range f.Wants {
		w := &f.Wants[k]
		if w.Kind != plan.Unset && !f.within(w, 1, len(f.lines)) || len(f.splices) > 0 {
			continue
		}
		value, set := l.Variables[w.Name]
		number := l.Lines["variables["+w.Name+"]"]
		switch {
		case w.Kind == plan.Unset && (!set || len(w.Values) == 0 || !w.removes(w.Name, value)):
			continue
		case w.Kind == plan.Unset:
			s.dropVariable(all, w, number-1)
			continue
		case w.Kind != plan.Variable || !w.IsFor("docker") || set && same(value, w.Value):
			continue
		case i >= 0:
			f.byHand(w, "", i, "the file has an escape character of its own")
			continue
		case set && number-1 >= all[begin].from:
			s.changeVariable(all, w, number-1, value)
			continue
		}
		s.addVariable(all[begin:], w)
	}
	return nil
}

// addVariable adds a variable to the last stage.
func (s *script) addVariable(stage []instruction, w *Want) {
	behind := stage[0]
	for _, in := range stage {
		if in.name == "ENV" {
			behind = in
		}
	}
	for _, in := range stage { // One that refers to a variable of the build.
		if in.name == "ENV" && strings.Contains(s.text[in.args:s.lineEndOf(in.to)], w.Name) {
			s.byHand(w, "", in.from, "it is set there in a form that is not read")
			return
		}
	}
	ins := []string{"ENV " + w.Name + "=" + remedies.Quote(w.Value)}
	if s.said["ENV"] != w.comment() {
		ins = append(reason(w, "", ""), ins...)
	}
	if s.splice(&splice{at: behind.to + 1, ins: ins, change: w.remark("")}) {
		s.said["ENV"] = w.comment()
	}
}

// lineEndOf is the byte at which a line ends.
func (s *script) lineEndOf(at int) int { return s.starts[at] + len(s.lines[at].text) }

// variableAt is the word of an instruction that sets a variable on a line.
func (s *script) variableAt(all []instruction, name string, at int) (in instruction, list []word, i int) {
	k := slices.IndexFunc(all, func(in instruction) bool { return in.name == "ENV" && in.from <= at && at <= in.to })
	if k < 0 {
		return in, nil, -1
	}
	in = all[k]
	end := s.lineEndOf(in.to)
	commands, closed := commandsOf(s.text[in.args:end], true)
	if !closed {
		return in, nil, -1
	}
	for _, c := range commands {
		for _, w := range c.Words {
			w.From, w.To = w.From+in.args, w.To+in.args
			list = append(list, w)
		}
	}
	i = slices.IndexFunc(list, func(w word) bool { return strings.HasPrefix(w.Value, name+"=") && s.lineOf(w.From) == at })
	return in, list, i
}

// changeVariable gives a variable another value.
func (s *script) changeVariable(all []instruction, w *Want, at int, value string) {
	in, list, i := s.variableAt(all, w.Name, at)
	switch {
	case i < 0 || !strings.HasPrefix(s.text[list[i].From:], w.Name+"=") || s.lineOf(list[i].To-1) != at:
		s.byHand(w, "", at, "it is set there in a form that is not changed")
		return
	case !stated(value):
		s.byHand(w, "", at, "its value refers to a variable")
		return
	}
	text := s.lines[at].text
	edits := []*splice{{
		at: at, del: 1, ins: []string{text[:list[i].From-s.starts[at]] + w.Name + "=" + remedies.Quote(w.Value) + text[list[i].To-s.starts[at]:]},
		change: w.remark(""),
	}}
	if s.splice(append(edits, &splice{at: in.from, ins: reason(w, "", "")})...) {
		s.said["ENV"] = ""
	}
}

// dropVariable removes a variable, and the instruction with the last one.
func (s *script) dropVariable(all []instruction, w *Want, at int) {
	in, list, i := s.variableAt(all, w.Name, at)
	change := w.remark("")
	switch {
	case i < 0 && len(list) > 1 && list[0].Value == w.Name && !strings.Contains(list[0].Value, "="): // ENV NAME value
		s.splice(s.removal(in.from, in.to-in.from+1, w, ""))
		return
	case i < 0:
		s.byHand(w, "", max(at, 0), "it is set there in a form that is not read")
		return
	case len(list) == 1:
		s.splice(s.removal(in.from, in.to-in.from+1, w, ""))
		return
	}
	old := list[i]
	if s.lineOf(old.To-1) != at {
		s.byHand(w, "", at, "it stands on several lines")
		return
	}
	text := s.lines[at].text
	before, after := text[:old.From-s.starts[at]], text[old.To-s.starts[at]:]
	switch {
	case strings.TrimSpace(before) == "" && strings.TrimSpace(after) == `\`:
		s.splice(&splice{at: at, del: 1, change: change})
	case strings.TrimSpace(before) == "" && strings.TrimSpace(after) == "" && at > in.from:
		if !strings.HasSuffix(s.lines[at-1].text, `\`) || strings.HasPrefix(strings.TrimSpace(s.lines[at-1].text), "#") {
			s.byHand(w, "", at, "a comment stands between it and the others")
			return
		}
		above := strings.TrimRight(strings.TrimSuffix(s.lines[at-1].text, `\`), " \t")
		s.splice(&splice{at: at - 1, del: 1, ins: []string{above}, change: change}, &splice{at: at, del: 1})
	case strings.TrimSpace(after) == "" || strings.TrimSpace(after) == `\`:
		s.splice(&splice{at: at, del: 1, ins: []string{strings.TrimRight(before, " \t") + after}, change: change})
	default:
		s.splice(&splice{at: at, del: 1, ins: []string{before + strings.TrimLeft(after, " \t")}, change: change})
	}
}
