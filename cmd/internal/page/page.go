// Package page writes a report as one HTML file that loads nothing: text, pictures,
// style and script are in it, and a content security policy allows no other. What
// stands in a report was read from machines and texts of others, so that every value
// goes through html/template, which escapes it for its place.
package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/markup"
	"github.com/gpudoctor/gpudoctor/cmd/internal/topology"
)

// Report is what a page shows.
type Report struct {
	// Verdict is the report in a few words, State the class of its colour: "bad",
	// "warn", "good" or "open".
	Verdict, State string
	// Machine is the machine in short.
	Machine []string
	// Transfers says what became of the transfers, in one sentence.
	Transfers string
	// First is what to do first; nil where nothing is wrong.
	First *First
	// Picture is the machine as a picture; nil where no GPU is known. Tree is the same
	// as text.
	Picture *topology.Machine
	Tree    string
	// Since is what became of the findings of an earlier report, whose name is Baseline.
	Since    []string
	Baseline string
	// Notes belong to the picture.
	Notes    []string
	Findings []Finding
	Matrices []Matrix
	// Examined are lists of what was read, and of what could not be judged or read.
	Examined []List
	// Facts is everything that was read.
	Facts []Section
	// About is how the report came about.
	About []Pair
	// Redacted says what was replaced in the file.
	Redacted string
}

// First is what to do first.
type First struct {
	// Finding is the number of the finding that it is for.
	Finding int
	Title   string
	Remedy  *Remedy
	Steps   []Step
}

// Finding is what is wrong, and what to do about it.
type Finding struct {
	Number                            int
	Severity, Title, Rule, Confidence string
	Messages, Subjects                []string
	// Explains are its consequences, Notes what else is to be said.
	Explains   []Pair
	Notes      []string
	Candidates []Pair
	Steps      []Step
	Remedies   []Remedy
	// Others are further remedies by their ids, Check the command that shows whether
	// the finding is gone, Fresh what that command needs first: "with new evidence".
	Others   []string
	Check    string
	Fresh    string
	Evidence []Evidence
}

// Step is something to look at, with the command that shows it.
type Step struct{ Look, Command string }

// Remedy is what helps.
type Remedy struct {
	// Label is "now", "fix" or "or".
	Label, Title, ID string
	// Same is the number of the finding that shows the remedy already; then nothing
	// but Label and Title is given.
	Same                                                         int
	Effort, Proof, Cost, Caution, Description, Why, Undo, Verify string
	// Blocks are what to type or to do; More says the same for other places.
	Blocks, More []Block
	Links        []string
}

// Block is lines to copy, or steps for a person.
type Block struct {
	Where string
	// Effort is what this block takes, where others of the remedy take something else.
	Effort string
	Text   string
	Steps  []string
}

// Evidence is one fact that led to a finding.
type Evidence struct{ Fact, Value, Source string }

// Pair is a name and what is said of it.
type Pair struct{ Name, Text string }

// List is pairs under a title.
type List struct {
	Title string
	Pairs []Pair
	// Open is true for a list that is not folded, OnScreen for one that is not printed.
	Open, OnScreen bool
}

// Matrix is a table of numbers for pairs of devices.
type Matrix struct {
	Title, Legend string
	// Heads are the columns, Rows the devices.
	Heads []string
	Rows  []MatrixRow
	// Folded is true for a table that is shown when it is opened.
	Folded bool
}

// MatrixRow is a device with its numbers.
type MatrixRow struct {
	Name, Address string
	Cells         []Cell
}

// Cell is a number or a mark. Class is "bad", "slow", "self", "ok", or what Shade gives it.
type Cell struct{ Text, Class, Title string }

// shades is how many shades the style sheet has: heat0 to heat4.
const shades = 5

// Shade gives the cells without a class the shade of their share of the greatest
// number.
func (m *Matrix) Shade() {
	most := 0.0
	for _, r := range m.Rows {
		for _, c := range r.Cells {
			most = max(most, c.number())
		}
	}
	for _, r := range m.Rows {
		for i := range r.Cells {
			c := &r.Cells[i]
			if n := c.number(); c.Class == "" && n > 0 {
				c.Class = fmt.Sprintf("heat%d", min(int(n/most*shades), shades-1))
			}
		}
	}
}

// number is what a cell begins with; 0 where that is no number. A mark stands behind it.
func (c Cell) number() float64 {
	n, err := strconv.ParseFloat(strings.TrimRight(c.Text, "!?"), 64)
	if err != nil {
		return 0
	}
	return n
}

// Section is a part of the facts.
type Section struct {
	Name string
	Rows []Fact
}

// Fact is one thing that was read, with its fields.
type Fact struct {
	Path   string
	Fields []Pair
}

//go:embed page.css
var style string

//go:embed page.js
var script string

//go:embed page.html
var text string

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

// compiled is the template.
var compiled = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"csp":      func() string { return policy },
		"style":    func() template.CSS { return template.CSS(style) },
		"script":   func() template.JS { return template.JS(script) },
		"pictures": pictures,
		"radius":   func() int { return topology.BadgeRadius },
		"shell":    func(command string) Block { return Block{Text: command} },
		"lines":    func(text string) []string { return strings.SplitAfter(text, "\n") },
		"words":    func(line string) []string { return strings.Split(line, " ") },
		"parts":    parts,
		"count":    count,
		"spans":    spans,
	}).Parse(text))
})

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

// count counts a thing: "1 line", "12 lines".
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// policy is the content security policy: nothing but the style and the script of this
// file.
var policy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'", digest(style), digest(script))

// digest names a text in a policy (Content Security Policy Level 3, 2.3.1).
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Write writes a report.
func Write(w io.Writer, r *Report) error { return compiled().Execute(w, r) }
