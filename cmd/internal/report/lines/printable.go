// Package lines makes what others wrote fit to be shown: safe to print, broken into lines, coloured, escaped for
// Markdown, with what can be typed marked as code, and with as many digits as a number is worth.
package lines

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/checks/escape"
)

// MaxField bounds how much of one string from the machine is printed, in
// characters; JSON holds the whole of it.
const MaxField = 2000

// Printable makes a string safe to show on a terminal: control characters
// (and so every escape sequence), marks that turn the direction of writing,
// characters without width and bytes that are no UTF-8 stand as escapes, and
// line breaks as blanks. With ascii, so does all that is not ASCII.
func Printable(s string, ascii bool) string {
	var b strings.Builder
	n := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case n == MaxField:
			b.WriteString("...")
			return b.String()
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case r < utf8.RuneSelf && !escape.Visible(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case !escape.Visible(r) || ascii && r >= utf8.RuneSelf:
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteRune(r)
		}
		n++
		i += size
	}
	return b.String()
}
