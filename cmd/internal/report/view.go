package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/topology"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// view is what the formats show of a report, computed once: they only lay it out and escape it. All its
// strings, those of the document included, are safe to print.
type view struct {
	*Document
	// Machine is the machine in short, the most important part first.
	Machine []string
	// Found are the findings, those that are alike as one, most severe first. The first Grave of them
	// are of medium severity or above.
	Found []finding
	Grave int
	// Accepted are the findings that are waived, numbered after the others.
	Accepted []finding
	// Unused says of each waiver that matches no finding so.
	Unused []string

	// Status and Said sum up the transfers, Figures the tests beyond the plain copy.
	// Title is the verdict in a few words, InWords the verdict with what it rests on.
	Title, InWords string
	Status         status
	Said           string
	Figures        []string
	// Matrix is the table of the paths between GPUs, Tests are those of the tests beyond the plain copy.
	Matrix matrix
	Tests  []matrix
	// Odd are the paths that are not well, the worst first. Uneven is true where the paths differ, or are
	// worse than well.
	Odd    []string
	Uneven bool

	// Story is what became of the processes of a job; nil if nothing is to be told.
	Story *story

	// Recognised are the texts that were recognized, Others those that were not, each with what is to be said of it.
	Recognised, Others []string

	// Recheck is the command that judges everything again.
	Recheck string
}

type finding struct {
	rules.Finding // The first of them.
	Number        int
	// Certainty says how sure it is, and of what. Part is the part of a file that it is about.
	Certainty, Part string
	// Subjects are those of the findings. Named is true where Messages name all of them.
	Subjects, Messages []string
	Named              bool
	Effects            []effect
	// Candidates, Steps, Notes and Remedies are what may lie behind it, what to look at, what is not advised,
	// and what to do, by rank. More are the names of what else would help, with what it is.
	Candidates []rules.Candidate
	Steps      []rules.Step
	Notes      []string
	Remedies   []remedy
	More       []pair
	// Check is the command that shows whether it is gone, Fresh what that needs first.
	Check, Fresh string
	// Evidence is what led to it, Quotes those pieces of it that are lines of texts.
	Evidence, Quotes []evidence
	// Places are the PCI addresses at which it lies. OnLink is true where it lies on the link above them.
	Places []string
	OnLink bool
	// Waiver is what the waiver says, if it is waived, and WithSubject the message after its subject.
	Waiver, WithSubject string
}

type effect struct {
	Rule, Message string
	Subjects      []string
}

// evidence is a fact that led to a finding. Value is as JSON has it, Text without the quotes of a string.
type evidence struct{ Fact, Value, Text, Source string }

type remedy struct {
	remedies.Advice
	// Label is "now", "fix" or "or", Effort what it takes.
	Label, Effort, Proof string
	// Same is the number of the first finding that shows it, if that is another one.
	Same int
	// Blocks are what to type or to do, More says the same for other places.
	Blocks, More []block
	Links        []string
}

type block = apply.Instruction

// Typed are the blocks without the steps for a person, which are remarks beside what can be typed.
func (r *remedy) Typed() []block {
	if len(r.Blocks) < 2 {
		return r.Blocks
	}
	return slices.DeleteFunc(slices.Clone(r.Blocks), block.IsByHand)
}

// Each are the blocks for every place.
func (r *remedy) Each() []block { return slices.Concat(r.Blocks, r.More) }

// Has reports whether a label is among those of the remedies.
func (f finding) Has(label string) bool {
	return slices.ContainsFunc(f.Remedies, func(r remedy) bool { return r.Label == label })
}

// Consequences are the rules of the consequences that are findings of other rules.
func (f *finding) Consequences() []string {
	others := lines.Filter(f.Effects, func(e effect) bool { return e.Rule != f.Rule })
	return lines.Map(others, func(e effect) string { return e.Rule })
}

func (v *view) Serious() []finding { return v.Found[:v.Grave] }
func (v *view) Slight() []finding  { return v.Found[v.Grave:] }

// viewer makes the findings of a view.
type viewer struct {
	d *Document
	// shown holds the number of the finding under which a remedy is shown first.
	shown map[string]int
	n     int
}

func newView(d *Document, ascii bool) *view {
	all := newPaths(d)
	v := view{
		Document: d, Machine: d.Host.parts, Figures: figures(d), Matrix: newMatrix(d, all), Tests: testMatrices(d), Odd: all.odd(),
		Uneven:  slices.ContainsFunc(all, func(p path) bool { return p.outcome != all[0].outcome || badness[p.outcome] > badness[probe.OK] }),
		Recheck: d.recheck.Command(),
	}
	v.Story = newStory(d.Job)
	v.Title, v.InWords = d.title(), d.verdictInWords()
	v.Recognised, v.Others = d.textsLine()
	v.Status, v.Said = transfersLine(d, all)
	made := &viewer{d: d, shown: map[string]int{}}
	v.Found = lines.Map(groups(d.Findings), made.finding)
	v.Grave = len(v.Found)
	if slight := slices.IndexFunc(v.Found, finding.slight); slight >= 0 {
		v.Grave = slight
	}
	for _, w := range d.Waived {
		f := made.finding(groupOf(w.Finding))
		f.Waiver = w.Terms()
		v.Accepted = append(v.Accepted, f)
	}
	v.Unused = lines.Map(d.UnusedWaivers, unused)
	v = lines.Clean(v, ascii)
	return &v
}

func (f finding) slight() bool { return !atLeast(f.Severity, rules.Medium) }

func (v *viewer) finding(g group) finding {
	v.n++
	f := finding{
		Finding: g.Finding, Number: v.n, Certainty: g.certainty(), Part: v.d.objectOf(g),
		Subjects: g.subjects, Messages: g.messages(), Candidates: g.candidates(), Steps: collect(g.findings, func(f rules.Finding) []rules.Step { return f.Steps }), Notes: g.withheld(v.d.Withheld),
		Check: v.d.recheck.Command(g.ids()...), Fresh: v.d.recheck.Fresh(), Places: g.places(), OnLink: g.Cause == "pcie-link-degraded",
		WithSubject: withSubject(g.Finding),
	}
	f.Named = g.namesSubjects(f.Messages)
	leads := remedies.LeadsOf(v.d.Advice, g.findings)
	labels := map[*remedies.Advice]string{leads.Or: "or", leads.Fix: "fix", leads.Now: "now"}
	for i := range v.d.Advice {
		switch a := &v.d.Advice[i]; {
		case !slices.ContainsFunc(a.Cures, g.has), g.keeps(a, v.d.Withheld):
		case labels[a] == "":
			f.More = append(f.More, pair{a.Remedy, a.Title + " (" + apply.Effort(a.Needs, a.Lasts) + ")" + behind("; ", apply.Proof(a.Proof))})
		default:
			f.Remedies = append(f.Remedies, v.remedy(a, labels[a]))
		}
	}
	f.Effects = lines.Map(g.explained(), func(e group) effect { return effect{e.Rule, e.Message, e.subjects} })
	for _, one := range g.findings {
		f.Evidence = append(f.Evidence, lines.Map(one.Evidence, shownEvidence)...)
	}
	f.Quotes = lines.Map(v.d.quotes(g), shownEvidence)
	return f
}

// shownEvidence is a piece of evidence as it is shown.
func shownEvidence(e rules.Evidence) evidence {
	shown := evidence{Fact: e.Fact, Value: valueOf(e.Value), Source: e.Source}
	shown.Text = shown.Value
	if said, ok := e.Value.(string); ok {
		shown.Text = said
	}
	return shown
}

func (v *viewer) remedy(a *remedies.Advice, label string) remedy {
	r := remedy{Advice: *a, Label: label, Effort: apply.Effort(a.Needs, a.Lasts), Proof: apply.Proof(a.Proof)}
	if key := a.Remedy + "\x00" + valueOf(a.Apply); v.shown[key] == 0 { // The same for advice that a reader cannot distinguish.
		v.shown[key] = v.n
	} else {
		r.Same = v.shown[key]
	}
	r.Blocks, r.More = apply.Instructions(a.Apply, v.d.runsOf(a))
	if slices.ContainsFunc(r.Blocks, func(b block) bool { return b.Where == apply.UntilBoot }) {
		r.Effort += ", or at once until the next boot"
	}
	r.Links = lines.Filter(a.Links, func(link string) bool {
		return strings.HasPrefix(link, "https://") || strings.HasPrefix(link, "http://")
	})
	return r
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

func (g *group) variable() string {
	name, _ := g.Params["variable"].(string)
	return name
}

func (g *group) about() string {
	if more := len(g.subjects) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", g.subjects[0], more)
	}
	return g.subjects[0]
}

// certainty says how sure the group is, and of what: of a cause, or only of a symptom.
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

// messages are what the findings say, with the subject before it where they say different things.
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

// namesSubjects reports whether the messages name every subject but the host, each address of a pair or a list.
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

func (g group) candidates() []rules.Candidate {
	return collect(g.findings, func(f rules.Finding) []rules.Candidate { return f.Candidates })
}

// inFavour says what speaks for a cause and against it, and what decides.
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

// places are the addresses at which the findings of a group lie. The subject may only count bridges.
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

// isAbout reports whether a setting that is to stay is the group's own variable: one remedy removes several.
func (g group) isAbout(w remedies.Withheld) bool {
	variable := g.variable()
	return variable == "" || w.Setting == variable || strings.HasPrefix(w.Setting, variable+"=")
}

// keeps reports whether a remedy is withheld from the group, whose variable another finding needs.
func (g group) keeps(a *remedies.Advice, all []remedies.Withheld) bool {
	return slices.ContainsFunc(all, func(w remedies.Withheld) bool {
		return w.Reason == remedies.Needed && w.Remedy == a.Remedy && slices.ContainsFunc(w.Cures, g.has) && g.isAbout(w)
	})
}

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
