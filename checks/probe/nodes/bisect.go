package nodes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// bisection looks for the nodes with which a group fails although each pair works. It begins with two nodes and adds others that
// work together with them, by halves: a single bad node among n is found in about 2 log2(n) runs, few of which hang.
type bisection struct {
	*examination
	among []string
	known map[string]Run
	stuck bool // A run could not be made.
}

// bisect blames nodes, or their number.
func (x *examination) bisect(ctx context.Context, among []string, whole Run) {
	b := &bisection{examination: x, among: among, known: map[string]Run{key(among): whole}}
	for i := 0; i+1 < len(among) && i < 2*Enough; i += 2 {
		group, rejected := b.grow(ctx, among[i:i+2])
		if b.stuck {
			x.report.Blames = append(x.report.Blames, Blame{Kind: AtAll, Nodes: among, Likely: true, Because: []string{whole.Reason, "the time ran out before the bisection ended"}})
			return
		}
		if len(group) < 3 { // One of the two may be bad itself.
			continue
		}
		x.report.Blames = append(x.report.Blames, b.accuse(ctx, group, rejected)...)
		return
	}
	x.report.Blames = append(x.report.Blames, Blame{Kind: AtSize, Nodes: among, Because: []string{
		fmt.Sprintf("%d nodes fail together, and each pair works: %s", len(among), whole.Reason), "no three of those tried work together",
	}})
}

// grow adds nodes to a group that works, and returns it with those that do not fit. It gives up where none fits.
func (b *bisection) grow(ctx context.Context, seed []string) (group, rejected []string) {
	group = slices.Clone(seed)
	todo := [][]string{slices.DeleteFunc(slices.Clone(b.among), func(n string) bool { return slices.Contains(seed, n) })}
	for len(todo) > 0 && !b.stuck {
		some := todo[0]
		todo = todo[1:]
		switch half := len(some) / 2; {
		case len(some) == 0 || len(group) == 2 && len(rejected) == Enough:
		case b.works(ctx, slices.Concat(group, some)):
			group = append(group, some...)
		case half == 0:
			rejected = append(rejected, some...)
		default:
			todo = append([][]string{some[:half], some[half:]}, todo...)
		}
	}
	return group, rejected
}

func (b *bisection) works(ctx context.Context, group []string) bool {
	run, is := b.known[key(group)]
	if !is {
		if ctx.Err() != nil {
			b.stuck = true
			return false
		}
		b.Progress(fmt.Sprintf("bisection, %d of %d nodes", len(group), len(b.among)))
		run = b.run(ctx, group, "")
		b.note(run)
		b.known[key(group)] = run
		b.report.Further = append(b.report.Further, run)
		b.stuck = b.stuck || run.Outcome == probe.Unknown
	}
	return run.Outcome.Correct()
}

// key names a group whatever the order of its nodes.
func key(group []string) string { return strings.Join(slices.Sorted(slices.Values(group)), " ") }

// accuse blames the nodes that do not fit into a group, or the number of nodes, if as many work with one of them.
func (b *bisection) accuse(ctx context.Context, group, rejected []string) []Blame {
	var all []Blame
	last := len(group) - 1
	for _, n := range rejected {
		instead := append(slices.Clone(group[:last]), n)
		if b.works(ctx, instead) {
			return []Blame{{Kind: AtSize, Nodes: b.among, Because: []string{
				fmt.Sprintf("%d nodes work together, and as many with %s instead of %s, but not %d: %s", len(group), n, group[last], len(group)+1, b.known[key(append(slices.Clone(group), n))].Reason),
			}}}
		}
		all = append(all, Blame{Kind: AtNode, Nodes: []string{n}, Because: []string{
			fmt.Sprintf("each pair works, and %d nodes that work together fail with it instead of another one: %s", len(group), b.known[key(instead)].Reason),
		}})
	}
	return all
}
