package nodes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestSkews checks that a node whose clock is off is named against one whose clock is not, whichever it is, and none where the error of the
// measurement may be the whole difference.
func TestSkews(t *testing.T) {
	t.Parallel()
	for bad := range 9 {
		r := &Report{}
		for i := range 9 {
			c := &Clock{Ahead: 0.001 * float64(i), Error: 0.0005}
			if i == bad {
				c.Ahead -= 12
			}
			r.Nodes = append(r.Nodes, Peer{Name: fmt.Sprint("n", i), Clock: c})
		}
		found := r.Skews(1)
		expect.Must(t, len(found) == 1, "n%d is off: %+v", bad, found)
		s := found[0]
		expect.That(t, s.Node == fmt.Sprint("n", bad) && s.Of != s.Node && s.Ahead < -11.9 && s.Error == 0.001, "n%d is off: %+v", bad, s)
		r.Nodes[bad].Clock.Error = 11.5
		expect.Len(t, 0, r.Skews(1), "n%d: nobody can tell", bad)
	}
	for said, want := range map[string]string{
		"":             "",
		"?":            "",
		"0":            "",
		"0 5":          "n1 5 of n0",
		"0 -5":         "n1 -5 of n0",
		"? 0 400":      "n2 400 of n1",
		"0 0.9":        "",
		"7 7 7 0 7 20": "n5 13 of n2, n3 -7 of n2",
	} {
		r := &Report{}
		for i, ahead := range strings.Fields(said) {
			n := Peer{Name: fmt.Sprint("n", i), Clock: &Clock{}}
			if _, err := fmt.Sscan(ahead, &n.Clock.Ahead); err != nil {
				n.Clock = nil
			}
			r.Nodes = append(r.Nodes, n)
		}
		var got []string
		for _, s := range r.Skews(1) {
			got = append(got, fmt.Sprintf("%s %g of %s", s.Node, s.Ahead, s.Of))
		}
		expect.Equal(t, want, strings.Join(got, ", "), "%q", said)
		expect.That(t, slices.IsSortedFunc(r.Nodes, func(a, b Peer) int { return strings.Compare(a.Name, b.Name) }), "%q: the nodes are in another order", said)
	}
}
