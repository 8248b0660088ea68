package anchors

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
		set := New(anchors)
		exact, keys := set.In([]byte(line), true, nil), set.In([]byte(line), false, nil)
		for i, list := range anchors {
			owner, key := uint16(i), list[0][max(0, len(list[0])-keyBytes):]
			if got, want := slices.Contains(exact, owner), strings.Contains(line, list[0]); got != want {
				t.Errorf("%q found in %q: %t, want %t", list[0], line, got, want)
			}
			got, want := slices.Contains(keys, owner), strings.Contains(line, key)
			expect.That(t, got == want, "the key %q found in %q: %t, want %t", key, line, got, want)
		}
		expect.NoDiff(t, exact, set.Holding(line, keys), "%q holds", line)
	})
}
