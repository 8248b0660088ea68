package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/probe/nodes"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Schema names the JSON document.
const Schema = "gpudoctor.fleet/v1"

// Fleet is the reports of many nodes in one.
type Fleet struct {
	Schema  string `json:"schema" jsonschema:"enum=gpudoctor.fleet/v1"` // Always "gpudoctor.fleet/v1".
	Version string `json:"version"`                                     // The version of gpudoctor that folded them.
	// Nodes are the nodes in order of their names, States how many have each verdict.
	Nodes  []*Node        `json:"nodes"`
	States map[string]int `json:"states"`
	// Causes are what is wrong with nodes, the most severe and most frequent first.
	Causes []Cause `json:"causes"`
	// Outliers are figures that are far from those of like nodes, the farthest first.
	Outliers []Outlier       `json:"outliers"`
	Measured []Measured      `json:"measured"`           // The figures of like nodes.
	Networks []*nodes.Report `json:"networks,omitempty"` // What jobs of probe nccl --nodes found between nodes.
	// Unreported are the nodes that were expected and have no report, Problems the inputs that do not count.
	Unreported []string  `json:"unreported,omitempty"`
	Problems   []Problem `json:"problems,omitempty"`
	// ExitCode is the worst of the nodes: 1 with findings that count, or a figure that is far below that of like
	// nodes; 3 if one could not be judged, or has no report, or its report may be lost.
	ExitCode int `json:"exit_code"`
}

// maxAssociated bounds the causes of which is told what their nodes share.
const maxAssociated = 100

// Cause is a rule's findings on several nodes, or a finding about several nodes.
type Cause struct {
	Rule     string         `json:"rule"`
	Title    string         `json:"title"` // That of the rule, or what a rule over many nodes says.
	Severity rules.Severity `json:"severity"`
	// Nodes are those that have it, Remedy is what leads on most of them.
	Nodes  []string `json:"nodes"`
	Remedy string   `json:"remedy,omitempty"`
	Common []Common `json:"common,omitempty"` // What they have that others lack, the most telling first.
}

// The exit codes of a verdict with findings, and of one that lacks something.
const (
	exitFindings = 1
	exitUnknown  = 3
)

// Fold makes one report of those that were read. Expected are the names of nodes that should have one.
func Fold(r *Reading, expected []string, version string) *Fleet {
	r.joinNetworks()
	all := slices.SortedFunc(slices.Values(r.Nodes), func(a, b *Node) int { return cmp.Compare(a.Name, b.Name) })
	addUnset(all)
	f := &Fleet{
		Schema: Schema, Version: version, Nodes: all, States: map[string]int{}, Causes: causesOf(all),
		Unreported: r.unreported(expected), Problems: r.Problems, Networks: r.Networks,
	}
	f.Measured, f.Outliers = measuredOf(all)
	for _, n := range all {
		f.States[n.State]++
		f.ExitCode = worse(f.ExitCode, n.ExitCode)
	}
	if slices.ContainsFunc(f.Outliers, Outlier.slower) {
		f.ExitCode = worse(f.ExitCode, exitFindings)
	}
	for _, job := range f.Networks {
		f.ExitCode = worse(f.ExitCode, NetworkExitCode(job))
	}
	if r.Unsaid > 0 {
		f.Problems = append(f.Problems, Problem{Source: "other inputs", Reason: fmt.Sprintf("%d more do not count", r.Unsaid), Lost: true})
	}
	if len(f.Unreported) > 0 || len(all)+len(f.Networks) == 0 || slices.ContainsFunc(f.Problems, func(p Problem) bool { return p.Lost }) {
		f.ExitCode = worse(f.ExitCode, exitUnknown)
	}
	return f
}

// worse is the exit code that says more: findings, then what could not be judged.
func worse(a, b int) int {
	order := []int{0, exitUnknown, exitFindings}
	return order[max(slices.Index(order, a), slices.Index(order, b), 0)]
}

func causesOf(nodes []*Node) []Cause {
	type found struct {
		Finding
		node string
	}
	var all []found
	for _, n := range nodes {
		for _, f := range n.Findings {
			all = append(all, found{f, n.Name})
		}
	}
	var causes []Cause
	for _, alike := range lines.Grouped(all, func(f found) [2]string { return [...]string{f.Rule, f.Title} }) {
		worst := slices.MinFunc(alike, func(a, b found) int { return cmp.Compare(a.Severity.Rank(), b.Severity.Rank()) })
		causes = append(causes, Cause{
			Rule: worst.Rule, Title: worst.Title, Severity: worst.Severity, Remedy: usual(lines.Map(alike, func(f found) string { return f.Remedy })),
			Nodes: lines.Unique(lines.Map(alike, func(f found) string { return f.node })),
		})
	}
	slices.SortFunc(causes, Cause.compare)
	groups, most := groupsOf(nodes), min(len(causes), maxAssociated)
	for i := range causes[:most] {
		causes[i].associate(nodes, groups, most*len(groups))
	}
	return causes
}

// compare puts the most severe and most frequent first.
func (c Cause) compare(other Cause) int {
	return cmp.Or(c.Severity.Rank()-other.Severity.Rank(), len(other.Nodes)-len(c.Nodes), cmp.Compare(c.Rule, other.Rule), cmp.Compare(c.Title, other.Title))
}

// usual is the text that is in a list most often, empty ones aside.
func usual(list []string) string {
	alike := lines.Grouped(slices.Sorted(slices.Values(lines.NonEmpty(list...))), func(s string) string { return s })
	if len(alike) == 0 {
		return ""
	}
	return slices.MaxFunc(alike, func(a, b []string) int { return len(a) - len(b) })[0]
}
