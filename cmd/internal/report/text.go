package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Bounds of what the text shows unless all is asked for.
const (
	defaultWidth = 100 // Columns where there is no terminal, and the most that are used on one.
	leastWidth   = 40  // Columns below which lines are left to the terminal to break.
	maxMessages  = 4   // Messages of findings that are shown as one.
	maxSubjects  = 4   // Subjects of findings that are shown as one.
	maxLow       = 6   // Findings of severity low and info.
	maxLines     = 6   // Lines of one remedy.
	maxPaths     = 8   // Peer paths in place of a table that does not fit.
	smallMachine = 4   // GPUs up to which the table of transfers is always shown.
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
}

// color is a terminal's code for one (ECMA-48, select graphic rendition).
type color string

const (
	plain  color = ""
	bold   color = "1"
	dim    color = "2"
	red    color = "1;31"
	green  color = "32"
	yellow color = "33"
	cyan   color = "36"
)

// colorOf is the colour of a severity or a status.
func colorOf(s string) color {
	switch s {
	case string(rules.Critical), string(rules.High), string(statusFail):
		return red
	case string(rules.Medium), string(statusSlow), string(statusOpen):
		return yellow
	case string(rules.Low):
		return cyan
	case string(statusOK):
		return green
	}
	return dim
}

// newText prepares a report for a person.
func newText(b *bytes.Buffer, d *Document, s Style) *text {
	t := &text{b: b, d: d, style: s, width: s.Width, shown: map[string]int{}}
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
	var grave, slight []rules.Finding
	for _, f := range d.Findings {
		if atLeast(f.Severity, rules.Medium) {
			grave = append(grave, f)
		} else {
			slight = append(slight, f)
		}
	}
	for i, g := range groups(grave) {
		t.finding(i+1, g)
	}
	if len(grave) > 0 {
		t.line()
	}
	t.slight(slight)
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

// head writes the machine and what became of the transfers.
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
			t.line(t.paint(bold, name), "   ", l)
		} else {
			t.line(strings.Repeat(" ", indent), l)
		}
	}
	all := newPaths(t.d)
	s, said := transfersLine(t.d, all)
	t.entry(string(s), said, took(t.d.Timing.TotalMS))
	if parts := figures(t.d); len(parts) > 0 {
		t.wrapped("      ", dim, strings.Join(parts, "; "))
	}
	t.matrix(all)
}

// took is a time in words; empty when it was not taken.
func took(ms float64) string {
	switch {
	case ms <= 0:
		return ""
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", max(ms, 1))
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

// matrix writes the table of transfers where it says more than the line above
// it.
func (t *text) matrix(all paths) {
	odd := slices.ContainsFunc(all, func(p path) bool { return p.outcome != all[0].outcome || badness[p.outcome] > badness[probe.OK] })
	m := newMatrix(t.d, all)
	n := len(m.devices)
	if n < 2 || !t.style.Verbose && !odd && n > smallMachine || !odd && all[0].outcome != probe.OK {
		return
	}
	t.line()
	if n > largeMachine && !t.style.Verbose || !t.table(m) {
		t.folded(all)
	}
	if t.style.Verbose {
		var tests []string
		for _, tr := range t.d.Transfers.Transfers {
			if slices.Contains(reaching[1:], tr.Test) && !slices.Contains(tests, tr.Test) {
				tests = append(tests, tr.Test)
			}
		}
		for _, test := range tests {
			if m := newTestMatrix(t.d, test); len(m.devices) > 1 && m.measured() {
				t.line()
				t.table(m)
			}
		}
	}
	if len(t.d.Findings) > 0 {
		t.line()
	}
}

// measured reports whether a table holds more than outcomes.
func (m *matrix) measured() bool {
	return slices.ContainsFunc(m.cells, func(row []string) bool {
		return slices.ContainsFunc(row, func(c string) bool { return c != "." && c != "?" && c != "ok" })
	})
}

// table writes a table, and reports whether it fits.
func (t *text) table(m matrix) bool {
	devices := m.devices
	if m.width() > t.width-6 {
		// The domain is the same for all GPUs of most machines.
		m.devices = slices.Clone(m.devices)
		for i, d := range m.devices {
			m.devices[i] = strings.TrimPrefix(d, "0000:")
		}
	}
	if m.width() > t.width-6 {
		return false
	}
	head, column := m.head(), m.column()
	t.line("      ", t.paint(dim, m.title))
	var row strings.Builder
	for _, l := range m.labels {
		row.WriteString(pad(l, -column))
	}
	t.line("      ", t.paint(dim, strings.Repeat(" ", head)+row.String()))
	for i := range devices {
		row.Reset()
		for j, c := range m.cells[i] {
			code := plain
			switch o := m.marks[i][j]; {
			case i == j || badness[o] < badness[probe.OK]:
				code = dim
			case badness[o] > badness[probe.Slow]:
				code = red
			case o == probe.Slow:
				code = yellow
			}
			row.WriteString(strings.Repeat(" ", column-len(c)) + t.paint(code, c))
		}
		t.line("      ", t.paint(dim, pad(m.labels[i]+"  "+t.clean(m.devices[i]), head)), row.String())
	}
	if m.legend != "" {
		t.wrapped("      ", dim, m.legend)
	}
	return true
}

// folded lists the paths that are not well, in place of a table.
func (t *text) folded(all paths) {
	var odd paths
	for _, p := range all {
		if p.outcome != probe.OK {
			odd = append(odd, p)
		}
	}
	slices.SortStableFunc(odd, func(a, b path) int { return badness[b.outcome] - badness[a.outcome] })
	for i, p := range odd {
		if i == maxPaths && !t.style.Verbose {
			t.wrapped("      ", dim, fmt.Sprintf("and %d more (--verbose)", len(odd)-i))
			break
		}
		said := string(p.outcome)
		if p.decided != nil {
			if p.decided.Test != probe.TestCopy {
				said += " (" + p.decided.Test + ")"
			}
			if v := speed([]*probe.Transfer{p.decided}); v != "" {
				said += ", " + v
			}
		}
		t.wrapped("      ", plain, p.String()+": "+said)
	}
	if len(odd) == 0 {
		t.wrapped("      ", dim, "all paths alike; their rates are in -o report.json")
	}
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
	about := t.clean(g.Rule) + ", " + string(g.Confidence)
	if len(g.findings) > 1 {
		about = fmt.Sprintf("%s x %d, %s", t.clean(g.Rule), len(g.findings), g.Confidence)
	}
	indent := strings.Repeat(" ", used)
	lines := Wrap(title, t.width-used)
	fits := len(lines) == 1 && used+utf8.RuneCountInString(title)+3+len(about) <= t.width
	for i, l := range lines {
		switch {
		case i > 0:
			t.line(indent, t.paint(bold, l))
		case fits:
			t.line(t.paint(bold, n), "  ", t.paint(colorOf(severity), severity), "  ", t.paint(bold, l),
				strings.Repeat(" ", t.width-used-utf8.RuneCountInString(l)-len(about)), t.paint(dim, about))
		default:
			t.line(t.paint(bold, n), "  ", t.paint(colorOf(severity), severity), "  ", t.paint(bold, l))
		}
	}
	if !fits {
		t.line(indent, t.paint(dim, about))
	}
	messages := g.messages()
	if len(messages) > maxMessages || !g.namesSubjects(messages) {
		t.wrapped(margin, plain, t.some(g.subjects, maxSubjects))
	}
	for i, m := range messages {
		if i == maxMessages && !t.style.Verbose {
			t.wrapped(margin, dim, fmt.Sprintf("and %d more (--verbose)", len(messages)-i))
			break
		}
		t.wrapped(margin, plain, t.clean(m))
	}
	for _, e := range g.explained() {
		said := "explains " + t.clean(e.Rule)
		if !slices.Equal(e.subjects, []string{"host"}) {
			said += ": " + t.some(e.subjects, maxSubjects)
		}
		t.wrapped(margin, dim, said)
	}
	if t.style.Verbose {
		t.evidence(margin, g)
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
			t.wrapped(margin, dim, "seen   "+t.clean(e.Fact)+" = "+t.clean(valueOf(e.Value))+"  ("+t.clean(e.Source)+")")
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

// cure writes what to do: the quickest workaround, the lasting fix, and how to
// see that it helped.
func (t *text) cure(number int, margin string, g group) {
	c := cureOf(g, t.d.Advice)
	if c.now == nil && c.fix == nil {
		return
	}
	t.line()
	t.advice(number, margin, "now", c.now)
	t.advice(number, margin, "fix", c.fix)
	if t.style.Verbose || c.now == nil {
		t.advice(number, margin, "or", c.or)
	} else if c.or != nil {
		t.labelled(margin, "or", c.or.Title+" ("+Effort(c.or.Needs, c.or.Lasts)+"): gpudoctor explain "+c.or.Remedy)
	}
	if len(c.others) > 0 && t.style.Verbose {
		t.labelled(margin, "more", strings.Join(c.others, ", "))
	}
	t.line(margin, t.paint(dim, pad("check", 7)), "gpudoctor check --only ", t.clean(strings.Join(g.ids(), ",")))
}

// advice writes one remedy: what to type, what it takes and what it costs.
func (t *text) advice(number int, margin, label string, a *remedies.Advice) {
	if a == nil {
		return
	}
	key := a.Remedy + "\x00" + valueOf(a.Apply)
	if at := t.shown[key]; at != 0 {
		t.labelled(margin, label, fmt.Sprintf("%s, as under %d", a.Title, at))
		return
	}
	t.shown[key] = number
	primary, others := instructions(a.Apply)
	if t.style.Verbose {
		primary = append(primary, others...)
	} else if len(primary) > 1 {
		// Beside what can be typed, the steps are remarks.
		primary = slices.DeleteFunc(primary, func(i instruction) bool { return i.where == byHand })
	}
	lead := t.paint(green, pad(label, 7))
	n, hidden := 0, 0
	for _, i := range primary {
		where := ""
		if i.where != "" {
			where = i.where + ": "
		}
		for _, l := range i.lines {
			if n >= maxLines && !t.style.Verbose {
				hidden++
				continue
			}
			t.step(margin, lead, where+t.clean(l), i.where == byHand)
			lead, where = strings.Repeat(" ", 7), strings.Repeat(" ", len(where))
			n++
		}
	}
	if n == 0 {
		t.step(margin, lead, t.clean(a.Title), true)
	}
	inner := margin + strings.Repeat(" ", 7)
	if hidden > 0 {
		t.wrapped(inner, dim, fmt.Sprintf("and %d more lines (--verbose)", hidden))
	}
	about := Effort(a.Needs, a.Lasts)
	t.wrapped(inner, dim, t.clean(about))
	if p := proof(a.Proof); p != "" {
		t.wrapped(inner, green, t.clean(p))
	}
	if a.Cost != "" && t.style.Verbose {
		t.wrapped(inner, dim, "costs: "+t.clean(a.Cost))
	}
	if a.Caution != "" {
		caution := a.Caution
		if !t.style.Verbose {
			caution = sentence(caution)
		}
		t.wrapped(inner, yellow, "caution: "+t.clean(caution))
	}
	if t.style.Verbose {
		t.wrapped(inner, dim, "why here: "+t.clean(a.Why))
		t.wrapped(inner, dim, "undo: "+t.clean(a.Undo))
		t.wrapped(inner, dim, "verify: "+t.clean(a.Verify))
	}
}

// step writes one line of a remedy. What is to be typed is never broken.
func (t *text) step(margin, lead, line string, prose bool) {
	if !prose {
		t.line(margin, lead, line)
		return
	}
	for i, l := range Wrap(line, t.width-len(margin)-7) {
		if i > 0 {
			lead = strings.Repeat(" ", 7)
		}
		t.line(margin, lead, l)
	}
}

// labelled writes a sentence behind a label of a remedy.
func (t *text) labelled(margin, label, said string) {
	t.step(margin, t.paint(green, pad(label, 7)), t.clean(said), true)
}

// slight writes the findings below medium, a line each.
func (t *text) slight(findings []rules.Finding) {
	all := groups(findings)
	for i, g := range all {
		if i == maxLow && !t.style.Verbose {
			t.wrapped("      ", dim, fmt.Sprintf("and %d more (--verbose)", len(all)-i))
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
		if t.style.Verbose {
			t.evidence("      ", g)
			t.cure(-1, "      ", g)
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

// details writes what was not judged and why.
func (t *text) details() {
	if len(t.d.Skipped) > 0 {
		t.line()
		t.line(t.paint(bold, "Could not be judged"))
		for _, s := range t.d.Skipped {
			t.listed(s.Rule, strings.Join(s.Missing, "; "))
		}
	}
	if len(t.d.Unknown) > 0 {
		t.line()
		t.line(t.paint(bold, "Not known"))
		for _, u := range t.d.Unknown {
			said := u.Reason
			if u.Hint != "" {
				said += " (" + u.Hint + ")"
			}
			t.listed(strings.TrimSuffix(u.Section+"."+u.Fact, "."), said)
		}
	}
	if len(t.d.NotApplicable) > 0 {
		t.line()
		t.line(t.paint(bold, "Nothing to judge here"))
		for _, id := range slices.Sorted(maps.Keys(t.d.NotApplicable)) {
			t.listed(id, t.d.NotApplicable[id])
		}
	}
	if len(t.d.Passed) > 0 {
		t.line()
		t.line(t.paint(bold, "Passed"))
		t.wrapped("  ", plain, t.clean(strings.Join(t.d.Passed, ", ")))
	}
	if len(t.d.Timing.ChecksMS) > 0 {
		t.line()
		t.line(t.paint(bold, "Time"))
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(t.d.Timing.ChecksMS)) {
			parts = append(parts, name+" "+took(t.d.Timing.ChecksMS[name]))
		}
		parts = append(parts, "rules "+took(t.d.Timing.RulesMS), "remedies "+took(t.d.Timing.RemediesMS))
		t.wrapped("  ", plain, t.clean(strings.Join(parts, ", ")))
	}
	t.line()
}

// listed writes a name and what is said of it.
func (t *text) listed(name, said string) {
	const indent = 28
	name = t.clean(name)
	lines := Wrap(t.clean(said), t.width-indent)
	if utf8.RuneCountInString(name) > indent-4 {
		t.line("  ", name)
		name = ""
	}
	for _, l := range lines {
		t.line("  ", pad(name, indent-2), l)
		name = ""
	}
}

// closing writes the verdict.
func (t *text) closing() {
	d := t.d
	var said string
	code := green
	switch d.Verdict.State {
	case Healthy:
		said = "Healthy."
		if d.Profile == rules.Image {
			said = "No fault found in this image."
		}
	case NoGPU:
		said, code = "No GPU to judge.", plain
		if len(d.Findings) == 0 {
			said = "No GPU to judge; no fault found around it."
		}
	case Unproven:
		said, code = "No fault found, but not proven healthy: "+t.clean(strings.Join(d.Verdict.Missing, "; "))+".", yellow
	default:
		said, code = tally(d.Verdict.Counts)+".", yellow
		if d.Verdict.Counts.Critical+d.Verdict.Counts.High > 0 {
			code = red
		}
	}
	t.wrappedAfter(code, said, t.clean(t.judged()))
	if hints := t.hints(); hints != "" {
		t.wrapped("", dim, hints)
	}
	if d.Verdict.State == NoGPU && t.style.Example != "" {
		t.line("See a recorded machine with GPUs: ", t.paint(bold, "gpudoctor check --from example:"+t.style.Example))
	}
	if d.Verdict.ExitCode != 0 || len(d.Findings) > 0 {
		t.exit()
	}
}

// exit writes the exit code and its reason.
func (t *text) exit() {
	v := t.d.Verdict
	t.wrapped("", dim, fmt.Sprintf("exit %d: %s", v.ExitCode, t.clean(v.Reason)))
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

// judged says how many rules could be judged, and what the others lacked.
func (t *text) judged() string {
	d := t.d
	s := fmt.Sprintf("%d rules passed", len(d.Passed))
	if len(d.Passed) == 1 {
		s = "1 rule passed"
	}
	if n := len(d.NotApplicable); n > 0 && (len(d.Passed) == 0 || d.Verdict.State == NoGPU || t.style.Verbose) {
		s += fmt.Sprintf(", %d do not apply", n)
	}
	if len(d.Skipped) == 0 {
		return s + "."
	}
	s += fmt.Sprintf(", %d could not be judged: ", len(d.Skipped))
	all := reasons(d.Skipped)
	const most = 3
	for i, r := range all {
		if i == most && !t.style.Verbose {
			s += "; and other reasons"
			break
		}
		if i > 0 {
			s += "; "
		}
		s += r.text
		if len(all) > 1 {
			s += fmt.Sprintf(" (%d)", len(r.rules))
		}
	}
	if !t.style.Verbose {
		return s + " (--verbose)."
	}
	return s + "."
}

// hints says what would make known what is not, the commonest first.
func (t *text) hints() string {
	if len(t.d.Skipped) == 0 {
		return ""
	}
	counts := map[string]int{}
	var order []string
	for _, u := range t.d.Unknown {
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
	return "to know more: " + t.clean(strings.Join(order[:min(2, len(order))], "; "))
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

// clean makes a string from the machine safe to print.
func (t *text) clean(s string) string { return Printable(s, t.style.ASCII) }

// paint adds a colour.
func (t *text) paint(c color, s string) string {
	if !t.style.Color || c == plain || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// line writes one line.
func (t *text) line(parts ...string) {
	l := strings.TrimRight(strings.Join(parts, ""), " ")
	if l == "" && bytes.HasSuffix(t.b.Bytes(), []byte("\n\n")) {
		return // One empty line parts two blocks, whoever asks for it.
	}
	t.b.WriteString(l)
	t.b.WriteByte('\n')
}

// entry writes a status, a sentence and a remark: at the right edge if there
// is room, else behind the sentence.
func (t *text) entry(label, said, right string) {
	lines := Wrap(said, t.width-6)
	last := len(lines) - 1
	gap := t.width - 6 - utf8.RuneCountInString(lines[last]) - utf8.RuneCountInString(right)
	if right != "" && gap < 3 {
		lines, right = Wrap(said+" ("+right+")", t.width-6), ""
		last = len(lines) - 1
	}
	for i, l := range lines {
		lead := strings.Repeat(" ", 6)
		if i == 0 {
			lead = t.paint(colorOf(label), pad(label, 6))
		}
		if i == last && right != "" {
			l += strings.Repeat(" ", gap) + t.paint(dim, right)
		}
		t.line(lead, l)
	}
}

// wrapped writes a text in lines behind a margin.
func (t *text) wrapped(margin string, c color, said string) {
	for _, l := range Wrap(said, t.width-len(margin)) {
		t.line(margin, t.paint(c, l))
	}
}

// wrappedAfter writes two texts one behind the other, the first in a colour.
func (t *text) wrappedAfter(c color, first, second string) {
	words := len(strings.Fields(first))
	for _, l := range Wrap(first+" "+second, t.width) {
		fields := strings.Fields(l)
		n := min(words, len(fields))
		words -= n
		head, tail := strings.Join(fields[:n], " "), strings.Join(fields[n:], " ")
		if head != "" && tail != "" {
			tail = " " + tail
		}
		t.line(t.paint(c, head), tail)
	}
}

// wrapItems fills lines with items, each unbroken, the first line beginning
// at column first and the others at column rest.
func (t *text) wrapItems(items []string, first, rest int) []string {
	var lines []string
	line, room := "", t.width-first
	for _, item := range items {
		n := utf8.RuneCountInString(item)
		switch {
		case line == "":
			line = item
		case utf8.RuneCountInString(line)+1+n <= room:
			line += " " + item
		default:
			lines = append(lines, line)
			line, room = item, t.width-rest
		}
	}
	return append(lines, line)
}

// Wrap breaks a text at its blanks into lines of at most width characters. A
// word that is longer stands alone, unbroken.
func Wrap(s string, width int) []string {
	var lines []string
	line, used := "", 0
	for word := range strings.FieldsSeq(s) {
		n := utf8.RuneCountInString(word)
		switch {
		case used == 0:
			line, used = word, n
		case used+1+n <= width:
			line += " " + word
			used += 1 + n
		default:
			lines = append(lines, line)
			line, used = word, n
		}
	}
	return append(lines, line)
}

// pad fills a string up to a width with blanks, on its left if the width is
// negative.
func pad(s string, width int) string {
	if width < 0 {
		return strings.Repeat(" ", max(0, -width-utf8.RuneCountInString(s))) + s
	}
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
