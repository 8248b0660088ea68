package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// Joins are the links between GPUs that are not PCIe, those that are alike as one.
func Joins(f *facts.Facts) []Join {
	b := &builder{facts: f, names: map[string]string{}}
	b.leaves()
	return b.joins()
}

func (b *builder) joins() []Join {
	pairs := lines.Filter(b.facts.Links.All(), func(p facts.Pair) bool { return b.how(p).Name != "" })
	return lines.Map(lines.Grouped(pairs, b.how), func(alike []facts.Pair) Join {
		j := Join{how: b.how(alike[0])}
		for _, p := range alike {
			pair := [2]string{b.names[p.A], b.names[p.B]}
			j.Pairs, j.GPUs = append(j.Pairs, pair), append(j.GPUs, pair[:]...)
		}
		j.GPUs = lines.Unique(j.GPUs)
		slices.SortFunc(j.GPUs, CompareAddresses)
		j.Whole = len(j.Pairs) == len(j.GPUs)*(len(j.GPUs)-1)/2
		return j
	})
}

func (b *builder) how(p facts.Pair) how {
	switch {
	case p.Kind != "gpu-gpu" || b.names[p.A] == "" || b.names[p.B] == "":
	case p.NVLinks != nil && *p.NVLinks > 0:
		return how{b.nvlink(p.A), p.NVSwitch, *p.NVLinks, p.NVLinkGBps}
	case p.LinkType == "xgmi" && (p.Hops == nil || *p.Hops <= 1):
		return how{Name: "xGMI", GBps: p.XGMIGBps}
	}
	return how{}
}

// nvlink names the generation of a GPU's NVLinks, where it is known.
func (b *builder) nvlink(address string) string {
	if g := b.facts.GPUs.At(address); g != nil {
		for _, l := range g.NVLinks {
			if l.Active && l.Version > 0 {
				return fmt.Sprintf("NVLink %d", l.Version)
			}
		}
	}
	return "NVLink"
}

// maxPairs bounds the pairs that a join names one by one.
const maxPairs = 12

// String says who is joined, and how fast: "NVLink 4 through NVSwitch joins GPU 0 to
// GPU 7, each to each: 18 links, 450 GB/s each way".
func (j Join) String() string {
	said := j.Name
	if j.Switched {
		said += " through NVSwitch"
	}
	links, gbps := "", ""
	if j.Links > 0 {
		links = lines.Count(j.Links, "link")
	}
	if j.GBps > 0 {
		gbps = rate(j.GBps) + " each way"
	}
	return lines.Joined(": ", said+" joins "+j.who(), lines.Joined(", ", links, gbps))
}

// who names the GPUs, or their pairs.
func (j Join) who() string {
	switch {
	case len(j.GPUs) == 2:
		return j.GPUs[0] + " and " + j.GPUs[1]
	case j.Whole:
		return rangesOf(j.GPUs) + ", each to each"
	}
	pairs := lines.Map(j.Pairs, func(p [2]string) string { return p[0] + " and " + strings.TrimPrefix(p[1], "GPU ") })
	return lines.First(pairs, maxPairs, ", ")
}

// rangesOf names GPUs with their numbers in ranges: "GPUs 0 to 3, 6".
func rangesOf(names []string) string {
	var numbers []int
	for _, name := range names {
		n := 0
		_, _ = fmt.Sscanf(name, "GPU %d", &n) // Each name has a number: see name.
		numbers = append(numbers, n)
	}
	return "GPUs " + lines.Ranges(numbers)
}

// describeJoins notes for each GPU how it is joined to others: "NVLink 4 x18", "xGMI to 7 GPUs".
func (b *builder) describeJoins(all []Join) {
	links, partners := map[string]int{}, map[string]int{}
	for _, j := range all {
		for _, p := range j.Pairs {
			for _, name := range p {
				partners[name]++
				if j.Switched {
					links[name] = max(links[name], j.Links)
				} else {
					links[name] += j.Links
				}
				b.links[name] = fmt.Sprintf("%s x%d", j.Name, links[name])
				if links[name] == 0 {
					b.links[name] = j.Name + " to " + lines.Count(partners[name], "GPU")
				}
			}
		}
	}
}
