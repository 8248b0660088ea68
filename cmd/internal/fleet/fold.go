package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe/nodes"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Schema names the JSON document.
const Schema = "gpudoctor.fleet/v1"

// Fleet is the reports of many nodes in one.
type Fleet struct {
	// Schema is always "gpudoctor.fleet/v1".
	Schema string `json:"schema" jsonschema:"enum=gpudoctor.fleet/v1"`
	// Nodes are the nodes in order of their names, States how many have each verdict.
	Nodes  []*Node        `json:"nodes"`
	States map[string]int `json:"states"`
	// Causes are what is wrong with nodes, the most severe and most frequent first.
	Causes []Cause `json:"causes"`
	// Outliers are figures that are far from those of like nodes, the farthest first.
	Outliers []Outlier `json:"outliers"`
	// Drift are the versions that differ between nodes of like hardware.
	Drift []Drift `json:"drift"`
	// Networks are what jobs of probe nccl --nodes found between nodes.
	Networks []*nodes.Report `json:"networks,omitempty"`
	// Unreported are the nodes that were expected and have no report, Problems the inputs that do not count.
	Unreported []string  `json:"unreported,omitempty"`
	Problems   []Problem `json:"problems,omitempty"`
	// ExitCode is the worst of the nodes: 1 with findings that count, 3 if one could not be judged or has
	// no report.
	ExitCode int `json:"exit_code"`
}

// Cause is a rule's findings on several nodes.
type Cause struct {
	Rule     string         `json:"rule"`
	Title    string         `json:"title"`
	Severity rules.Severity `json:"severity"`
	// Nodes are those that have it, Remedy is what leads on most of them.
	Nodes  []string `json:"nodes"`
	Remedy string   `json:"remedy,omitempty"`
	// Common is what they have that others lack, the most telling first.
	Common []Common `json:"common,omitempty"`
}

// Drift is a trait of which nodes with like hardware have different values, the most frequent first.
type Drift struct {
	Hardware string       `json:"hardware"`
	Trait    string       `json:"trait"`
	Values   []DriftValue `json:"values"`
}

// DriftValue is a value of a trait, and the nodes that have it.
type DriftValue struct {
	Value string   `json:"value"`
	Nodes []string `json:"nodes"`
}

// exitUnknown is the exit code of a verdict that lacks something.
const exitUnknown = 3

// Fold makes one report of those that were read. Expected are the names of nodes that should have one.
func Fold(r *Reading, expected []string) *Fleet {
	r.joinNetworks()
	all := slices.SortedFunc(slices.Values(r.Nodes), func(a, b *Node) int { return cmp.Compare(a.Name, b.Name) })
	f := &Fleet{
		Schema: Schema, Nodes: all, States: map[string]int{}, Outliers: outliersOf(all), Drift: driftOf(all), Unreported: r.Unreported(expected), Problems: r.Problems, Networks: r.Networks,
	}
	for _, n := range all {
		f.States[n.State]++
		f.ExitCode = worse(f.ExitCode, n.ExitCode)
	}
	for _, job := range f.Networks {
		f.ExitCode = worse(f.ExitCode, NetworkExitCode(job))
	}
	if len(f.Unreported) > 0 || len(all)+len(f.Networks) == 0 {
		f.ExitCode = worse(f.ExitCode, exitUnknown)
	}
	f.Causes = causesOf(all)
	return f
}

// worse is the exit code that says more: findings, then what could not be judged.
func worse(a, b int) int {
	order := []int{0, exitUnknown, 1}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// causesOf groups the findings of all nodes by rule.
func causesOf(nodes []*Node) []Cause {
	type key struct{ rule, title string }
	affected := map[key]set{}
	found := map[key]*Cause{}
	remedies := map[key]map[string]int{}
	for i, n := range nodes {
		for _, f := range n.Findings {
			k := key{f.Rule, f.Title}
			c := found[k]
			if c == nil {
				c = &Cause{Rule: f.Rule, Title: f.Title, Severity: f.Severity}
				found[k], affected[k], remedies[k] = c, set{}, map[string]int{}
			}
			if f.Severity.Rank() < c.Severity.Rank() {
				c.Severity = f.Severity
			}
			if f.Remedy != "" {
				remedies[k][f.Remedy]++
			}
			if !affected[k][i] {
				affected[k][i] = true
				c.Nodes = append(c.Nodes, n.Name)
			}
		}
	}
	groups := groupsOf(nodes)
	var all []Cause
	for k, c := range found {
		c.Remedy = mostOf(remedies[k])
		if len(affected[k]) < len(nodes) {
			c.Common = commonTo(affected[k], len(nodes), groups, len(found)*len(groups))
		}
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(a.Severity.Rank(), b.Severity.Rank()), cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Title, b.Title))
	})
	return all
}

// mostOf is the key with the largest number.
func mostOf(counts map[string]int) string {
	best := ""
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > counts[best] {
			best = name
		}
	}
	return best
}

// driftOf lists what differs between nodes of like hardware, without the parts of their names.
func driftOf(nodes []*Node) []Drift {
	type key struct{ hardware, trait string }
	values := map[key]map[string][]string{}
	for _, n := range nodes {
		for trait, value := range n.Traits {
			if strings.HasPrefix(trait, partOfName) {
				continue
			}
			k := key{n.Hardware, trait}
			if values[k] == nil {
				values[k] = map[string][]string{}
			}
			values[k][value] = append(values[k][value], n.Name)
		}
	}
	var all []Drift
	for k, of := range values {
		if len(of) < 2 {
			continue
		}
		d := Drift{Hardware: k.hardware, Trait: k.trait}
		for value, names := range of {
			d.Values = append(d.Values, DriftValue{value, names})
		}
		slices.SortFunc(d.Values, func(a, b DriftValue) int {
			return cmp.Or(cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Value, b.Value))
		})
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Drift) int {
		return cmp.Or(cmp.Compare(a.Hardware, b.Hardware), cmp.Compare(a.Trait, b.Trait))
	})
	return all
}
