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

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// A page is one HTML file that loads nothing: text, pictures, style and script are in it, and a content
// security policy allows no other. What stands in a report was read from machines and texts of others, so
// that every value goes through html/template, which escapes it for its place.

//go:embed templates/page.css
var pageStyle string

//go:embed templates/page.js
var pageScript string

//go:embed templates/head.html
var headText string

//go:embed templates/page.html
var pageText string

// PageTemplate is the template of a page: what its head loads, with a style beyond that of all pages, and what the functions
// are called that the text has besides.
func PageTemplate(text, style, script string, functions template.FuncMap) *template.Template {
	style = pageStyle + style
	policy := fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'", sourceDigest(style), sourceDigest(script))
	head := template.New("page").Funcs(functions).Funcs(template.FuncMap{
		"csp":    func() string { return policy },
		"style":  func() template.CSS { return template.CSS(style) },
		"script": func() template.JS { return template.JS(script) },
	})
	return template.Must(template.Must(head.Parse(headText)).Parse(text))
}

// breakable is a piece of a command, behind which a line may break.
var breakable = lazy.New(`[^ ,;]*[ ,;]*`)

// compiled is the template of a report.
var compiled = sync.OnceValue(func() *template.Template {
	return PageTemplate(pageText, "", pageScript, template.FuncMap{
		"shell":  func(command string) block { return block{Language: "sh", Lines: []string{command}} },
		"lines":  func(list []string) []string { return strings.SplitAfter(strings.Join(list, "\n"), "\n") },
		"words":  func(line string) []string { return breakable.FindAllString(line, -1) },
		"join":   func(list []string) string { return strings.Join(list, ", ") },
		"count":  lines.Count,
		"spans":  spans,
		"favour": func(c rules.Candidate) string { return inFavour(c, strings.TrimSpace, strings.TrimSpace) },
	})
})

// spans are the pieces of a sentence, in which a number stays with its unit.
func spans(s string) []lines.Span {
	all := lines.Spans(s)
	for i := range all {
		if !all[i].Code {
			all[i].Text = lines.KeepUnits(all[i].Text)
		}
	}
	return all
}

// shades is how many shades the style sheet has: heat0 to heat4.
const shades = 5

// Shade is the class of a cell on a page. A number that is well has the shade of its share of the greatest.
func (m matrix) Shade(c cell) string {
	switch n := c.number(); {
	case c.Text == ".":
		return "self"
	case c.Outcome.Failed():
		return "bad"
	case c.Outcome == probe.Slow:
		return "slow"
	case c.Text == string(probe.OK):
		return "ok"
	case n > 0:
		most := n
		m.any(func(o cell) bool { most = max(most, o.number()); return false })
		return fmt.Sprintf("heat%d", min(int(n/most*shades), shades-1))
	}
	return ""
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
func (m matrix) Explained() string {
	said := "Rows are GPUs."
	if slices.Equal(m.Devices, m.Columns) {
		said = "Rows and columns are GPUs."
	}
	if m.any(func(c cell) bool { return strings.HasPrefix(m.Shade(c), "heat") }) {
		said += " The stronger the shade, the higher the number."
	}
	if m.Legend != "" {
		said += " " + m.Legend + "."
	}
	return said
}

// sourceDigest names a text in a policy (Content Security Policy Level 3, 2.3.1).
func sourceDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
