package report

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// labelWidth is the width of the labels of a remedy and of evidence.
const labelWidth = 7

// entry writes a status, a sentence and a remark behind it.
func (t *text) entry(label, said, remark string) {
	t.Under(t.Paint(ColorOf(label), lines.Pad(label, 6)), strings.Repeat(" ", 6), lines.Plain, said+after(behind(" (", remark), ")"))
}

// hanging writes a label and a text; further lines are aligned with the text.
func (t *text) hanging(margin, label string, c lines.Color, said string) {
	t.Under(margin+t.Paint(c, lines.Pad(label, labelWidth)), margin+strings.Repeat(" ", labelWidth), c, said)
}

// items writes a list, no item broken unless it is longer than a line.
func (t *text) items(margin string, c lines.Color, parts []string) {
	if len(parts) == 0 {
		return
	}
	for _, line := range lines.Fill(punctuated(parts, ";"), t.Width-len(margin), t.Width-len(margin)) {
		t.Wrapped(margin, c, line)
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
	for _, l := range lines.Wrap(first+" "+second, t.Width) {
		fields := strings.Fields(l)
		n := min(words, len(fields))
		words -= n
		head, tail := strings.Join(fields[:n], " "), strings.Join(fields[n:], " ")
		if head != "" && tail != "" {
			tail = " " + tail
		}
		t.Line(t.Paint(c, head), tail)
	}
}
