package lazy

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

// FuzzRegexp checks that a lazy expression matches what its regular expression matches.
func FuzzRegexp(f *testing.F) {
	f.Add(`could not (?:read|open) "?(\S+)`, "could not open /dev/shm")
	f.Add(`(?i)NCCL (?-i:WARN|INFO)`, "nccl WARN x")
	f.Add(`(ab|c)*d{2,3}[ef]+\x{fffd}`, "add\xff")
	f.Fuzz(func(t *testing.T, expression, text string) {
		plain, err := regexp.Compile(expression)
		if err != nil {
			return
		}
		r := New(expression)
		got, want := r.FindStringSubmatch(text), plain.FindStringSubmatch(text)
		expect.That(t, slices.Equal(got, want), "%q in %q: got %q, want %q", expression, text, got, want)
		expect.Equal(t, plain.MatchString(text), r.MatchString(text), "%q in %q", expression, text)
	})
}
