package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// group is findings of one rule that are alike: a person reads them as one.
type group struct {
	rules.Finding
	subjects []string
	findings []rules.Finding
}

// groups gathers findings by rule, title, severity and confidence, in order.
func groups(findings []rules.Finding) []group {
	var all []group
	for _, f := range findings {
		i := slices.IndexFunc(all, func(g group) bool {
			return g.Rule == f.Rule && g.Title == f.Title && g.Severity == f.Severity && g.Confidence == f.Confidence
		})
		if i < 0 {
			all = append(all, group{Finding: f})
			i = len(all) - 1
		}
		all[i].findings = append(all[i].findings, f)
		all[i].subjects = append(all[i].subjects, f.Subject)
	}
	return all
}

// messages are what the findings say, each message once, with the subject
// before it where several findings say different things.
func (g group) messages() []string {
	var all []string
	for _, f := range g.findings {
		if !slices.Contains(all, f.Message) {
			all = append(all, f.Message)
		}
	}
	if len(all) < 2 {
		return all
	}
	all = nil
	for _, f := range g.findings {
		message := f.Message
		if !strings.Contains(message, f.Subject) {
			message = f.Subject + ": " + message
		}
		all = append(all, message)
	}
	return all
}

// namesSubjects reports whether the messages name every subject, each address
// of a pair or a list by itself. That it is about the host goes without
// saying.
func (g group) namesSubjects(messages []string) bool {
	all := strings.Join(messages, "\n")
	for _, subject := range g.subjects {
		for name := range strings.SplitSeq(strings.ReplaceAll(subject, " -> ", ", "), ", ") {
			if name != "host" && !strings.Contains(all, name) {
				return false
			}
		}
	}
	return true
}

// explained are the consequences, those that are alike as one.
func (g group) explained() []group {
	var all []rules.Finding
	for _, f := range g.findings {
		for _, e := range f.Explains {
			same := func(o rules.Finding) bool { return o.Rule == e.Rule && o.Subject == e.Subject }
			if !slices.ContainsFunc(all, same) {
				all = append(all, e)
			}
		}
	}
	return groups(all)
}

// steps are what the findings want looked at, each once.
func (g group) steps() []rules.Step {
	var all []rules.Step
	for _, f := range g.findings {
		for _, s := range f.Steps {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// ids are the rules of the group and of what it explains.
func (g group) ids() []string {
	ids := []string{g.Rule}
	for _, e := range g.explained() {
		if !slices.Contains(ids, e.Rule) {
			ids = append(ids, e.Rule)
		}
	}
	return ids
}

// cure is what a person is told to do about a group: the quickest workaround
// and the lasting fix, in their places of the ranking.
type cure struct {
	now, fix *remedies.Advice
	// fixFirst is true where the fix ranks before the workaround.
	fixFirst bool
	// or is a second fix; others are what else would help.
	or     *remedies.Advice
	others []string
}

// cureOf chooses from the advice what cures a group.
func cureOf(g group, advice []remedies.Advice) cure {
	var c cure
	for _, f := range g.findings {
		now, fix := remedies.Pair(advice, f)
		c.now, c.fix = cmp.Or(c.now, now), cmp.Or(c.fix, fix)
	}
	c.fixFirst = c.now != nil && c.fix != nil && place(advice, c.fix) < place(advice, c.now)
	for i := range advice {
		a := &advice[i]
		switch {
		case a == c.now || a == c.fix || !slices.ContainsFunc(a.Cures, g.has):
		case a.Kind == remedies.Fix && c.or == nil && c.fix != nil:
			c.or = a
		default:
			c.others = append(c.others, a.ID())
		}
	}
	return c
}

// place is the rank of one of the advice.
func place(advice []remedies.Advice, a *remedies.Advice) int {
	for i := range advice {
		if &advice[i] == a {
			return i
		}
	}
	return -1
}

// has reports whether a cure is of one of the group's findings.
func (g group) has(c remedies.Cure) bool {
	return slices.ContainsFunc(g.findings, func(f rules.Finding) bool { return f.Rule == c.Rule && f.Subject == c.Subject })
}

// reasons groups rules that could not be judged by what they lacked, the
// commonest first.
func reasons(skipped []Skipped) []reason {
	var all []reason
	for _, s := range skipped {
		text := reasonOf(s)
		i := slices.IndexFunc(all, func(r reason) bool { return r.text == text })
		if i < 0 {
			all = append(all, reason{text: text})
			i = len(all) - 1
		}
		all[i].rules = append(all[i].rules, s.Rule)
	}
	slices.SortStableFunc(all, func(a, b reason) int { return len(b.rules) - len(a.rules) })
	return all
}

// reason is what several rules lacked.
type reason struct {
	text  string
	rules []string
}

// reasonOf is why a rule could not be judged, in the fewest words that tell it.
func reasonOf(s Skipped) string {
	if len(s.Lacks) == 0 {
		return "no reason given"
	}
	return s.Lacks[0].Short()
}
