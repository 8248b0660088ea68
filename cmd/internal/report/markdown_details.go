package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/area"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/gfm"
	"github.com/gpudoctor/gpudoctor/rules"
)

// wanted writes what else to send, where nothing could be concluded.
func (m *markdown) wanted() {
	if len(m.d.Wanted) == 0 || !m.d.open() || m.listed == 0 {
		return
	}
	m.put("### What to send next\n")
	for i, w := range m.d.Wanted[:min(maxWanted, len(m.d.Wanted))] {
		m.put("%d. %s", i+1, gfm.Item(m.prose(w.Send)))
	}
	m.put("")
}

// raw writes the details, folded.
func (m *markdown) raw(slight []group) {
	m.areas()
	m.transfers()
	m.texts()
	if len(slight) > 0 && m.evidence > 0 {
		m.evidenceOf("Evidence for the notes", slight)
	}
	m.otherAdvice()
	m.rules()
	m.provenance()
}

// areas writes a table of the areas that apply.
func (m *markdown) areas() {
	if len(m.d.Areas) == 0 {
		return
	}
	m.fold("Areas: " + m.d.areasInWords())
	m.head("part", "state", "")
	var others []string
	for _, l := range m.d.Areas {
		switch {
		case l.State == area.NotApplicable:
		case l.State == area.Unknown && m.d.textsOnly:
			others = append(others, nameOf(l.Name))
		default:
			m.row(nameOf(l.Name), string(l.State), m.inline(l.Summary))
		}
	}
	if len(others) > 0 {
		m.row(inWords(others), string(area.Unknown), "the input says too little")
	}
	m.unfold()
}

// transfers writes the table of transfers, and those of tests in which something is wrong.
func (m *markdown) transfers() {
	t := newMatrix(m.d, newPaths(m.d))
	if len(t.devices) < 2 {
		return
	}
	m.fold("Transfers between the GPUs")
	if parts := figures(m.d); len(parts) > 0 {
		m.put("%s\n", m.inline(strings.Join(parts, "; ")))
	}
	m.table(t)
	for _, t := range testMatrices(m.d, true) {
		if slices.ContainsFunc(t.marks, func(row []probe.Outcome) bool {
			return slices.ContainsFunc(row, func(o probe.Outcome) bool { return badness[o] > badness[probe.OK] })
		}) {
			m.table(t)
		}
	}
	m.put("</details>\n")
}

// matrix writes the table of transfers, and folded those of single tests.
func (m *markdown) matrix() {
	t := newMatrix(m.d, newPaths(m.d))
	if len(t.devices) < 2 {
		return
	}
	m.table(t)
	tests := testMatrices(m.d, true)
	if len(tests) == 0 {
		return
	}
	m.fold("Transfers by test: " + plural(len(tests), "table"))
	for _, t := range tests {
		m.table(t)
	}
	m.put("</details>\n")
}

// table writes a table with its title and its legend.
func (m *markdown) table(t matrix) {
	m.put("%s:\n", m.inline(t.title))
	head, rule := "| |", "| --- |"
	for _, h := range t.heads {
		head += " " + m.inline(h) + " |"
		rule += " ---: |"
	}
	m.put("%s\n%s", head, rule)
	for i, device := range t.devices {
		row := []string{m.inline(t.labels[i]) + " " + gfm.Cell(m.cut(device))}
		for j, c := range t.cells[i] {
			if c = m.inline(c); badness[t.marks[i][j]] > badness["ok"] {
				c = "**" + c + "**"
			}
			row = append(row, c)
		}
		m.row(row...)
	}
	if t.legend != "" {
		m.put("\n%s", m.inline(t.legend))
	}
	m.put("")
}

// texts writes which texts were recognised as what.
func (m *markdown) texts() {
	if len(m.d.Texts) == 0 {
		return
	}
	m.fold("Input: " + plural(len(m.d.Texts), "text"))
	m.head("text", "lines", "recognized as")
	for i, t := range m.d.Texts {
		if i == m.listed {
			m.row(fmt.Sprintf("and %d more", len(m.d.Texts)-i), "", "")
			break
		}
		m.row(gfm.Cell(m.cut(t.Name)), fmt.Sprint(t.Lines), m.inline(recognised(t)))
	}
	m.unfold()
}

// recognised says what a text was taken for.
func recognised(t facts.Text) string {
	var kinds []string
	for _, k := range t.Kinds {
		kinds = append(kinds, fmt.Sprintf("%s (from line %d, %s)", k.Kind, k.Line, plural(k.Lines, "line")))
	}
	if t.Problem != "" {
		kinds = append(kinds, t.Problem)
	}
	if len(kinds) == 0 {
		return "not recognized"
	}
	return strings.Join(kinds, "; ")
}

// otherAdvice lists the remedies that lead for no finding, by rank.
func (m *markdown) otherAdvice() {
	told := map[string]bool{}
	for _, g := range groups(m.d.Findings) {
		lead := cureOf(g, m.d.Advice).lead
		if !atLeast(g.Severity, rules.Medium) {
			lead = lead[:min(1, len(lead))]
		}
		for _, l := range lead {
			if !atLeast(g.Severity, rules.Medium) && g.keeps(l.advice, m.d.Withheld) {
				continue
			}
			told[l.advice.ID()+"\x00"+valueOf(l.advice.Apply)] = true
		}
	}
	var others []string
	for _, a := range m.d.Advice {
		if told[a.ID()+"\x00"+valueOf(a.Apply)] {
			continue
		}
		said := fmt.Sprintf("- %s: %s (%s)", m.code(a.ID()), m.prose(a.Title), m.inline(apply.Effort(a.Needs, a.Lasts)))
		if p := apply.Proof(a.Proof); p != "" {
			said += "; " + m.inline(p)
		}
		others = append(others, said)
	}
	if len(others) == 0 {
		return
	}
	m.fold(fmt.Sprintf("Other remedies: %d", len(others)))
	m.put("%s", strings.Join(others, "\n"))
	m.unfold()
}

// rules writes what became of the rules, those with one reason together.
func (m *markdown) rules() {
	d := m.d
	faults, lacks := map[string][]string{}, map[string][]string{}
	for _, s := range d.Skipped {
		why, by := strings.Join(s.Missing, "; "), lacks
		if s.Fault {
			by = faults
		}
		by[why] = append(by[why], s.Rule)
	}
	m.reasons("Rules that failed", "rule", faults)
	m.reasons("Rules that were not judged", "rule", lacks)
	unread := map[string][]string{}
	for _, u := range d.Unknown {
		why := u.Reason
		if u.Hint != "" {
			why += " (" + u.Hint + ")"
		}
		unread[why] = append(unread[why], strings.TrimSuffix(u.Section+"."+u.Fact, "."))
	}
	m.reasons("Facts that were not read", "fact", unread)
}

// maxOther bounds the reasons of one kind that are reported: JSON has all.
const maxOther = 12

// reasons folds a table of names by their reason, the commonest first.
func (m *markdown) reasons(summary, thing string, names map[string][]string) {
	if len(names) == 0 {
		return
	}
	m.fold(summary)
	m.head(thing, "reason")
	order := slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		if n := len(names[b]) - len(names[a]); n != 0 {
			return n
		}
		return strings.Compare(names[a][0]+a, names[b][0]+b)
	})
	for i, why := range order {
		if i == maxOther {
			m.row(fmt.Sprintf("and %d other reasons", len(order)-i), "")
			break
		}
		var cells []string
		for _, name := range names[why] {
			cells = append(cells, gfm.Cell(m.cut(name)))
		}
		m.row(strings.Join(cells, ", "), m.inline(why))
	}
	m.unfold()
}

// provenance writes what the report is of and how it was made.
func (m *markdown) provenance() {
	d := m.d
	m.fold("This report")
	m.head("", "")
	row := func(name, value string) {
		if value != "" {
			m.row(name, m.inline(value))
		}
	}
	row("examined", strings.Join(d.Sources, ", "))
	row("system", strings.Join(slices.DeleteFunc([]string{d.Host.Distribution, d.Host.Kernel, d.Host.Arch, d.Host.CPU}, func(s string) bool { return s == "" }), ", "))
	row("start", slowStart(d))
	if len(d.Passed) > 0 {
		m.row("passed", m.codes(d.Passed))
	}
	row("rules", fmt.Sprintf("%d passed, %d could not be judged, %d do not apply", len(d.Passed), len(d.Skipped), len(d.NotApplicable)))
	row("gpudoctor", d.Version+", profile "+string(d.Profile))
	row("redacted", d.redactedNote())
	m.unfold()
}
