package lines

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Doc is a short document of lists under titles: text for a terminal, or Markdown for a ticket.
type Doc struct {
	// Title is of Markdown. A text says the same at its end, if there is an End.
	Title, End string
	Head       []Entry
	Parts      []Part
	// Rest says where the entries are that are only counted.
	Rest string
}

// Part is a list under a title.
type Part struct {
	Title string
	Color Color // Of the title; bold unless it is set.
	List  []Entry
	More  int // How many entries are only counted.
	// Table has the names of its columns in its first row. Only text has it.
	Table [][]string
}

// Entry is a text, what it begins with, and what stands below it.
type Entry struct{ Lead, Text, Below string }

// Entries are texts as entries.
func Entries(texts ...string) []Entry {
	all := make([]Entry, len(texts))
	for i, s := range texts {
		all[i].Text = s
	}
	return all
}

// Add adds the first of several texts under a title, and counts the others; nothing if there are none.
func (d *Doc) Add(title string, texts []string, most int) {
	if shown := texts[:min(len(texts), most)]; len(shown) > 0 {
		d.Parts = append(d.Parts, Part{Title: title, List: Entries(shown...), More: len(texts) - len(shown)})
	}
}

// Text is the document for a terminal.
func (d Doc) Text(columns int, color, ascii bool) []byte {
	d = Clean(d, ascii)
	p := NewPage(columns, color)
	p.entries("", d.Head)
	for _, part := range d.Parts {
		p.Line()
		p.Wrapped("", cmp.Or(part.Color, Bold), part.Title)
		p.entries("  ", part.List)
		if part.More > 0 {
			p.Wrapped("  ", Dim, fmt.Sprintf("and %d more (%s)", part.More, d.Rest))
		}
		p.B.WriteString(Table(part.Table))
	}
	if d.End != "" {
		p.Line()
		p.Wrapped("", Plain, d.End)
	}
	return p.B.Bytes()
}

func (p *Page) entries(margin string, all []Entry) {
	for _, e := range all {
		inner := margin + strings.Repeat(" ", utf8.RuneCountInString(e.Lead))
		p.Under(margin+e.Lead, inner, Plain, e.Text)
		if e.Below != "" {
			p.Wrapped(inner, Plain, e.Below)
		}
	}
}

// Markdown is the document for a ticket.
func (d Doc) Markdown() []byte {
	var b bytes.Buffer
	put := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	list := func(part Part) {
		for _, e := range part.List {
			put("- %s", Joined(" ", Code(strings.TrimSpace(e.Lead)), Item(Inline(e.Text))))
			if e.Below != "" {
				put("  (%s)", Inline(e.Below))
			}
		}
		if part.More > 0 {
			put("- and %d more (%s)", part.More, Inline(d.Rest))
		}
	}
	put("## %s\n", Inline(d.Title))
	list(Part{List: d.Head})
	for _, part := range d.Parts {
		put("\n### %s\n", Inline(part.Title))
		list(part)
	}
	return b.Bytes()
}
