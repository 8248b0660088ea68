package report

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/sethvargo/go-githubactions"

	"github.com/gpudoctor/gpudoctor/rules"
)

// writeGitHub writes annotations of a GitHub workflow, a line each
// (https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands).
// What makes the exit code nonzero is an error.
func writeGitHub(b *bytes.Buffer, r *ciReport) {
	for _, i := range r.issues {
		level, title := "notice", i.Title
		switch {
		case i.waived():
			title, i.Message = "Waived: "+title, i.Terms+"\n"+i.Message
		case i.fails:
			level = "error"
		case i.Severity.Rank() <= rules.Medium.Rank():
			level = "warning"
		}
		annotate(b, level, r.inRepository(i.place), title+" ("+i.Rule+")", i.text())
	}
	for at, w := range r.UnusedWaivers {
		annotate(b, "notice", place{w.File, w.Line}, "gpudoctor: waiver-unused", r.Unused[at])
	}
	for _, g := range r.gaps {
		annotate(b, "warning", place{}, "gpudoctor: "+string(g.Code), g.Text)
	}
	level := "notice"
	if r.Verdict.ExitCode != 0 {
		level = "error"
	}
	annotate(b, level, place{}, "gpudoctor", r.conclusion())
}

// inRepository is a place as GitHub shows it, which knows the files of the repository only.
func (r *ciReport) inRepository(p place) place {
	if p == (place{file: noFile}) || strings.HasPrefix(p.file, "/") {
		return place{}
	}
	return place{p.shown(), p.line}
}

func annotate(b *bytes.Buffer, level string, p place, title, text string) {
	c := githubactions.Command{Name: level, Message: text, Properties: githubactions.CommandProperties{"title": title}}
	if p.file != "" {
		c.Properties["file"] = p.file
	}
	if p.line > 0 {
		c.Properties["line"] = strconv.Itoa(p.line)
	}
	b.WriteString(c.String() + "\n")
}
