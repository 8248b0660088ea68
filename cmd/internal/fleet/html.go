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
	var filters strings.Builder
	for i := 1; i <= maxFilters; i++ {
		fmt.Fprintf(&filters, "body:has(#show-%d:checked) .rack li:not(.c%d) { opacity: 0.18; }\n", i, i)
	}
	return report.PageTemplate(pageText, pageStyle+filters.String(), "", template.FuncMap{"count": lines.Count, "next": func(i int) int { return i + 1 }})
})

// What a page shows.
var pageLimits = limits{causes: 50, names: 2000, outliers: 200, lines: 100, figures: 200}

const (
	maxFilters = 20  // Causes by which the picture can be filtered.
	fewNodes   = 200 // Nodes that can be shown with their names.
)

// page is what the template shows: one file that loads nothing, as the page of one node (see package report). The style
// sheet alone filters the picture.
type page struct {
	*Fleet
	// Class is the colour of the whole.
	Class string
	// Filters are the causes, and the outliers behind them.
	Filters []filter
	// Size is "named" for nodes with their names, "small" for more than can be named.
	Size     string
	Racks    []rack
	Causes   []Cause
	Sections []lines.Part
	// MoreCauses is how many are left out.
	MoreCauses int
}

type filter struct {
	Key         int
	Class, Text string
	Nodes       int
}

func writeHTML(b *bytes.Buffer, f *Fleet, _ report.Style) {
	f = lines.Clean(f, false)
	p := page{Fleet: f, Class: f.class(), Causes: f.Causes[:min(len(f.Causes), pageLimits.causes)], Sections: f.sections(pageLimits)}
	for i, c := range p.Causes[:min(len(p.Causes), maxFilters-1)] {
		p.Filters = append(p.Filters, filter{i + 1, string(c.Severity), c.Title, len(c.Nodes)})
	}
	p.MoreCauses = max(0, len(f.Causes)-pageLimits.causes)
	p.draw()
	if err := compiled().Execute(b, p); err != nil {
		panic(fmt.Sprintf("write page: %v", err)) // The template is part of the program, and a buffer takes all.
	}
}

// class is the colour of the whole.
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
