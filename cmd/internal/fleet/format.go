package fleet

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

var writers = map[string]func(b *bytes.Buffer, f *Fleet, s report.Style){
	"text": func(b *bytes.Buffer, f *Fleet, s report.Style) {
		b.Write(f.doc(textLimits).Text(s.Width, s.Color, s.ASCII))
	},
	"json":     func(b *bytes.Buffer, f *Fleet, _ report.Style) { report.Encode(b, f) },
	"markdown": writeMarkdown, "html": writeHTML, "junit": writeJUnit, "prometheus": writePrometheus,
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

// What is shown of a fleet as text, which has to fit on a screen, as a ticket, and as a ticket that would be too long.
var (
	textLimits      = limits{causes: 5, common: 2, names: 6, outliers: 12, lines: 4}
	markdownLimits  = limits{causes: 20, common: 2, names: 20, outliers: 40, lines: 20, figures: 20}
	shortenedLimits = limits{causes: 3, common: 1, names: 3, outliers: 3, lines: 3, figures: 3}
)

func writeMarkdown(b *bytes.Buffer, f *Fleet, _ report.Style) {
	ticket := f.doc(markdownLimits).Markdown()
	if len(ticket) > report.MaxMarkdown {
		ticket = f.doc(shortenedLimits).Markdown()
	}
	b.Write(ticket)
}

func (f *Fleet) doc(l limits) lines.Doc {
	doc := lines.Doc{Title: "gpudoctor fleet", Head: lines.Entries(f.Headline()), Rest: "-o FILE.html or FILE.json"}
	for i, c := range f.Causes[:min(len(f.Causes), l.causes)] {
		title := fmt.Sprintf("%d. %s: %s (%s) on %d of %s", i+1, c.Severity, c.Title, c.Rule, len(c.Nodes), lines.Count(len(f.Nodes), "node"))
		details := append([]string{lines.First(c.Nodes, l.names, ", ")}, lines.Map(c.Common[:min(len(c.Common), l.common)], Common.String)...)
		if c.Remedy != "" {
			details = append(details, "fix: "+c.Fix())
		}
		doc.Parts = append(doc.Parts, lines.Part{Title: title, Color: report.ColorOf(string(c.Severity)), List: lines.Entries(details...)})
	}
	if more := len(f.Causes) - l.causes; more > 0 {
		doc.Parts = append(doc.Parts, lines.Part{Title: "Other causes", More: more})
	}
	doc.Parts = append(doc.Parts, f.sections(l)...)
	return doc
}

// sections are what follows the causes, without those that are empty.
func (f *Fleet) sections(l limits) []lines.Part {
	open := lines.Filter(f.Nodes, func(n *Node) bool { return n.State == string(report.Inconclusive) })
	unproven := lines.Map(open, func(n *Node) string { return n.Name })
	var doc lines.Doc
	doc.Add("Between nodes", f.accused(), l.outliers)
	doc.Add("Figures far from those of like nodes", f.outlying(l), l.outliers)
	doc.Add("Not examined completely", lines.NonEmpty(lines.First(unproven, l.names, ", ")), 1)
	doc.Add("No report", lines.NonEmpty(lines.First(f.Unreported, l.names, ", ")), 1)
	doc.Add("Not counted", lines.Map(f.Problems, Problem.String), l.lines)
	doc.Add("Figures", lines.Map(f.Measured, Measured.String), l.figures)
	return doc.Parts
}

// Bounds of what is named: nodes of those whose outliers a cause may explain, and traits of one group.
const (
	maxExplained = 12
	maxTraits    = 4
)

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
	if n := len(explained); n > 0 {
		names := lines.First(explained, min(l.names, maxExplained), ", ")
		all = append(all, fmt.Sprintf("%s with a cause above: %s", lines.Count(n, "node"), names))
	}
	return all
}

// Headline counts the nodes by verdict, and the inputs that may have been reports.
func (f *Fleet) Headline() string {
	findings, healthy := f.States[string(report.Findings)], "healthy"
	if f.ExitCode == exitFindings && findings == 0 {
		healthy = "healthy by themselves" // A finding is about several of them, or the network, or one is slower than the others.
	}
	counted := func(n int, said string) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("%d %s", n, said)
	}
	said := lines.Joined(
		", ", counted(findings, "with findings"), counted(f.States[string(report.Inconclusive)], "inconclusive"),
		counted(f.States[string(report.Healthy)], healthy), counted(len(f.Unreported), "without a report"),
	)
	if said == "" {
		said = "No report of a node"
	} else {
		said = lines.Count(len(f.Nodes)+len(f.Unreported), "node") + ": " + said
	}
	if lost := lines.Filter(f.Problems, func(p Problem) bool { return p.Lost }); len(lost) > 0 {
		said += "; " + lines.Count(len(lost), "report") + " cannot be read"
	}
	return said
}

// Fix is the command that shows what to do.
func (c Cause) Fix() string { return "gpudoctor explain " + c.Remedy }

func (c Common) String() string {
	chance := fmt.Sprintf("p = %.1g", c.P)
	if c.P == 0 {
		chance = "p < 1e-300"
	}
	traits := lines.First(lines.Map(c.Traits, Trait.String), maxTraits, ", ")
	return fmt.Sprintf("%d of these %d have %s; of the other %d, %d have it (%s)", c.With, c.Affected, traits, c.Others, c.Without, chance)
}

func (t Trait) String() string {
	if strings.HasPrefix(t.Name, partOfName) {
		return fmt.Sprintf("%q in their names", t.Value)
	}
	return t.Name + " " + t.Value
}

func (o Outlier) String() string {
	return fmt.Sprintf("%s: %s: %.4g %s, median of %d nodes %.4g (%+.0f sigma)", o.Node, o.Figure, o.Value, o.Unit, o.Nodes, o.Median, math.Round(o.Sigmas))
}

func (m Measured) String() string {
	return fmt.Sprintf("%s (%s): median of %s %s %s, from %s to %s",
		m.Figure, cmp.Or(m.Hardware, "no GPU"), lines.Count(m.Nodes, "node"), short(m.Median), m.Unit, short(m.Lowest), short(m.Highest))
}

func short(v float64) string { return fmt.Sprintf("%.4g", v) }

func (p Problem) String() string { return p.Source + ": " + p.Reason }
