package escape

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns at most limit bytes of s, with control characters and bytes that are not UTF-8 written as
// escapes.
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
