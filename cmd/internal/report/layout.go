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
