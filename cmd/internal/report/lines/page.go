package lines

import (
	"bytes"
	"cmp"
	"strings"
	"unicode/utf8"
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
	if l == "" && bytes.HasSuffix(p.B.Bytes(), []byte("\n\n")) {
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
