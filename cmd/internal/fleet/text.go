package fleet

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// The widths of a text, and what it shows: it has to fit on a screen.
const (
	leastWidth = 40
	mostWidth  = 100
)

var textLimits = limits{causes: 5, common: 2, names: 6, outliers: 12, lines: 4}

// writeText writes it for a person at a terminal, on one screen.
func writeText(b *bytes.Buffer, f *Fleet, s report.Style) {
	width := mostWidth
	if s.Width > 0 {
		width = max(leastWidth, min(s.Width, mostWidth))
	}
	put := func(lead, said string, color lines.Color) {
		margin := strings.Repeat(" ", len(lead))
		if s.Color {
			lead = color.Paint(lead)
		}
		for _, l := range lines.Wrap(lines.Printable(said, s.ASCII), width-len(margin)) {
			if margin == "" && s.Color {
				l = color.Paint(l)
			}
			b.WriteString(strings.TrimRight(lead+l, " ") + "\n")
			lead = margin
		}
	}
	put("", f.Headline(), lines.Bold)
	for i, c := range f.Causes[:min(len(f.Causes), textLimits.causes)] {
		b.WriteString("\n")
		lead := fmt.Sprintf("%d  ", i+1)
		put(lead+string(c.Severity)+"  ", fmt.Sprintf("%s (%s) on %d of %s", c.Title, c.Rule, len(c.Nodes), lines.Count(len(f.Nodes), "node")), colorOf(c.Severity))
		for _, l := range c.details(textLimits) {
			put(strings.Repeat(" ", len(lead)), l, lines.Plain)
		}
	}
	if more := len(f.Causes) - textLimits.causes; more > 0 {
		put("\n   ", fmt.Sprintf("and %s (-o FILE.html or FILE.json)", lines.Count(more, "more cause")), lines.Plain)
	}
	for _, part := range f.sections(textLimits) {
		b.WriteString("\n")
		put("", part.Title, lines.Bold)
		for _, l := range part.Lines {
			put("  ", l, lines.Plain)
		}
		if part.More > 0 {
			put("  ", fmt.Sprintf("and %d more (-o FILE.html or FILE.json)", part.More), lines.Dim)
		}
	}
}

// colorOf is the colour of a severity.
func colorOf(s rules.Severity) lines.Color {
	switch {
	case s.Rank() <= rules.High.Rank():
		return lines.Red
	case s == rules.Medium:
		return lines.Yellow
	}
	return lines.Cyan
}

// details are the nodes of a cause, what they share, and what to do.
func (c Cause) details(l limits) []string {
	all := []string{lines.First(c.Nodes, l.names, ", ")}
	all = append(all, texts(c.Common[:min(len(c.Common), l.common)])...)
	if c.Remedy != "" {
		all = append(all, "fix: "+c.fix())
	}
	return all
}

func (c Cause) fix() string { return "gpudoctor explain " + c.Remedy }

func (c Common) String() string {
	var traits []string
	for _, t := range c.Traits {
		traits = append(traits, t.String())
	}
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

func (p Problem) String() string { return p.Source + ": " + p.Reason }
