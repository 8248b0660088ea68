package ci

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/gpudoctor/gpudoctor/rules"
)

// GitHub writes annotations of a GitHub workflow, a line each
// (https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands).
// What makes the exit code nonzero is an error.
func GitHub(b *bytes.Buffer, r *Report) {
	for _, i := range r.Issues {
		level, title := "notice", i.Title
		switch {
		case i.waived():
			title, i.Message = "Waived: "+title, i.Terms+"\n"+i.Message
		case i.Fails:
			level = "error"
		case i.Severity.Rank() <= rules.Medium.Rank():
			level = "warning"
		}
		annotate(b, level, r.shown(i.Place.inRepository()), title+" ("+i.Rule+")", i.text())
	}
	for _, w := range r.Unused {
		annotate(b, "notice", r.shown(w.Place), "gpudoctor: waiver-unused", w.Text)
	}
	for _, g := range r.Gaps {
		annotate(b, "warning", Place{}, "gpudoctor: "+g.Code, g.Text)
	}
	level := "notice"
	if r.ExitCode != 0 {
		level = "error"
	}
	annotate(b, level, Place{}, "gpudoctor", r.Conclusion)
}

// inRepository is a place as GitHub shows it, which knows the files of the repository only.
func (p Place) inRepository() Place {
	if p == (Place{File: Machine}) || strings.HasPrefix(p.File, "/") {
		return Place{}
	}
	return p
}

// annotate writes one annotation. The properties are in alphabetical order.
func annotate(b *bytes.Buffer, level string, p Place, title, text string) {
	var properties []string
	if p.File != "" {
		properties = append(properties, "file="+gitHubProperty.Replace(p.File))
	}
	if p.Line > 0 {
		properties = append(properties, fmt.Sprintf("line=%d", p.Line))
	}
	properties = append(properties, "title="+gitHubProperty.Replace(title))
	fmt.Fprintf(b, "::%s %s::%s\n", level, strings.Join(properties, ","), gitHubText.Replace(text))
}

// The escapes of the actions toolkit (packages/core/src/command.ts).
var (
	gitHubText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	gitHubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
