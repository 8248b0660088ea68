package report

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/remedies"
)

// markdown writes a report for a ticket.
type markdown struct {
	b *bytes.Buffer
	d *Document
}

// writeMarkdown writes a report in GitHub's Markdown
// (https://github.github.com/gfm/), which other trackers read as well.
func writeMarkdown(b *bytes.Buffer, d *Document, _ Style) {
	m := &markdown{b: b, d: d}
	m.summary()
	m.matrix()
	for i, g := range groups(d.Findings) {
		m.finding(i+1, g)
	}
	m.advice()
	m.wanted()
	m.rest()
}

// put writes a line.
func (m *markdown) put(format string, args ...any) {
	fmt.Fprintf(m.b, format+"\n", args...)
}

// summary writes the verdict and the machine.
func (m *markdown) summary() {
	d := m.d
	m.put("## gpudoctor: %s\n", inline(d.title()))
	_, said := transfersLine(d, newPaths(d))
	if d.textsOnly {
		said = ""
	}
	m.put("| | |\n| --- | --- |")
	row := func(name, value string) {
		if value != "" {
			m.put("| %s | %s |", name, inline(value))
		}
	}
	row("machine", d.Host.Summary)
	row("host", d.Host.Hostname)
	row("system", strings.Join(slices.DeleteFunc([]string{d.Host.Distribution, d.Host.Kernel, d.Host.Arch}, func(s string) bool { return s == "" }), ", "))
	row("processor", d.Host.CPU)
	row("transfers", said)
	row("measured", strings.Join(figures(d), "; "))
	row("start", slowStart(d))
	row("examined", strings.Join(d.Sources, ", "))
	row("exit", fmt.Sprintf("%d: %s", d.Verdict.ExitCode, d.Verdict.Reason))
	row("rules", fmt.Sprintf("%d passed, %d could not be judged, %d do not apply", len(d.Passed), len(d.Skipped), len(d.NotApplicable)))
	row("gpudoctor", d.Version+", profile "+string(d.Profile))
	row("redacted", d.redactedNote())
	m.put("")
	m.texts()
}

// title is the verdict in a few words.
func (d *Document) title() string {
	switch v := &d.Verdict; {
	case v.State == Healthy:
		return "healthy"
	case v.State == Findings:
		return tally(v.Counts)
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
	return "no problems found, not proven healthy"
}

// texts writes which texts were recognised as what.
func (m *markdown) texts() {
	if len(m.d.Texts) > 0 {
		m.put("| text | lines | recognised as |\n| --- | ---: | --- |")
		for _, t := range m.d.Texts {
			var kinds []string
			for _, k := range t.Kinds {
				kinds = append(kinds, fmt.Sprintf("%s (from line %d, %s)", k.Kind, k.Line, plural(k.Lines, "line")))
			}
			if t.Problem != "" {
				kinds = append(kinds, t.Problem)
			}
			if len(kinds) == 0 {
				kinds = []string{"not recognised"}
			}
			m.put("| %s | %d | %s |", cell(t.Name), t.Lines, inline(strings.Join(kinds, "; ")))
		}
		m.put("")
	}
}

// wanted writes what else to send, where nothing could be concluded.
func (m *markdown) wanted() {
	if len(m.d.Wanted) == 0 || !m.d.open() {
		return
	}
	m.put("## What would settle it\n\nThe most telling first:\n")
	for i, w := range m.d.Wanted {
		m.put("%d. %s: settles %s", i+1, inline(w.Send), m.codes(w.Settles))
	}
	m.put("")
}

// matrix writes the table of transfers, and folded those of single tests.
func (m *markdown) matrix() {
	t := newMatrix(m.d, newPaths(m.d))
	if len(t.devices) < 2 {
		return
	}
	if len(t.devices) > smallMachine {
		m.put("<details><summary>Transfers between the GPUs, %s</summary>\n", inline(t.title))
		m.table(t)
		m.put("</details>\n")
	} else {
		m.put("Transfers between the GPUs, %s:\n", inline(t.title))
		m.table(t)
	}
	tests := testMatrices(m.d, true)
	if len(tests) == 0 {
		return
	}
	m.put("<details><summary>Transfers by test: %s</summary>\n", plural(len(tests), "table"))
	for _, t := range tests {
		m.put("%s:\n", inline(t.title))
		m.table(t)
	}
	m.put("</details>\n")
}

// table writes a table with its legend.
func (m *markdown) table(t matrix) {
	head, rule := "| |", "| --- |"
	for _, h := range t.heads {
		head += " " + inline(h) + " |"
		rule += " ---: |"
	}
	m.put("%s\n%s", head, rule)
	for i, device := range t.devices {
		row := []string{inline(t.labels[i]) + " " + cell(device)}
		for j, c := range t.cells[i] {
			if badness[t.marks[i][j]] > badness["ok"] {
				c = "**" + inline(c) + "**"
			} else {
				c = inline(c)
			}
			row = append(row, c)
		}
		m.put("| %s |", strings.Join(row, " | "))
	}
	if t.legend != "" {
		m.put("\n%s", inline(t.legend))
	}
	m.put("")
}

// finding writes findings that are alike, with their evidence.
func (m *markdown) finding(number int, g group) {
	m.put("### %d. %s: %s\n", number, g.Severity, inline(g.Title))
	m.put("%s, %s; %s\n", code(g.Rule), g.Confidence, m.codes(g.subjects))
	messages := g.messages()
	for _, text := range messages {
		if len(messages) > 1 {
			m.put("- %s", inline(text))
		} else {
			m.put("%s", inline(text))
		}
	}
	m.put("")
	for _, e := range g.explained() {
		m.put("Explains %s: %s\n", code(e.Rule), m.codes(e.subjects))
	}
	for _, said := range g.withheld(m.d.Withheld) {
		m.put("Note: %s\n", inline(said))
	}
	if all := g.candidates(); len(all) > 0 {
		m.put("What may lie behind it, the likeliest first:\n")
		for i, c := range all {
			m.put("%d. `%s` (%s): %s", i+1, c.Cause, inline(c.Title), inline(inFavour(c)))
		}
		m.put("")
	}
	steps := g.steps()
	if len(steps) > 0 {
		m.put("Look at, in this order:\n")
	}
	for i, s := range steps {
		if s.Command == "" {
			m.put("%d. %s", i+1, inline(s.Look))
		} else {
			m.put("%d. %s: %s", i+1, inline(s.Look), code(s.Command))
		}
	}
	if len(steps) > 0 {
		m.put("")
	}
	rows := 0
	for _, f := range g.findings {
		for _, e := range f.Evidence {
			if rows == 0 {
				m.put("| fact | value | source |\n| --- | --- | --- |")
			}
			m.put("| %s | %s | %s |", cell(e.Fact), cell(valueOf(e.Value)), inline(e.Source))
			rows++
		}
	}
	if rows > 0 {
		m.put("")
	}
}

// codes lists names as code.
func (m *markdown) codes(names []string) string {
	shown := make([]string, len(names))
	for i, n := range names {
		shown[i] = code(n)
	}
	return strings.Join(shown, ", ")
}

// advice writes every remedy in order of rank.
func (m *markdown) advice() {
	if len(m.d.Advice) == 0 {
		return
	}
	m.put("## What to do\n")
	for i, a := range m.d.Advice {
		label := "fix"
		if a.Kind == remedies.Workaround {
			label = "now"
		}
		m.put("### %d. %s: %s\n", i+1, label, inline(a.Title))
		m.put("%s: %s. %s\n", code(a.ID()), inline(apply.Effort(a.Needs, a.Lasts)), inline(a.Description))
		var cures []string
		for _, c := range a.Cures {
			cures = append(cures, code(c.Rule)+" ("+code(c.Subject)+")")
		}
		if len(cures) > 0 {
			m.put("Cures %s. Why here: %s\n", strings.Join(cures, ", "), inline(a.Why))
		}
		if p := apply.Proof(a.Proof); p != "" {
			m.put("**%s**\n", inline(p))
		}
		if a.Cost != "" {
			m.put("Costs: %s\n", inline(a.Cost))
		}
		if a.Caution != "" {
			m.put("**Caution:** %s\n", inline(a.Caution))
		}
		primary, others := apply.Instructions(a.Apply, m.d.runs)
		for _, i := range append(primary, others...) {
			m.instruction(i)
		}
		m.told("Undo", a.Undo)
		m.told("Verify", a.Verify)
		for _, l := range a.Links {
			m.put("- %s", link(l))
		}
		if len(a.Links) > 0 {
			m.put("")
		}
	}
}

// told writes a remark; one that is a command and nothing else is fenced.
func (m *markdown) told(label, text string) {
	if text == "" {
		return
	}
	if command.MatchString(text) {
		m.put("%s:\n", label)
		m.fenced("sh", apply.Block(text))
		return
	}
	m.put("%s: %s\n", label, inline(text))
}

// command matches a remark that can be typed as it is: behind a command, prose
// begins with a comma or a semicolon, or goes on in a sentence.
var command = lazy.New(`^(unset [A-Z0-9_ ]+|gpudoctor check( --?[a-z-]+( ([A-Za-z0-9_./:=,@%+-]+|'[^']*'))?)*)$`)

// instruction writes what to type, or the steps that a person takes.
func (m *markdown) instruction(i apply.Instruction) {
	if i.Language == "" {
		for n, l := range i.Lines {
			m.put("%d. %s", n+1, inline(l))
		}
		m.put("")
		return
	}
	if i.Where != "" {
		m.put("%s:\n", i.Where)
	}
	m.fenced(i.Language, i.Lines)
}

// fenced writes lines as they are, in a fence that none of them can close.
func (m *markdown) fenced(language string, lines []string) {
	fence := "```"
	for _, l := range lines {
		for strings.Contains(l, fence) {
			fence += "`"
		}
	}
	m.put("%s%s", fence, language)
	for _, l := range lines {
		m.put("%s", Printable(l, false))
	}
	m.put("%s\n", fence)
}

// rest writes what was not judged, folded.
func (m *markdown) rest() {
	if n := len(m.d.Skipped); n > 0 {
		m.put("<details><summary>%s not be judged</summary>\n", could(n, "rule"))
		m.put("| rule | lacks |\n| --- | --- |")
		for _, s := range m.d.Skipped {
			m.put("| %s | %s |", cell(s.Rule), inline(strings.Join(s.Missing, "; ")))
		}
		m.put("\n</details>\n")
	}
	if n := len(m.d.Unknown); n > 0 {
		m.put("<details><summary>%s not be read</summary>\n", could(n, "fact"))
		m.put("| fact | reason | what would help |\n| --- | --- | --- |")
		for _, u := range m.d.Unknown {
			m.put("| %s | %s | %s |", cell(strings.TrimSuffix(u.Section+"."+u.Fact, ".")), inline(u.Reason), inline(u.Hint))
		}
		m.put("\n</details>\n")
	}
	if len(m.d.NotApplicable) > 0 {
		m.put("<details><summary>%d rules have nothing to judge here</summary>\n", len(m.d.NotApplicable))
		m.put("| rule | because |\n| --- | --- |")
		for _, id := range slices.Sorted(maps.Keys(m.d.NotApplicable)) {
			m.put("| %s | %s |", cell(id), inline(m.d.NotApplicable[id]))
		}
		m.put("\n</details>\n")
	}
	if len(m.d.Passed) > 0 {
		m.put("<details><summary>%d rules passed</summary>\n", len(m.d.Passed))
		m.put("%s\n\n</details>", m.codes(m.d.Passed))
	}
}

// could counts things that could not be had: "3 rules could".
func could(n int, thing string) string { return fmt.Sprintf("%s could", plural(n, thing)) }

// inline makes a string from the machine safe inside a line or a table cell
// of Markdown: nothing of it is taken for markup, HTML, a link or a mention.
func inline(s string) string {
	return inlineReplacer.Replace(Printable(s, false))
}

// inlineReplacer escapes the punctuation that Markdown gives a meaning inside
// a line. An empty HTML comment keeps trackers from making a link or a
// mention of what stands around it.
var inlineReplacer = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`, `~`, `\~`, `|`, `\|`, `#`, `\#`,
	`<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`, `@`, `@<!-- -->`, `://`, `:<!-- -->//`,
)

// link writes the address of a source so that it can be followed; anything
// else that stands in its place is no more than text.
func link(s string) string {
	if address.MatchString(s) {
		return "<" + s + ">"
	}
	return inline(s)
}

var address = lazy.New(`^https?://[A-Za-z0-9._~/?#=&%+:,;()-]+$`)

// cell is code for a table, whose columns a bar would end even there.
func cell(s string) string { return strings.ReplaceAll(code(s), "|", `\|`) }

// code writes a string as code on one line.
func code(s string) string {
	s = Printable(s, false)
	if s == "" {
		return ""
	}
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}
