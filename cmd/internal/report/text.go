package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/area"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Bounds of what the text shows unless all is asked for.
const (
	leastBelow   = 20 // Columns of a text below a node of the picture.
	maxMessages  = 4  // Messages of findings that are shown as one.
	maxSubjects  = 4  // Subjects of findings that are shown as one.
	maxLow       = 6  // Findings of severity low and info.
	maxReasons   = 3  // Reasons why a verdict is not healthy.
	maxLines     = 16 // Lines of one remedy: who types half of them is worse off than before. Parts of files, and their findings.
	maxPaths     = 8  // Peer paths instead of a table that does not fit.
	largeMachine = 8  // GPUs beyond which it is not shown unless asked for.
)

// labelWidth is the width of the labels of a remedy and of evidence.
const labelWidth = 7

// text writes a report for a person.
type text struct {
	lines.Page
	v     *view
	style Style
	all   bool // Each remedy is told in full, and what it is called.
}

// ColorOf is the colour of a severity or a status.
func ColorOf(s string) lines.Color {
	switch s {
	case string(rules.Critical), string(rules.High), string(statusFail), string(area.Problem):
		return lines.Red
	case string(rules.Medium), string(statusSlow), string(statusOpen), string(area.Unknown):
		return lines.Yellow
	case string(rules.Low), string(area.Note):
		return lines.Cyan
	case string(area.OK):
		return lines.Green
	}
	return lines.Dim
}

// newText prepares a report for a person.
func newText(b *bytes.Buffer, v *view, s Style) *text {
	t := &text{Page: lines.NewPage(s.Width, s.Color), v: v, style: s}
	t.B = b
	return t
}

// writeText writes a report for a person at a terminal or a log.
func writeText(b *bytes.Buffer, d *Document, s Style) {
	t := newText(b, newView(d, s.ASCII), s)
	if s.Quiet {
		t.quiet()
		return
	}
	t.machine()
	t.areas()
	t.objects()
	t.story()
	if !d.textsOnly {
		t.matrix()
	}
	t.Line()
	for i := range t.v.Serious() {
		if i == maxLines && len(t.v.Objects) > 0 && !s.Verbose {
			t.Line()
			t.Wrapped("", lines.Dim, fmt.Sprintf("and %s (--verbose, or -o report.md)", lines.Count(t.v.Grave-i, "more finding")))
			break
		}
		t.finding(&t.v.Found[i])
	}
	if t.v.Grave > 0 {
		t.Line()
	}
	t.slight(t.v.Slight())
	t.waived()
	if b := t.v.Baseline; b != nil {
		t.Head("Since " + b.Source)
		for _, e := range b.Entries() {
			t.entry(e.Lead, e.Text, "")
		}
	}
	t.Line()
	if s.Verbose {
		t.details()
	}
	t.closing()
}

// quiet writes one line for each finding that makes the exit code 1.
func (t *text) quiet() {
	for _, f := range t.v.Findings {
		if t.v.FailOn.reaches(worst(f)) {
			t.Line(t.Paint(ColorOf(string(f.Severity)), string(f.Severity)), " ", f.Rule, " ", f.Subject, ": ", f.Message)
		}
	}
	if t.v.Verdict.ExitCode != 0 {
		t.exit()
	}
}

// machine writes the machine, and the texts that were read.
func (t *text) machine() {
	name := "gpudoctor " + t.v.Version + "   "
	t.Under(t.Paint(lines.Bold, name), strings.Repeat(" ", utf8.RuneCountInString(name)), lines.Plain, strings.Join(t.v.Machine, ", "))
	t.texts()
}

// story writes what became of the processes of a job.
func (t *text) story() {
	if t.v.Story == nil {
		return
	}
	t.Head(t.v.Story.Title)
	for i, p := range t.v.Story.Parts {
		if i == maxLines && !t.style.Verbose {
			t.entry("", fmt.Sprintf("and %d more (--verbose)", len(t.v.Story.Parts)-i), "")
			break
		}
		t.entry(p.Label, p.Who+": "+p.What, p.Place)
	}
}

// transfers writes what became of the transfers.
func (t *text) transfers() {
	if t.v.textsOnly {
		return
	}
	t.entry(string(t.v.Status), t.v.Said, took(t.v.Timing.TotalMS))
	t.remark("      ", lines.Dim, "", strings.Join(t.v.Figures, "; "))
	t.matrix()
}

// entry writes a status, a sentence and a remark behind it.
func (t *text) entry(label, said, remark string) {
	t.Under(t.Paint(ColorOf(label), lines.Pad(label, 6)), strings.Repeat(" ", 6), lines.Plain, said+after(behind(" (", remark), ")"))
}

// hanging writes a label and a text; further lines are aligned with the text.
func (t *text) hanging(margin, label string, c lines.Color, said string) {
	t.Under(margin+t.Paint(c, lines.Pad(label, labelWidth)), margin+strings.Repeat(" ", labelWidth), c, said)
}

// took is a time in words; empty when it was not taken.
func took(ms float64) string {
	switch {
	case ms <= 0:
		return ""
	case ms < 1:
		return "<1 ms"
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

// finding writes a finding of medium severity or above: what is wrong, then what to do, then how to see
// that it helped.
func (t *text) finding(f *finding) {
	t.Line()
	margin := strings.Repeat(" ", len(fmt.Sprint(f.Number))+2)
	t.title(margin, f)
	t.remark(margin, lines.Dim, "", f.About)
	if len(f.Messages) > maxMessages || !f.Named {
		t.Wrapped(margin, lines.Plain, t.some(f.Subjects, maxSubjects))
	}
	for i, m := range f.Messages {
		if i == maxMessages && !t.style.Verbose {
			t.Wrapped(margin, lines.Dim, fmt.Sprintf("and %d more (--verbose)", len(f.Messages)-i))
			break
		}
		t.Wrapped(margin, lines.Plain, m)
	}
	if f.Terms != "" {
		t.hanging(margin, "terms", lines.Dim, f.Terms)
	}
	t.candidates(margin, f)
	for _, e := range f.Effects {
		said := "cause of " + e.Rule
		if e.Rule == f.Rule {
			said = "also: " + e.Message
		} else if !slices.Equal(e.Subjects, []string{"host"}) {
			said += ": " + t.some(e.Subjects, maxSubjects)
		}
		t.Wrapped(margin, lines.Dim, said)
	}
	if t.style.Verbose {
		t.evidence(margin, f)
	} else {
		t.quotes(margin, f)
	}
	t.cure(margin, f)
}

// candidates writes what may lie behind a finding.
func (t *text) candidates(margin string, f *finding) {
	for _, c := range f.Candidates {
		t.hanging(margin, "may be", lines.Plain, c.Cause+": "+inFavour(c, strings.TrimSpace, strings.TrimSpace))
	}
}

// title writes what a finding is called, and which rule found it.
func (t *text) title(margin string, f *finding) {
	about := f.Rule + ", " + f.Certainty
	if n := len(f.Subjects); n > 1 {
		about = fmt.Sprintf("%s x %d, %s", f.Rule, n, f.Certainty)
	}
	severity := string(f.Severity)
	indent := margin + strings.Repeat(" ", len(severity)+2)
	t.Under(t.Paint(lines.Bold, fmt.Sprint(f.Number))+"  "+t.Paint(ColorOf(severity), severity)+"  ", indent, lines.Bold, f.Title)
	t.Line(indent, t.Paint(lines.Dim, about))
}

// some lists the first of several names.
func (t *text) some(names []string, most int) string {
	if t.style.Verbose {
		most = len(names)
	}
	return lines.First(names, most, ", ")
}

// evidence writes what led to a finding.
func (t *text) evidence(margin string, f *finding) {
	for _, e := range f.Evidence {
		t.hanging(margin, "seen", lines.Dim, e.Fact+" = "+e.Value+" ("+e.Source+")")
	}
}

// valueOf is a fact's value as JSON on one line.
func valueOf(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(b.String())
}

// slight writes the findings below medium, a line each.
func (t *text) slight(all []finding) {
	const margin = "      "
	for i := range all {
		f := &all[i]
		said := f.Messages[0]
		if i == maxLow && !t.style.Verbose {
			t.Wrapped(margin, lines.Dim, fmt.Sprintf("and %d more: %s (--verbose)", len(all)-i, strings.Join(topics(all[i:]), ", ")))
			break
		}
		if !t.style.Verbose {
			said = sentence(said)
		}
		t.entry(string(f.Severity), said+f.Like(), f.Rule)
		if !t.style.Verbose {
			t.flags(margin, f)
			continue
		}
		t.evidence(margin, f)
		t.cure(margin, f)
		t.Line()
	}
}

// Like counts the findings beside the one that is told.
func (f *finding) Like() string {
	if more := len(f.Subjects) - 1; more > 0 {
		return fmt.Sprintf(" (and %d like it)", more)
	}
	return ""
}

// topics are what findings are about, each once.
func topics(all []finding) []string {
	return lines.Unique(lines.Map(all, func(f finding) string { return f.Topic }))
}

// details writes what became of the rules, and what could not be read. Texts and what to send stand elsewhere.
func (t *text) details() {
	for _, list := range t.v.Examined() {
		if !list.Detail {
			continue
		}
		t.Head(list.Title)
		for _, row := range list.Rows {
			t.Under("  ", "    ", lines.Plain, strings.Join(row.Names, ", ")+behind(": ", row.Text))
		}
	}
	t.Line()
}

// conclusion is the verdict in a sentence.
func (t *text) conclusion() string {
	d := t.v
	if d.Verdict.State == Findings {
		return upper(d.Title) + "."
	}
	gaps := lines.First(d.Gaps, maxReasons, "; ")
	switch v := &d.Verdict; {
	case t.style.Verbose:
		gaps = strings.Join(d.Gaps, "; ")
	case v.has(ReasonFailed):
	case v.has(ReasonUnread), v.has(ReasonTexts):
		gaps = v.text(ReasonCut)
	case v.has(ReasonNoGPU):
		gaps = ""
	}
	return upper(d.state()) + behind(": ", gaps) + d.besides() + "."
}

// closing writes the verdict.
func (t *text) closing() {
	d := t.v
	said := t.conclusion()
	t.Wrapped("", cmp.Or(map[string]lines.Color{"good": lines.Green, "bad": lines.Red}[d.class()], lines.Yellow), said)
	t.Wrapped("", lines.Plain, t.judged(said))
	t.wanted()
	t.remark("", lines.Dim, "", d.RedactedNote())
	t.remark("", lines.Dim, "For more detail: ", d.hint())
	if d.Verdict.has(ReasonNoGPU) && t.style.Example != "" {
		t.Line("To see a report for a machine with GPUs: ", t.Paint(lines.Bold, "gpudoctor check --from example:"+t.style.Example))
	}
	if d.Verdict.ExitCode != 0 || len(d.Findings)+len(d.Waived) > 0 {
		t.exit()
	}
}

// exit writes the exit code and its reason.
func (t *text) exit() {
	t.Wrapped("", lines.Dim, t.v.exit())
}

// besides counts the findings that do not decide the verdict; empty if there are none.
func (d *Document) besides() string {
	if said := d.Verdict.Tally(); said != "" {
		return "; " + said
	}
	return ""
}

// judged counts the rules by what became of them, and names those that are at fault themselves, but for
// what was said of them already.
func (t *text) judged(said string) string {
	var faults []string
	for _, skipped := range t.v.Skipped {
		if text := notJudged(skipped).Text; skipped.Fault && !strings.Contains(said, text) { // What facts lack, their areas tell.
			faults = append(faults, text)
		}
	}
	more := map[bool]string{true: " (--verbose)"}[len(t.v.Skipped) > 0 && !t.style.Verbose]
	return "Rules: " + t.v.rulesInNumbers() + behind("; ", lines.First(faults, maxReasons, "; ")) + more + "."
}

// hint is what would make known most of what is not.
func (d *Document) hint() string {
	if len(d.Skipped) == 0 {
		return ""
	}
	hinted := lines.Filter(d.Unknown, func(u facts.Unknown) bool { return u.Hint != "" })
	hints := commonest(lines.Map(hinted, func(u facts.Unknown) pair { return pair{u.Fact, u.Hint} }))
	texts := lines.Map(hints, func(h alike) string { return h.Text })
	return strings.Join(texts[:min(2, len(texts))], "; ")
}

// worst is the worst severity of a finding and what it explains.
func worst(f rules.Finding) rules.Severity {
	s := f.Severity
	for _, e := range f.Explains {
		if w := worst(e); atLeast(w, s) {
			s = w
		}
	}
	return s
}
