package lines

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks a text at its blanks into lines of at most width characters. A
// word that is longer gets a line of its own, unbroken.
func Wrap(s string, width int) []string {
	var lines []string
	line, used := "", 0
	for word := range strings.FieldsSeq(s) {
		n := utf8.RuneCountInString(word)
		switch {
		case used == 0:
			line, used = word, n
		case used+1+n <= width:
			line += " " + word
			used += 1 + n
		default:
			lines = append(lines, line)
			line, used = word, n
		}
	}
	return append(lines, line)
}

// Paragraphs breaks a text like Wrap, and where it has line breaks of its own.
// What a line is indented by stays, as far as half of the width. Each line is
// safe to print.
func Paragraphs(s string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(s, " \t\r\n"), "\n") {
		text := strings.TrimLeft(line, " \t")
		indent := strings.Repeat(" ", min(len(line)-len(text), width/2))
		for _, l := range Wrap(Printable(text, false), width-len(indent)) {
			lines = append(lines, strings.TrimRight(indent+l, " "))
		}
	}
	return lines
}

// Pad fills a string up to a width with blanks, on its left if the width is
// negative.
func Pad(s string, width int) string {
	if width < 0 {
		return strings.Repeat(" ", max(0, -width-utf8.RuneCountInString(s))) + s
	}
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
