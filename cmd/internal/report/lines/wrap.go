package lines

import (
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// number is what a unit belongs to, and unit a unit with the punctuation behind it; what
// is behind the number of "5.0 x16" is one as well.
var (
	number = lazy.New(`^[(~<>=±-]*[0-9][0-9.,]*$`)
	unit   = lazy.New(`^(?:[kKMGT]?i?B|[kKMGT]?i?[Bb](?:its?)?/s|GT/s|%|[num\x{b5}]?s|[kMG]?Hz|W|x[0-9]+)[).,;:]*$`)
	// measured is a number with its unit in a text.
	measured = lazy.New(`([0-9]) ((?:[kKMGT]?i?B|[kKMGT]?i?[Bb](?:its?)?/s|GT/s|%|[num\x{b5}]?s|[kMG]?Hz|W|x[0-9]+)(?:[^0-9A-Za-z/]|$))`)
)

// KeepUnits puts a blank that does not break between a number and its unit.
func KeepUnits(s string) string { return measured.ReplaceAllString(s, "$1\u00a0$2") }

// words are those of a text, a number with its unit as one.
func words(s string) []string {
	var all []string
	for word := range strings.FieldsSeq(s) {
		if n := len(all); n > 0 && unit.MatchString(word) && number.MatchString(all[n-1]) {
			all[n-1] += " " + word
			continue
		}
		all = append(all, word)
	}
	return all
}

// Wrap breaks a text at its blanks into lines of at most width characters, not between a
// number and its unit. A word that is longer gets a line of its own, unbroken.
func Wrap(s string, width int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range words(s) {
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
