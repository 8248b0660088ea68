package nccl

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// maxSettings bounds the variables, and the processes, of which settings are kept.
const maxSettings = 256

// settings are the variables that each process of a job took from its environment.
type settings struct {
	// ranks are the processes by their rank in the first communicator that they began.
	ranks map[string]rankOf
	// values are by variable and process.
	values map[string]map[string]setting
	// networked are the processes that have chosen their network: they have read readForNetwork.
	networked map[string]bool
}

// readForNetwork are variables that NCCL reads before it prints the network that it uses (src/plugin/net.cc,
// src/transport/net_ib).
var readForNetwork = []string{"NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_IB_DISABLE"}

type rankOf struct {
	comm *comm
	rank int
}

type setting struct {
	value, source string
	line          int
}

// begin notes the rank of a process.
func (t *settings) begin(process string, c *comm, rank int) {
	if _, known := t.ranks[process]; !known && process != "" && len(t.ranks) < maxSettings {
		facts.Put(&t.ranks, strings.Clone(process), rankOf{c, rank})
	}
}

// network notes that a process has chosen its network.
func (t *settings) network(process string) {
	if len(t.networked) < maxSettings {
		facts.Put(&t.networked, strings.Clone(process), true)
	}
}

// note notes what a process took. The rank may come later.
func (t *settings) note(process, name, value string, s *parse.Sink, l parse.Line) {
	of := t.values[name]
	if process == "" || of == nil && len(t.values) >= maxSettings || len(of) >= maxSettings {
		return
	}
	if of == nil {
		of = make(map[string]setting)
		facts.Put(&t.values, strings.Clone(name), of)
	}
	if _, known := of[process]; !known {
		of[strings.Clone(process)] = setting{strings.Clone(value), s.Source(), l.Number}
	}
}

// unequal are the variables of which ranks of one communicator have different values. A rank that
// completed its start, or chose its network, and does not name a variable that it had read by then has not set it.
func (t *settings) unequal() []facts.Unequal {
	var all []facts.Unequal
	processes := slices.SortedFunc(maps.Keys(t.ranks), func(a, b string) int { return cmp.Or(t.ranks[a].rank-t.ranks[b].rank, strings.Compare(a, b)) })
	for _, name := range slices.Sorted(maps.Keys(t.values)) {
		byComm := map[*comm]*facts.Unequal{}
		for _, p := range processes {
			of := t.ranks[p]
			set, known := t.values[name][p]
			started := of.comm.seen[of.rank]&completed != 0
			wasRead := started || t.networked[p] && slices.Contains(readForNetwork, name)
			if !known && !wasRead {
				continue
			}
			u := byComm[of.comm]
			if u == nil {
				u = &facts.Unequal{Name: name}
				byComm[of.comm] = u
			}
			if !slices.ContainsFunc(u.Values, func(v facts.RankValue) bool { return v.Value == set.value && v.Set == known }) {
				u.Values = append(u.Values, facts.RankValue{Rank: of.rank, Value: set.value, Set: known, Source: set.source, Line: set.line})
			}
		}
		for _, c := range slices.SortedFunc(maps.Keys(byComm), func(a, b *comm) int {
			return cmp.Or(a.Line-b.Line, strings.Compare(a.Source, b.Source), strings.Compare(a.ID, b.ID))
		}) {
			if u := byComm[c]; len(u.Values) > 1 && len(all) < maxSettings {
				all = append(all, *u)
				break
			}
		}
	}
	return all
}
