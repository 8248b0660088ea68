// Package formattest reads, in tests, Markdown as GitHub does.
package formattest

import (
	"fmt"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// html matches the HTML that a report writes itself.
var html = lazy.New(`^(<details><summary>[A-Za-z0-9:, ]+</summary>|</details>|<!-- -->)$`)

// links matches the links that a report makes of what is not from the machine.
var links = lazy.New(`^https?://`)

// cell matches a cell as cmark-gfm counts them, with the bar at its end: a backslash takes the next character.
var cell = lazy.New(`(?:[^|\\]|\\.)*\|`)

// MarkdownFaults lists what is wrong with a report in GitHub's Markdown: HTML that it does not write itself, links,
// images, parts that are not closed, and tables whose rows differ from their head.
func MarkdownFaults(source []byte) []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	open := 0
	tag := func(s string) {
		s = strings.TrimSpace(s)
		switch {
		case !html.MatchString(s):
			fault("HTML %q", s)
		case strings.HasPrefix(s, "<details>"):
			if open++; open > 1 {
				fault("%s is inside another", s)
			}
		case s == "</details>":
			if open--; open < 0 {
				fault("</details> closes nothing")
			}
		}
	}
	rows := 0
	document := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	err := ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.RawHTML:
			tag(string(n.Segments.Value(source)))
		case *ast.HTMLBlock:
			for line := range strings.SplitSeq(strings.TrimSpace(string(n.Lines().Value(source))), "\n") {
				tag(line)
			}
			if n.HasClosure() {
				tag(string(n.ClosureLine.Value(source)))
			}
		case *ast.AutoLink:
			if !links.Get().Match(n.URL(source)) || n.Parent().Kind() == ast.KindParagraph {
				fault("a link to %s", n.URL(source))
			}
		case *ast.FencedCodeBlock:
			if l := n.Lines(); l.Len() > 0 && l.At(l.Len()-1).Stop == len(source) {
				fault("a block of code is not closed")
			}
		case *ast.Link, *ast.Image:
			fault("a link or an image of %q", n.Kind())
		case *east.TableRow, *east.TableHeader:
			rows++
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		fault("%v", err)
	}
	if open != 0 {
		fault("%d parts are not closed", open)
	}
	written, columns := 0, 0
	for line := range strings.Lines(string(source)) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "|") { // Code stands behind a margin.
			columns = 0
			continue
		}
		n := len(cell.FindAllString(line[1:], -1))
		if columns == 0 {
			columns = n
		}
		if n != columns {
			fault("a row of %d cells in a table of %d: %.100s", n, columns, line)
		}
		if strings.Trim(line, "|-: ") != "" || !strings.Contains(line, "---") {
			written++
		}
	}
	if rows != written {
		fault("%d rows of tables are written, and %d are read", written, rows)
	}
	return faults
}
