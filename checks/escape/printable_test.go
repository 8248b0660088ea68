package escape

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestPrintableBounds(t *testing.T) {
	for _, tt := range []struct {
		in    string
		limit int
		want  string
	}{
		{"plain", 10, "plain"},
		{"éé", 3, "é"},
		{"a\x00b", 10, `a\x00b`},
		{"\u202eabc", 20, `\u202eabc`},
		{strings.Repeat("x", 5), 3, "xxx"},
	} {
		expect.Equal(t, tt.want, Printable(tt.in, tt.limit), "Printable(%q, %d)", tt.in, tt.limit)
	}
}
