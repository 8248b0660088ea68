package report

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// labelWidth is the width of the labels of a remedy and of evidence.
const labelWidth = 7

// leastText is how wide a text is at least, however wide its margin is.
const leastText = 12

// paint adds a color.
func (t *text) paint(c lines.Color, s string) string {
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

// head writes the title of a part.
func (t *text) head(title string) {
	t.line()
	t.line(t.paint(lines.Bold, title))
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
	if right != "" {
		broken[last] += strings.Repeat(" ", gap) + t.paint(lines.Dim, right)
	}
	t.lines(t.paint(colorOf(label), lines.Pad(label, 6)), strings.Repeat(" ", 6), broken)
}

// lines writes lines, the first behind a lead and the others behind a margin.
func (t *text) lines(lead, margin string, all []string) {
	for _, l := range all {
		t.line(lead, l)
		lead = margin
	}
}

// under writes a text in lines, the first behind a lead and the others behind a margin as wide as that.
func (t *text) under(lead, margin string, c lines.Color, said string) {
	broken := lines.Wrap(said, max(t.width-utf8.RuneCountInString(margin), leastText))
	for i, l := range broken {
		broken[i] = t.paint(c, l)
	}
	t.lines(lead, margin, broken)
}

// wrapped writes a text in lines with a left margin.
func (t *text) wrapped(margin string, c lines.Color, said string) { t.under(margin, margin, c, said) }

// hanging writes a label and a text; further lines are aligned with the text.
func (t *text) hanging(margin, label string, c lines.Color, said string) {
	t.under(margin+t.paint(c, lines.Pad(label, labelWidth)), margin+strings.Repeat(" ", labelWidth), c, said)
}

// items writes a list, no item broken unless it is longer than a line.
func (t *text) items(margin string, c lines.Color, parts []string) {
	if len(parts) == 0 {
		return
	}
	for _, line := range lines.Fill(punctuated(parts, ";"), t.width-len(margin), t.width-len(margin)) {
		t.wrapped(margin, c, line)
	}
}

// punctuated are the parts of a list, all but the last with a mark behind it.
func punctuated(parts []string, mark string) []string {
	items := make([]string, len(parts))
	for i, p := range parts {
		items[i] = p + mark
	}
	if n := len(items); n > 0 {
		items[n-1] = parts[n-1]
	}
	return items
}

// wrappedAfter writes two texts one after the other, the first in a color.
func (t *text) wrappedAfter(c lines.Color, first, second string) {
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
