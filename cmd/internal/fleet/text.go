package fleet

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// What is shown of a fleet as text, which has to fit on a screen, as a ticket, and as a ticket that would be too long.
var (
	textLimits      = limits{causes: 5, common: 2, names: 6, outliers: 12, lines: 4}
	markdownLimits  = limits{causes: 20, common: 2, names: 20, outliers: 40, lines: 20, figures: 20}
	shortenedLimits = limits{causes: 3, common: 1, names: 3, outliers: 3, lines: 3, figures: 3}
)

func writeText(b *bytes.Buffer, f *Fleet, s report.Style) {
	b.Write(f.doc(textLimits).Text(s.Width, s.Color, s.ASCII))
}

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
		doc.Parts = append(doc.Parts, lines.Part{Title: title, Color: report.ColorOf(string(c.Severity)), List: lines.Entries(c.details(l)...)})
	}
	if more := len(f.Causes) - l.causes; more > 0 {
		doc.Parts = append(doc.Parts, lines.Part{Title: "Other causes", More: more})
	}
	doc.Parts = append(doc.Parts, f.sections(l)...)
	return doc
}

func (c Cause) details(l limits) []string {
	all := []string{lines.First(c.Nodes, l.names, ", ")}
	all = append(all, lines.Map(c.Common[:min(len(c.Common), l.common)], Common.String)...)
	if c.Remedy != "" {
		all = append(all, "fix: "+c.Fix())
	}
	return all
}

// Fix is the command that shows what to do.
func (c Cause) Fix() string { return "gpudoctor explain " + c.Remedy }

func (c Common) String() string {
	traits := lines.Map(c.Traits, Trait.String)
	chance := fmt.Sprintf("p = %.1g", c.P)
	if c.P == 0 {
		chance = "p < 1e-300"
	}
	return fmt.Sprintf("%d of these %d have %s; of the other %d, %d have it (%s)", c.With, c.Affected, lines.First(traits, maxTraits, ", "), c.Others, c.Without, chance)
}

func (t Trait) String() string {
	if strings.HasPrefix(t.Name, partOfName) {
		return fmt.Sprintf("%q in their names", t.Value)
	}
	return t.Name + " " + t.Value
}

// maxTraits bounds the traits that are named of one group.
const maxTraits = 4

func (o Outlier) String() string {
	return fmt.Sprintf("%s: %s: %.4g %s, median of %d nodes %.4g (%+.0f sigma)", o.Node, o.Figure, o.Value, o.Unit, o.Nodes, o.Median, math.Round(o.Sigmas))
}

func (m Measured) String() string {
	return fmt.Sprintf("%s (%s): median of %s %s %s, from %s to %s", m.Figure, cmp.Or(m.Hardware, "no GPU"), lines.Count(m.Nodes, "node"), short(m.Median), m.Unit, short(m.Lowest), short(m.Highest))
}

func short(v float64) string { return fmt.Sprintf("%.4g", v) }

func (p Problem) String() string { return p.Source + ": " + p.Reason }
