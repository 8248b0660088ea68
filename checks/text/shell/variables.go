package shell

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Variables are what a shell script assigns to variables, line by line.
type Variables struct {
	events []event
	// blocks are the lines of the outermost branches, loops, functions and subshells.
	blocks []Span
	// foreign is the first line that runs another file or text in this shell, which may set any variable; 0 for none.
	foreign int
	// exported are the variables that the programs of the script get, and all is true if they get every one.
	exported map[string]bool
	all      bool
	// Prefixes are the assignments in front of a command that stand above it, by the line of the command.
	Prefixes map[int][]string
}

// event is an assignment. One in a block counts from the block's first line on: a loop goes back there.
type event struct {
	line  int
	name  string
	value string
	known bool
}

const maxEvents = 4096

// ReadVariables reads a script. Of one that is too large nothing is known.
func ReadVariables(text string) *Variables {
	s := &Variables{exported: map[string]bool{}, Prefixes: map[int][]string{}}
	if len(text) > MaxBytes {
		s.foreign = 1
		return s
	}
	parsed := Parse(text)
	s.blocks = parsed.Blocks
	for i := range parsed.Commands {
		s.prefixed(&parsed.Commands[i], text)
		if s.command(&parsed.Commands[i]); len(s.events) >= maxEvents {
			s.foreign = 1
			break
		}
	}
	return s
}

// At returns what the variables are before a line, by number from 1.
func (s *Variables) At(line int) Lookup {
	return func(name string) (string, State) { return s.value(name, line) }
}

// Branches reports whether a line stands in a branch, a loop or a function.
func (s *Variables) Branches(line int) bool { return s.block(line) >= 0 }

// Exports reports whether programs get a variable that the script assigns.
func (s *Variables) Exports(name string) bool { return s.all || s.exported[name] }

func (s *Variables) prefixed(c *Command, text string) {
	n := slices.IndexFunc(c.Words, func(w Word) bool { return !assigned.MatchString(w.Value) })
	if n < 1 {
		return
	}
	if below := strings.Count(text[c.Words[0].From:c.Words[n].From], "\n"); below > 0 {
		for _, w := range c.Words[:n] {
			s.Prefixes[c.Line+below] = append(s.Prefixes[c.Line+below], w.Value)
		}
	}
}

func (s *Variables) block(line int) int {
	return slices.IndexFunc(s.blocks, func(b Span) bool { return b.First <= line && line <= b.Last })
}

func (s *Variables) value(name string, line int) (string, State) {
	var last event
	within := s.block(line)
	for _, e := range s.events {
		switch {
		case e.name != name:
		case within >= 0 && e.line >= s.blocks[within].First:
			return "", Unknown // It may have changed when the block runs.
		case e.line < line:
			last = e
		}
	}
	switch {
	case s.foreign > last.line && s.foreign < line: // What another file sets may replace it.
		return "", Unknown
	case last.line == 0:
		return "", Unset
	case !last.known:
		return "", Unknown
	}
	return last.value, Known
}

var (
	assigned = lazy.New(`^(?s)([A-Za-z_][A-Za-z0-9_]*)(\+?=|\[[^]]*\]\+?=)(.*)$`)
	name     = lazy.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// defaulted is a reference that also assigns.
	defaulted = lazy.New(`\$\{([A-Za-z_][A-Za-z0-9_]*):?=([^{}$]*)\}`)
	// activation runs a file that sets up an environment of Python, and no variable of a job.
	activation = lazy.New(`\b(?:activate|conda)\b`)
)

// setters assign the variables that their arguments name.
var setters = map[string]bool{"read": true, "mapfile": true, "readarray": true, "getopts": true, "printf": true, "let": true, "unset": true}

var declarers = map[string]bool{"export": true, "declare": true, "typeset": true, "readonly": true, "local": true}

func (s *Variables) command(c *Command) {
	words := c.Words
	for _, w := range words {
		for _, m := range defaulted.FindAllStringSubmatch(w.Value, 16) {
			if _, state := s.value(m[1], c.Line+1); state == Unset {
				s.set(c, m[1], Word{Value: m[2]})
			}
		}
	}
	switch head := words[0].Value; {
	case head == "source" || head == "." || head == "eval":
		if !slices.ContainsFunc(words, func(w Word) bool { return activation.MatchString(w.Value) }) {
			s.foreign = cmp.Or(s.foreign, c.Line)
		}
		return
	case setters[head]:
		for _, w := range words[1:] {
			s.forget(c, w.Value)
		}
		return
	case head == "set":
		s.all = s.all || len(words) > 1 && words[1].Value == "-a"
		return
	case declarers[head]:
		words = words[1:]
		if head == "export" || len(words) > 0 && words[0].Value == "-x" {
			for _, w := range words {
				exported, _, _ := strings.Cut(w.Value, "=")
				s.exported[exported] = true
			}
		}
	case slices.ContainsFunc(words, func(w Word) bool { return !assigned.MatchString(w.Value) }):
		return // A command, and the variables in front of it are for it alone.
	}
	for _, w := range words {
		m := assigned.FindStringSubmatch(w.Value)
		switch {
		case m == nil:
		case m[2] != "=", strings.HasPrefix(m[3], "("): // An array.
			s.forget(c, m[1])
		default:
			w.Value = m[3]
			s.set(c, m[1], w)
		}
	}
}

// set notes an assignment: known where it is made in any case, and of what is known.
func (s *Variables) set(c *Command, name string, w Word) {
	if !w.Literal {
		w.Value = Expand(w.Value, s.At(c.Line+1))
	}
	s.add(c, event{line: c.Line, name: name, value: w.Value, known: !c.Maybe && simple(w.Value)})
}

// simple reports whether a value can stand for a reference in a command line as it is.
func simple(value string) bool {
	return !Refers(value) && !strings.ContainsAny(value, "$`\"'\\;&|<>()#*?\n")
}

func (s *Variables) forget(c *Command, word string) {
	if n, _, _ := strings.Cut(word, "="); name.MatchString(n) {
		s.add(c, event{line: c.Line, name: n})
	}
}

func (s *Variables) add(c *Command, e event) {
	if c.Block > 0 {
		e.line, e.known = c.Block, false
	}
	s.events = append(s.events, e)
}
