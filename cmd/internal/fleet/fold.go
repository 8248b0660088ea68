package fleet

import (
	"cmp"
	"maps"
	"slices"

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
	// Unreported are the nodes that were expected and have no report, Problems the inputs that do not count.
	Unreported []string  `json:"unreported,omitempty"`
	Problems   []Problem `json:"problems,omitempty"`
	// ExitCode is the worst of the nodes: 1 with findings that count, 3 if one could not be judged or has
	// no report.
	ExitCode int `json:"exit_code"`
}

// Cause is a rule's findings on several nodes, or a finding about several nodes.
type Cause struct {
	Rule string `json:"rule"`
	// Title is that of the rule, or what a rule over many nodes says.
	Title    string         `json:"title"`
	Severity rules.Severity `json:"severity"`
	// Nodes are those that have it, Remedy is what leads on most of them.
	Nodes  []string `json:"nodes"`
	Remedy string   `json:"remedy,omitempty"`
	// Common is what they have that others lack, the most telling first.
	Common []Common `json:"common,omitempty"`
}

// exitUnknown is the exit code of a verdict that lacks something.
const exitUnknown = 3

// Fold makes one report of those that were read. Expected are the names of nodes that should have one.
func Fold(r *Reading, expected []string) *Fleet {
	nodes := slices.SortedFunc(slices.Values(r.Nodes), func(a, b *Node) int { return cmp.Compare(a.Name, b.Name) })
	addUnset(nodes)
	f := &Fleet{
		Schema: Schema, Nodes: nodes, States: map[string]int{}, Outliers: outliersOf(nodes), Unreported: r.Unreported(expected), Problems: r.Problems,
	}
	for _, n := range nodes {
		f.States[n.State]++
		f.ExitCode = worse(f.ExitCode, n.ExitCode)
	}
	if len(f.Unreported) > 0 || len(nodes) == 0 {
		f.ExitCode = worse(f.ExitCode, exitUnknown)
	}
	f.Causes = causesOf(nodes)
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
	slices.SortFunc(all, Cause.compare)
	return all
}

// compare puts the most severe and most frequent first.
func (c Cause) compare(other Cause) int {
	return cmp.Or(cmp.Compare(c.Severity.Rank(), other.Severity.Rank()), cmp.Compare(len(other.Nodes), len(c.Nodes)), cmp.Compare(c.Rule, other.Rule), cmp.Compare(c.Title, other.Title))
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
