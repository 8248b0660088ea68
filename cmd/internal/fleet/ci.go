package fleet

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// writeJUnit writes the nodes as test cases (JUnit XML): a failure for findings or slow figures that make the exit code 1, an error for a
// node that could not be judged or has no report, and skipped for one of which something was not examined.
func writeJUnit(b *bytes.Buffer, f *Fleet, s report.Style) {
	f = lines.Clean(f, s.ASCII)
	suite := report.TestSuite{Testsuite: junit.Testsuite{Name: "gpudoctor fleet", Time: "0"}}
	suite.AddProperty("verdict", f.Headline())
	outliers, slow := map[string][]string{}, map[string]bool{}
	for _, o := range f.Outliers {
		outliers[o.Node] = append(outliers[o.Node], o.String())
		slow[o.Node] = slow[o.Node] || o.slower()
	}
	for _, n := range f.Nodes {
		said := slices.Concat(outliers[n.Name], lines.Map(n.Findings, func(found Finding) string {
			return fmt.Sprintf("%s: %s (%s) %s", found.Severity, found.Title, found.Rule, found.Subject)
		}))
		result := &junit.Result{Message: cmp.Or(lines.First(said, 1, "; "), "verdict: "+n.State), Type: n.State, Data: strings.Join(said, "\n")}
		c := junit.Testcase{}
		switch {
		case n.ExitCode == exitFindings || slow[n.Name]:
			c.Failure = result
		case n.ExitCode != 0:
			c.Error = result
		case n.State == string(report.Inconclusive):
			c.Skipped = result
		case len(said) > 0:
			c.SystemOut = &junit.Output{Data: result.Data}
		}
		suite.Add("node", n.Name, c)
	}
	for _, name := range f.Unreported {
		suite.Add("node", name, junit.Testcase{Error: &junit.Result{Message: "no report", Type: unreported}})
	}
	for _, p := range f.Problems {
		result := &junit.Result{Message: p.Reason, Type: "input"}
		c := junit.Testcase{Skipped: result}
		if p.Lost {
			c = junit.Testcase{Error: result}
		}
		suite.Add("input", p.Source, c)
	}
	if len(f.Nodes)+len(f.Unreported) == 0 {
		suite.Add("node", "any", junit.Testcase{Error: &junit.Result{Message: f.Headline(), Type: unreported}})
	}
	suite.Write(b)
}

// writePrometheus writes metrics for the textfile collector of node_exporter.
func writePrometheus(b *bytes.Buffer, f *Fleet, s report.Style) {
	f = lines.Clean(f, s.ASCII) // What is printable is quoted as the format takes it.
	put := report.Metric(b, "fleet_exit_code", "The exit code of fleet: 1 with findings, or a node that is slower than like nodes.")
	put(float64(f.ExitCode))
	put = report.Metric(b, "fleet_nodes", "Nodes by the state of their verdict.")
	for _, state := range states {
		put(float64(f.States[state]), "state", state)
	}
	put(float64(len(f.Unreported)), "state", unreported)
	put = report.Metric(b, "fleet_node", "1 for the state of each node's verdict.")
	for _, n := range f.Nodes {
		put(1, "node", n.Name, "state", n.State)
	}
	for _, name := range f.Unreported {
		put(1, "node", name, "state", unreported)
	}
	put = report.Metric(b, "fleet_cause_nodes", "Nodes with findings of a rule.")
	for _, c := range f.Causes {
		put(float64(len(c.Nodes)), "rule", c.Rule, "title", c.Title, "severity", string(c.Severity))
	}
	put = report.Metric(b, "fleet_outlier_sigmas", "How far a figure is from the median of like nodes, in standard deviations, where that is far.")
	for _, o := range f.Outliers {
		put(o.Sigmas, "node", o.Node, "figure", o.Figure)
	}
	put = report.Metric(b, "fleet_problems", "Inputs that do not count.")
	put(float64(len(f.Problems)))
}

// unreported is the state of a node without a report.
const unreported = "unreported"
