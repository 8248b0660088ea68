package values

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Script is what a shell script assigns to variables, line by line.
type Script struct {
	events []event
	// blocks are the lines of the outermost branches, loops, functions and subshells.
	blocks []span
	// foreign is the first line that runs another file or text in this shell, which may set
	// any variable; 0 where none does.
	foreign int
}

// event is an assignment. One in a block counts from the block's first line on: a loop goes
// back there.
type event struct {
	line  int
	name  string
	value string
	known bool
}

type span struct{ first, last int }

const (
	// maxScript bounds a script that is read, in bytes; maxEvents its assignments.
	maxScript = 1 << 20
	maxEvents = 4096
)

// Read reads a script. Of one that is too large nothing is known.
func Read(text string) *Script {
	s := &Script{}
	if len(text) > maxScript {
		s.foreign = 1
		return s
	}
	r := reader{script: s, lines: strings.Split(text, "\n")}
	r.read()
	return s
}

// At returns what the variables are before a line, by number from 1.
func (s *Script) At(line int) Lookup {
	return func(name string) (string, State) { return s.value(name, line) }
}

// Branches reports whether a line stands in a branch, a loop or a function.
func (s *Script) Branches(line int) bool {
	return slices.ContainsFunc(s.blocks, func(b span) bool { return b.first <= line && line <= b.last })
}

func (s *Script) value(name string, line int) (string, State) {
	last := -1
	within := slices.IndexFunc(s.blocks, func(b span) bool { return b.first <= line && line <= b.last })
	for i, e := range s.events {
		if e.name != name {
			continue
		}
		if within >= 0 && e.line >= s.blocks[within].first {
			return "", Unknown // It may have changed when the block runs.
		}
		if e.line < line {
			last = i
		}
	}
	// What another file sets may replace it.
	from := 0
	if last >= 0 {
		from = s.events[last].line
	}
	switch {
	case s.foreign > from && s.foreign < line:
		return "", Unknown
	case last < 0:
		return "", Unset
	case !s.events[last].known:
		return "", Unknown
	}
	return s.events[last].value, Known
}

// reader goes through the lines of a script.
type reader struct {
	script *Script
	lines  []string
	// open are the blocks that are open, by the word that opened them.
	open []string
	// begun is the first line of the outermost of them.
	begun int
}

func (r *reader) read() {
	for i := 0; i < len(r.lines) && len(r.script.events) < maxEvents; {
		text, n := r.logical(i)
		number := i + 1
		i += n
		for _, p := range pieces(text) {
			r.piece(p, number)
		}
		i = r.below(text, i)
	}
	if len(r.open) > 0 {
		r.script.blocks = append(r.script.blocks, span{r.begun, len(r.lines)})
	}
	if len(r.script.events) >= maxEvents {
		r.script.foreign = 1
	}
}

// maxJoined bounds the lines that are one.
const maxJoined = 200

// logical joins the lines that are one: behind a backslash, and within quotes.
func (r *reader) logical(i int) (text string, n int) {
	for n < maxJoined && i+n < len(r.lines) {
		line := strings.TrimRight(r.lines[i+n], "\r")
		n++
		if rest, ok := strings.CutSuffix(line, `\`); ok {
			text += rest
			continue
		}
		text += line
		if !unclosed(text) {
			return text, n
		}
		text += "\n"
	}
	if unclosed(text) { // An apostrophe in what is no script: the line stands by itself.
		return r.lines[i], 1
	}
	return text, n
}

// unclosed reports whether a quotation is open at the end of a text.
func unclosed(text string) bool {
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote == 0 && c == '#' && (i == 0 || text[i-1] == ' ' || text[i-1] == '\t' || text[i-1] == '\n'):
			if end := strings.IndexByte(text[i:], '\n'); end >= 0 {
				i += end
				continue
			}
			return false
		case c == '\\' && quote != '\'':
			i++
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		}
	}
	return quote != 0
}

// hereDocument is the mark of a text below a command.
var hereDocument = lazy.New(`(?:^|[^<])<<-?\s*(["']?)([A-Za-z_]\w*)["']?`)

// below passes over the text below a command.
func (r *reader) below(text string, i int) int {
	m := hereDocument.FindStringSubmatch(text)
	if m == nil {
		return i
	}
	for j := i; j < len(r.lines); j++ {
		if strings.TrimSpace(r.lines[j]) == m[2] {
			return j + 1
		}
	}
	return i
}

// piece is a simple command, with what stands before it.
type piece struct {
	text string
	// before is the operator in front of it: "&&", "||", "|", "(", ")".
	before string
}

// pieces splits a line at the operators of a shell, outside of quotes and replacements.
func pieces(text string) []piece {
	text = functionHead.ReplaceAllString(text, " { ")
	var all []piece
	before, start := "", 0
	quote := byte(0)
	depth := 0 // Of "$(", "${".
	add := func(end int, operator string) {
		all = append(all, piece{text[start:end], before})
		before, start = operator, end+len(operator)
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && quote != '\'':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '$' && i+1 < len(text) && (text[i+1] == '(' || text[i+1] == '{'):
			depth++
			i++
		case depth > 0 && (c == '(' || c == '{'):
			depth++
		case depth > 0:
			if c == ')' || c == '}' {
				depth--
			}
		case c == '#' && (i == start || text[i-1] == ' ' || text[i-1] == '\t'):
			end := strings.IndexByte(text[i:], '\n')
			add(i, "")
			if end < 0 {
				return all
			}
			i += end
			start = i + 1
		case c == '=' && i+1 < len(text) && text[i+1] == '(': // An array.
			i++
			depth++
		case strings.HasPrefix(text[i:], "&&") || strings.HasPrefix(text[i:], "||"):
			add(i, text[i:i+2])
			i++
		case c == '&' && i > 0 && (text[i-1] == '>' || text[i-1] == '<') || c == '&' && i+1 < len(text) && text[i+1] == '>':
		case strings.IndexByte(";|&()\n", c) >= 0:
			add(i, string(c))
		}
	}
	add(len(text), "")
	return all
}

// functionHead is how a function begins.
var functionHead = lazy.New(`(?m)^[ \t]*(?:function[ \t]+)?[\w:.-]+[ \t]*\([ \t]*\)[ \t]*\{?`)

// closers are the words that close a block, by the words that open it.
var closers = map[string]string{"if": "fi", "for": "done", "while": "done", "until": "done", "select": "done", "case": "esac", "{": "}", "(": ")"}

// piece reads one command.
func (r *reader) piece(p piece, line int) {
	switch p.before {
	case "(":
		r.begin("(", line)
	case ")":
		r.end(")", line)
	}
	words := splitWords(p.text)
	for len(words) > 0 {
		word := words[0]
		switch {
		case closers[word] != "":
			r.begin(word, line)
		case word == "fi" || word == "done" || word == "esac" || word == "}":
			r.end(word, line)
		case word != "then" && word != "do" && word != "else" && word != "elif" && word != "!" && word != "time":
			r.command(words, p, line)
			return
		}
		if word == "for" || word == "select" {
			r.forget(words[1:min(len(words), 2)], line)
			return
		}
		if word == "case" {
			return
		}
		words = words[1:]
	}
}

func (r *reader) begin(word string, line int) {
	if len(r.open) == 0 {
		r.begun = line
	}
	r.open = append(r.open, word)
}

func (r *reader) end(word string, line int) {
	for i, opener := range slices.Backward(r.open) {
		if closers[opener] != word {
			continue
		}
		if r.open = r.open[:i]; i == 0 {
			r.script.blocks = append(r.script.blocks, span{r.begun, line})
		}
		return
	}
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

// declarers come before assignments.
var declarers = map[string]bool{"export": true, "declare": true, "typeset": true, "readonly": true, "local": true}

func (r *reader) command(words []string, p piece, line int) {
	for _, m := range defaulted.FindAllStringSubmatch(p.text, 16) {
		if _, state := r.script.value(m[1], line+1); state == Unset {
			r.set(m[1], m[2], p, line)
		}
	}
	head := words[0]
	switch {
	case head == "source" || head == "." || head == "eval":
		if !activation.MatchString(p.text) {
			r.script.foreign = cmp.Or(r.script.foreign, line)
		}
		return
	case setters[head]:
		r.forget(words[1:], line)
		return
	case declarers[head]:
		words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") })
	case slices.ContainsFunc(words, func(w string) bool { return !assigned.MatchString(w) }):
		return // A command, and the variables in front of it are for it alone.
	}
	for _, word := range words {
		m := assigned.FindStringSubmatch(word)
		switch {
		case m == nil:
		case m[2] != "=" || strings.HasPrefix(m[3], "("):
			r.forget([]string{m[1]}, line)
		default:
			r.set(m[1], m[3], p, line)
		}
	}
}

// set notes an assignment: known where it is made in any case, and of what is known.
func (r *reader) set(name, word string, p piece, line int) {
	var value string
	if single, ok := strings.CutPrefix(word, "'"); ok && strings.HasSuffix(single, "'") {
		value = strings.TrimSuffix(single, "'")
	} else {
		value = Expand(strings.ReplaceAll(word, `"`, ""), r.script.At(line+1))
	}
	known := len(r.open) == 0 && p.before != "&&" && p.before != "||" && p.before != "|" && simple(value)
	r.add(event{line: line, name: name, value: value, known: known})
}

// simple reports whether a value can stand for a reference in a command line as it is: it
// refers to nothing, and has no sign that means something to a shell.
func simple(value string) bool {
	return !Refers(value) && !strings.ContainsAny(value, "$`\"'\\;&|<>()#*?\n")
}

// forget notes that the value of variables is no longer known.
func (r *reader) forget(names []string, line int) {
	for _, n := range names {
		if n, _, _ = strings.Cut(n, "="); name.MatchString(n) {
			r.add(event{line: line, name: n})
		}
	}
}

func (r *reader) add(e event) {
	if len(r.open) > 0 {
		e.line, e.known = r.begun, false
	}
	r.script.events = append(r.script.events, e)
}

// splitWords splits a command at its blanks, outside of quotes and replacements, which stay.
func splitWords(text string) []string {
	var words []string
	start, quote, depth := -1, byte(0), 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if quote == 0 && depth == 0 && (c == ' ' || c == '\t' || c == '\n') {
			if start >= 0 {
				words = append(words, text[start:i])
			}
			start = -1
			continue
		}
		if start < 0 {
			start = i
		}
		switch {
		case c == '\\' && quote != '\'':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(' || c == '{' && depth > 0 || c == '{' && i > 0 && text[i-1] == '$':
			depth++
		case (c == ')' || c == '}') && depth > 0:
			depth--
		}
	}
	if start >= 0 {
		words = append(words, text[start:])
	}
	return words
}
