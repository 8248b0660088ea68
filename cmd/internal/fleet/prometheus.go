package fleet

import (
	"bytes"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

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
