package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// MaxMarkdown is how long a report in Markdown may be, in bytes: GitHub takes no longer text
// for an issue or a comment (https://docs.github.com/en/rest/issues/issues).
const MaxMarkdown = 65_536

// extent bounds the pieces of evidence of a finding, the lines of a block, other lists, and the findings.
type extent struct {
	evidence, lines, listed, findings int
	Details                           bool   // The folded details follow.
	Left                              string // What is left out with regard to the first extent.
}

// extents are tried in turn until the report is short enough, which the last is in any case.
var extents = []extent{
	{evidence: 10, lines: 60, listed: 20, findings: 100, Details: true},
	{evidence: 4, lines: 60, listed: 10, findings: 100, Details: true, Left: "long evidence is shortened"},
	{lines: 60, listed: 10, findings: 100, Details: true, Left: "the evidence is left out"},
	{lines: 40, listed: 5, findings: 40, Left: "the evidence and the details are left out"},
	{lines: 16, listed: 3, findings: 8, Left: "the evidence, the details and all but the first findings are left out"},
	{Left: "all but the summary is left out"},
}

type markdown struct {
	*view
	extent
	Cause, Now, Next string      // What is wrong, and what to do first and then.
	Listed           *objectList // The parts of files.
}

//go:embed templates/report.md.tmpl
var markdownText string

// markdownTemplate is the template. Its functions are replaced by those of the extent.
var markdownTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Funcs((&markdown{}).functions()).Parse(markdownText))
})

// functions are those of the template. What is from the machine they make safe for its place, and short enough.
func (m *markdown) functions() template.FuncMap {
	return template.FuncMap{
		"inline": inline, "short": short, "prose": prose, "code": lines.Code, "codes": m.codes, "cell": lines.Cell, "item": lines.Item,
		"upper": func(s any) string { return upper(fmt.Sprint(s)) },
		"bare":  bare, "number": number,
		"maximum": func() int { return MaxMarkdown }, "join": strings.Join, "count": lines.Count, "first": firstItems, "more": moreItems,
		"listed":   func() int { return m.listed },
		"messages": func() int { return min(maxMessages, m.listed) },
		"findings": func() int { return m.findings },
		"noted":    func() int { return min(m.findings, m.listed) },
		"topics":   func(all []finding) string { return m.codes(topics(all[min(m.findings, m.listed):])) },
		"favour":   func(c rules.Candidate) string { return inFavour(c, prose, lines.Code) },
		"seen": func(f finding) []evidence { // What led to a finding, each fact once.
			if m.evidence == 0 {
				return nil
			}
			return lines.Unique(f.Evidence)
		},
		"most":   func() int { return m.evidence },
		"fenced": m.fenced, "terms": m.terms, "brief": m.brief,
	}
}

func firstItems(list any, most int) any {
	v := reflect.ValueOf(list)
	return v.Slice(0, min(v.Len(), most)).Interface()
}

// moreItems is how many items of a list firstItems leaves out.
func moreItems(list any, most int) int { return max(0, reflect.ValueOf(list).Len()-most) }

// writeMarkdown writes a report in GitHub's Markdown (https://github.github.com/gfm/).
func writeMarkdown(b *bytes.Buffer, d *Document, _ Style) {
	v := newView(d, false)
	start := b.Len()
	for _, e := range extents {
		b.Truncate(start)
		m := &markdown{view: v, extent: e}
		m.Cause, m.Now, m.Next = m.actions()
		m.Listed = v.listedObjects(false, m.listed)
		t := template.Must(markdownTemplate().Clone()).Funcs(m.functions())
		if err := t.Execute(b, m); err != nil {
			panic(fmt.Sprintf("write Markdown: %v", err)) // The template is part of the program, and a buffer takes all.
		}
		if b.Len()-start <= MaxMarkdown {
			return
		}
	}
}

// maxSummary bounds the characters of a text in the summary: escaped, one may take ten bytes, and the summary has to fit.
const maxSummary = 1000

// short is a text in the summary, safe inside a line.
func short(s string) string { return inline(lines.Cut(maxSummary, s)) }

// inline makes a text from the machine safe inside a line.
func inline(s string) string { return lines.KeepUnits(lines.Inline(s)) }

// prose does so with sentences, in which it marks commands, variables and paths as code.
func prose(s string) string {
	var b strings.Builder
	for _, span := range lines.Spans(s) {
		if span.Code {
			b.WriteString(lines.Code(span.Text))
		} else {
			b.WriteString(lines.Inline(span.Text))
		}
	}
	return lines.KeepUnits(b.String())
}

// codes lists the first of several names as code.
func (m *markdown) codes(names []string) string {
	return lines.First(lines.Map(names, lines.Code), max(1, m.listed), ", ")
}

// actions are the cause, and what to do first and then.
func (m *markdown) actions() (cause, now, next string) {
	if m.Grave == 0 {
		return m.withoutCause()
	}
	f := &m.Found[0]
	cause = fmt.Sprintf("%s (%s, %s)", short(f.Title), lines.Code(f.Rule), f.Certainty())
	recheck := lines.After(f.Fresh, ", ") + lines.Code(f.Check)
	if m.Grave > 1 {
		cause += fmt.Sprintf("; %d more below", m.Grave-1)
		recheck += ", then continue with finding 2"
	}
	switch lead := f.Remedies; {
	case len(lead) > 1 && lead[0].Label == "now":
		return cause, m.brief(&lead[0]), m.brief(&lead[1]) + "; then " + recheck
	case len(lead) > 1:
		return cause, m.brief(&lead[0]), recheck + "; if the fix is not possible: " + m.brief(&lead[1])
	case len(lead) == 1:
		return cause, m.brief(&lead[0]), recheck
	case len(f.Steps()) > 0:
		return cause, prose(lines.Cut(maxSummary, f.Steps()[0].Look)) + lines.Behind(": ", lines.Code(f.Steps()[0].Command)), recheck
	case len(m.Wanted) > 0 && m.Open():
		return cause, "send " + inline(m.Wanted[0].Send), recheck
	}
	return cause, "no remedy is known; see finding 1", recheck
}

func (m *markdown) withoutCause() (cause, now, next string) {
	cause, now, next = "none found", "nothing", "nothing"
	if len(m.Accepted) > 0 {
		cause = "none that is not waived"
	}
	switch {
	case m.in.TextsOnly:
		now = "if the job still fails, send " + inline(logWish()) + ", or run " + lines.Code("gpudoctor check") + " on the machine"
	case m.Verdict.has(ReasonNoGPU):
	case m.Verdict.State == Inconclusive:
		now, next = cmp.Or(prose(m.Hint()), "see below for what was not examined, and why"), lines.Code(m.Recheck)
	}
	if len(m.Found) > 0 {
		next = "see the notes below"
	}
	return cause, now, next
}

// brief is a remedy in one line: what it is called and, where that is short, what to type.
func (m *markdown) brief(r *remedy) string {
	said := prose(r.Title)
	if len(r.Blocks) > 0 {
		if b := r.Blocks[0]; len(b.Lines) <= 2 && (b.Language == "sh" || b.Language == "text") {
			said += ": " + lines.After(b.Where, " ") + m.codes(b.Lines)
		}
	}
	return said + " (" + inline(r.Effort) + ")"
}

// terms says what a remedy costs and risks, and what takes it back.
func (m *markdown) terms(r *remedy) string {
	var said []string
	for _, p := range []pair{{"", r.Proof}, {"Cost: ", sentence(r.Cost)}, {"**Caution:** ", r.Caution}, {"Undo: ", r.Undo}} {
		if p.Text != "" {
			said = append(said, p.Name+prose(bare(p.Text))+".")
		}
	}
	return upper(strings.Join(said, " "))
}

// fenced writes a block as it is, in a fence that none of its lines can close.
func (m *markdown) fenced(b block) string {
	const margin = "  "
	shown := b.Lines[:min(len(b.Lines), m.lines)]
	fence := "```"
	for _, l := range shown {
		for strings.Contains(l, fence) {
			fence += "`"
		}
	}
	all := slices.Concat([]string{fence + b.Language}, shown, []string{fence})
	if rest := len(b.Lines) - len(shown); rest > 0 {
		all = append(all, fmt.Sprintf("and %s that need no change (in the JSON report)", lines.Count(rest, "more line")))
	}
	return margin + strings.Join(all, "\n"+margin)
}

func recognised(t facts.Text) string {
	kinds := lines.Map(t.Kinds, func(k facts.TextKind) string {
		return fmt.Sprintf("%s (from line %d, %s)", k.Kind, k.Line, lines.Count(k.Lines, "line"))
	})
	return cmp.Or(lines.Joined("; ", append(kinds, t.Problem)...), "not recognized")
}
