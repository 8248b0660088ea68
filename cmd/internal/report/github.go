package report

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// writeGitHub writes annotations of a GitHub workflow, a line each
// (https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands).
// What makes the exit code nonzero is an error.
func writeGitHub(b *bytes.Buffer, d *Document, s Style) {
	for _, i := range d.issues(s) {
		level, title := "notice", i.title
		switch {
		case i.isWaived():
			title, i.message = "Waived: "+title, i.terms+"\n"+i.message
		case i.fails:
			level = "error"
		case atLeast(i.severity, rules.Medium):
			level = "warning"
		}
		annotate(b, level, d.gitHubPlace(i.place, s), title+" ("+i.rule+")", i.text())
	}
	for _, w := range d.UnusedWaivers {
		annotate(b, "notice", place{lines.Printable(w.File, s.ASCII), w.Line}, "gpudoctor: waiver-unused", lines.Printable(unused(w), s.ASCII))
	}
	for _, g := range d.notExamined(s) {
		annotate(b, "warning", place{}, "gpudoctor: "+string(g.Code), g.Text)
	}
	level := "notice"
	if d.Verdict.ExitCode != 0 {
		level = "error"
	}
	annotate(b, level, place{}, "gpudoctor", d.conclusion(s))
}

// gitHubPlace is a place as GitHub shows it, which knows the files of the repository only.
func (d *Document) gitHubPlace(p place, s Style) place {
	if p == (place{file: machine}) || strings.HasPrefix(p.file, "/") {
		return place{}
	}
	return place{lines.Printable(p.file, s.ASCII), p.line}
}

// annotate writes one annotation. The properties are in alphabetical order.
func annotate(b *bytes.Buffer, level string, p place, title, text string) {
	var properties []string
	if p.file != "" {
		properties = append(properties, "file="+gitHubProperty.Replace(p.file))
	}
	if p.line > 0 {
		properties = append(properties, fmt.Sprintf("line=%d", p.line))
	}
	properties = append(properties, "title="+gitHubProperty.Replace(title))
	fmt.Fprintf(b, "::%s %s::%s\n", level, strings.Join(properties, ","), gitHubText.Replace(text))
}

// The escapes of the actions toolkit (packages/core/src/command.ts).
var (
	gitHubText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	gitHubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
