package fleet

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

//go:embed templates/page.html
var pageText string

//go:embed templates/page.css
var pageStyle string

var compiled = sync.OnceValue(func() *template.Template { return template.Must(template.New("fleet").Parse(pageText)) })

// What a page shows.
var pageLimits = limits{causes: 50, common: 3, names: 2000, outliers: 200, lines: 100}

const (
	maxFilters  = 20 // Causes by which the picture can be filtered.
	maxPictures = 48 // Histograms.
	fewNodes    = 200
	openNames   = 20 // Nodes of a cause that are shown unfolded, and lines.
	openLines   = 12
)

// page is what the template shows: one file that loads nothing, as the page of one node (see package report). The picture
// is filtered by the style sheet alone.
type page struct {
	*Fleet
	Policy   string
	Style    template.CSS
	Version  string
	Headline string
	// Class is the colour of the whole, and First what to look at first.
	Class, First string
	// Filters are the causes, and the outliers behind them.
	Filters []filter
	// Size is "named" for nodes with their names, "small" for more than can be named.
	Size   string
	Racks  []rack
	Legend []filter
	Causes []pageCause
	// MoreCauses and MoreFigures say what is left out.
	MoreCauses, MoreFigures string
	Sections                []pageSection
	Figures                 []histogram
}

// filter is a cause by which the picture is filtered, or the meaning of a colour.
type filter struct {
	Key         int
	Class, Text string
	Nodes       int
}

// rack is nodes whose names begin alike.
type rack struct {
	Name  string
	Cells []cell
}

// cell is a node in the picture.
type cell struct{ Name, Class, Title string }

// pageSection is a section of which not all lines are shown at once.
type pageSection struct {
	section
	Folded []string
}

// pageCause is a cause as an article.
type pageCause struct {
	Cause
	Number    int
	Said, Fix string
	Shared    []string
	Open      bool
}

// style is the style of a page: that of a report, that of the picture, and a rule for each filter.
var style = sync.OnceValue(func() string {
	var b strings.Builder
	b.WriteString(report.PageStyle + pageStyle)
	for i := 1; i <= maxFilters; i++ {
		fmt.Fprintf(&b, "body:has(#show-%d:checked) .rack li:not(.c%d) { opacity: 0.18; }\n", i, i)
	}
	return b.String()
})

// writeHTML writes it as a page for a browser.
func writeHTML(b *bytes.Buffer, f *Fleet, _ report.Style) {
	f = lines.Clean(f, false)
	l := pageLimits
	p := page{
		Fleet: f, Policy: report.PagePolicy(style()), Style: template.CSS(style()), //nolint:gosec // It is part of the program.
		Version: f.Version, Headline: f.Headline(), Class: f.class(),
	}
	for _, part := range f.sections(l) {
		one := pageSection{section: part}
		if len(part.Lines) > openLines {
			one.Lines, one.Folded = part.Lines[:openLines], part.Lines[openLines:]
		}
		p.Sections = append(p.Sections, one)
	}
	affected := map[string][]int{}
	for i, c := range f.Causes[:min(len(f.Causes), l.causes)] {
		for _, name := range c.Nodes {
			affected[name] = append(affected[name], i)
		}
		one := pageCause{Cause: c, Number: i + 1, Shared: texts(c.Common[:min(len(c.Common), l.common)]), Open: len(c.Nodes) <= openNames}
		one.Said = fmt.Sprintf("on %d of %s", len(c.Nodes), lines.Count(len(f.Nodes), "node"))
		if c.Remedy != "" {
			one.Fix = c.fix()
		}
		p.Causes = append(p.Causes, one)
		if i < maxFilters-1 {
			p.Filters = append(p.Filters, filter{i + 1, string(c.Severity), c.Title, len(c.Nodes)})
		}
	}
	odd := map[string]string{}
	for _, o := range f.Outliers {
		odd[o.Node] = lines.Joined("; ", odd[o.Node], o.Figure+" "+short(o.Value))
	}
	if len(odd) > 0 {
		p.Filters = append(p.Filters, filter{maxFilters, "", "a figure far from those of like nodes", len(odd)})
	}
	if len(f.Causes) > 0 {
		p.First = strings.Join(append([]string{p.Causes[0].Title + " " + p.Causes[0].Said}, p.Causes[0].Shared[:min(1, len(p.Causes[0].Shared))]...), ": ")
	}
	if more := len(f.Causes) - l.causes; more > 0 {
		p.MoreCauses = fmt.Sprintf("and %s, in the report as JSON", lines.Count(more, "more cause"))
	}
	p.draw(affected, odd)
	var pictured []Measured
	for _, m := range f.Measured {
		if m.Nodes > 1 {
			pictured = append(pictured, m)
		}
	}
	slices.SortStableFunc(pictured, func(a, b Measured) int { return cmp.Compare(len(b.outliers), len(a.outliers)) })
	for _, m := range pictured[:min(len(pictured), maxPictures)] {
		p.Figures = append(p.Figures, m.histogram())
	}
	if more := len(pictured) - maxPictures; more > 0 {
		p.MoreFigures = fmt.Sprintf("and %s, in the report as JSON", lines.Count(more, "more figure"))
	}
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

// draw makes the picture: each node in its rack, with its causes, and its figures that are outliers.
func (p *page) draw(affected map[string][]int, odd map[string]string) {
	p.Size = "named"
	if len(p.Nodes)+len(p.Unreported) > fewNodes {
		p.Size = "small"
	}
	at := map[string]int{}
	put := func(name, class, title string) {
		of := strings.Join(nameParts(name), "-")
		if _, known := at[of]; !known {
			at[of] = len(p.Racks)
			p.Racks = append(p.Racks, rack{Name: of})
		}
		r := &p.Racks[at[of]]
		r.Cells = append(r.Cells, cell{name, class, name + ": " + title})
	}
	for _, n := range p.Nodes {
		class, title := n.class(), n.State
		for i, c := range affected[n.Name] {
			if i == 0 {
				title = ""
			}
			class += fmt.Sprintf(" c%d", c+1)
			title = lines.Joined("; ", title, p.Fleet.Causes[c].Title)
		}
		if odd[n.Name] != "" {
			class += fmt.Sprintf(" odd c%d", maxFilters)
		}
		put(n.Name, class, lines.Joined("; ", title, odd[n.Name]))
	}
	for _, name := range p.Unreported {
		put(name, "n-gone", "no report")
	}
	if len(p.Racks)*2 > len(p.Nodes) { // Their names tell nothing.
		whole := rack{}
		for _, r := range p.Racks {
			whole.Cells = append(whole.Cells, r.Cells...)
		}
		p.Racks = []rack{whole}
	}
	seen := map[string]bool{}
	for _, r := range p.Racks {
		for _, c := range r.Cells {
			first, _, _ := strings.Cut(c.Class, " ")
			seen[first] = true
		}
	}
	if len(odd) > 0 {
		seen["odd"] = true
	}
	for _, l := range []filter{
		{Class: "n-bad", Text: "findings that count (exit code 1)"},
		{Class: "n-warn", Text: "findings below --fail-on"},
		{Class: "n-open", Text: "not examined completely"},
		{Class: "n-gone", Text: "no report"},
		{Class: "n-good", Text: "healthy"},
		{Class: "odd", Text: "a figure far from those of like nodes"},
	} {
		if seen[l.Class] {
			p.Legend = append(p.Legend, l)
		}
	}
}

// histogram is a figure as a picture: 40 columns, of which the first and the last are the outliers below and above.
type histogram struct {
	Measured
	Said, Count, Middle, Low, High, Far string
	Bars                                []bar
	Line                                float64
}

// bar is how many nodes have about the same figure.
type bar struct {
	Class, Title   string
	X, Top, Height int
}

// The columns for what is no outlier, and the height of the picture.
const (
	firstColumn, columns = 2, 36
	pictureHeight        = 64
	leastBar             = 3
)

// histogram draws a figure.
func (m Measured) histogram() histogram {
	h := histogram{Measured: m, Count: lines.Count(m.Nodes, "node"), Middle: short(m.Median), Line: firstColumn + columns/2}
	var far []string
	var counts [columns + 2*firstColumn]int
	odd := map[string]bool{}
	for _, o := range m.outliers {
		odd[o.Node] = true
		far = append(far, o.Node+" "+short(o.Value))
		if o.Sigmas < 0 {
			counts[0]++
		} else {
			counts[len(counts)-1]++
		}
	}
	low, high := m.Highest, m.Lowest
	for _, n := range m.of {
		if !odd[n.Name] {
			low, high = min(low, n.Figures[m.Figure].Value), max(high, n.Figures[m.Figure].Value)
		}
	}
	width := (high - low) / columns
	if width > 0 {
		h.Line = firstColumn + (m.Median-low)/width
	}
	for _, n := range m.of {
		switch v := n.Figures[m.Figure].Value; {
		case odd[n.Name]:
		case width == 0:
			counts[firstColumn+columns/2]++
		default:
			counts[firstColumn+min(int((v-low)/width), columns-1)]++
		}
	}
	for x, n := range counts {
		if n == 0 {
			continue
		}
		height := max(leastBar, n*(pictureHeight-leastBar)/slices.Max(counts[:]))
		one := bar{"usual", lines.Count(n, "node") + " near " + short(low+(float64(x-firstColumn)+0.5)*width) + " " + m.Unit, x, pictureHeight - height, height}
		if x == 0 || x == len(counts)-1 {
			one.Class, one.Title = "odd", lines.Count(n, "outlier")
		}
		h.Bars = append(h.Bars, one)
	}
	h.Low, h.High = short(low), short(high)
	if h.Said = fmt.Sprintf("%s from %s to %s %s", m.Figure, h.Low, h.High, m.Unit); len(far) > 0 {
		h.Far = "outliers: " + lines.First(far, textLimits.names, ", ")
		h.Said += "; " + h.Far
	}
	return h
}
