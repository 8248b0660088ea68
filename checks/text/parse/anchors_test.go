package parse

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// FuzzAnchors checks that the automaton finds what a plain search finds.
func FuzzAnchors(f *testing.F) {
	f.Add("abcabcd", "bcd", "abc", "xabcd")
	f.Add("NET/IB : Got async event", "Got async event", "async", "event ")
	f.Fuzz(func(t *testing.T, line, a, b, c string) {
		var anchors [][]string
		for _, s := range []string{a, b, c} {
			if s != "" && !strings.Contains(s, "\n") {
				anchors = append(anchors, []string{s})
			}
		}
		if len(anchors) == 0 {
			return
		}
		set := newAnchorSet(anchors)
		exact, keys := set.in([]byte(line), true, nil), set.in([]byte(line), false, nil)
		for i, list := range anchors {
			taker, key := uint16(i), list[0][max(0, len(list[0])-keyBytes):]
			if got, want := slices.Contains(exact, taker), strings.Contains(line, list[0]); got != want {
				t.Errorf("%q found in %q: %t, want %t", list[0], line, got, want)
			}
			got, want := slices.Contains(keys, taker), strings.Contains(line, key)
			expect.That(t, got == want, "the key %q found in %q: %t, want %t", key, line, got, want)
		}
		expect.NoDiff(t, exact, set.holding(line, keys), "%q holds", line)
	})
}
