package lines

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Inline makes a string from the machine safe inside a line or a table cell
// of Markdown: nothing of it is taken for markup, HTML, a link or a mention.
func Inline(s string) string { return inlineReplacer.Replace(Printable(s, false)) }

// inlineReplacer escapes the punctuation that Markdown gives a meaning inside a line. An empty HTML comment keeps
// trackers from making a link or a mention of what stands around it.
var inlineReplacer = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`, `~`, `\~`, `|`, `\|`, `#`, `\#`,
	`<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`, `@`, `@<!-- -->`, `://`, `:<!-- -->//`,
	`www.`, `www<!-- -->.`,
)

// Item makes a text that begins a line, or an item of a list, no item or heading of its own.
func Item(s string) string {
	trimmed := strings.TrimLeft(s, " ")
	if trimmed != "" && strings.ContainsAny(trimmed[:1], "-+=") {
		return `\` + trimmed
	}
	digits := strings.TrimLeft(trimmed, "0123456789")
	if n := len(trimmed) - len(digits); n > 0 && digits != "" && (digits[0] == '.' || digits[0] == ')') {
		return trimmed[:n] + `\` + digits
	}
	return trimmed
}

// Cell is code for a table, whose columns a bar would end even there. A backslash before
// a bar cannot be written in code.
func Cell(s string) string {
	if strings.Contains(s, `\|`) {
		return Inline(s)
	}
	return strings.ReplaceAll(Code(s), "|", `\|`)
}

// Code writes a string as code on one line.
func Code(s string) string {
	s = Printable(s, false)
	if s == "" {
		return ""
	}
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// Span is a piece of a sentence.
type Span struct {
	Text string
	Code bool // True for what can be found in a file as it is.
}

// code matches what can be found in a file as it is, from a blank and what opens to what closes and a blank: a variable, an option
// with a value, a kernel or module parameter, or a path.
var code = lazy.New(`(?:^| )[("'\x60\[{]*(` +
	`[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:=(?:"[^"]*"|[^ ]*[^ .,;:?!)"'\x60\]}]))?|` +
	`(?:--)?[a-z][a-z0-9_.-]*=[A-Za-z0-9=@/](?:[^ ]*[^ .,;:?!)"'\x60\]}])?|` +
	`/(?:dev|etc|opt|proc|run|sys|tmp|usr|var)(?:/[A-Za-z0-9_.:*+-]+)*/[A-Za-z0-9_.:*+-]*[A-Za-z0-9_*+-]/?` +
	`)[.,;:?!)"'\x60\]}]*(?: |$)`)

// Spans are the pieces of a sentence, which joined give the sentence.
func Spans(s string) (spans []Span) {
	add := func(text string, code bool) {
		if text != "" {
			spans = append(spans, Span{text, code})
		}
	}
	for {
		m := code.Get().FindStringSubmatchIndex(s)
		if m == nil {
			add(s, false)
			return spans
		}
		add(s[:m[2]], false)
		add(s[m[2]:m[3]], true)
		s = s[m[3]:]
	}
}
