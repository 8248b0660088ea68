package report

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// details writes what became of the rules, and what could not be read. Texts and what to send stand elsewhere.
func (t *text) details() {
	for _, list := range t.v.Examined() {
		if !list.Detail {
			continue
		}
		t.Head(list.Title)
		for _, row := range list.Rows {
			t.Under("  ", "    ", lines.Plain, strings.Join(row.Names, ", ")+behind(": ", row.Text))
		}
	}
	t.Line()
}
