package dockerfile

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// instruction is one of a Dockerfile, with what follows its name. A text below it is left out.
type instruction struct {
	name string
	// text has a line feed, which is no part of it, between its lines.
	text   string
	lines  []parse.Line
	escape byte
}

// joined is the text in one line.
func (in *instruction) joined() string {
	return strings.TrimSpace(strings.ReplaceAll(in.text, "\n", ""))
}

var (
	instructionForm = lazy.New(`^\s*([A-Za-z]+)(?:\s+|$)`)
	escapeForm      = lazy.New("^\\s*#\\s*(?i)escape\\s*=\\s*([\\\\`])")
	directiveForm   = lazy.New(`^\s*#\s*[A-Za-z]+\s*=`)
	belowForm       = lazy.New(`^(?is)(?:RUN|COPY|ADD)\s.*?<<-?\s*["']?([A-Za-z_]\w*)`)
)

// TextBelow is the word that ends the text below an instruction ("RUN <<EOF"); empty where it has none.
func TextBelow(instruction string) string {
	if m := belowForm.FindStringSubmatch(instruction); m != nil {
		return m[1]
	}
	return ""
}

// instructions are those of a file. Comments and blank lines between the lines of one do not
// end it.
func instructions(lines []parse.Line) []instruction {
	escape := byte('\\')
	for _, l := range lines { // Directives come before anything else.
		if m := escapeForm.FindStringSubmatch(l.Text); m != nil {
			escape = m[1][0]
		}
		if !directiveForm.MatchString(l.Text) {
			break
		}
	}
	var all []instruction
	for i := 0; i < len(lines); i++ {
		m := instructionForm.FindStringSubmatch(lines[i].Text)
		if m == nil {
			continue
		}
		text, more := goesOn(lines[i].Text[len(m[0]):], escape)
		in := instruction{name: strings.ToUpper(m[1]), text: text, lines: lines[i : i+1], escape: escape}
		for begin := i; more && i+1 < len(lines); in.lines = lines[begin : i+1] {
			i++
			text = strings.TrimSpace(lines[i].Text)
			if text != "" && !strings.HasPrefix(text, "#") {
				text, more = goesOn(lines[i].Text, escape)
			} else {
				text = ""
			}
			in.text += "\n" + text
		}
		if end := TextBelow(in.name + " " + in.text); end != "" {
			for i++; i < len(lines) && strings.TrimSpace(lines[i].Text) != end; {
				i++
			}
		}
		all = append(all, in)
	}
	return all
}

// goesOn is a line without the sign at its end by which an instruction goes on below.
func goesOn(text string, escape byte) (rest string, more bool) {
	trimmed := strings.TrimRight(text, " \t\r")
	if n := len(trimmed); n > 0 && trimmed[n-1] == escape {
		return trimmed[:n-1], true
	}
	return text, false
}

// word is one of an instruction's, without its quotes. It is literal if single quotes are
// around its value.
type word struct {
	text    string
	line    int
	literal bool
}

// words splits what follows the name of an instruction at its blanks, outside of quotes and of
// braces.
func (in *instruction) words() []word {
	var all []word
	var b strings.Builder
	quote, braces, literal := byte(0), 0, false
	line, above := 0, 0 // The line of the word under way, 0 outside of one, and how many lines are above.
	end := func() {
		if line > 0 {
			all = append(all, word{b.String(), line, literal})
		}
		b.Reset()
		line, literal = 0, false
	}
	for i := 0; i < len(in.text); i++ {
		c := in.text[i]
		if c == '\n' {
			above++
			continue
		}
		if quote == 0 && braces == 0 && (c == ' ' || c == '\t') {
			end()
			continue
		}
		if line == 0 {
			line = in.lines[above].Number
		}
		switch {
		case c == in.escape && quote != '\'' && i+1 < len(in.text):
			i++
			if in.text[i] == '$' {
				b.WriteByte('\\') // No reference: see values.Expand.
			}
			b.WriteByte(in.text[i])
		case quote == 0 && (c == '"' || c == '\''):
			quote, literal = c, literal || c == '\''
		case quote != 0 && c == quote:
			quote = 0
		default:
			if c == '{' && i > 0 && in.text[i-1] == '$' {
				braces++
			} else if c == '}' && braces > 0 {
				braces--
			}
			b.WriteByte(c)
		}
	}
	end()
	return all
}
