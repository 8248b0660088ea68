package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/ansi"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/area"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Bounds of what the text shows unless all is asked for.
const (
	defaultWidth = 100 // Columns where there is no terminal, and the most that are used on one.
	leastWidth   = 40  // Columns below which lines are left to the terminal to break.
	maxMessages  = 4   // Messages of findings that are shown as one.
	maxSubjects  = 4   // Subjects of findings that are shown as one.
	maxLow       = 6   // Findings of severity low and info.
	maxReasons   = 3   // Reasons why a verdict is not healthy.
	maxLines     = 16  // Lines of one remedy: who types half of them is worse off than before. Parts of files, and their findings.
	maxPaths     = 8   // Peer paths instead of a table that does not fit.
	largeMachine = 8   // GPUs beyond which it is not shown unless asked for.
)

// text writes a report for a person.
type text struct {
	b     *bytes.Buffer
	d     *Document
	style Style
	width int
	// shown holds the number of the finding under which a remedy was shown.
	shown map[string]int
	// explained are the terms that were explained.
	explained map[string]bool
}

// unnumbered stands for the number of a finding that has none: nothing refers
// to it.
const unnumbered = 0

// colorOf is the colour of a severity or a status.
func colorOf(s string) ansi.Color {
	switch s {
	case string(rules.Critical), string(rules.High), string(statusFail), string(area.Problem):
		return ansi.Red
	case string(rules.Medium), string(statusSlow), string(statusOpen), string(area.Unknown):
		return ansi.Yellow
	case string(rules.Low), string(area.Note):
		return ansi.Cyan
	case string(area.OK):
		return ansi.Green
	}
	return ansi.Dim
}

// newText prepares a report for a person.
func newText(b *bytes.Buffer, d *Document, s Style) *text {
	t := &text{b: b, d: d, style: s, width: s.Width, shown: map[string]int{}, explained: map[string]bool{}}
	if t.width == 0 || t.width > defaultWidth {
		t.width = defaultWidth
	}
	t.width = max(t.width, leastWidth)
	return t
}

// writeText writes a report for a person at a terminal or a log.
func writeText(b *bytes.Buffer, d *Document, s Style) {
	t := newText(b, d, s)
	if s.Quiet {
		t.quiet()
		return
	}
	t.head()
	t.areas()
	t.objects()
	if !d.textsOnly {
		t.slowStart()
		t.matrix(newPaths(d))
	}
	t.line()
	var grave, slight []rules.Finding
	for _, f := range d.Findings {
		if atLeast(f.Severity, rules.Medium) {
			grave = append(grave, f)
		} else {
			slight = append(slight, f)
		}
	}
	all := groups(grave)
	for i, g := range all {
		if i == maxLines && len(t.d.Objects) > 0 && !s.Verbose {
			t.line()
			t.wrapped("", ansi.Dim, fmt.Sprintf("and %s (--verbose, or -o report.md)", plural(len(all)-i, "more finding")))
			break
		}
		t.finding(i+1, g)
	}
	if len(grave) > 0 {
		t.line()
	}
	t.slight(slight)
	t.waived()
	if b := d.Baseline; b != nil {
		t.line()
		t.wrapped("", ansi.Bold, "Since "+t.clean(b.Source))
		for _, e := range b.Entries() {
			t.entry(e.Label, t.clean(e.Text), "")
		}
	}
	t.line()
	if s.Verbose {
		t.details()
	}
	t.closing()
}

// quiet writes one line for each finding that makes the exit code 1.
func (t *text) quiet() {
	for _, f := range t.d.Findings {
		if t.d.FailOn.reaches(worst(f)) {
			t.line(t.paint(colorOf(string(f.Severity)), string(f.Severity)), " ", t.clean(f.Rule), " ", t.clean(f.Subject), ": ", t.clean(f.Message))
		}
	}
	if t.d.Verdict.ExitCode != 0 {
		t.exit()
	}
}

// head writes the machine, and the texts that were read.
func (t *text) head() {
	name := "gpudoctor " + t.clean(t.d.Version)
	indent := utf8.RuneCountInString(name) + 3
	if indent > t.width/3 {
		indent = 6
	}
	items := make([]string, len(t.d.Host.parts))
	for i, p := range t.d.Host.parts {
		items[i] = t.clean(p)
		if i < len(items)-1 {
			items[i] += ","
		}
	}
	for i, l := range t.wrapItems(items, utf8.RuneCountInString(name)+3, indent) {
		if i == 0 {
			t.line(t.paint(ansi.Bold, name), "   ", l)
		} else {
			t.line(strings.Repeat(" ", indent), l)
		}
	}
	t.texts()
}

// transfers writes what became of the transfers.
func (t *text) transfers() {
	if t.d.textsOnly {
		return
	}
	all := newPaths(t.d)
	s, said := transfersLine(t.d, all)
	t.entry(string(s), t.clean(said), took(t.d.Timing.TotalMS))
	if parts := figures(t.d); len(parts) > 0 {
		t.items("      ", ansi.Dim, parts)
	}
	t.slowStart()
	t.matrix(all)
}

// slowStart remarks on a driver that takes long to start.
func (t *text) slowStart() {
	if said := slowStart(t.d); said != "" {
		t.entry("note", t.clean(said), "")
	}
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

// finding writes a finding of medium severity or above, or several that are
// alike: what is wrong, then what to do, then how to see that it helped.
func (t *text) finding(number int, g group) {
	t.line()
	n := fmt.Sprint(number)
	severity := string(g.Severity)
	margin := strings.Repeat(" ", len(n)+2)
	used := len(margin) + len(severity) + 2
	title := t.clean(g.Title)
	about := t.clean(g.Rule) + ", " + g.certainty()
	if len(g.findings) > 1 {
		about = fmt.Sprintf("%s x %d, %s", t.clean(g.Rule), len(g.findings), g.certainty())
	}
	indent := strings.Repeat(" ", used)
	lines := lines.Wrap(title, t.width-used)
	fits := len(lines) == 1 && used+utf8.RuneCountInString(title)+3+len(about) <= t.width
	for i, l := range lines {
		switch {
		case i > 0:
			t.line(indent, t.paint(ansi.Bold, l))
		case fits:
			t.line(t.paint(ansi.Bold, n), "  ", t.paint(colorOf(severity), severity), "  ", t.paint(ansi.Bold, l),
				strings.Repeat(" ", t.width-used-utf8.RuneCountInString(l)-len(about)), t.paint(ansi.Dim, about))
		default:
			t.line(t.paint(ansi.Bold, n), "  ", t.paint(colorOf(severity), severity), "  ", t.paint(ansi.Bold, l))
		}
	}
	if !fits {
		t.line(indent, t.paint(ansi.Dim, about))
	}
	if o := t.d.objectOf(g); o != "" {
		t.wrapped(margin, ansi.Dim, t.clean(o))
	}
	messages := g.messages()
	if len(messages) > maxMessages || !g.namesSubjects(messages) {
		t.wrapped(margin, ansi.Plain, t.some(g.subjects, maxSubjects))
	}
	for i, m := range messages {
		if i == maxMessages && !t.style.Verbose {
			t.wrapped(margin, ansi.Dim, fmt.Sprintf("and %d more (--verbose)", len(messages)-i))
			break
		}
		t.wrapped(margin, ansi.Plain, t.clean(m))
	}
	if terms := g.terms(t.explained, cureOf(g, t.d.Advice)); terms != "" {
		t.hanging(margin, "terms", ansi.Dim, t.clean(terms))
	}
	for _, c := range g.candidates() {
		t.hanging(margin, "may be", ansi.Plain, t.clean(c.Cause)+": "+inFavour(c, t.clean, t.clean))
	}
	for _, e := range g.explained() {
		said := "cause of " + t.clean(e.Rule)
		if e.Rule == g.Rule {
			said = "also: " + t.clean(e.Message)
		} else if !slices.Equal(e.subjects, []string{"host"}) {
			said += ": " + t.some(e.subjects, maxSubjects)
		}
		t.wrapped(margin, ansi.Dim, said)
	}
	if t.style.Verbose {
		t.evidence(margin, g)
	} else {
		t.quotes(margin, g)
	}
	t.cure(number, margin, g)
}

// some lists the first of several names.
func (t *text) some(names []string, most int) string {
	if t.style.Verbose {
		most = len(names)
	}
	shown := make([]string, 0, most)
	for _, n := range names[:min(most, len(names))] {
		shown = append(shown, t.clean(n))
	}
	s := strings.Join(shown, ", ")
	if rest := len(names) - len(shown); rest > 0 {
		s += fmt.Sprintf(" and %d more", rest)
	}
	return s
}

// evidence writes what led to the findings of a group.
func (t *text) evidence(margin string, g group) {
	for _, f := range g.findings {
		for _, e := range f.Evidence {
			t.hanging(margin, "seen", ansi.Dim, t.clean(e.Fact)+" = "+t.clean(valueOf(e.Value))+" ("+t.clean(e.Source)+")")
		}
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
func (t *text) slight(findings []rules.Finding) {
	all := groups(findings)
	for i, g := range all {
		if i == maxLow && !t.style.Verbose {
			t.wrapped("      ", ansi.Dim, fmt.Sprintf("and %d more: %s (--verbose)", len(all)-i, t.clean(strings.Join(topics(all[i:]), ", "))))
			break
		}
		said := g.messages()[0]
		if !t.style.Verbose {
			said = sentence(said)
		}
		if more := len(g.findings) - 1; more > 0 {
			said += fmt.Sprintf(" (and %d like it)", more)
		}
		t.entry(string(g.Severity), t.clean(said), t.clean(g.Rule))
		if !t.style.Verbose {
			t.flags("      ", g)
		}
		if t.style.Verbose {
			t.evidence("      ", g)
			t.cure(unnumbered, "      ", g)
			t.line()
		}
	}
}

// sentence is the first sentence of a text, without its full stop.
func sentence(s string) string {
	for i := range len(s) - 2 {
		if s[i] == '.' && s[i+1] == ' ' && s[i+2] >= 'A' && s[i+2] <= 'Z' {
			return s[:i]
		}
	}
	return strings.TrimSuffix(s, ".")
}

// closing writes the verdict.
func (t *text) closing() {
	d := t.d
	var said string
	code := ansi.Green
	most := maxReasons
	if t.style.Verbose {
		most = len(d.Verdict.Reasons)
	}
	switch v := &d.Verdict; {
	case v.State == Healthy && d.only > 0:
		said = t.noProblems() + " by " + plural(d.only, "rule") + ", the only ones judged (--only)."
		if d.only == 1 {
			said = t.noProblems() + " by the only rule judged (--only)."
		}
	case v.State == Healthy && d.Profile == rules.Image:
		said = t.noProblems() + " in this image."
	case v.State == Healthy:
		said = "Healthy" + d.besides() + "."
	case v.State == Findings:
		said, code = v.Tally()+".", ansi.Yellow
		if v.Counts.Critical+v.Counts.High > 0 {
			code = ansi.Red
		}
	case v.has(ReasonFailed):
		said, code = "Transfers fail: "+t.clean(v.shortly(most))+".", ansi.Red
	case v.has(ReasonUnread) && v.has(ReasonCut):
		said, code = "Nothing was recognized in what was read of the input: "+t.clean(v.text(ReasonCut))+".", ansi.Yellow
	case v.has(ReasonUnread):
		said, code = "Nothing in the input was recognized.", ansi.Plain
	case v.has(ReasonTexts) && v.has(ReasonCut):
		said, code = "No known fault found in what was read of the input: "+t.clean(v.text(ReasonCut))+".", ansi.Yellow
	case v.has(ReasonTexts):
		said, code = "No known fault found in the input"+d.besides()+".", ansi.Plain
	case v.has(ReasonNoGPU) && len(d.Findings) == 0:
		said, code = "No GPU to judge; no problems found.", ansi.Plain
	case v.has(ReasonNoGPU):
		said, code = "No GPU to judge.", ansi.Plain
	default:
		said, code = t.noProblems()+", but not proven healthy: "+t.clean(v.shortly(most))+".", ansi.Yellow
	}
	t.wrappedAfter(code, said, t.clean(t.judged(said)))
	t.wanted()
	if note := d.redactedNote(); note != "" {
		t.wrapped("", ansi.Dim, note)
	}
	if hints := t.hints(); hints != "" {
		t.wrapped("", ansi.Dim, hints)
	}
	if d.Verdict.has(ReasonNoGPU) && t.style.Example != "" {
		t.line("To see a report for a machine with GPUs: ", t.paint(ansi.Bold, "gpudoctor check --from example:"+t.style.Example))
	}
	if d.Verdict.ExitCode != 0 || len(d.Findings)+len(d.Waived) > 0 {
		t.exit()
	}
}

// exit writes the exit code and its reason.
func (t *text) exit() {
	v := t.d.Verdict
	t.wrapped("", ansi.Dim, fmt.Sprintf("exit %d: %s", v.ExitCode, t.clean(v.Reason)))
}

// noProblems says that no fault was found, or how bad the findings are at most that stand
// above.
func (t *text) noProblems() string {
	switch {
	case len(t.d.Findings)+len(t.d.Waived) == 0:
		return "No problems found"
	case len(t.d.Findings) == 0:
		return "Nothing found that is not waived"
	}
	return "Nothing worse than " + string(t.d.Findings[0].Severity) + " found" // They are in order.
}

// besides counts the findings that do not decide the verdict; empty if there are none.
func (d *Document) besides() string {
	if said := d.Verdict.Tally(); said != "" {
		return "; " + said
	}
	return ""
}

// tally counts findings in words: "1 critical, 2 low".
func tally(c Counts) string {
	var parts []string
	for i, n := range []int{c.Critical, c.High, c.Medium, c.Low, c.Info} {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, severities[i]))
		}
	}
	return strings.Join(parts, ", ")
}

// judged says how many rules could be judged, and what the others lacked, but for
// what was said of them already.
func (t *text) judged(said string) string {
	d := t.d
	s := fmt.Sprintf("%d rules passed", len(d.Passed))
	if len(d.Passed) == 1 {
		s = "1 rule passed"
	}
	if n := len(d.NotApplicable); n > 0 && (len(d.Passed) == 0 || d.Verdict.has(ReasonNoGPU) || t.style.Verbose) {
		s += fmt.Sprintf(", %d %s not apply", n, map[bool]string{true: "does", false: "do"}[n == 1])
	}
	if len(d.Skipped) == 0 {
		return s + "."
	}
	s += fmt.Sprintf(", %d could not be judged", len(d.Skipped))
	if t.style.Verbose { // They are listed above, with what they lacked.
		return s + "."
	}
	all := slices.DeleteFunc(reasons(d.Skipped), func(r reason) bool {
		return r.fault && strings.Contains(said, t.clean(r.text)) || !r.fault && !d.textsOnly // Their areas tell it.
	})
	if len(all) == 0 {
		return s + " (--verbose)."
	}
	s += ": "
	const most = 3
	for i, r := range all {
		if i == most {
			s += "; and other reasons"
			break
		}
		if i > 0 {
			s += "; "
		}
		s += r.text
		if len(all) > 1 && !r.fault {
			s += fmt.Sprintf(" (%d)", len(r.rules))
		}
	}
	return s + " (--verbose)."
}

// hints says what would make known what is not, the commonest first.
func (t *text) hints() string {
	if hint := t.d.hint(); hint != "" {
		return "For more detail: " + t.clean(hint)
	}
	return ""
}

// hint is what would make known most of what is not.
func (d *Document) hint() string {
	if len(d.Skipped) == 0 {
		return ""
	}
	counts := map[string]int{}
	var order []string
	for _, u := range d.Unknown {
		if u.Hint == "" {
			continue
		}
		if counts[u.Hint] == 0 {
			order = append(order, u.Hint)
		}
		counts[u.Hint]++
	}
	slices.SortStableFunc(order, func(a, b string) int { return counts[b] - counts[a] })
	if len(order) == 0 {
		return ""
	}
	return strings.Join(order[:min(2, len(order))], "; ")
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
