package fleet

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// writeJUnit writes the nodes as test cases (JUnit XML): a failure for findings or slow figures that make the exit code 1, an error for a
// node that could not be judged or has no report, and skipped for one of which something was not examined.
func writeJUnit(b *bytes.Buffer, f *Fleet, s report.Style) {
	f = lines.Clean(f, s.ASCII)
	suite := junit.Testsuite{Name: "gpudoctor fleet", Time: "0"}
	suite.AddProperty("verdict", f.Headline())
	named := map[string]int{}
	add := func(class, name string, c junit.Testcase) {
		if named[class+name]++; named[class+name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, named[class+name])
		}
		c.Classname, c.Name = "gpudoctor."+class, name
		suite.AddTestcase(c)
	}
	outliers, slow := map[string][]string{}, map[string]bool{}
	for _, o := range f.Outliers {
		outliers[o.Node] = append(outliers[o.Node], o.String())
		slow[o.Node] = slow[o.Node] || o.slower()
	}
	for _, n := range f.Nodes {
		said := outliers[n.Name]
		for _, found := range n.Findings {
			said = append(said, fmt.Sprintf("%s: %s (%s) %s", found.Severity, found.Title, found.Rule, found.Subject))
		}
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
		add("node", n.Name, c)
	}
	for _, name := range f.Unreported {
		add("node", name, junit.Testcase{Error: &junit.Result{Message: "no report", Type: unreported}})
	}
	for _, p := range f.Problems {
		result := &junit.Result{Message: p.Reason, Type: "input"}
		c := junit.Testcase{Skipped: result}
		if p.Lost {
			c = junit.Testcase{Error: result}
		}
		add("input", p.Source, c)
	}
	if len(f.Nodes)+len(f.Unreported) == 0 {
		add("node", "any", junit.Testcase{Error: &junit.Result{Message: f.Headline(), Type: unreported}})
	}
	all := junit.Testsuites{Name: suite.Name, Time: suite.Time}
	all.AddSuite(suite)
	all.Skipped = 0 // As in the report of one node.
	b.WriteString(xml.Header)
	e := xml.NewEncoder(b)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		panic(fmt.Sprintf("encode JUnit: %v", err)) // All of it is strings and numbers.
	}
	b.WriteByte('\n')
}

// writePrometheus writes metrics for the textfile collector of node_exporter.
func writePrometheus(b *bytes.Buffer, f *Fleet, s report.Style) {
	f = lines.Clean(f, s.ASCII) // What is printable is quoted as the format takes it.
	metric := func(name, help string) func(value float64, labels ...string) {
		fmt.Fprintf(b, "# HELP gpudoctor_fleet_%s %s\n# TYPE gpudoctor_fleet_%s gauge\n", name, help, name)
		return func(value float64, labels ...string) {
			var pairs []string
			for i := 0; i < len(labels); i += 2 {
				pairs = append(pairs, fmt.Sprintf("%s=%q", labels[i], labels[i+1]))
			}
			fmt.Fprintf(b, "gpudoctor_fleet_%s{%s} %g\n", name, strings.Join(pairs, ","), value)
		}
	}
	put := metric("exit_code", "The exit code of fleet: 1 with findings, or a node that is slower than like nodes.")
	put(float64(f.ExitCode))
	put = metric("nodes", "Nodes by the state of their verdict.")
	for _, state := range states {
		put(float64(f.States[state]), "state", state)
	}
	put(float64(len(f.Unreported)), "state", unreported)
	put = metric("node", "1 for the state of each node's verdict.")
	for _, n := range f.Nodes {
		put(1, "node", n.Name, "state", n.State)
	}
	for _, name := range f.Unreported {
		put(1, "node", name, "state", unreported)
	}
	put = metric("cause_nodes", "Nodes with findings of a rule.")
	for _, c := range f.Causes {
		put(float64(len(c.Nodes)), "rule", c.Rule, "title", c.Title, "severity", string(c.Severity))
	}
	put = metric("outlier_sigmas", "How far a figure is from the median of like nodes, in standard deviations, where that is far.")
	for _, o := range f.Outliers {
		put(o.Sigmas, "node", o.Node, "figure", o.Figure)
	}
	put = metric("problems", "Inputs that do not count.")
	put(float64(len(f.Problems)))
}

// unreported is the state of a node without a report.
const unreported = "unreported"
