package lines

import (
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// measured is a number with its unit in a text; what is behind the number of "5.0 x16" is one as well.
var measured = lazy.New(`([0-9]) ((?:[kKMGT]?i?B|[kKMGT]?i?[Bb](?:its?)?/s|GT/s|%|[num\x{b5}]?s|[kMG]?Hz|W|x[0-9]+)(?:[^0-9A-Za-z/]|$))`)

// unbreaking is a blank that does not break.
const unbreaking = "\u00a0"

// KeepUnits puts a blank that does not break between a number and its unit.
func KeepUnits(s string) string { return measured.ReplaceAllString(s, "$1"+unbreaking+"$2") }

// Wrap breaks a text at its blanks into lines of at most width characters, not between a
// number and its unit. A word that is longer gets a line of its own, unbroken.
func Wrap(s string, width int) []string {
	var all []string
	line := ""
	for word := range strings.SplitSeq(KeepUnits(strings.Join(strings.Fields(s), " ")), " ") {
		word = strings.ReplaceAll(word, unbreaking, " ")
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			all = append(all, line)
			line = word
		}
	}
	return append(all, line)
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

// Cut shortens a text to the most characters that it may have.
func Cut(most int, s string) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}

// Pad fills a string up to a width with blanks, on its left if the width is
// negative.
func Pad(s string, width int) string {
	if width < 0 {
		return strings.Repeat(" ", max(0, -width-utf8.RuneCountInString(s))) + s
	}
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
