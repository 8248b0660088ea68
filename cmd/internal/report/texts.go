package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Wanted is a text that would decide what could not be judged.
type Wanted struct {
	Section string   `json:"section"` // The section of the facts that the text provides.
	Send    string   `json:"send"`    // What to send, with the command that produces it.
	Settles []string `json:"settles"` // The rules that could be judged with the text, most severe first.
}

// wish is a text to ask for. wishes.yaml has those of each section.
type wish struct {
	Send  string
	Kinds []string
}

//go:embed wishes.yaml
var wishesYAML []byte

var wishes = lines.FromYAML[map[string]wish](wishesYAML)

func logWish() string { return wishes()["logs"].Send }

func (d *Document) sent(w wish) bool {
	return slices.ContainsFunc(d.Texts, func(t facts.Text) bool {
		return slices.ContainsFunc(t.Kinds, func(k facts.TextKind) bool { return slices.Contains(w.Kinds, k.Kind) })
	})
}

// weights say how much a rule that could be judged is worth, by severity.
var weights = map[rules.Severity]int{rules.Critical: 8, rules.High: 4, rules.Medium: 2, rules.Low: 1}

const jobFailed = "job-failed"

// wanted lists the texts that would decide the rules that could not be judged, most useful first.
func (d *Document) wanted() []Wanted {
	severity := map[string]rules.Severity{}
	for _, r := range d.in.Rules {
		severity[r.ID] = r.Severity
	}
	worth := func(id string) int { return weights[severity[id]] }
	value, all := map[string]int{}, map[string]*Wanted{}
	for _, s := range d.Skipped {
		for _, lack := range s.Lacks {
			section := lack.Section()
			asked, ok := wishes()[section]
			if !ok || d.sent(asked) {
				continue
			}
			all[asked.Send] = cmp.Or(all[asked.Send], &Wanted{Section: section, Send: asked.Send})
			if w := all[asked.Send]; !slices.Contains(w.Settles, s.Rule) {
				w.Settles = append(w.Settles, s.Rule)
				value[asked.Send] += worth(s.Rule)
			}
		}
	}
	for _, w := range all {
		slices.SortFunc(w.Settles, func(a, b string) int { return cmp.Or(worth(b)-worth(a), cmp.Compare(a, b)) })
	}
	if failed := slices.ContainsFunc(d.Findings, func(f rules.Finding) bool { return f.Rule == jobFailed }); failed {
		delete(all, logWish()) // The log of the communication library says most about a failed job.
		if logs := d.in.Facts.Logs; logs == nil || len(logs.Communicators) == 0 {
			all[logWish()], value[logWish()] = &Wanted{Section: "logs", Send: logWish(), Settles: []string{jobFailed}}, 1000
		}
	}
	return lines.Map(slices.SortedFunc(maps.Values(all), func(a, b *Wanted) int {
		return cmp.Or(value[b.Send]-value[a.Send], cmp.Compare(a.Section, b.Section))
	}), func(w *Wanted) Wanted { return *w })
}

// Open reports whether something is wrong and no finding names its cause with some certainty.
func (d *Document) Open() bool {
	return d.in.TextsOnly && d.Verdict.State == Findings && !slices.ContainsFunc(d.Findings, func(f rules.Finding) bool {
		return atLeast(f.Severity, rules.Medium) && f.Confidence != rules.Possible
	})
}

// quotes are the lines of texts that led to findings, each once.
func (d *Document) quotes(findings []rules.Finding) []rules.Evidence {
	var all []rules.Evidence
	for _, f := range findings {
		for _, e := range f.Evidence {
			name, _ := splitLine(e.Source)
			if !d.isText(name) {
				continue
			}
			// Of one line the first fact is enough; a whole text may tell several.
			if !slices.ContainsFunc(all, func(o rules.Evidence) bool { return o.Source == e.Source && (name != e.Source || o.Fact == e.Fact) }) {
				all = append(all, e)
			}
		}
	}
	return all
}

func (d *Document) isText(name string) bool {
	return slices.ContainsFunc(d.Texts, func(t facts.Text) bool { return t.Name == name })
}

// quoted is a line of a text: where it stands, and what it says, or the fact that was read there.
func quoted(e evidence) string {
	if e.Text != e.Value && (strings.HasPrefix(e.Fact, "logs.") || strings.HasPrefix(e.Fact, "kernel_log.")) {
		return e.Source + "  " + e.Text
	}
	return e.Source + "  " + e.Fact + " = " + e.Value
}

// textsLine says which texts were recognized as what; others lists those that were not, the unread first.
func (d *Document) textsLine() (recognised, others []string) {
	var unread []string
	for _, t := range d.Texts {
		kinds := lines.Map(t.Kinds, func(k facts.TextKind) string { return k.Kind })
		if len(kinds) > 1 {
			kinds = lines.Filter(kinds, func(k string) bool { return k != "messages" })
		}
		if len(kinds) > 0 {
			recognised = append(recognised, fmt.Sprintf("%s (%s)", t.Name, strings.Join(kinds, ", ")))
		}
		switch said := t.Name + " (" + cmp.Or(t.Problem, "not recognized") + ")"; {
		case t.Unread != "":
			unread = append(unread, said)
		case len(kinds) == 0 || t.Problem != "":
			others = append(others, said)
		}
		if n := len(t.Past); n > 0 {
			others = append(others, fmt.Sprintf("%s (%s of past trouble, as %s shows)", t.Name, lines.Count(n, "line"), t.Past[0].Shown))
		}
	}
	return recognised, append(unread, others...)
}
