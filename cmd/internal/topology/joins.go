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
	var all []Join
	for _, p := range b.facts.Links.All() {
		j, ok := b.joinOf(p)
		if !ok {
			continue
		}
		i := slices.IndexFunc(all, func(o Join) bool {
			return o.Name == j.Name && o.Switched == j.Switched && o.Links == j.Links && o.GBps == j.GBps
		})
		if i < 0 {
			all = append(all, j)
			i = len(all) - 1
		}
		all[i].Pairs = append(all[i].Pairs, [2]string{b.names[p.A], b.names[p.B]})
	}
	for i := range all {
		all[i].gather()
	}
	return all
}

func (b *builder) joinOf(p facts.Pair) (Join, bool) {
	switch {
	case p.Kind != "gpu-gpu" || b.names[p.A] == "" || b.names[p.B] == "":
	case p.NVLinks != nil && *p.NVLinks > 0:
		return Join{Name: b.nvlink(p.A), Switched: p.NVSwitch, Links: *p.NVLinks, GBps: p.NVLinkGBps}, true
	case p.LinkType == "xgmi" && (p.Hops == nil || *p.Hops <= 1):
		return Join{Name: "xGMI", GBps: p.XGMIGBps}, true
	}
	return Join{}, false
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

// gather lists the GPUs of the pairs, and says whether each is joined to each.
func (j *Join) gather() {
	for _, p := range j.Pairs {
		for _, name := range p {
			if !slices.Contains(j.GPUs, name) {
				j.GPUs = append(j.GPUs, name)
			}
		}
	}
	slices.SortFunc(j.GPUs, compareAddresses)
	j.Whole = len(j.Pairs) == len(j.GPUs)*(len(j.GPUs)-1)/2
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
	said += " joins " + j.who()
	var how []string
	if j.Links > 0 {
		how = append(how, lines.Count(j.Links, "link"))
	}
	if j.GBps > 0 {
		how = append(how, rate(j.GBps)+" each way")
	}
	if len(how) > 0 {
		said += ": " + strings.Join(how, ", ")
	}
	return said
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

// describeJoins notes for each GPU how it is joined to others: "NVLink 4 x18", "xGMI to
// 7 GPUs".
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
