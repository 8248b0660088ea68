package fleet

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// Bounds of what the text shows: it has to fit on a screen.
const (
	width     = 100
	maxCauses = 8
	maxShared = 2 // What nodes with a cause have in common.
	maxOdd    = 8 // Outliers, and kinds of drift.
	maxNames  = 6
	maxFaults = 4 // Inputs that do not count.
)

// WriteJSON writes all of it.
func (f *Fleet) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(f)
}

// WriteText writes it for a person, on one screen.
func (f *Fleet) WriteText(w io.Writer) error {
	var b strings.Builder
	put := func(margin, format string, args ...any) {
		for i, l := range lines.Wrap(lines.Printable(fmt.Sprintf(format, args...), false), width-len(margin)) {
			if i > 0 {
				margin = strings.Repeat(" ", len(margin))
			}
			b.WriteString(strings.TrimRight(margin+l, " ") + "\n")
		}
	}
	put("", "%s", f.headline())
	for i, c := range f.Causes {
		if i == maxCauses {
			put("", "\nand %d more causes (--format json)", len(f.Causes)-i)
			break
		}
		b.WriteString("\n")
		put(fmt.Sprintf("%d  ", i+1), "%s: %s (%s), on %d of %d nodes", c.Severity, c.Title, c.Rule, len(c.Nodes), len(f.Nodes))
		put("   ", "%s", some(c.Nodes))
		for _, shared := range c.Common[:min(len(c.Common), maxShared)] {
			put("   ", "%s", shared)
		}
		if c.Remedy != "" {
			put("   ", "fix: gpudoctor explain %s", c.Remedy)
		}
	}
	section := func(title string, all []string, most int) {
		if len(all) == 0 {
			return
		}
		b.WriteString("\n")
		put("", "%s", title)
		for i, l := range all {
			if i == most {
				put("  ", "and %d more (--format json)", len(all)-i)
				break
			}
			put("  ", "%s", l)
		}
	}
	section("Between nodes", f.accused(), maxOdd)
	section("Figures far from those of like nodes", texts(f.Outliers), maxOdd)
	section("What differs between like nodes", texts(f.Drift), maxOdd)
	section("No report", names(f.Unreported), 1)
	section("Not counted", texts(f.Problems), maxFaults)
	_, err := io.WriteString(w, b.String())
	return err
}

// headline counts the nodes by verdict.
func (f *Fleet) headline() string {
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(f.States)) {
		parts = append(parts, fmt.Sprintf("%d %s", f.States[state], state))
	}
	said := fmt.Sprintf("%d nodes: %s", len(f.Nodes), strings.Join(parts, ", "))
	if len(f.Nodes) == 0 {
		said = "no report of a node"
	}
	if n := len(f.Unreported); n > 0 {
		said += fmt.Sprintf("; %d without a report", n)
	}
	return said
}

// names is a list of names in one line, if there are any.
func names(all []string) []string {
	if len(all) == 0 {
		return nil
	}
	return []string{some(all)}
}

func some(names []string) string { return lines.First(names, maxNames, ", ") }

func texts[T fmt.Stringer](all []T) []string {
	var said []string
	for _, one := range all {
		said = append(said, one.String())
	}
	return said
}

func (c Common) String() string {
	var traits []string
	for _, t := range c.Traits {
		traits = append(traits, t.Name+" "+t.Value)
	}
	return fmt.Sprintf("%d of %d have %s, and %d of the %d others (p = %.1g)", c.With, c.Affected, lines.First(traits, maxNames, ", "), c.Without, c.Others, c.P)
}

func (o Outlier) String() string {
	side := "below"
	if o.Sigmas > 0 {
		side = "above"
	}
	return fmt.Sprintf("%s: %s %.4g %s, %.0f sigmas %s the median of %d nodes, %.4g", o.Node, o.Figure, o.Value, o.Unit, math.Abs(o.Sigmas), side, o.Nodes, o.Median)
}

func (d Drift) String() string {
	var parts []string
	for i, v := range d.Values {
		if i == 0 {
			parts = append(parts, fmt.Sprintf("%s on %d", v.Value, len(v.Nodes)))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s on %d (%s)", v.Value, len(v.Nodes), lines.First(v.Nodes, 3, ", ")))
	}
	return d.Trait + ": " + lines.First(parts, 4, "; ")
}

func (p Problem) String() string { return p.Source + ": " + p.Reason }
