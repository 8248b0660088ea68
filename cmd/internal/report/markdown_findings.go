package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/gfm"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// finding writes findings that are alike: what is wrong, what to do, and folded what was
// seen.
func (m *markdown) finding(number int, g group) {
	m.put("### %d. %s: %s\n", number, upper(string(g.Severity)), m.inline(g.Title))
	about := fmt.Sprintf("%s, %s", m.code(g.Rule), g.certainty())
	if o := m.d.objectOf(g); o != "" {
		about = m.code(o) + ": " + about
	}
	messages := g.messages()
	if !g.namesSubjects(messages) || len(messages) > m.listed {
		about += ": " + m.codes(g.subjects)
	}
	if len(messages) == 1 {
		m.put("%s. %s", about, m.prose(messages[0]))
	} else {
		m.put("%s.\n", about)
		for i, text := range messages {
			if i == min(maxMessages, m.listed) {
				m.put("- and %d more", len(messages)-i)
				break
			}
			m.put("- %s", gfm.Item(m.prose(text)))
		}
	}
	var explained []string
	for _, e := range g.explained() {
		if e.Rule != g.Rule {
			explained = append(explained, e.Rule)
		} else if number != unnumbered {
			m.put("\nAlso: %s", m.prose(e.Message))
		}
	}
	if len(explained) > 0 {
		m.put("\nCause of %s.", m.codes(explained))
	}
	if terms := g.terms(m.explained, cureOf(g, m.d.Advice)); terms != "" {
		m.put("\nTerms: %s.", m.inline(terms))
	}
	m.put("")
	m.candidates(g)
	m.steps(g)
	m.cure(number, g)
	m.evidenceOf("Evidence", []group{g})
}

// candidates lists what may lie behind a finding.
func (m *markdown) candidates(g group) {
	all := g.candidates()
	if len(all) == 0 {
		return
	}
	m.put("Possible causes, most likely first:\n")
	for i, c := range all[:min(len(all), m.listed)] {
		m.put("%d. %s (%s): %s", i+1, m.code(c.Cause), m.inline(c.Title), inFavour(c, m.prose, m.code))
	}
	m.put("")
}

// steps lists what to look at.
func (m *markdown) steps(g group) {
	all := g.steps()
	if len(all) == 0 {
		return
	}
	m.put("Check, in this order:\n")
	for i, s := range all[:min(len(all), m.listed)] {
		if s.Command == "" {
			m.put("%d. %s", i+1, gfm.Item(m.prose(s.Look)))
		} else {
			m.put("%d. %s: %s", i+1, gfm.Item(m.prose(s.Look)), m.code(s.Command))
		}
	}
	m.put("")
}

// cure writes what to do about a finding, in order of rank.
func (m *markdown) cure(number int, g group) {
	lead := cureOf(g, m.d.Advice).lead
	withheld := g.withheld(m.d.Withheld)
	for _, said := range withheld[:min(len(withheld), m.listed)] {
		m.put("- **Note:** %s", m.prose(said))
	}
	for _, l := range lead {
		m.advice(number, l)
	}
	if len(lead) > 0 {
		m.put("- **Check:** %s%s", after(m.d.recheck.Fresh(), ": "), m.code(m.d.recheck.Command(g.ids()...)))
	}
	if len(lead)+len(withheld) > 0 {
		m.put("")
	}
}

// advice writes a remedy: what to type, what it takes and costs, and how to take it back.
func (m *markdown) advice(number int, l labelledAdvice) {
	a := l.advice
	label := upper(l.label)
	key := a.ID() + "\x00" + valueOf(a.Apply)
	if at := m.shown[key]; at != unnumbered {
		m.put("- **%s:** %s, as under %d", label, m.prose(a.Title), at)
		return
	}
	m.shown[key] = number
	primary, _ := apply.Instructions(a.Apply, m.d.runsOf(a))
	if len(primary) > 1 { // Beside what can be typed, the steps are remarks.
		primary = slices.DeleteFunc(primary, func(i apply.Instruction) bool { return i.Where == apply.ByHand })
	}
	efforts := apply.Efforts(primary, a.Needs, a.Lasts)
	effort := func(i int) string {
		if efforts == nil || efforts[i] == "" {
			return ""
		}
		return " (" + efforts[i] + ")"
	}
	said, steps := []string{m.prose(a.Title)}, ""
	var blocks []int // Of primary.
	for at, i := range primary {
		where := ""
		if i.Where != "" {
			where = i.Where + " "
		}
		switch {
		case i.Language == "":
			steps = "  By hand: " + m.prose(strings.Join(i.Lines, " "))
		case len(i.Lines) == 1:
			said = append(said, ": "+where+m.code(i.Lines[0])+effort(at))
		default:
			blocks = append(blocks, at)
		}
	}
	whole := ""
	if efforts == nil {
		whole = " (" + apply.Effort(a.Needs, a.Lasts) + ")"
	}
	m.put("- **%s:** %s%s", label, strings.TrimSuffix(strings.Join(said, ""), "."), whole)
	if steps != "" {
		m.put("%s", steps)
	}
	for _, at := range blocks {
		i := primary[at]
		if i.Where != "" {
			m.put("  %s%s:", i.Where, effort(at))
		}
		m.fenced("  ", i.Language, i.Lines)
	}
	if terms := m.terms(a); terms != "" {
		m.put("  %s", terms)
	}
}

// terms says what a remedy costs and risks, and what takes it back.
func (m *markdown) terms(a *remedies.Advice) string {
	var said []string
	for _, part := range []struct{ label, text string }{
		{"", apply.Proof(a.Proof)}, {"Cost: ", sentence(a.Cost)}, {"**Caution:** ", a.Caution}, {"Undo: ", a.Undo},
	} {
		switch {
		case part.text == "":
		case gfm.Command.MatchString(part.text):
			said = append(said, part.label+m.code(part.text)+".")
		default:
			said = append(said, part.label+upper(m.prose(strings.TrimSuffix(part.text, ".")))+".")
		}
	}
	return strings.Join(said, " ")
}

// upper begins a sentence.
func upper(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// slight lists the findings below medium severity.
func (m *markdown) slight(all []group) {
	if len(all) == 0 || m.findings == 0 {
		return
	}
	m.put("### Also noted\n")
	for i, g := range all {
		if i == min(m.findings, m.listed) {
			m.put("- and %d more: %s", len(all)-i, m.codes(topics(all[i:])))
			break
		}
		said := fmt.Sprintf("- %s, %s: %s", upper(string(g.Severity)), m.code(g.Rule), m.prose(strings.TrimSuffix(g.messages()[0], ".")))
		if more := len(g.findings) - 1; more > 0 {
			said += fmt.Sprintf(" (and %d like it)", more)
		}
		if withheld := g.withheld(m.d.Withheld); len(withheld) > 0 {
			said += ". Note: " + m.prose(withheld[0])
		}
		if lead := cureOf(g, m.d.Advice).lead; len(lead) > 0 && !g.keeps(lead[0].advice, m.d.Withheld) {
			said += ". " + upper(lead[0].label) + ": " + m.brief(lead[0])
		}
		m.put("%s", said)
	}
	m.put("")
}

// evidenceOf folds what led to findings.
func (m *markdown) evidenceOf(what string, all []group) {
	var seen []rules.Evidence
	told := map[[3]string]bool{}
	for _, g := range all {
		for _, f := range g.findings {
			for _, e := range f.Evidence {
				if key := [3]string{e.Fact, e.Source, valueOf(e.Value)}; !told[key] {
					told[key] = true
					seen = append(seen, e)
				}
			}
		}
	}
	if len(seen) == 0 || m.evidence == 0 {
		return
	}
	m.fold(what + ": " + plural(len(seen), "fact"))
	m.head("fact", "value", "source")
	for i, e := range seen {
		if i == m.evidence {
			m.row(fmt.Sprintf("and %d more in the JSON report", len(seen)-i), "", "")
			break
		}
		m.row(gfm.Cell(m.cut(e.Fact)), gfm.Cell(m.cut(valueOf(e.Value))), m.inline(e.Source))
	}
	m.unfold()
}

// fenced writes lines as they are, in a fence that none of them can close, behind a margin.
func (m *markdown) fenced(margin, language string, block []string) {
	shown := block[:min(len(block), m.lines)]
	fence := "```"
	for _, l := range shown {
		for strings.Contains(l, fence) {
			fence += "`"
		}
	}
	m.put("%s%s%s", margin, fence, language)
	for _, l := range shown {
		m.put("%s%s", margin, lines.Printable(m.cut(l), false))
	}
	m.put("%s%s", margin, fence)
	if rest := len(block) - len(shown); rest > 0 {
		m.put("%sand %s that need no change (in the JSON report)", margin, plural(rest, "more line"))
	}
}
