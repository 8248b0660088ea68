package message

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
		set := NewAnchorSet(anchors)
		found := set.In([]byte(line), nil)
		var all []uint16
		for i, list := range anchors {
			all = append(all, uint16(i))
			got, want := slices.Contains(found, uint16(i)), strings.Contains(line, list[0])
			expect.That(t, got == want, "%q found in %q: %t, want %t", list[0], line, got, want)
		}
		expect.That(t, slices.Equal(found, set.Holding(line, all)), "%q holds %v", line, found)
	})
}
