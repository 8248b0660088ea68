package report

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// upper begins a sentence.
func upper(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// sentence is the first sentence of a text, without its full stop.
func sentence(s string) string {
	for i := range len(s) - 2 {
		if s[i] == '.' && s[i+1] == ' ' && s[i+2] >= 'A' && s[i+2] <= 'Z' {
			return s[:i]
		}
	}
	return strings.TrimSuffix(s, ".")
}

// bare is a text without its full stop.
func bare(s string) string { return strings.TrimSuffix(s, ".") }

// number counts from 1.
func number(i int) int { return i + 1 }

// after is a lead with what separates it from what it leads to; nothing if it is empty.
func after(lead, separator string) string {
	if lead == "" {
		return ""
	}
	return lead + separator
}

// behind is a text with what separates it from what stands before it; nothing if it is
// empty.
func behind(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

// inWords lists names: "a, b and c".
func inWords(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// pair is a name and what is said of it.
type pair struct{ Name, Text string }

// alike is names of which the same is said.
type alike struct {
	Names []string
	Text  string
}

// together gathers names of which the same is said, in order.
func together(all []pair) []alike {
	return lines.Map(lines.Grouped(all, func(p pair) string { return p.Text }), func(same []pair) alike {
		return alike{lines.Map(same, func(p pair) string { return p.Name }), same[0].Text}
	})
}

// commonest gathers names of which the same is said, most names first.
func commonest(all []pair) []alike {
	rows := together(all)
	slices.SortStableFunc(rows, func(a, b alike) int { return len(b.Names) - len(a.Names) })
	return rows
}
