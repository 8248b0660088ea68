package nodes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// simulated is a cluster with planted faults. A run fails where broken says so of its nodes.
type simulated struct {
	mu     sync.Mutex
	broken func(nodes []string, only string) probe.Outcome
	busy   map[string]bool
	t      *testing.T
}

func (s *simulated) Run(_ context.Context, nodes []string, only string) Run {
	s.mu.Lock()
	for _, n := range nodes {
		expect.That(s.t, !s.busy[n], "%s runs twice at a time", n)
		s.busy[n] = true
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, n := range nodes {
			s.busy[n] = false
		}
	}()
	gbps := 10.0
	r := Run{Outcome: s.broken(nodes, only), BusGBps: &gbps, Interfaces: map[string][]string{}}
	for _, n := range nodes {
		r.Interfaces[n] = []string{"ib0", "ib1"}
	}
	switch r.Outcome {
	case probe.Slow:
		gbps = 2
		r.Outcome = probe.OK
	case far:
		gbps = 2
		r.Outcome, r.Transport = probe.OK, "NET/IB"
	case probe.OK:
	default:
		r.BusGBps, r.Reason = nil, "planted"
	}
	return r
}

// examined is what becomes of n nodes with planted faults: what is blamed, each with its kind, and the report.
func examined(t *testing.T, n int, broken func(nodes []string, only string) probe.Outcome) ([]string, *Report) {
	t.Helper()
	s := &simulated{broken: broken, busy: map[string]bool{}, t: t}
	r := &Report{Schema: Schema}
	for i := range n {
		r.Nodes = append(r.Nodes, Peer{Name: name(i), Rank: i, State: StateOK})
	}
	Examine(t.Context(), s, r, Options{PairShare: 0.6, Progress: func(string) {}})
	blames := []string{}
	for _, b := range r.Blames {
		word := b.Kind
		if b.Slow {
			word = "slow " + word
		}
		blames = append(blames, strings.Join(append([]string{word}, slices.Concat(b.Nodes, b.Rails)...), " "))
		expect.That(t, len(b.Because) > 0 && !strings.Contains(b.Because[0], "%!"), "%s: %q", word, b.Because)
	}
	slices.Sort(blames)
	return blames, r
}

func name(i int) string { return fmt.Sprintf("n%02d", i) }

// failsIf is a cluster whose runs fail where is is true.
func failsIf(is func(nodes []string, only string) bool) func([]string, string) probe.Outcome {
	return func(nodes []string, only string) probe.Outcome {
		if is(nodes, only) {
			return probe.Hang
		}
		return probe.OK
	}
}

func has(nodes []string, all ...string) bool {
	return !slices.ContainsFunc(all, func(n string) bool { return !slices.Contains(nodes, n) })
}

// TestBlame plants, for each number of nodes up to 16, each single bad node, pair and rail, each two bad nodes, each node that fails
// only among many, and each slow node and pair, and checks that exactly this is blamed.
func TestBlame(t *testing.T) {
	t.Parallel()
	check := func(n int, what string, broken func([]string, string) probe.Outcome, want ...string) {
		t.Helper()
		got, r := examined(t, n, broken)
		slices.Sort(want)
		expect.That(t, slices.Equal(got, want), "%d nodes, %s: blamed are %q, want %q", n, what, got, want)
		expect.That(t, (r.Outcome == probe.OK) == (len(want) == 0), "%d nodes, %s: outcome %s", n, what, r.Outcome)
	}
	most := 16
	if expect.FewRows() {
		most = 8
	}
	for n := 2; n <= most; n++ {
		check(n, "healthy", failsIf(func([]string, string) bool { return false }))
		everything := "all"
		if n == 2 {
			everything = "pair"
		}
		for i := range n {
			everything += " " + name(i)
		}
		check(n, "nothing works", failsIf(func([]string, string) bool { return true }), everything)
		for i := range n {
			one := name(i)
			if n > 2 {
				check(n, one, failsIf(func(nodes []string, _ string) bool { return has(nodes, one) }), "node "+one)
				check(n, one+" ib1", failsIf(func(nodes []string, only string) bool {
					return has(nodes, one) && (only == "" || only == "ib1" && nodes[0] == one)
				}), "rail "+one+" ib1")
			}
			if n > 3 {
				check(n, one+" among many", failsIf(func(nodes []string, _ string) bool { return len(nodes) > 2 && has(nodes, one) }), "node "+one)
				check(n, one+" slow", func(nodes []string, _ string) probe.Outcome {
					if has(nodes, one) {
						return probe.Slow
					}
					return probe.OK
				}, "slow node "+one)
			}
			for j := i + 1; j < n; j++ {
				other := name(j)
				pair := failsIf(func(nodes []string, _ string) bool { return len(nodes) == 2 && has(nodes, one, other) })
				check(n, one+"-"+other, pair, "pair "+one+" "+other)
				check(n, one+"-"+other+", by ib1 of the second", failsIf(func(nodes []string, only string) bool {
					return len(nodes) == 2 && has(nodes, one, other) && (only == "" || nodes[0] == one || only == "ib1")
				}), "rail "+other+" ib1")
				check(n, one+"-"+other+" also among others", failsIf(func(nodes []string, _ string) bool { return has(nodes, one, other) }), "pair "+one+" "+other)
				if n > 3 {
					check(n, one+"-"+other+" slow", func(nodes []string, _ string) probe.Outcome {
						if len(nodes) == 2 && has(nodes, one, other) {
							return probe.Slow
						}
						return probe.OK
					}, "slow pair "+one+" "+other)
					check(n, one+" and "+other, failsIf(func(nodes []string, _ string) bool { return has(nodes, one) || has(nodes, other) }), "node "+one, "node "+other)
				}
				if n > 5 {
					check(n, one+" and "+other+" among many", failsIf(func(nodes []string, _ string) bool { return len(nodes) > 2 && (has(nodes, one) || has(nodes, other)) }), "node "+one, "node "+other)
				}
			}
		}
		if n > 2 {
			all := "size"
			for i := range n {
				all += " " + name(i)
			}
			check(n, "too many", failsIf(func(nodes []string, _ string) bool { return len(nodes) == n }), all)
		}
	}
}

// TestSplit checks that groups that work only among themselves are told from bad nodes.
func TestSplit(t *testing.T) {
	t.Parallel()
	for n := 4; n <= 16; n++ {
		for k := 2; k < (n+1)/2; k++ {
			want := "split"
			for i := n - k; i < n; i++ {
				want += " " + name(i)
			}
			got, _ := examined(t, n, failsIf(func(nodes []string, _ string) bool {
				low, high := slices.Min(nodes), slices.Max(nodes)
				return low < name(n-k) && high >= name(n-k)
			}))
			expect.That(t, slices.Equal(got, []string{want}), "%d of %d: %q", k, n, got)
		}
	}
}

// TestSittingOut checks that a node that hangs costs a few runs, and that a lost one costs none.
func TestSittingOut(t *testing.T) {
	t.Parallel()
	hung := 0
	_, r := examined(t, 16, failsIf(func(nodes []string, only string) bool {
		if has(nodes, "n05") && only == "" {
			hung++
			return true
		}
		return false
	}))
	expect.That(t, hung <= Enough+2 && r.Untried > 0, "%d runs hung, %d pairs were left out", hung, r.Untried)
	s := &simulated{busy: map[string]bool{}, t: t, broken: failsIf(func([]string, string) bool { return false })}
	lost := &losing{simulated: s}
	r = &Report{Nodes: []Peer{{Name: "a", State: StateOK}, {Name: "b", State: StateOK}, {Name: "c", State: StateOK}, {Name: "d", State: StateAbsent}}}
	Examine(t.Context(), lost, r, Options{PairShare: 0.6, Progress: func(string) {}})
	expect.That(t, lost.with == 1 && len(r.Blames) == 1 && r.Blames[0].Nodes[0] == "b" && len(r.Pairs) == 1 && r.Outcome == probe.Error, "%d runs, %+v", lost.with, r)
}

// losing is a cluster of which b is lost in its first run.
type losing struct {
	*simulated
	with int
}

func (l *losing) Run(ctx context.Context, nodes []string, only string) Run {
	r := l.simulated.Run(ctx, nodes, only)
	if has(nodes, "b") {
		l.with++
		r.Outcome, r.Lost, r.Reason = probe.Error, []string{"b"}, "connection lost"
	}
	return r
}

// TestDeadline checks that what was not tried is neither good nor bad.
func TestDeadline(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	r := &Report{Nodes: []Peer{{Name: "a", State: StateOK}, {Name: "b", State: StateOK}, {Name: "c", State: StateOK}}}
	Examine(ctx, &simulated{busy: map[string]bool{}, t: t, broken: func([]string, string) probe.Outcome { return probe.Unknown }}, r, Options{PairShare: 0.6, Progress: func(string) {}})
	expect.That(t, r.Outcome == probe.Unknown && len(r.Blames) == 0 && r.Untried == 3, "%+v", r)
}

// TestOnce checks that a failure that does not come again blames nobody, and is no health.
func TestOnce(t *testing.T) {
	t.Parallel()
	first := true
	got, r := examined(t, 5, failsIf(func([]string, string) bool {
		defer func() { first = false }()
		return first
	}))
	expect.That(t, len(got) == 0 && r.Outcome == probe.Hang && strings.Contains(r.Reason, "the first time"), "%q, %+v", got, r)
}

// TestLikePairs checks that pairs by another transport are not slow: those between two domains of NVLinks.
func TestLikePairs(t *testing.T) {
	t.Parallel()
	got, r := examined(t, 8, func(nodes []string, _ string) probe.Outcome {
		if len(nodes) == 2 && (nodes[0] < "n05") != (nodes[1] < "n05") {
			return far
		}
		return probe.OK
	})
	expect.That(t, len(got) == 0 && r.Outcome == probe.OK, "%q, %s", got, r.Outcome)
}

// far is a run that works more slowly, by another transport.
const far probe.Outcome = "far"

// TestRounds checks that each meets each other once, and nobody two at a time.
func TestRounds(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 33; n++ {
		met := map[[2]int]int{}
		for _, round := range Rounds(n) {
			busy := map[int]bool{}
			for _, p := range round {
				met[p]++
				expect.That(t, !busy[p[0]] && !busy[p[1]] && p[0] < p[1], "%d players: %v", n, round)
				busy[p[0]], busy[p[1]] = true, true
			}
		}
		expect.That(t, len(met) == n*(n-1)/2 && len(Rounds(n)) <= n, "%d players: %d pairs in %d rounds", n, len(met), len(Rounds(n)))
	}
}

// TestDifferences checks which settings are told to differ.
func TestDifferences(t *testing.T) {
	t.Parallel()
	nodes := []Peer{{Name: "a", Version: "2.28"}, {Name: "b", Version: "2.28"}, {Name: "c", Version: "2.27"}, {Name: "d", State: StateAbsent}}
	for i := range 3 {
		nodes[i].Settings = map[string]string{"NCCL_HOSTID": fmt.Sprint(i), "NCCL_X": "1"}
	}
	nodes[1].Settings["NCCL_ALGO"] = "Ring"
	expect.NoDiff(t, []Difference{{"NCCL", "2.28", map[string]string{"c": "2.27"}}, {"NCCL_ALGO", "", map[string]string{"b": "Ring"}}}, differences(nodes), "differences")
}
