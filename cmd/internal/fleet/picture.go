package fleet

import (
	"fmt"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// rack is nodes whose names begin alike.
type rack struct {
	Name  string
	Cells []cell
}

type cell struct{ Name, Class, Title string }

// draw makes the picture: each node in its rack. If names tell of no racks, all are in one.
func (p *page) draw() {
	p.Size = "named"
	cells := p.cells()
	if len(cells) > fewNodes {
		p.Size = "small"
	}
	rackOf := func(c cell) string { return strings.Join(nameParts(c.Name), "-") }
	for _, alike := range lines.Grouped(cells, rackOf) {
		p.Racks = append(p.Racks, rack{Name: rackOf(alike[0]), Cells: alike})
	}
	if len(p.Racks)*2 > len(cells) {
		p.Racks = []rack{{Cells: cells}}
	}
}

// cells are the nodes, with the causes that they have, and their outliers as the last of the filters.
func (p *page) cells() []cell {
	classes, titles := map[string]string{}, map[string]string{}
	note := func(node, class, title string) {
		if !strings.Contains(classes[node], class) {
			classes[node] += class
		}
		titles[node] = lines.Joined("; ", titles[node], title)
	}
	for i, c := range p.Causes {
		class := ""
		if i+1 < maxFilters {
			class = fmt.Sprintf(" c%d", i+1)
		}
		for _, name := range c.Nodes {
			note(name, class, c.Title)
		}
	}
	for _, o := range p.Outliers {
		note(o.Node, fmt.Sprintf(" odd c%d", maxFilters), o.Figure+" "+short(o.Value))
	}
	cells := make([]cell, 0, len(p.Nodes)+len(p.Unreported))
	odd := 0
	for _, n := range p.Nodes {
		cells = append(cells, cell{n.Name, n.class() + classes[n.Name], lines.Joined(": ", n.Name, lines.Joined("; ", n.State, titles[n.Name]))})
		if strings.Contains(classes[n.Name], " odd") {
			odd++
		}
	}
	for _, name := range p.Unreported {
		cells = append(cells, cell{name, "n-gone", name + ": no report"})
	}
	if odd > 0 {
		p.Filters = append(p.Filters, filter{maxFilters, "", "a figure far from those of like nodes", odd})
	}
	return cells
}

// class is the colour of a node.
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
