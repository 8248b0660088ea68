package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/markup"
	"github.com/gpudoctor/gpudoctor/cmd/internal/topology"
	"github.com/gpudoctor/gpudoctor/rules"
)

// A page is one HTML file that loads nothing: text, pictures, style and script are in it, and a content
// security policy allows no other. What stands in a report was read from machines and texts of others, so
// that every value goes through html/template, which escapes it for its place.

//go:embed templates/page.css
var pageStyle string

//go:embed templates/page.js
var pageScript string

//go:embed templates/page.html
var pageText string

// compiled is the template.
var compiled = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"csp":      func() string { return pagePolicy },
		"style":    func() template.CSS { return template.CSS(pageStyle) },
		"script":   func() template.JS { return template.JS(pageScript) },
		"pictures": pictures,
		"radius":   func() int { return topology.BadgeRadius },
		"shell":    func(command string) block { return block{Language: "sh", Lines: []string{command}} },
		"lines":    func(list []string) []string { return strings.SplitAfter(strings.Join(list, "\n"), "\n") },
		"words":    func(line string) []string { return strings.Split(line, " ") },
		"join":     func(list []string) string { return strings.Join(list, ", ") },
		"parts":    parts,
		"count":    lines.Count,
		"spans":    spans,
		"favour":   func(c rules.Candidate) string { return inFavour(c, strings.TrimSpace, strings.TrimSpace) },
	}).Parse(pageText))
})

// picture is the machine laid out at one width.
type picture struct {
	*topology.Drawing
	// Class says where the style sheet shows it.
	Class string
	// ViewWidth and ViewHeight have room for the strokes at the edges.
	ViewWidth, ViewHeight int
}

// pictures lays the machine out in pixels for a page on a screen or on paper, and for
// a phone of 360 pixels and more. The style sheet shows one of them.
func pictures(m *topology.Machine) []picture {
	var all []picture
	for _, p := range []picture{{Class: "wide", ViewWidth: 896}, {Class: "narrow", ViewWidth: 328}} {
		p.Drawing = m.Draw(p.ViewWidth - 2)
		p.ViewWidth, p.ViewHeight = p.Width+2, p.Height+2
		all = append(all, p)
	}
	return all
}

// parts are those of a word of a command between which it may break: behind commas and
// semicolons.
func parts(word string) []string {
	var list []string
	for {
		i := strings.IndexAny(word, ",;") + 1
		if i == 0 || i == len(word) {
			return append(list, word)
		}
		list, word = append(list, word[:i]), word[i:]
	}
}

// spans are the pieces of a sentence, in which a number stays with its unit.
func spans(s string) []markup.Span {
	all := markup.Spans(s)
	for i := range all {
		if !all[i].Code {
			all[i].Text = lines.KeepUnits(all[i].Text)
		}
	}
	return all
}

// shadedRow is a row of a matrix on a page.
type shadedRow struct {
	Label, Device string
	Cells         []shadedCell
}

// shadedCell is a number or a mark. Class is "bad", "slow", "self", "ok" or a shade.
type shadedCell struct{ Text, Class, Title string }

// shades is how many shades the style sheet has: heat0 to heat4.
const shades = 5

// Rows are the rows as a page shows them. A number that is well has the shade of its share of the greatest.
func (m matrix) Rows() []shadedRow {
	most := 0.0
	for _, c := range slices.Concat(m.Cells...) {
		most = max(most, c.number())
	}
	var rows []shadedRow
	for i, cells := range m.Cells {
		row := shadedRow{Label: m.Labels[i], Device: m.Devices[i]}
		for j, c := range cells {
			shown := shadedCell{Text: c.Text, Title: m.Devices[i] + " -> " + m.Columns[j]}
			switch n := c.number(); {
			case c.Text == ".":
				shown = shadedCell{Text: "–", Class: "self"}
			case c.Outcome.Failed():
				shown.Class = "bad"
			case c.Outcome == probe.Slow:
				shown.Class = "slow"
			case c.Text == string(probe.OK):
				shown.Class = "ok"
			case n > 0:
				shown.Class = fmt.Sprintf("heat%d", min(int(n/most*shades), shades-1))
			}
			row.Cells = append(row.Cells, shown)
		}
		rows = append(rows, row)
	}
	return rows
}

// number is what a cell begins with; 0 where that is no number. A mark stands behind it.
func (c cell) number() float64 {
	n, err := strconv.ParseFloat(strings.TrimRight(c.Text, "!?"), 64)
	if err != nil {
		return 0
	}
	return n
}

// Explained explains the numbers at the edges of a table on a page, the shades and the marks.
func (m matrix) Explained(rows []shadedRow) string {
	said := "Rows are GPUs."
	if slices.Equal(m.Devices, m.Columns) {
		said = "Rows and columns are GPUs."
	}
	if slices.ContainsFunc(rows, func(r shadedRow) bool {
		return slices.ContainsFunc(r.Cells, func(c shadedCell) bool { return strings.HasPrefix(c.Class, "heat") })
	}) {
		said += " The stronger the shade, the higher the number."
	}
	if m.Legend != "" {
		said += " " + m.Legend + "."
	}
	return said
}

// pagePolicy is the content security policy: nothing but the style and the script of the page.
var pagePolicy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'", sourceDigest(pageStyle), sourceDigest(pageScript))

// sourceDigest names a text in a policy (Content Security Policy Level 3, 2.3.1).
func sourceDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
