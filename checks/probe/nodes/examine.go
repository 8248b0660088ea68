package nodes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// Cluster runs collectives between nodes. Runs without a common node may be asked for at the same time.
type Cluster interface {
	// Run runs them between all GPUs of nodes. Only, if not empty, is the only NIC that the first of them is to use.
	Run(ctx context.Context, nodes []string, only string) Run
}

// Options says how nodes are examined.
type Options struct {
	// PairShare is the least share of the median bandwidth of all pairs that does not count as slow.
	PairShare float64
	// Progress is called with what begins.
	Progress func(string)
}

type examination struct {
	Options
	cluster Cluster
	report  *Report
	fit     []string // Nodes that take part.
}

// Examine has the nodes of a report that are well run collectives: all together, each pair, and then what narrows a fault down.
func Examine(ctx context.Context, c Cluster, r *Report, o Options) {
	x := &examination{Options: o, cluster: c, report: r}
	r.Differs = differences(r.Nodes)
	for _, n := range r.Nodes {
		if n.State == StateOK {
			x.fit = append(x.fit, n.Name)
		}
	}
	if len(x.fit) > 1 {
		x.Progress(fmt.Sprintf("all %d nodes together", len(x.fit)))
		r.Together = new(x.run(ctx, x.fit, ""))
		x.pairs(ctx)
		x.blame(ctx)
	}
	x.conclude()
}

func (x *examination) run(ctx context.Context, nodes []string, only string) Run {
	run := x.cluster.Run(ctx, nodes, only)
	run.Nodes, run.Only = nodes, only
	return run
}

func (x *examination) note(run Run) {
	for i := range x.report.Nodes {
		n := &x.report.Nodes[i]
		if devices := run.Interfaces[n.Name]; run.Only == "" && len(devices) > 0 {
			n.Interfaces = devices
		}
		if slices.Contains(run.Lost, n.Name) && n.State == StateOK {
			n.State, n.Reason = StateLost, run.Reason
			x.fit = slices.DeleteFunc(slices.Clone(x.fit), func(name string) bool { return name == n.Name })
		}
	}
}

// pairs runs each pair, in rounds whose pairs run at the same time.
func (x *examination) pairs(ctx context.Context) {
	x.note(*x.report.Together)
	all := x.fit
	rounds := Rounds(len(all))
	for i, round := range rounds {
		x.Progress(fmt.Sprintf("pairs, round %d of %d", i+1, len(rounds)))
		var wg sync.WaitGroup
		done := make([]*Run, len(round))
		skips := x.skips()
		for j, p := range round {
			pair := []string{all[p[0]], all[p[1]]}
			if ctx.Err() != nil || skips(pair[0], pair[1]) {
				x.report.Untried++
				continue
			}
			wg.Go(func() {
				run := x.run(ctx, pair, "")
				done[j] = &run
			})
		}
		wg.Wait()
		for _, run := range done {
			if run != nil {
				x.note(*run)
				x.report.Pairs = append(x.report.Pairs, *run)
			}
		}
	}
	x.again(ctx)
}

// Enough is with how many nodes that work a node fails before it sits out.
const Enough = 3

// skips are pairs that say nothing new: those of a node that is lost, and those of one that failed with several nodes which reach
// each other, and worked with none of these.
func (x *examination) skips() func(a, b string) bool {
	g := newGraph(x.fit, x.report.Pairs, failed)
	main := map[string]bool{}
	if parts := g.parts(); len(parts) > 0 && len(parts[0]) > 1 {
		for _, n := range parts[0] {
			main[n] = true
		}
	}
	hopeless := map[string]bool{}
	for _, n := range x.fit {
		witnesses := 0
		for _, other := range g.bad[n] {
			if main[other] {
				witnesses++
			}
		}
		hopeless[n] = !main[n] && witnesses >= Enough
	}
	return func(a, b string) bool {
		return !slices.Contains(x.fit, a) || !slices.Contains(x.fit, b) || hopeless[a] && main[b] || hopeless[b] && main[a]
	}
}

// failed reports whether a run failed; it is not known of one that could not be made.
func failed(r Run) (is, known bool) {
	return r.Outcome.Failed(), r.Outcome != probe.Unknown && len(r.Lost) == 0
}

// again repeats pairs that were slow while others ran, each by itself, and keeps the better run: they may share a switch.
func (x *examination) again(ctx context.Context) {
	const most = 16
	repeated, usual := 0, x.medians()
	for i := range x.report.Pairs {
		p := &x.report.Pairs[i]
		if !x.slow(*p, usual) || repeated == most || ctx.Err() != nil {
			continue
		}
		repeated++
		x.Progress("again " + strings.Join(p.Nodes, " and "))
		if run := x.run(ctx, p.Nodes, ""); run.Outcome.Failed() || run.BusGBps != nil && *run.BusGBps > *p.BusGBps {
			x.note(run)
			*p = run
			usual = x.medians()
		}
	}
	for i := range x.report.Pairs {
		if p := &x.report.Pairs[i]; x.slow(*p, usual) {
			p.Outcome, p.Reason = probe.Slow, fmt.Sprintf("%.3g GB/s, and the median of like pairs is %.3g", *p.BusGBps, usual[likeness{p.Transport, p.GPUs}])
		}
	}
}

// likeness is what pairs that are compared have in common: some may be in one domain of NVLinks, and others not.
type likeness struct {
	transport string
	gpus      int
}

// medians are the median bandwidths of like pairs that are correct; none of fewer than three.
func (x *examination) medians() map[likeness]float64 {
	all := map[likeness][]float64{}
	for _, p := range x.report.Pairs {
		if p.Outcome.Correct() && p.BusGBps != nil {
			of := likeness{p.Transport, p.GPUs}
			all[of] = append(all[of], *p.BusGBps)
		}
	}
	medians := map[likeness]float64{}
	for of, rates := range all {
		if len(rates) >= 3 {
			slices.Sort(rates)
			medians[of] = rates[len(rates)/2]
		}
	}
	return medians
}

func (x *examination) slow(p Run, usual map[likeness]float64) bool {
	return p.Outcome.Correct() && p.BusGBps != nil && *p.BusGBps < x.PairShare*usual[likeness{p.Transport, p.GPUs}]
}

// blame says what is at fault, and proves it by runs without it.
func (x *examination) blame(ctx context.Context) {
	r := x.report
	r.Blames = newGraph(x.fit, r.Pairs, failed).judge()
	spare := cover(r.Blames)
	rest := slices.DeleteFunc(slices.Clone(x.fit), func(n string) bool { return slices.Contains(spare, n) })
	switch broken := r.Together.Outcome.Failed(); {
	case len(rest) < 2 || slices.ContainsFunc(r.Blames, func(b Blame) bool { return b.Kind == AtAll }):
	case broken || len(r.Blames) > 0:
		x.Progress(fmt.Sprintf("%d nodes together, again", len(rest)))
		run := x.run(ctx, rest, "")
		x.note(run)
		r.Further = append(r.Further, run)
		if run.Outcome.Failed() {
			x.bisect(ctx, rest, run)
		} else if run.Outcome.Correct() {
			for i := range r.Blames {
				r.Blames[i].Because = append(r.Blames[i].Because, fmt.Sprintf("the %d nodes without %s work together", len(rest), strings.Join(spare, ", ")))
			}
		}
	}
	g := newGraph(rest, r.Pairs, func(p Run) (bool, bool) { return p.Outcome == probe.Slow, p.Outcome.Correct() })
	g.fails, g.fail = "is slow", "are slow"
	slow := g.judge()
	for i := range slow {
		slow[i].Slow = true
	}
	r.Blames = append(r.Blames, slow...)
	for i := range r.Blames {
		x.rails(ctx, &r.Blames[i])
		x.explain(&r.Blames[i])
	}
}

// cover are nodes without which nothing that is blamed takes part: of a pair, one.
func cover(blames []Blame) []string {
	var all []string
	for _, b := range blames {
		switch b.Kind {
		case AtPair:
			if !slices.Contains(all, b.Nodes[1]) && !slices.Contains(all, b.Nodes[0]) {
				all = append(all, b.Nodes[0])
			}
		case AtAll:
		default:
			all = append(all, b.Nodes...)
		}
	}
	return all
}

// rails has a node that is blamed run with one of its NICs at a time; of a pair, both nodes.
func (x *examination) rails(ctx context.Context, b *Blame) {
	if b.Kind != AtNode && b.Kind != AtPair {
		return
	}
	for i, name := range b.Nodes {
		partner := x.partner(b)
		if b.Kind == AtPair {
			partner = b.Nodes[1-i]
		}
		good, bad := x.railsOf(ctx, name, partner)
		if len(good) > 0 && len(bad) > 0 {
			b.Kind, b.Nodes, b.Rails = AtRail, []string{name}, bad
			b.Because = append(b.Because, fmt.Sprintf("with one NIC at a time, %s works with %s by %s, but not by %s", name, partner, strings.Join(good, ", "), strings.Join(bad, ", ")))
			return
		}
	}
}

// railsOf runs a node with each of its NICs alone, and says which of them are good and which not; none if not all could be tried.
func (x *examination) railsOf(ctx context.Context, name, partner string) (good, bad []string) {
	devices := x.report.Nodes[slices.IndexFunc(x.report.Nodes, func(n Peer) bool { return n.Name == name })].Interfaces
	if len(devices) < 2 || partner == "" || !slices.Contains(x.fit, name) {
		return nil, nil
	}
	best, rates := 0.0, map[string]float64{}
	for _, device := range devices {
		x.Progress(name + ", only " + device)
		run := x.run(ctx, []string{name, partner}, device)
		x.report.Further = append(x.report.Further, run)
		if run.Outcome == probe.Unknown {
			return nil, nil
		}
		if run.Outcome.Correct() && run.BusGBps != nil {
			rates[device] = *run.BusGBps
			best = max(best, rates[device])
		}
	}
	for _, device := range devices {
		if rates[device] < x.PairShare*best || best == 0 {
			bad = append(bad, device)
		} else {
			good = append(good, device)
		}
	}
	return good, bad
}

// partner is a node that works with others, for trials of one that is blamed.
func (x *examination) partner(b *Blame) string {
	g := newGraph(x.fit, x.report.Pairs, failed)
	var blamed []string
	for _, other := range x.report.Blames {
		blamed = append(blamed, other.Nodes...)
	}
	for _, n := range x.fit {
		if n != b.Nodes[0] && !slices.Contains(blamed, n) && len(g.good[n]) > 0 {
			return n
		}
	}
	return ""
}

// explain adds what distinguishes a node that is blamed.
func (x *examination) explain(b *Blame) {
	for _, n := range x.report.Nodes {
		if b.Kind != AtNode || !slices.Contains(b.Nodes, n.Name) {
			continue
		}
		for _, d := range x.report.Differs {
			if v, is := d.Others[n.Name]; is {
				b.Because = append(b.Because, fmt.Sprintf("%s: %s is %s there, and %s on the others", n.Name, d.Name, cmp.Or(v, "not set"), cmp.Or(d.Common, "not set")))
			}
		}
	}
}

// differences are the settings and versions of which the nodes that came have different values.
func differences(all []Peer) (found []Difference) {
	came := slices.DeleteFunc(slices.Clone(all), func(n Peer) bool { return n.State == StateAbsent })
	names := map[string]bool{"NCCL": true}
	for _, n := range came {
		for name := range n.Settings {
			names[name] = true
		}
	}
	delete(names, "NCCL_HOSTID") // Where each node has its own value, that is on purpose.
	for _, name := range slices.Sorted(maps.Keys(names)) {
		byValue := map[string][]string{}
		for _, n := range came {
			value := n.Settings[name]
			if name == "NCCL" {
				value = n.Version
			}
			byValue[value] = append(byValue[value], n.Name)
		}
		d := Difference{Name: name, Others: map[string]string{}}
		for _, value := range slices.Sorted(maps.Keys(byValue)) {
			if len(byValue[value]) > len(byValue[d.Common]) {
				d.Common = value
			}
		}
		if len(byValue) == 1 || 2*len(byValue[d.Common]) < len(came) {
			continue
		}
		delete(byValue, d.Common)
		for value, nodes := range byValue {
			for _, n := range nodes {
				d.Others[n] = value
			}
		}
		found = append(found, d)
	}
	return found
}

// conclude adds the nodes that failed by themselves, and says how it went in all.
func (x *examination) conclude() {
	r := x.report
	var alone []Blame
	absent := 0
	for _, n := range r.Nodes {
		switch n.State {
		case StateAbsent, StateUnknown:
			absent++
		case StateFailed:
			alone = append(alone, Blame{Kind: AtNode, Nodes: []string{n.Name}, Because: []string{"it fails by itself, without the network: " + n.Reason}})
		case StateLost:
			alone = append(alone, Blame{Kind: AtNode, Nodes: []string{n.Name}, Because: []string{"it stopped answering: " + n.Reason}})
		}
	}
	for i := range alone {
		x.explain(&alone[i])
	}
	r.Blames = append(alone, r.Blames...)
	hard := slices.ContainsFunc(r.Blames, func(b Blame) bool { return !b.Slow })
	switch {
	case hard:
		r.Outcome = probe.Error
	case len(r.Blames) > 0:
		r.Outcome = probe.Slow
	case r.Together == nil:
		r.Outcome, r.Reason = probe.Unknown, "fewer than two nodes take part"
	case absent > 0:
		r.Outcome, r.Reason = probe.Unknown, fmt.Sprintf("%d of %d nodes did not take part", absent, len(r.Nodes))
	case r.Together.Outcome != probe.OK:
		r.Outcome, r.Reason = r.Together.Outcome, "together, the nodes did not work the first time: "+r.Together.Reason
	case r.Untried > 0:
		r.Outcome, r.Reason = probe.Unknown, fmt.Sprintf("the time ran out before %d pairs", r.Untried)
	default:
		r.Outcome = probe.OK
	}
}

// Rounds arranges n players so that each meets each other one once: n-1 rounds of n/2 pairs, or n rounds where n is odd and one
// sits out each time. The first player stays, and the others move on around a circle.
func Rounds(n int) [][][2]int {
	even := n + n%2
	var rounds [][][2]int
	for r := range even - 1 {
		var pairs [][2]int
		for i := range even / 2 {
			a, b := seat(even, r, i), seat(even, r, even-1-i)
			if a < n && b < n {
				pairs = append(pairs, [2]int{min(a, b), max(a, b)})
			}
		}
		rounds = append(rounds, pairs)
	}
	return rounds
}

// seat is who sits at a place of the circle in a round.
func seat(n, round, at int) int {
	if at == 0 {
		return 0
	}
	return 1 + (at-1+round)%(n-1)
}
