package evidence

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNeedsOf holds which literals a match needs.
func TestNeedsOf(t *testing.T) {
	for expression, want := range map[string][]literals{
		`could not read (\S+),`:                     {{"could not read "}},
		`(?:foobar|foobaz|quux\d+)x?`:               {{"fooba", "quux"}},
		`a+(?:bcd)+(?:efg){2,}(?:hij)?(?:klm){0,3}`: {{"bcd"}, {"efg"}},
		`(?i)error: (?-i:ENOENT)`:                   {{"ENOENT"}},
		`foobar|\d+`:                                nil,
		`ab.*cd`:                                    nil,
	} {
		if got := newPattern(expression).needs; !slices.EqualFunc(got, want, slices.Equal[literals]) {
			t.Errorf("%s: got %q, want %q", expression, got, want)
		}
	}
}

// FuzzPattern holds that a pattern matches what its regular expression matches.
func FuzzPattern(f *testing.F) {
	f.Add(`could not (?:read|open) "?(\S+)`, "could not open /dev/shm")
	f.Add(`(?i)NCCL (?-i:WARN|INFO)`, "nccl WARN x")
	f.Add(`(ab|c)*d{2,3}[ef]+\x{fffd}`, "add\xff")
	f.Fuzz(func(t *testing.T, expression, text string) {
		if _, err := regexp.Compile(expression); err != nil {
			return
		}
		p := newPattern(expression)
		if got, want := p.find(text), p.expression.FindStringSubmatch(text); !slices.Equal(got, want) {
			t.Errorf("%q in %q: got %q, want %q", expression, text, got, want)
		}
		if got, want := p.match(text), p.expression.MatchString(text); got != want {
			t.Errorf("%q in %q: got %t, want %t", expression, text, got, want)
		}
	})
}

// TestStatementsNeed holds that no row of the catalogue misses a line for want of a
// literal: the lines are those of the rows' examples and of the repository's texts.
func TestStatementsNeed(t *testing.T) {
	lines := make(map[string]bool)
	for _, text := range everyText(t) {
		for line := range strings.SplitSeq(text, "\n") {
			lines[line] = true
		}
	}
	for _, row := range Statements() {
		for line := range lines {
			if !containsAny(line, row.Anchors) {
				continue
			}
			like, unlike := row.patterns()
			for _, p := range []*pattern{like, unlike} {
				if p != nil && !p.may(line) && p.expression.MatchString(line) {
					t.Errorf("%s: %q matches and lacks one of %q", row.ID, line, p.needs)
				}
			}
		}
	}
}
