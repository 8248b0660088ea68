package lazy

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

func (r *Regexp) literals() []literals {
	r.parse.Do(func() {
		if tree, err := syntax.Parse(r.expression, syntax.Perl); err == nil {
			r.needs = slices.DeleteFunc(needsOf(tree), func(l literals) bool { return l.shortest() < leastLiteral })
		}
	})
	return r.needs
}

// May reports whether a text holds the literals that a match needs.
func (r *Regexp) May(text string) bool {
	held := func(l string) bool { return strings.Contains(text, l) }
	return !slices.ContainsFunc(r.literals(), func(l literals) bool { return !slices.ContainsFunc(l, held) })
}

const (
	// leastLiteral is the length of the shortest literal that is searched for: most lines hold shorter ones.
	leastLiteral = 3
	// maxLiterals bounds a list of literals: searching for more takes as long as the regular expression.
	maxLiterals = 16
)

// literals are texts of which a match holds at least one.
type literals []string

func (l literals) shortest() int {
	return len(slices.MinFunc(l, func(a, b string) int { return len(a) - len(b) }))
}

// needsOf returns the literals that each match of an expression holds, as far as they are known.
func needsOf(e *syntax.Regexp) []literals {
	switch e.Op {
	case syntax.OpLiteral:
		// Invalid UTF-8 in a text matches utf8.RuneError.
		if e.Flags&syntax.FoldCase == 0 && !slices.Contains(e.Rune, utf8.RuneError) {
			return []literals{{string(e.Rune)}}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needsOf(e.Sub[0])
	case syntax.OpRepeat:
		if e.Min > 0 {
			return needsOf(e.Sub[0])
		}
	case syntax.OpConcat:
		var all []literals
		for _, part := range e.Sub {
			all = append(all, needsOf(part)...)
		}
		return all
	case syntax.OpAlternate:
		if l := oneOfEach(e.Sub); l != nil {
			return []literals{l}
		}
	default:
	}
	return nil
}

// oneOfEach joins the most selective literals of each alternative; nil if one has none.
func oneOfEach(alternatives []*syntax.Regexp) literals {
	var all literals
	for _, a := range alternatives {
		needs := needsOf(a)
		if len(needs) == 0 {
			return nil
		}
		all = append(all, slices.MaxFunc(needs, func(a, b literals) int { return a.shortest() - b.shortest() })...)
	}
	if len(all) > maxLiterals {
		return nil
	}
	return all
}
