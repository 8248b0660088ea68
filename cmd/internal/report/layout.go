package report

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/ansi"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// labelWidth is the width of the labels of a remedy and of evidence.
const labelWidth = 7

// clean makes a string from the machine safe to print.
func (t *text) clean(s string) string { return lines.Printable(s, t.style.ASCII) }

// paint adds a color.
func (t *text) paint(c ansi.Color, s string) string {
	if !t.style.Color {
		return s
	}
	return c.Paint(s)
}

// line writes one line.
func (t *text) line(parts ...string) {
	l := strings.TrimRight(strings.Join(parts, ""), " ")
	if l == "" && bytes.HasSuffix(t.b.Bytes(), []byte("\n\n")) {
		return // One empty line parts two blocks, whoever asks for it.
	}
	t.b.WriteString(l)
	t.b.WriteByte('\n')
}

// entry writes a status, a sentence and a remark: at the right edge if there
// is room, otherwise after the sentence.
func (t *text) entry(label, said, right string) {
	broken := lines.Wrap(said, t.width-6)
	last := len(broken) - 1
	gap := t.width - 6 - utf8.RuneCountInString(broken[last]) - utf8.RuneCountInString(right)
	if right != "" && gap < 3 {
		broken, right = lines.Wrap(said+" ("+right+")", t.width-6), ""
		last = len(broken) - 1
	}
	for i, l := range broken {
		lead := strings.Repeat(" ", 6)
		if i == 0 {
			lead = t.paint(colorOf(label), lines.Pad(label, 6))
		}
		if i == last && right != "" {
			l += strings.Repeat(" ", gap) + t.paint(ansi.Dim, right)
		}
		t.line(lead, l)
	}
}

// wrapped writes a text in lines with a left margin.
func (t *text) wrapped(margin string, c ansi.Color, said string) {
	for _, l := range lines.Wrap(said, t.width-len(margin)) {
		t.line(margin, t.paint(c, l))
	}
}

// hanging writes a label and a text; further lines are aligned with the text.
func (t *text) hanging(margin, label string, c ansi.Color, said string) {
	for _, l := range lines.Wrap(said, t.width-len(margin)-labelWidth) {
		t.line(margin, t.paint(c, lines.Pad(label, labelWidth)+l))
		label = ""
	}
}

// items writes a list, no item broken unless it is longer than a line.
func (t *text) items(margin string, c ansi.Color, parts []string) {
	items := make([]string, len(parts))
	for i, p := range parts {
		items[i] = t.clean(p)
		if i < len(parts)-1 {
			items[i] += ";"
		}
	}
	for _, line := range t.wrapItems(items, len(margin), len(margin)) {
		t.wrapped(margin, c, line)
	}
}

// wrappedAfter writes two texts one after the other, the first in a color.
func (t *text) wrappedAfter(c ansi.Color, first, second string) {
	words := len(strings.Fields(first))
	for _, l := range lines.Wrap(first+" "+second, t.width) {
		fields := strings.Fields(l)
		n := min(words, len(fields))
		words -= n
		head, tail := strings.Join(fields[:n], " "), strings.Join(fields[n:], " ")
		if head != "" && tail != "" {
			tail = " " + tail
		}
		t.line(t.paint(c, head), tail)
	}
}

// wrapItems fills lines with items, each unbroken, the first line beginning
// at column first and the others at column rest.
func (t *text) wrapItems(items []string, first, rest int) []string {
	var lines []string
	line, room := "", t.width-first
	for _, item := range items {
		n := utf8.RuneCountInString(item)
		switch {
		case line == "":
			line = item
		case utf8.RuneCountInString(line)+1+n <= room:
			line += " " + item
		default:
			lines = append(lines, line)
			line, room = item, t.width-rest
		}
	}
	return append(lines, line)
}
