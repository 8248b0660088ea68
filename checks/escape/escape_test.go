package escape

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestVisible goes through all characters: none that is visible is of a kind that steers a terminal or hides.
func TestVisible(t *testing.T) {
	hidden := []*unicode.RangeTable{
		unicode.C, unicode.Z, unicode.Bidi_Control, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Noncharacter_Code_Point, unicode.Join_Control,
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		expect.That(t, !Visible(r) || r == ' ' || !unicode.In(r, hidden...), "%U is visible", r)
	}
	for _, r := range " aZ~äß中日本ギ→°µ✓é" {
		expect.That(t, Visible(r), "%q is not visible", r)
	}
}

// TestJSON goes through all characters: what was encoded is what is decoded, and no character of it is hidden.
func TestJSON(t *testing.T) {
	var all strings.Builder
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) {
			all.WriteRune(r)
		}
	}
	escaped := JSON(expect.Value(json.Marshal(all.String()))(t))
	for _, r := range string(escaped) {
		expect.Must(t, Visible(r), "%U is not escaped", r)
	}
	var got string
	err := json.Unmarshal(escaped, &got)
	expect.That(t, err == nil && got == all.String(), "it is decoded as something else: %v", err)
}

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
