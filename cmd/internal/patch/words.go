package patch

import "strings"

// word is a word of a shell command, by the bytes of the text.
type word struct {
	from, to int
	// value is the word without its quotes.
	value string
	// plain is true if the value is written as it is, without quotes or expansions.
	plain bool
}

// command is a simple command: the words up to an operator or the end of the line.
type command struct {
	words []word
	// first is true if no other command precedes it on its line, and last if none follows.
	first, last bool
}

// lexer splits a shell script into commands.
type lexer struct {
	text string
	at   int
	// instruction is true for the instructions of a Dockerfile, in which comments may stand
	// between lines.
	instruction bool
	commands    []command
	current     []word
	// begun is true once a command of the line ended in an operator.
	begun bool
	// open is true if a quote or an expansion does not end.
	open bool
	// here are the words that end the texts to come ("<<EOF").
	here []string
}

// maxWords bounds the words of a script.
const maxWords = 1 << 18

// commandsOf splits a script into its commands. Texts behind "<<" are left out.
// closed is false where a quote does not end, so that nothing is certain.
func commandsOf(text string, instruction bool) (commands []command, closed bool) {
	l := &lexer{text: text, instruction: instruction}
	n := 0
	for l.at < len(text) && n < maxWords {
		l.step()
		n++
	}
	l.finish(true)
	return l.commands, !l.open && l.at >= len(text)
}

// finish ends a command.
func (l *lexer) finish(endsLine bool) {
	if len(l.current) > 0 {
		l.commands = append(l.commands, command{words: l.current, first: !l.begun, last: endsLine})
	} else if endsLine && l.begun && len(l.commands) > 0 {
		l.commands[len(l.commands)-1].last = true
	}
	l.current, l.begun = nil, !endsLine
}

// step reads a word, or what stands between words.
func (l *lexer) step() {
	switch c := l.text[l.at]; {
	case c == '\n':
		l.at++
		if l.instruction {
			return
		}
		l.finish(true)
		for _, end := range l.here {
			l.skipText(end)
		}
		l.here = nil
	case c == ' ' || c == '\t' || c == '\r':
		l.at++
	case c == '\\' && l.lineEnd(l.at+1) > 0:
		l.at = l.lineEnd(l.at + 1)
	case c == '#':
		end := strings.IndexByte(l.text[l.at:], '\n')
		if end < 0 {
			end = len(l.text) - l.at
		}
		l.at += end
	case strings.HasPrefix(l.text[l.at:], "<<") && !strings.HasPrefix(l.text[l.at:], "<<<"):
		l.at += 2
		if l.at < len(l.text) && l.text[l.at] == '-' {
			l.at++
		}
		for l.at < len(l.text) && l.text[l.at] == ' ' {
			l.at++
		}
		if w := l.word(); w.value != "" {
			l.here = append(l.here, w.value)
		}
	case strings.IndexByte(";|&()<>", c) >= 0:
		l.at++
		switch {
		case c != '<' && c != '>':
			l.finish(false)
		case l.at < len(l.text) && l.text[l.at] == '&': // "2>&1".
			l.at++
		}
	default:
		l.current = append(l.current, l.word())
	}
}

// lineEnd is where the next line begins if one ends at a byte; 0 if none does.
func (l *lexer) lineEnd(at int) int {
	if strings.HasPrefix(l.text[min(at, len(l.text)):], "\r\n") {
		return at + 2
	}
	if at < len(l.text) && l.text[at] == '\n' {
		return at + 1
	}
	return 0
}

// skipText skips the lines up to one that is a word.
func (l *lexer) skipText(end string) {
	for l.at < len(l.text) {
		next := strings.IndexByte(l.text[l.at:], '\n')
		if next < 0 {
			next = len(l.text) - l.at - 1
		}
		t := l.text[l.at : l.at+next+1]
		l.at += next + 1
		if strings.Trim(t, "\t\r\n ") == end {
			return
		}
	}
}

// word reads a word.
func (l *lexer) word() word {
	w := word{from: l.at, plain: true}
	var b strings.Builder
	end := l.at // Behind the last character: a joined line may follow it.
	for l.at < len(l.text) {
		c := l.text[l.at]
		switch {
		case strings.IndexByte(" \t\r\n;|&()<>", c) >= 0:
			w.to, w.value = end, b.String()
			return w
		case c == '\'':
			length := strings.IndexByte(l.text[l.at+1:], '\'')
			if length < 0 {
				l.open = true
				length = len(l.text) - l.at - 1
			}
			b.WriteString(l.text[l.at+1 : l.at+1+length])
			w.plain = false
			l.at = min(l.at+length+2, len(l.text))
		case c == '"':
			w.plain = false
			for l.at++; l.at < len(l.text) && l.text[l.at] != '"'; l.at++ {
				switch {
				case l.text[l.at] == '\\' && l.at+1 < len(l.text):
					l.at++
				case strings.HasPrefix(l.text[l.at:], "$(") || strings.HasPrefix(l.text[l.at:], "${"):
					behind := l.expansion()
					b.WriteString(l.text[l.at : behind-1])
					l.at = behind - 1
				}
				b.WriteByte(l.text[l.at])
			}
			l.open = l.open || l.at >= len(l.text)
			l.at = min(l.at+1, len(l.text))
		case c == '`' || c == '$':
			w.plain = false
			behind := l.expansion()
			b.WriteString(l.text[l.at:behind])
			l.at = behind
		case c == '\\' && l.lineEnd(l.at+1) > 0:
			w.plain = false
			l.at = l.lineEnd(l.at + 1)
			continue
		case c == '\\' && l.at+1 < len(l.text):
			w.plain = false
			b.WriteByte(l.text[l.at+1])
			l.at += 2
		default:
			b.WriteByte(c)
			l.at++
		}
		end = l.at
	}
	w.to, w.value = end, b.String()
	return w
}

// expansion is where what begins with "$" or a backquote ends.
func (l *lexer) expansion() int {
	rest := l.text[l.at:]
	switch {
	case rest[0] == '`':
		if end := strings.IndexByte(rest[1:], '`'); end >= 0 {
			return l.at + end + 2
		}
		l.open = true
		return len(l.text)
	case strings.HasPrefix(rest, "$(") || strings.HasPrefix(rest, "${"):
		depth := 0
		for i := 1; i < len(rest); i++ {
			switch rest[i] {
			case '(', '{':
				depth++
			case ')', '}':
				if depth--; depth == 0 {
					return l.at + i + 1
				}
			case '\'', '"':
				if end := strings.IndexByte(rest[i+1:], rest[i]); end >= 0 {
					i += end + 1
				}
			}
		}
		l.open = true
		return len(l.text)
	}
	return l.at + 1
}
