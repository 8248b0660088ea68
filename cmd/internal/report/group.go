package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/topology"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// group is findings of one rule that are alike: a person reads them as one.
type group struct {
	rules.Finding
	subjects []string
	findings []rules.Finding
}

// groups gathers findings that are alike, in order.
func groups(findings []rules.Finding) []group {
	var all []group
	for _, alike := range rules.Groups(findings) {
		subjects := lines.Map(alike, func(f rules.Finding) string { return f.Subject })
		all = append(all, group{Finding: alike[0], findings: alike, subjects: subjects})
	}
	distinguish(all)
	return all
}

// groupOf is a finding by itself.
func groupOf(f rules.Finding) group { return groups([]rules.Finding{f})[0] }

// distinguish adds to titles that several groups have what the groups differ in: the
// variable, what they are about, or else what they say. Alike groups are one, so that
// something differs, if only how bad or how sure they are.
func distinguish(all []group) {
	type titled struct {
		title  string
		object rules.Object
	}
	by := map[titled][]*group{}
	for i := range all {
		key := titled{all[i].Title, all[i].Scope()}
		by[key] = append(by[key], &all[i])
	}
	for of, same := range by {
		title := of.title
		if len(same) == 1 {
			continue
		}
		for _, of := range []func(*group) string{
			(*group).variable,
			(*group).about,
			func(g *group) string { return sentence(g.Message) },
			func(g *group) string { return fmt.Sprintf("%s, %s, %s", g.about(), g.Severity, g.Confidence) },
		} {
			seen := map[string]bool{}
			for _, g := range same {
				seen[of(g)] = true
			}
			if len(seen) < len(same) || seen[""] {
				continue
			}
			for _, g := range same {
				g.Title = title + ": " + of(g)
			}
			break
		}
	}
}

// variable is the variable that the group is about; empty if it is not about one.
func (g *group) variable() string {
	name, _ := g.Params["variable"].(string)
	return name
}

// about names the first subject of the group, and how many there are besides.
func (g *group) about() string {
	if more := len(g.subjects) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", g.subjects[0], more)
	}
	return g.subjects[0]
}

// certainty says how sure the group is, and of what: of a cause, or only of a symptom. What
// is below medium severity is not the cause of a failure.
func (g *group) certainty() string {
	if !atLeast(g.Severity, rules.Medium) {
		return string(g.Confidence)
	}
	cause := g.Confidence
	for _, f := range g.findings {
		if f.OfCause.Rank() > cause.Rank() && f.OfCause != "" {
			cause = f.OfCause
		}
	}
	candidates := g.candidates()
	told := g.Order != nil // A program said that something failed.
	const open = "cause open"
	switch {
	case cause == rules.Confirmed && !g.Symptom:
		return "cause confirmed"
	case len(candidates) > 0 && candidates[0].Against != "" && told:
		return "symptom confirmed, " + open
	case len(candidates) > 0 && told:
		return "symptom confirmed, cause " + string(cause)
	case g.Symptom && g.Confidence == rules.Possible:
		return open
	case g.Symptom:
		return "symptom " + string(g.Confidence) + ", " + open
	case cause != g.Confidence:
		return "symptom " + string(g.Confidence) + ", cause " + string(cause)
	}
	return "cause " + string(cause)
}

// messages are what the findings say, each message once, with the subject
// before it where several findings say different things.
func (g group) messages() []string {
	all := lines.Unique(lines.Map(g.findings, func(f rules.Finding) string { return f.Message }))
	if len(all) < 2 {
		return all
	}
	return lines.Map(g.findings, withSubject)
}

// collect lists what findings have, each once.
func collect[T comparable](findings []rules.Finding, of func(rules.Finding) []T) []T {
	var all []T
	for _, f := range findings {
		all = append(all, of(f)...)
	}
	return lines.Unique(all)
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

// candidates are the causes that may lie behind the findings, each once.
func (g group) candidates() []rules.Candidate {
	return collect(g.findings, func(f rules.Finding) []rules.Candidate { return f.Candidates })
}

// inFavour says what speaks for a cause and against it, and what decides, each part as prose
// or code puts it.
func inFavour(c rules.Candidate, prose, code func(string) string) string {
	said := c.For
	if c.Against != "" {
		said += "; but " + c.Against
	}
	said = prose(said)
	switch {
	case c.Command != "":
		said += ". To check: " + code(c.Command) + " (if it is the cause, " + prose(c.Shows) + ")"
	case c.Shows != "":
		said += ". To check: " + prose(c.Shows)
	}
	return said
}

// places are the addresses at which the findings of a group lie: those that the
// parameters of its remedies name, as the subject may count them, else those of the
// subject.
func (g group) places() []string {
	var all []string
	for _, f := range g.findings {
		bridges, _ := f.Params["bridges"].([]any)
		for _, b := range bridges {
			all = append(all, fmt.Sprint(b))
		}
		all = append(all, topology.Addresses(f.Subject)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ids are the rules of the group and of what it explains.
func (g group) ids() []string {
	return lines.Unique(append([]string{g.Rule}, lines.Map(g.explained(), func(e group) string { return e.Rule })...))
}

// withheld is what is not advised for a group, and why, in words.
func (g group) withheld(all []remedies.Withheld) []string {
	ours := lines.Filter(all, func(w remedies.Withheld) bool {
		return slices.ContainsFunc(w.Cures, g.has) && (w.Reason != remedies.Needed || g.isAbout(w))
	})
	return lines.Unique(lines.Map(ours, withheldInWords))
}

// isAbout reports whether a setting that is not to be taken away is the group's own variable:
// one remedy removes several.
func (g group) isAbout(w remedies.Withheld) bool {
	variable := g.variable()
	return variable == "" || w.Setting == variable || strings.HasPrefix(w.Setting, variable+"=")
}

// keeps reports whether a remedy is withheld from the group, whose variable another finding
// needs.
func (g group) keeps(a *remedies.Advice, all []remedies.Withheld) bool {
	return slices.ContainsFunc(all, func(w remedies.Withheld) bool {
		return w.Reason == remedies.Needed && w.Remedy == a.Remedy && slices.ContainsFunc(w.Cures, g.has) && g.isAbout(w)
	})
}

// withheldInWords says why something is not advised.
func withheldInWords(w remedies.Withheld) string {
	switch {
	case w.Reason == remedies.InForce && w.Where != nil && w.MeasuredCost != nil:
		return fmt.Sprintf("%s is already set (%s); %s", w.Setting, w.Where, w.MeasuredCost)
	case w.Reason == remedies.InForce && w.Where != nil:
		return fmt.Sprintf("%s is already set (%s)", w.Setting, w.Where)
	case w.Reason == remedies.InForce:
		return w.Setting + " is already in effect"
	case w.By != nil:
		return fmt.Sprintf("%s stays set until %s is fixed", w.Setting, w.By.Rule)
	default:
		return w.Setting + " is not recommended, because another remedy does the opposite"
	}
}

// has reports whether a cure is of one of the group's findings.
func (g group) has(c remedies.Cure) bool {
	return slices.ContainsFunc(g.findings, func(f rules.Finding) bool { return remedies.CureOf(f) == c })
}

// reasonOf is why a rule could not be judged, in the fewest words that tell it.
func reasonOf(s Skipped) string {
	if len(s.Lacks) == 0 {
		return "no reason given"
	}
	return s.Lacks[0].Short()
}
