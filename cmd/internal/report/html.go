package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/settings"
	"github.com/gpudoctor/gpudoctor/cmd/internal/topology"
	"github.com/gpudoctor/gpudoctor/rules"
)

type page struct {
	*view
	Picture *topology.Machine // Nil where no GPU is known.
	Tree    string            // The same as text.
	Tables  []matrix          // That of the paths between the GPUs, and those of tests.
}

// pageList is names of which the same is said, the commonest first, under a title.
type pageList struct {
	Title  string
	Rows   []alike
	Open   bool // It is not folded.
	Detail bool // It is not printed, and a text has it with --verbose.
}

func (l pageList) Count() int {
	n := 0
	for _, r := range l.Rows {
		n += len(r.Names)
	}
	return n
}

func writeHTML(b *bytes.Buffer, d *Document, _ Style) {
	v := newView(d, false)
	p := page{view: v, Picture: v.picture(false)}
	if p.Picture != nil {
		p.Tree = strings.Join(newText(v, Style{}).treeLines(p.Picture), "\n") + "\n"
	}
	if p.Matrix.Several() {
		p.Tables = append([]matrix{p.Matrix}, p.Tests...)
	}
	if err := compiled().Execute(b, &p); err != nil {
		panic(fmt.Sprintf("write page: %v", err)) // The template is part of the program, and a buffer takes all.
	}
}

func (v *view) Class() string {
	switch verdict := &v.Verdict; {
	case verdict.Counts.Critical+verdict.Counts.High > 0 || verdict.has(ReasonFailed):
		return "bad"
	case verdict.State == Findings:
		return "warn"
	case verdict.State == Healthy:
		return "good"
	}
	return "open"
}

func (p *page) All() []finding { return slices.Concat(p.Found, p.Accepted) }

// First is the worst finding of medium severity or above that says what to do, with its first remedy; nil if none does.
func (p *page) First() *finding {
	for _, f := range p.Serious() {
		if len(f.Remedies) > 0 {
			r := f.Remedies[0]
			if typed := r.Typed(); len(typed) > 0 {
				r.Blocks = typed // What is said beside it stands with the finding.
			}
			f.Remedies = []remedy{r}
		}
		if len(f.Remedies)+len(f.Steps()) > 0 {
			return &f
		}
	}
	return nil
}

// Examined lists what texts were taken for, what became of the rules, and what could not be read.
func (v *view) Examined() []pageList {
	texts := lines.Map(v.Texts, func(t facts.Text) pair { return pair{t.Name, recognised(t)} })
	wanted := lines.Map(v.Wanted, func(w Wanted) pair { return pair{w.Send, "to decide " + strings.Join(w.Settles, ", ")} })
	notApplicable := lines.Map(slices.Sorted(maps.Keys(v.NotApplicable)), func(id string) pair { return pair{id, v.NotApplicable[id]} })
	set := lines.Map(v.Settings, func(s settings.Setting) pair { return pair{s.Place(), s.Key + ": " + strings.Join(s.Values, ", ")} })
	notRead := lines.Map(v.Unknown, func(u facts.Unknown) pair {
		return pair{strings.TrimSuffix(u.Section+"."+u.Fact, "."), u.Reason + lines.After(lines.Behind(" (", u.Hint), ")")}
	})
	notJudged := lines.Map(v.Skipped, func(s Skipped) pair { return pair{s.Rule, strings.Join(s.Missing, "; ")} })
	all := []pageList{
		{Title: "Texts", Rows: together(texts)},
		// Who is left without a certain verdict needs it first.
		{Title: "What to send next", Rows: together(wanted), Open: v.Open() || v.Verdict.State == Inconclusive},
		{Title: "Rules that could not be judged", Rows: commonest(notJudged), Detail: true},
		{Title: "Facts that could not be read", Rows: commonest(notRead), Detail: true},
		{Title: "Rules that do not apply", Rows: commonest(notApplicable), Detail: true},
		{Title: "Rules that passed", Rows: []alike{{Names: v.Passed}}, Detail: true},
		{Title: "Set in files", Rows: together(set), Detail: true},
	}
	return slices.DeleteFunc(all, func(l pageList) bool { return l.Count() == 0 })
}

func (v *view) rulesInNumbers() string {
	return fmt.Sprintf("%d passed, %d could not be judged, %d do not apply", len(v.Passed), len(v.Skipped), len(v.NotApplicable))
}

// About says what the report is of and how it came about.
func (v *view) About() []pair {
	all := []pair{
		{"Host", v.Host.Hostname},
		{"System", lines.Joined(", ", v.Host.Distribution, v.Host.Kernel, v.Host.Arch)},
		{"Processor", v.Host.CPU},
		{"Measured", strings.Join(v.Figures, "; ")},
		{"Examined", strings.Join(v.Sources, ", ")},
		{"Rules", v.rulesInNumbers()},
		{"Exit code", fmt.Sprintf("%d: %s", v.Verdict.ExitCode, v.Verdict.Reason)},
		{"gpudoctor", v.Version + ", profile " + string(v.Profile)},
		{"Redacted", v.RedactedNote()},
	}
	return slices.DeleteFunc(all, func(one pair) bool { return one.Text == "" })
}

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

var compiled = sync.OnceValue(func() *template.Template {
	return PageTemplate(pageText, "", pageScript, template.FuncMap{
		"shell":       func(command string) block { return block{Language: "sh", Lines: []string{command}} },
		"lines":       func(list []string) []string { return strings.SplitAfter(strings.Join(list, "\n"), "\n") },
		"words":       func(line string) []string { return breakable.FindAllString(line, -1) },
		"join":        func(list []string) string { return strings.Join(list, ", ") },
		"count":       lines.Count,
		"upper":       upper,
		"hiddenPaths": func() string { return topology.HiddenPaths },
		"spans":       spans,
		"favour":      func(c rules.Candidate) string { return inFavour(c, strings.TrimSpace, strings.TrimSpace) },
	})
})

func spans(s string) []lines.Span {
	all := lines.Spans(s)
	for i := range all {
		if !all[i].Code {
			all[i].Text = lines.KeepUnits(all[i].Text)
		}
	}
	return all
}

func (m matrix) Shade(c cell) string {
	switch {
	case c.Text == ".":
		return "self"
	case c.Outcome.Failed():
		return "bad"
	case c.Outcome == probe.Slow:
		return "slow"
	case c.Outcome == probe.OK && c.Text != "":
		return "ok"
	}
	return ""
}

// sourceDigest names a text in a policy (Content Security Policy Level 3, 2.3.1).
func sourceDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
