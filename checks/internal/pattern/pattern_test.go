package pattern

import (
	"regexp"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestNeedsOf checks which literals a match needs.
func TestNeedsOf(t *testing.T) {
	for expression, want := range map[string][]literals{
		`could not read (\S+),`:                     {{"could not read "}},
		`(?:foobar|foobaz|quux\d+)x?`:               {{"fooba", "quux"}},
		`a+(?:bcd)+(?:efg){2,}(?:hij)?(?:klm){0,3}`: {{"bcd"}, {"efg"}},
		`(?i)error: (?-i:ENOENT)`:                   {{"ENOENT"}},
		`foobar|\d+`:                                nil,
		`ab.*cd`:                                    nil,
	} {
		got := New(expression).literals()
		expect.That(t, slices.EqualFunc(got, want, slices.Equal[literals]), "%s: got %q, want %q", expression, got, want)
	}
}

// FuzzPattern checks that a pattern matches what its regular expression matches.
func FuzzPattern(f *testing.F) {
	f.Add(`could not (?:read|open) "?(\S+)`, "could not open /dev/shm")
	f.Add(`(?i)NCCL (?-i:WARN|INFO)`, "nccl WARN x")
	f.Add(`(ab|c)*d{2,3}[ef]+\x{fffd}`, "add\xff")
	f.Fuzz(func(t *testing.T, expression, text string) {
		if _, err := regexp.Compile(expression); err != nil {
			return
		}
		p := New(expression)
		got, want := p.Find(text), p.expression.FindStringSubmatch(text)
		expect.That(t, slices.Equal(got, want), "%q in %q: got %q, want %q", expression, text, got, want)
		if got, want := p.Match(text), p.expression.MatchString(text); got != want {
			t.Errorf("%q in %q: got %t, want %t", expression, text, got, want)
		}
	})
}
