package fleet

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// markdownLimits are tried until it is short enough for a ticket.
var markdownLimits = []limits{{causes: 20, common: 2, names: 20, outliers: 40, lines: 20}, {causes: 3, common: 1, names: 3, outliers: 3, lines: 3}}

// writeMarkdown writes it for a ticket.
func writeMarkdown(b *bytes.Buffer, f *Fleet, _ report.Style) {
	for _, l := range markdownLimits {
		b.Reset()
		if writeTicket(b, f, l); b.Len() <= report.MaxMarkdown {
			return
		}
	}
}

func writeTicket(b *bytes.Buffer, f *Fleet, l limits) {
	put := func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
	put("## gpudoctor fleet: %s", f.Headline())
	for i, c := range f.Causes[:min(len(f.Causes), l.causes)] {
		put("\n### %d. %s\n", i+1, lines.Inline(c.Title))
		put("%s, %s, on %d of %s\n", c.Severity, lines.Code(c.Rule), len(c.Nodes), lines.Count(len(f.Nodes), "node"))
		put("- %s", lines.Inline(lines.First(c.Nodes, l.names, ", ")))
		for _, shared := range c.Common[:min(len(c.Common), l.common)] {
			put("- %s", lines.Inline(shared.String()))
		}
		if c.Remedy != "" {
			put("- **Fix:** %s", lines.Code(c.fix()))
		}
	}
	if more := len(f.Causes) - l.causes; more > 0 {
		put("\nand %s", lines.Count(more, "more cause"))
	}
	for _, s := range f.sections(l) {
		put("\n### %s\n", s.Title)
		for _, line := range s.Lines {
			put("- %s", lines.Item(lines.Inline(line)))
		}
		if s.More > 0 {
			put("- and %d more", s.More)
		}
	}
	if len(f.Measured) == 0 {
		return
	}
	rows := [][]string{{"Figure", "GPUs", "Nodes", "Median", "Lowest", "Highest", "Unit"}}
	for _, m := range f.Measured[:min(len(f.Measured), l.lines)] {
		rows = append(rows, []string{m.Figure, m.Hardware, fmt.Sprint(m.Nodes), short(m.Median), short(m.Lowest), short(m.Highest), m.Unit})
	}
	put("\n### Figures\n\n%s", table(rows))
}

// short writes a figure.
func short(v float64) string { return fmt.Sprintf("%.4g", v) }

// table writes a table; the first row is its head, and the cells of the others are code.
func table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		for _, cell := range row {
			if i > 0 {
				cell = lines.Cell(cell)
			}
			b.WriteString("| " + cell + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString(strings.Repeat("| --- ", len(row)) + "|\n")
		}
	}
	return b.String() + "\n"
}
