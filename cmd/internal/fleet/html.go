package fleet

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

//go:embed templates/page.html
var pageText string

//go:embed templates/page.css
var pageStyle string

var compiled = sync.OnceValue(func() *template.Template {
	return report.PageTemplate(pageText, pageStyle, "", template.FuncMap{"count": lines.Count, "next": func(i int) int { return i + 1 }})
})

// What a page shows.
var pageLimits = limits{causes: 50, names: 2000, outliers: 200, lines: 100, figures: 200}

// fewNodes is how many nodes can be shown with their names.
const fewNodes = 200

// page is what the template shows: one file that loads nothing, as the page of one node (see package report).
type page struct {
	*Fleet
	Class      string // The colour of the whole.
	Racks      []rack
	Causes     []Cause
	Sections   []lines.Part
	MoreCauses int // How many are left out.
}

// rack is nodes whose names begin alike.
type rack struct {
	Name  string
	Cells []cell
}

type cell struct{ Name, Class, Title string }

func writeHTML(b *bytes.Buffer, f *Fleet, _ report.Style) {
	f = lines.Clean(f, false)
	most := min(len(f.Causes), pageLimits.causes)
	p := page{f, f.class(), f.racks(), f.Causes[:most], f.sections(pageLimits), len(f.Causes) - most}
	if err := compiled().Execute(b, p); err != nil {
		panic(fmt.Sprintf("write page: %v", err)) // The template is part of the program, and a buffer takes all.
	}
}

// Size is "named" for nodes with their names, "small" for more than can be named.
func (p page) Size() string {
	if len(p.Nodes)+len(p.Unreported) > fewNodes {
		return "small"
	}
	return "named"
}

// racks are the nodes in their racks, each with its causes and outliers. If names tell of no racks, all are in one.
func (f *Fleet) racks() (all []rack) {
	said, odd := map[string]string{}, map[string]string{}
	note := func(node, what string) { said[node] = lines.Joined("; ", said[node], what) }
	for _, n := range f.Nodes {
		note(n.Name, n.State)
	}
	for _, c := range f.Causes[:min(len(f.Causes), pageLimits.causes)] {
		for _, name := range c.Nodes {
			note(name, c.Title)
		}
	}
	for _, o := range f.Outliers {
		odd[o.Node] = " odd"
		note(o.Node, o.Figure+" "+short(o.Value))
	}
	cells := lines.Map(f.Nodes, func(n *Node) cell {
		return cell{n.Name, n.class() + odd[n.Name], lines.Joined(": ", n.Name, said[n.Name])}
	})
	cells = append(cells, lines.Map(f.Unreported, func(name string) cell { return cell{name, "n-gone", name + ": no report"} })...)
	rackOf := func(c cell) string { return strings.Join(nameParts(c.Name), "-") }
	all = lines.Map(lines.Grouped(cells, rackOf), func(alike []cell) rack { return rack{rackOf(alike[0]), alike} })
	if len(all)*2 > len(cells) {
		return []rack{{Cells: cells}}
	}
	return all
}

func (n *Node) class() string {
	switch {
	case n.ExitCode == exitFindings:
		return "n-bad"
	case n.State == string(report.Findings):
		return "n-warn"
	case n.State == string(report.Healthy) && n.ExitCode == 0:
		return "n-good"
	}
	return "n-open"
}

func (f *Fleet) class() string {
	switch {
	case f.ExitCode == exitFindings:
		return "bad"
	case f.ExitCode != 0 || f.States[string(report.Inconclusive)] > 0:
		return "open"
	case f.States[string(report.Findings)] > 0:
		return "warn"
	}
	return "good"
}
