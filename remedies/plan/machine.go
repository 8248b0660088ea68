package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

const severalNodes = "several-numa-nodes"

// condition is whether something holds of a machine. Where it is not known, missing says what is not.
type condition struct {
	holds   bool
	missing string
}

// machine is what the facts say that a plan depends on.
type machine struct {
	vendor string
	ranks  []Rank
	// conditions are those of data.JobNeeds, by name.
	conditions map[string]condition
	// words replace the names in braces of reasons and values.
	words *strings.Replacer
}

// placed reports whether the NUMA node of each GPU is known.
func (m *machine) placed() bool {
	return len(m.ranks) > 0 && !slices.ContainsFunc(m.ranks, func(r Rank) bool { return r.Node == nil || r.CPUs == "" })
}

func study(f *facts.Facts) *machine {
	m := &machine{ranks: ranksOf(f)}
	m.vendor = remedies.OneVendor(numbered(f))
	ports := portsOf(f, m.ranks)
	nodes := nodesOf(f)
	// What is not known.
	gpus := map[bool]string{true: "the GPUs"}[f.GPUs == nil]
	rdma := map[bool]string{true: "the RDMA devices"}[f.NICs == nil]
	numa := map[bool]string{true: "the NUMA nodes"}[f.NUMA == nil]
	m.conditions = map[string]condition{
		"nvidia":         {m.vendor == "nvidia", gpus},
		"amd":            {m.vendor == "amd", gpus},
		"several-gpus":   {len(m.ranks) > 1, gpus},
		"different-gpus": {different(f), gpus},
		severalNodes:     {nodes > 1, numa},
		"rdma":           {len(ports.active) > 0, rdma},
		"other-ports":    {len(ports.near) > 0 && len(ports.others) > 0, rdma},
	}
	library := "NCCL"
	if m.vendor == "amd" {
		library = "RCCL"
	}
	the := english.Plural(len(m.ranks), "GPU", "")
	if len(m.ranks) == 1 {
		the = "GPU"
	}
	m.words = strings.NewReplacer(
		"{library}", library, "{gpus}", the, "{nodes}", english.Plural(nodes, "NUMA node", ""), "{nics}", english.Plural(len(ports.active), "RDMA device", ""),
		"{hcas}", strings.Join(ports.near, ","), "{others}", strings.Join(ports.others, ", "),
	)
	return m
}

// needed adds what the machine's own properties ask for.
func (p *Plan) needed(m *machine, known *remedies.Set) {
	missing := map[string]bool{}
	for _, need := range data.JobNeeds().Needs {
		applies := true
		lacks := ""
		for _, name := range need.When {
			c := m.conditions[name]
			applies = applies && (c.holds || c.missing != "")
			lacks = cmp.Or(lacks, c.missing)
		}
		switch {
		case !applies:
		case lacks != "":
			missing[lacks] = true
		default:
			for _, s := range m.settingsOf(need, known) {
				p.add(s)
			}
		}
	}
	p.Unknown = slices.Sorted(maps.Keys(missing))
}

// settingsOf are the settings of a row of the table on this machine.
func (m *machine) settingsOf(need data.JobNeed, known *remedies.Set) []Setting {
	a := remedies.Apply{Environment: map[string]string{}}
	for name, value := range need.Environment {
		a.Environment[name] = m.words.Replace(value)
	}
	if r, ok := known.Remedy(need.Remedy); ok {
		a.Docker = r.Apply.Docker
	}
	all := settingsOf(a)
	for i := range all {
		all[i].Reason, all[i].Remedy, all[i].For = m.words.Replace(need.Reason), need.Remedy, need.For
	}
	return all
}

// ranksOf are the GPUs in the order in which a job numbers them: that of the driver where it
// was asked, else that of the management library, else of their addresses.
func ranksOf(f *facts.Facts) []Rank {
	ranks := []Rank{}
	near := map[string]affinity.GPU{}
	for _, g := range affinity.Of(f) {
		near[g.Address] = g
	}
	for i, g := range numbered(f) {
		r := Rank{GPU: g.Address, Index: i, Node: affinity.NodeOf(f, g.Address)}
		if cpus := affinity.CPUsOf(f, g.Address); isName(cpus) {
			r.CPUs = cpus
		}
		if g.Index != nil {
			r.Index = *g.Index
		}
		for _, n := range near[g.Address].NICs {
			if isActive(f, n.Device) {
				r.NICs = append(r.NICs, n.Device)
			}
		}
		ranks = append(ranks, r)
	}
	return ranks
}

func isActive(f *facts.Facts, device string) bool {
	return isName(device) && slices.ContainsFunc(f.NICs.Ports(), func(p facts.RDMAPort) bool { return p.Device == device && p.Host == "" && p.State == "active" })
}

// isName reports whether a text is a name as drivers give them, which means nothing else to a
// shell or in a file: what is examined may come from anywhere.
func isName(s string) bool { return nameForm.MatchString(s) }

var nameForm = lazy.New(`^[A-Za-z0-9._:,-]+$`)

// numbered are the GPUs that a job can use, in its order: those that the driver offers, where it was asked.
func numbered(f *facts.Facts) []facts.GPU {
	ordinal := map[string]int{}
	if f.Transfers != nil {
		for _, d := range f.Transfers.Devices {
			ordinal[d.Address] = d.Ordinal
		}
	}
	var all []facts.GPU
	for _, g := range f.GPUs.All() {
		_, offered := ordinal[g.Address]
		if offered || len(ordinal) == 0 && (g.Integrated == nil || !*g.Integrated) {
			all = append(all, g)
		}
	}
	slices.SortStableFunc(all, func(a, b facts.GPU) int {
		if a.Index != nil && b.Index != nil && len(ordinal) == 0 {
			return cmp.Compare(*a.Index, *b.Index)
		}
		return cmp.Or(cmp.Compare(ordinal[a.Address], ordinal[b.Address]), cmp.Compare(a.Address, b.Address))
	})
	return all
}

func different(f *facts.Facts) bool {
	all := numbered(f)
	return slices.ContainsFunc(all, func(g facts.GPU) bool { return g.Name != "" && all[0].Name != "" && g.Name != all[0].Name })
}

// nodesOf counts the NUMA nodes with processors.
func nodesOf(f *facts.Facts) int {
	if f.NUMA == nil {
		return 0
	}
	return len(slices.DeleteFunc(slices.Clone(f.NUMA.Nodes), func(n facts.NUMANode) bool { return n.CPUs == "" }))
}

// ports are the RDMA devices of a machine by what they are for.
type ports struct {
	// active are those with an active port; near are the fastest of those that are nearest to a GPU, others the rest.
	active, near, others []string
}

func portsOf(f *facts.Facts, ranks []Rank) ports {
	var p ports
	rate := map[string]float64{}
	for _, port := range f.NICs.Ports() {
		if port.Host == "" && port.State == "active" && isName(port.Device) && !slices.Contains(p.active, port.Device) {
			p.active = append(p.active, port.Device)
			rate[port.Device] = port.RateGbps
		}
	}
	nearest := map[string]bool{}
	fastest := 0.0
	for _, r := range ranks {
		for _, n := range r.NICs {
			nearest[n] = true
			fastest = max(fastest, rate[n])
		}
	}
	for _, device := range p.active {
		if nearest[device] && rate[device] == fastest {
			p.near = append(p.near, device)
		} else {
			p.others = append(p.others, device)
		}
	}
	return p
}
