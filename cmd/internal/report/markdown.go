package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/area"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/gfm"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/markup"
	"github.com/gpudoctor/gpudoctor/rules"
)

// MaxMarkdown is how long a report in Markdown may be, in bytes: GitHub takes no longer text
// for an issue or a comment (https://docs.github.com/en/rest/issues/issues).
const MaxMarkdown = 65_536

// extent is how much a report in Markdown tells.
type extent struct {
	// evidence bounds the pieces of evidence of a finding, lines those of a block, and
	// listed other lists; field bounds the characters of a text from the machine.
	evidence, lines, listed, field int
	// findings bounds the findings, and details says whether the folded details follow.
	findings int
	details  bool
	// left says what is left out with regard to the first extent.
	left string
}

// extents are tried in turn until the report is short enough. The last is short enough
// whatever the report holds.
var extents = []extent{
	{evidence: 10, lines: 60, listed: 20, field: lines.MaxField, findings: 100, details: true},
	{evidence: 4, lines: 60, listed: 10, field: 400, findings: 100, details: true, left: "long evidence is shortened"},
	{evidence: 0, lines: 60, listed: 10, field: 400, findings: 100, details: true, left: "the evidence is left out"},
	{evidence: 0, lines: 40, listed: 5, field: 200, findings: 40, left: "the evidence and the details are left out"},
	{evidence: 0, lines: 16, listed: 3, field: 160, findings: 8, left: "the evidence, the details and all but the first findings are left out"},
	{evidence: 0, lines: 0, listed: 0, field: 100, findings: 0, left: "all but the summary is left out"},
}

// markdown writes a report for a ticket.
type markdown struct {
	b *bytes.Buffer
	d *Document
	extent
	// shown holds the number of the finding under which a remedy was shown.
	shown map[string]int
	// explained are the terms that were explained.
	explained map[string]bool
}

// writeMarkdown writes a report in GitHub's Markdown (https://github.github.com/gfm/),
// which other trackers read as well.
func writeMarkdown(b *bytes.Buffer, d *Document, _ Style) {
	start := b.Len()
	for _, e := range extents {
		b.Truncate(start)
		m := &markdown{b: b, d: d, extent: e, shown: map[string]int{}, explained: map[string]bool{}}
		m.write()
		if b.Len()-start <= MaxMarkdown {
			return
		}
	}
}

func (m *markdown) write() {
	all := groups(m.d.Findings)
	grave := slices.IndexFunc(all, func(g group) bool { return !atLeast(g.Severity, rules.Medium) })
	if grave < 0 {
		grave = len(all)
	}
	m.summary(all[:grave])
	m.objects()
	for i, g := range all[:min(grave, m.findings)] {
		m.finding(i+1, g)
	}
	m.slight(all[grave:])
	m.waived()
	if b := m.d.Baseline; b != nil && m.findings > 0 {
		m.put("### Since %s\n", m.inline(b.Source))
		for _, e := range b.Entries() {
			m.put("- %s: %s", e.Label, m.prose(e.Text))
		}
		m.put("")
	}
	m.wanted()
	if m.details {
		m.raw(all[grave:])
	}
}

// put writes a line.
func (m *markdown) put(format string, args ...any) {
	fmt.Fprintf(m.b, format+"\n", args...)
}

// inline makes a text from the machine safe inside a line, and short enough.
func (m *markdown) inline(s string) string { return lines.KeepUnits(gfm.Inline(m.cut(s))) }

// prose does so with sentences, in which it marks commands, variables and paths as code.
func (m *markdown) prose(s string) string {
	var b strings.Builder
	for _, span := range markup.Spans(lines.Printable(m.cut(s), false)) {
		if span.Code {
			b.WriteString(gfm.Code(span.Text))
		} else {
			b.WriteString(gfm.Inline(span.Text))
		}
	}
	return lines.KeepUnits(b.String())
}

// code makes it code on one line.
func (m *markdown) code(s string) string { return gfm.Code(m.cut(s)) }

// cut shortens a text to the characters of a field.
func (m *markdown) cut(s string) string {
	if m.field >= lines.MaxField || len(s) <= m.field {
		return s // Printable cuts it.
	}
	if runes := []rune(s); len(runes) > m.field {
		return string(runes[:m.field]) + "..."
	}
	return s
}

// summary writes five lines that say all that a reader needs who reads no further.
func (m *markdown) summary(grave []group) {
	d := m.d
	m.put("## gpudoctor: %s\n", m.inline(d.title()))
	machine := []string{d.Host.Summary}
	for _, part := range []string{d.Host.Distribution, d.Host.Kernel, d.Host.Hostname} {
		if part != "" && !strings.Contains(d.Host.Summary, part) {
			machine = append(machine, part)
		}
	}
	m.put("- **Machine:** %s", m.inline(strings.Join(machine, ", ")))
	m.put("- **Verdict:** %s", m.inline(d.verdictInWords()))
	cause, now, next := m.actions(grave)
	m.put("- **Cause:** %s", cause)
	m.put("- **Do now:** %s", now)
	m.put("- **Do next:** %s\n", next)
	if m.left != "" {
		m.put("_Shortened to fit the limit of %d characters for a ticket: %s. The JSON report (-o report.json) contains everything._\n", MaxMarkdown, m.left)
	}
}

// title is the verdict in a few words, with the findings that stand below it.
func (d *Document) title() string {
	if d.Verdict.State == Findings {
		return d.Verdict.Tally()
	}
	return d.state() + d.besides()
}

// state is a verdict without findings of medium severity or above in a few words.
func (d *Document) state() string {
	switch v := &d.Verdict; {
	case v.State == Healthy:
		return "healthy"
	case v.has(ReasonFailed):
		return "transfers fail"
	case v.has(ReasonUnread):
		return "nothing in the input was recognized"
	case v.has(ReasonTexts) && v.has(ReasonCut):
		return "no known fault found in what was read of the input"
	case v.has(ReasonTexts):
		return "no known fault found in the input"
	case v.has(ReasonNoGPU):
		return "no GPU"
	}
	if len(d.Findings) > 0 {
		return "not proven healthy"
	}
	return "no problems found, not proven healthy"
}

// verdictInWords is the verdict with what it rests on.
func (d *Document) verdictInWords() string {
	v := &d.Verdict
	said := []string{v.Tally()}
	if v.State != Findings {
		said[0] = string(v.State)
		if counts := v.Tally(); counts != "" {
			said = append(said, counts)
		}
	}
	if _, paths := transfersLine(d, newPaths(d)); !d.textsOnly && d.Transfers != nil {
		said = append(said, paths)
	}
	if v.State == Inconclusive {
		said = append(said, "not examined: "+v.shortly(maxReasons))
	}
	return strings.Join(append(said, fmt.Sprintf("exit %d (%s)", v.ExitCode, v.Reason)), "; ")
}

// actions are the cause, and what to do first and then.
func (m *markdown) actions(grave []group) (cause, now, next string) {
	d := m.d
	again := m.code(d.recheck.Command())
	if len(grave) == 0 {
		cause = "none found"
		if len(d.Waived) > 0 {
			cause = "none that is not waived"
		}
		now = "nothing"
		next = "nothing"
		switch {
		case d.textsOnly:
			now = "if the job still fails, send " + m.inline(logWish) + ", or run " + gfm.Code("gpudoctor check") + " on the machine"
		case d.Verdict.has(ReasonNoGPU):
		case d.Verdict.State == Inconclusive:
			now = "see below for what was not examined, and why"
			if hint := d.hint(); hint != "" {
				now = m.prose(hint)
			}
			next = again
		}
		if len(d.Findings) > 0 {
			next = "see the notes below"
		}
		return cause, now, next
	}
	first := grave[0]
	cause = fmt.Sprintf("%s (%s, %s)", m.inline(first.Title), m.code(first.Rule), first.certainty())
	if rest := len(grave) - 1; rest > 0 {
		cause += fmt.Sprintf("; %d more below", rest)
	}
	recheck := after(d.recheck.Fresh(), ", ") + m.code(d.recheck.Command(first.ids()...))
	if len(grave) > 1 {
		recheck += ", then continue with finding 2"
	}
	lead := cureOf(first, d.Advice).lead
	steps := first.steps()
	switch {
	case len(lead) > 1 && lead[0].label == "now":
		return cause, m.brief(lead[0]), m.brief(lead[1]) + "; then " + recheck
	case len(lead) > 1:
		return cause, m.brief(lead[0]), recheck + "; if the fix is not possible: " + m.brief(lead[1])
	case len(lead) == 1:
		return cause, m.brief(lead[0]), recheck
	case len(steps) > 0 && steps[0].Command != "":
		return cause, m.prose(steps[0].Look) + ": " + m.code(steps[0].Command), recheck
	case len(steps) > 0:
		return cause, m.prose(steps[0].Look), recheck
	case len(d.Wanted) > 0 && d.open():
		return cause, "send " + m.inline(d.Wanted[0].Send), recheck
	}
	return cause, "no remedy is known; see finding 1", recheck
}

// brief is a remedy in one line: what it is called and, where that is short, what to type.
func (m *markdown) brief(l labelledAdvice) string {
	const most = 2
	said := m.prose(l.advice.Title)
	primary, _ := apply.Instructions(l.advice.Apply, m.d.runsOf(l.advice))
	if len(primary) > 1 { // The effort is that of what lasts.
		primary = slices.DeleteFunc(primary, func(i apply.Instruction) bool { return i.Where == apply.UntilBoot })
	}
	if len(primary) > 0 && len(primary[0].Lines) <= most && (primary[0].Language == "sh" || primary[0].Language == "text") {
		where := ""
		if primary[0].Where != "" {
			where = primary[0].Where + " "
		}
		said += ": " + where + m.codes(primary[0].Lines)
	}
	return said + " (" + m.inline(apply.Effort(l.advice.Needs, l.advice.Lasts)) + ")"
}

// codes lists the first of several names as code.
func (m *markdown) codes(names []string) string {
	var shown []string
	for i, n := range names {
		if i == max(1, m.listed) {
			shown = append(shown, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		shown = append(shown, m.code(n))
	}
	return strings.Join(shown, ", ")
}

// row writes a row of a table.
func (m *markdown) row(cells ...string) { m.put("| %s |", strings.Join(cells, " | ")) }

// head writes the head of a table; the rows follow.
func (m *markdown) head(names ...string) {
	m.row(names...)
	m.put("|%s", strings.Repeat(" --- |", len(names)))
}

// fold opens a part that is folded; the summary is not from the machine.
func (m *markdown) fold(summary string) { m.put("<details><summary>%s</summary>\n", summary) }

// unfold closes it.
func (m *markdown) unfold() { m.put("\n</details>\n") }

// areasInWords counts the areas by state.
func (d *Document) areasInWords() string {
	var said []string
	for _, state := range []area.State{area.Problem, area.Note, area.Unknown, area.OK} {
		n := 0
		for _, l := range d.Areas {
			if l.State == state {
				n++
			}
		}
		if n > 0 {
			said = append(said, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(said, ", ")
}
