package fleet

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/nodes"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// Up to how many nodes all pairs are shown, and how much else.
const (
	maxMatrix   = 16
	maxBadPairs = 8
	maxNamed    = 6
)

// WriteNetwork writes what the nodes of a job did together, for a person.
func WriteNetwork(w io.Writer, r *nodes.Report) error {
	doc := lines.Doc{Head: lines.Entries(networkHead(r))}
	if r.Together != nil {
		doc.Head = append(doc.Head, lines.Entry{Lead: "all together: ", Text: told(*r.Together)})
	}
	for i, blame := range r.Blames {
		because := lines.Map(blame.Because, func(why string) lines.Entry { return lines.Entry{Lead: "- ", Text: why} })
		doc.Parts = append(doc.Parts, lines.Part{Title: fmt.Sprintf("%d. %s", i+1, Accused(blame)), List: because})
	}
	if len(r.Pairs) > 0 && len(r.Nodes) <= maxMatrix {
		doc.Parts = append(doc.Parts, lines.Part{Title: "Pairs of nodes, GB/s", Table: matrix(r)})
	} else { // They are too many for a table.
		bad := lines.Filter(r.Pairs, func(p nodes.Run) bool { return p.Outcome != probe.OK })
		doc.Add("Pairs of nodes", lines.Map(bad, func(p nodes.Run) string { return strings.Join(p.Nodes, " and ") + ": " + told(p) }), maxBadPairs)
	}
	doc.Add("Not tested", notRun(r), math.MaxInt)
	var differ []string
	for _, d := range r.Differs {
		others := lines.Map(slices.Sorted(maps.Keys(d.Others)), func(name string) string { return fmt.Sprintf("%s on %s", cmp.Or(d.Others[name], "not set"), name) })
		differ = append(differ, fmt.Sprintf("%s: %s, and %s on the others", d.Name, lines.First(others, maxNamed, ", "), cmp.Or(d.Common, "not set")))
	}
	doc.Add("Set differently", differ, math.MaxInt)
	doc.Rest = "--format json"
	_, err := w.Write(doc.Text(0, false, false))
	return err
}

func notRun(r *nodes.Report) (all []string) {
	absent := lines.Filter(r.Nodes, func(n nodes.Peer) bool { return n.State == nodes.StateAbsent || n.State == nodes.StateUnknown })
	all = lines.Map(absent, func(n nodes.Peer) string { return fmt.Sprintf("%s (%s)", n.Name, cmp.Or(n.Reason, n.State)) })
	if len(all) > 2*maxNamed {
		all = append(all[:2*maxNamed], fmt.Sprintf("and %d more", len(all)-2*maxNamed))
	}
	if r.Untried > 0 {
		all = append(all, fmt.Sprintf("%s, because the time ran out or one of the two had failed with %d others before", lines.Count(r.Untried, "pair"), nodes.Enough))
	}
	return all
}

func networkHead(r *nodes.Report) string {
	gpus, fit, outcomes := 0, 0, map[string]int{}
	for _, n := range r.Nodes {
		if n.State == nodes.StateOK {
			fit++
			gpus += len(n.GPUs)
		}
	}
	for _, p := range r.Pairs {
		outcomes[string(p.Outcome)]++
	}
	pairs := strings.Join(lines.Map(slices.Sorted(maps.Keys(outcomes)), func(o string) string { return fmt.Sprintf("%d %s", outcomes[o], o) }), ", ")
	head := fmt.Sprintf("%s (%s), %d well by themselves, with %s", lines.Count(len(r.Nodes), "node"), r.Engine, fit, lines.Count(gpus, "GPU"))
	return lines.Joined("; ", head, lines.Behind("pairs: ", pairs), r.Reason)
}

func told(r nodes.Run) string {
	if r.Outcome != probe.OK {
		first := lines.Map(r.Warnings[:min(len(r.Warnings), 1)], func(w string) string { return "; NCCL: " + w })
		return fmt.Sprintf("%s, %s%s", r.Outcome, r.Reason, strings.Join(first, ""))
	}
	figure := func(form string, v *float64) string {
		if v == nil {
			return ""
		}
		return fmt.Sprintf(form, *v)
	}
	return lines.Joined(", ", string(r.Outcome), figure("%.3g GB/s", r.BusGBps), figure("%.3g us for 8 bytes", r.Microseconds), r.Transport)
}

func matrix(r *nodes.Report) [][]string {
	cell := map[[2]string]string{}
	for _, p := range r.Pairs {
		said := strings.ToUpper(string(p.Outcome))
		if p.Outcome.Correct() && p.BusGBps != nil {
			said = strings.TrimSuffix(fmt.Sprintf("%.3g %s", *p.BusGBps, p.Outcome), " ok")
		}
		cell[[2]string{p.Nodes[0], p.Nodes[1]}], cell[[2]string{p.Nodes[1], p.Nodes[0]}] = said, said
	}
	rows := [][]string{{""}}
	for _, n := range r.Nodes {
		rows[0] = append(rows[0], n.Name)
		row := []string{n.Name}
		for _, other := range r.Nodes {
			row = append(row, cmp.Or(cell[[2]string{n.Name, other.Name}], "-"))
		}
		rows = append(rows, row)
	}
	return rows
}

// Accused says in one line what is at fault.
func Accused(b nodes.Blame) string {
	is := map[bool]string{false: "fails", true: "is slow"}[b.Slow]
	if b.Likely {
		is = "likely " + is
	}
	names := lines.First(b.Nodes, maxNamed, ", ")
	switch b.Kind {
	case nodes.AtRail:
		return fmt.Sprintf("%s: its NIC %s, or the cable of it, %s", names, strings.Join(b.Rails, ", "), is)
	case nodes.AtPair:
		return fmt.Sprintf("the path between %s %s", strings.Join(b.Nodes, " and "), is)
	case nodes.AtSplit:
		return fmt.Sprintf("the path from %s to the others %s", names, is)
	case nodes.AtAll:
		return "what all nodes share fails: " + names
	case nodes.AtSize:
		return fmt.Sprintf("so many nodes fail together, whichever they are: %s", names)
	}
	return fmt.Sprintf("%s %s", names, is)
}

func (f *Fleet) accused() []string {
	var all []string
	for _, job := range f.Networks {
		for _, b := range job.Blames {
			all = append(all, Accused(b)+": "+strings.Join(b.Because, "; "))
		}
		if len(job.Blames) == 0 {
			all = append(all, networkHead(job))
		}
	}
	return all
}

// NetworkExitCode is what the probe of a job ends with: 1 with something at fault, 3 if not all nodes and pairs were tried.
func NetworkExitCode(r *nodes.Report) int {
	switch {
	case r.Outcome.Failed() || r.Outcome == probe.Slow:
		return 1
	case r.Outcome != probe.OK:
		return exitUnknown
	}
	return 0
}

func (r *Reading) joinNetworks() {
	for _, job := range r.Networks {
		values := map[string][]float64{}
		for _, p := range job.Pairs {
			for _, name := range p.Nodes {
				if p.BusGBps != nil {
					values[name] = append(values[name], *p.BusGBps)
				}
			}
		}
		for name, of := range values {
			if i, known := r.byName[name]; known {
				r.Nodes[i].Figures["all-reduce with another node"] = Figure{Value: median(of), Unit: "GB/s"}
			}
		}
	}
}
