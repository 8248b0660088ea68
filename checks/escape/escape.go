// Package escape decides what is safe to show on a terminal and writes the rest as escapes.
package escape

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible reports whether a character is visible: it is not a control character, is no white space but the space,
// does not change the direction of writing, and has a width (Default_Ignorable_Code_Point of Unicode has none).
func Visible(r rune) bool {
	return r < utf8.RuneSelf && strconv.IsPrint(r) ||
		strconv.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// JSON escapes the characters of encoded JSON that are not visible, which changes nothing for a program that
// decodes it. They occur only in strings; outside them JSON is ASCII.
func JSON(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		switch {
		case r == '\n' || Visible(r):
			out = append(out, raw[i:i+n]...)
		case r > 0xffff:
			hi, lo := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += n
	}
	return out
}

// Printable returns at most limit bytes of s, with control characters and bytes that are not UTF-8 written as escapes.
func Printable(s string, limit int) string {
	if len(s) <= limit && utf8.ValidString(s) && !strings.ContainsFunc(s, unsafeRune) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		next := string(r)
		if unsafeRune(r) {
			q := strconv.QuoteRune(r)
			next = q[1 : len(q)-1]
		}
		if b.Len()+len(next) > limit {
			break
		}
		b.WriteString(next)
	}
	return b.String()
}

// unsafeRune reports whether a rune is to be escaped: control characters, and
// format characters such as those that change the direction of writing.
func unsafeRune(r rune) bool {
	return r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}
