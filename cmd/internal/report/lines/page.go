package lines

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Color is a colour of text: the parameters of Select Graphic Rendition (ECMA-48, 8.3.117).
type Color string

// The colours that a report uses.
const (
	Plain  Color = ""
	Bold   Color = "1"
	Dim    Color = "2"
	Red    Color = "1;31"
	Green  Color = "32"
	Yellow Color = "33"
	Cyan   Color = "36"
)

// Page is text in lines, for a person.
type Page struct {
	B     *bytes.Buffer
	Width int
	Color bool
}

const (
	mostColumns  = 100 // Where there is no terminal, and the most that are used on one.
	leastColumns = 40  // Below which lines are left to the terminal to break.
	leastText    = 12  // How wide a text is at least, however wide its margin is.
)

// NewPage returns an empty page for a terminal of that many columns, 0 if there is no terminal.
func NewPage(columns int, color bool) Page {
	return Page{B: &bytes.Buffer{}, Width: max(min(cmp.Or(columns, mostColumns), mostColumns), leastColumns), Color: color}
}

// Paint adds a color.
func (p *Page) Paint(c Color, s string) string {
	if !p.Color || c == Plain || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// Line writes one line.
func (p *Page) Line(parts ...string) {
	l := strings.TrimRight(strings.Join(parts, ""), " ")
	if l == "" && (p.B.Len() == 0 || bytes.HasSuffix(p.B.Bytes(), []byte("\n\n"))) {
		return // One empty line parts two blocks, whoever asks for it.
	}
	p.B.WriteString(l)
	p.B.WriteByte('\n')
}

// Head writes the title of a part.
func (p *Page) Head(title string) {
	p.Line()
	p.Line(p.Paint(Bold, title))
}

// Under writes a text in lines, the first behind a lead and the others behind a margin as wide as that.
func (p *Page) Under(lead, margin string, c Color, said string) {
	broken := Wrap(said, max(p.Width-utf8.RuneCountInString(margin), leastText))
	for _, l := range broken {
		p.Line(lead, p.Paint(c, l))
		lead = margin
	}
}

// Wrapped writes a text in lines with a left margin.
func (p *Page) Wrapped(margin string, c Color, said string) { p.Under(margin, margin, c, said) }

// measured is a number with its unit in a text; what is behind the number of "5.0 x16" is one as well.
var measured = lazy.New(`([0-9]) ((?:[kKMGT]?i?B|[kKMGT]?i?[Bb](?:its?)?/s|GT/s|%|[num\x{b5}]?s|[kMG]?Hz|W|x[0-9]+)(?:[^0-9A-Za-z/]|$))`)

const unbreaking = "\u00a0"

// KeepUnits puts a blank that does not break between a number and its unit.
func KeepUnits(s string) string { return measured.ReplaceAllString(s, "$1"+unbreaking+"$2") }

// Wrap breaks a text at its blanks into lines of at most width characters, not between a
// number and its unit. A word that is longer gets a line of its own, unbroken.
func Wrap(s string, width int) []string {
	var all []string
	line := ""
	for word := range strings.SplitSeq(KeepUnits(strings.Join(strings.Fields(s), " ")), " ") {
		word = strings.ReplaceAll(word, unbreaking, " ")
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			all = append(all, line)
			line = word
		}
	}
	return append(all, line)
}

// Paragraphs breaks a text like Wrap, and where it has line breaks of its own. What a line is indented by stays, as
// far as half of the width. Each line is safe to print.
func Paragraphs(s string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(s, " \t\r\n"), "\n") {
		text := strings.TrimLeft(line, " \t")
		indent := strings.Repeat(" ", min(len(line)-len(text), width/2))
		for _, l := range Wrap(Printable(text, false), width-len(indent)) {
			lines = append(lines, strings.TrimRight(indent+l, " "))
		}
	}
	return lines
}

// Cut shortens a text to the most characters that it may have.
func Cut(most int, s string) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}

// Pad fills a string up to a width with blanks, on its left if the width is negative.
func Pad(s string, width int) string { return fmt.Sprintf("%*s", -width, s) }
