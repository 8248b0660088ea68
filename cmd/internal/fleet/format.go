package fleet

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

var writers = map[string]func(b *bytes.Buffer, f *Fleet, s report.Style){
	"text": writeText, "json": func(b *bytes.Buffer, f *Fleet, _ report.Style) { report.Encode(b, f) }, "markdown": writeMarkdown, "html": writeHTML, "junit": writeJUnit, "prometheus": writePrometheus,
}

// Formats are the names of the formats, the default first, as check calls them.
func Formats() []string {
	return lines.Filter(report.FormatNames(), func(name string) bool { return writers[name] != nil })
}

// Write writes it in one of the formats.
func (f *Fleet) Write(w io.Writer, format string, s report.Style) error {
	var b bytes.Buffer
	writers[format](&b, f, s)
	_, err := w.Write(b.Bytes())
	return err
}

// limits bound what people are shown; JSON has all of it.
type limits struct{ causes, common, names, outliers, lines, figures int }

// sections are what follows the causes, without those that are empty.
func (f *Fleet) sections(l limits) []lines.Part {
	unproven := lines.Map(
		lines.Filter(f.Nodes, func(n *Node) bool { return n.State == string(report.Inconclusive) }),
		func(n *Node) string { return n.Name },
	)
	var doc lines.Doc
	doc.Add("Between nodes", f.accused(), l.outliers)
	doc.Add("Figures far from those of like nodes", f.outlying(l), l.outliers)
	doc.Add("Not examined completely", lines.NonEmpty(lines.First(unproven, l.names, ", ")), 1)
	doc.Add("No report", lines.NonEmpty(lines.First(f.Unreported, l.names, ", ")), 1)
	doc.Add("Not counted", lines.Map(f.Problems, Problem.String), l.lines)
	doc.Add("Figures", lines.Map(f.Measured, Measured.String), l.figures)
	return doc.Parts
}

// maxExplained bounds the nodes that are named of those whose outliers a cause may explain.
const maxExplained = 12

// outlying is a line for each node with outliers, the farthest of them. Nodes with findings that count come last, in one
// line: these may be why.
func (f *Fleet) outlying(l limits) []string {
	var all, explained []string
	failed := map[string]bool{}
	for _, n := range f.Nodes {
		failed[n.Name] = n.ExitCode == exitFindings
	}
	for _, of := range lines.Grouped(f.Outliers, func(o Outlier) string { return o.Node }) {
		said := of[0].String()
		if len(of) > 1 {
			said += "; and " + lines.Count(len(of)-1, "other figure")
		}
		if failed[of[0].Node] {
			explained = append(explained, of[0].Node)
		} else {
			all = append(all, said)
		}
	}
	if len(explained) > 0 {
		all = append(all, fmt.Sprintf("%s with a cause above: %s", lines.Count(len(explained), "node"), lines.First(explained, min(l.names, maxExplained), ", ")))
	}
	return all
}

// Headline counts the nodes by verdict, and the inputs that may have been reports.
func (f *Fleet) Headline() string {
	var parts []string
	count := func(n int, said string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, said))
		}
	}
	count(f.States[string(report.Findings)], "with findings")
	count(f.States[string(report.Inconclusive)], "inconclusive")
	healthy := "healthy"
	if f.ExitCode == exitFindings && f.States[string(report.Findings)] == 0 {
		healthy = "healthy by themselves" // A finding is about several of them, or the network, or one is slower than the others.
	}
	count(f.States[string(report.Healthy)], healthy)
	count(len(f.Unreported), "without a report")
	said := "No report of a node"
	if len(parts) > 0 {
		said = lines.Count(len(f.Nodes)+len(f.Unreported), "node") + ": " + strings.Join(parts, ", ")
	}
	if lost := lines.Filter(f.Problems, func(p Problem) bool { return p.Lost }); len(lost) > 0 {
		said += "; " + lines.Count(len(lost), "report") + " cannot be read"
	}
	return said
}
