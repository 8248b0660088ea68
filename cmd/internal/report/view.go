package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/area"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/topology"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// view is what the formats show of a report, computed once: they only lay it out and escape it. All its
// strings, those of the document included, are safe to print.
type view struct {
	*Document
	Machine []string // The machine in short, the most important part first.
	// Found are the findings, those that are alike as one, most severe first. The first Grave of them
	// are of medium severity or above. Accepted are those that are waived, numbered after the others.
	Found, Accepted []finding
	Grave           int
	// Unused says of each waiver that matches no finding so.
	Unused []string
	// Title is the verdict in a few words, InWords the verdict with what it rests on.
	Title, InWords string
	// Status and Said sum up the transfers, Figures the tests beyond the plain copy.
	Status  status
	Said    string
	Figures []string
	// Matrix is the table of the paths between GPUs, Tests are those of the tests beyond the plain copy.
	Matrix matrix
	Tests  []matrix
	// Odd are the paths that are not well, the worst first. Uneven is true where the paths differ, or are worse than well.
	Odd    []string
	Uneven bool
	Story  *story // What became of the processes of a job; nil if nothing is to be told.
	// Recognised are the texts that were recognized, Others those that were not, each with what is to be said of it.
	Recognised, Others []string
	Recheck            string // The command that judges everything again.
}

// finding is findings of one rule that are alike: a person reads them as one.
type finding struct {
	rules.Finding                 // The first of them.
	All           []rules.Finding // All of them.
	Number        int
	Part          string     // The part of a file that it is about.
	Notes         []string   // What is not advised.
	Remedies      []remedy   // What to do, by rank.
	More          []pair     // What else would help, by its name.
	Check, Fresh  string     // The command that shows whether it is gone, and what that needs first.
	Evidence      []evidence // What led to it.
	Quotes        []evidence // Those pieces of it that are lines of texts.
	Waiver        string     // What the waiver says, if it is waived.
}

// evidence is a fact that led to a finding. Value is as JSON has it, Text without the quotes of a string.
type evidence struct{ Fact, Value, Text, Source string }

type remedy struct {
	remedies.Advice
	Label, Effort, Proof string // The label is "now", "fix" or "or", the effort what it takes.
	Same                 int    // The number of the first finding that shows it, if that is another one.
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
func (f finding) Consequences() []string {
	return slices.DeleteFunc(topics(f.Effects()), func(rule string) bool { return rule == f.Rule })
}

func (v *view) Serious() []finding { return v.Found[:v.Grave] }
func (v *view) Slight() []finding  { return v.Found[v.Grave:] }

func newView(d *Document, ascii bool) *view {
	all := newPaths(d)
	v := view{
		Document: d, Machine: d.Host.parts, Figures: figures(d), Matrix: newMatrix(d, all), Tests: testMatrices(d), Odd: all.odd(),
		Uneven:  slices.ContainsFunc(all, func(p path) bool { return p.outcome != all[0].outcome || badness[p.outcome] > badness[probe.OK] }),
		Recheck: d.in.Recheck.Command(), Story: newStory(d.Job), Title: d.title(), InWords: d.verdictInWords(),
		Unused: lines.Map(d.UnusedWaivers, func(w waivers.Waiver) string {
			return w.Place() + ": the waiver of " + w.About() + " matches no finding"
		}),
	}
	v.Recognised, v.Others = d.textsLine()
	v.Status, v.Said = transfersLine(d, all)
	made := &viewer{d: d, shown: map[string]int{}}
	v.Found = lines.Map(groups(d.Findings), made.finding)
	v.Grave = len(lines.Filter(v.Found, func(f finding) bool { return atLeast(f.Severity, rules.Medium) }))
	for _, w := range d.Waived {
		f := made.finding(groups([]rules.Finding{w.Finding})[0])
		f.Waiver = w.Terms()
		v.Accepted = append(v.Accepted, f)
	}
	v = lines.Clean(v, ascii)
	return &v
}

// viewer completes the findings of a view. shown holds the number of the finding under which a remedy is shown first.
type viewer struct {
	d     *Document
	shown map[string]int
	n     int
}

func (v *viewer) finding(f finding) finding {
	v.n++
	f.Number, f.Part, f.Notes = v.n, v.d.objectOf(f), f.withheld(v.d.Withheld)
	f.Check, f.Fresh = v.d.in.Recheck.Command(lines.Unique(append([]string{f.Rule}, topics(f.Effects())...))...), map[bool]string{true: "with new evidence"}[v.d.in.Recheck.Files] // Files do not change by themselves.
	for _, one := range f.All {
		f.Evidence = append(f.Evidence, lines.Map(one.Evidence, shownEvidence)...)
	}
	f.Quotes = lines.Map(v.d.quotes(f.All), shownEvidence)
	leads := remedies.LeadsOf(v.d.Advice, f.All)
	labels := map[*remedies.Advice]string{leads.Or: "or", leads.Fix: "fix", leads.Now: "now"}
	for i := range v.d.Advice {
		switch a := &v.d.Advice[i]; {
		case !slices.ContainsFunc(a.Cures, f.has), f.keeps(a, v.d.Withheld):
		case labels[a] == "":
			what := a.Title + " (" + remedies.Effort(a.Needs, a.Lasts) + ")" + lines.Behind("; ", apply.Proof(a.Proof))
			f.More = append(f.More, pair{a.Remedy, what})
		default:
			f.Remedies = append(f.Remedies, v.remedy(a, labels[a]))
		}
	}
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
	r := remedy{Advice: *a, Label: label, Effort: remedies.Effort(a.Needs, a.Lasts), Proof: apply.Proof(a.Proof)}
	if key := a.Remedy + "\x00" + valueOf(a.Apply); v.shown[key] == 0 { // The same for advice that a reader cannot distinguish.
		v.shown[key] = v.n
	} else {
		r.Same = v.shown[key]
	}
	r.Blocks, r.More = apply.Instructions(a.Apply, v.d.runsOf(a))
	if slices.ContainsFunc(r.Blocks, func(b block) bool { return b.Where == apply.UntilBoot }) {
		r.Effort += ", or at once until the next boot"
	}
	r.Links = lines.Filter(a.Links, isURL)
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

// groups gathers findings that are alike, in order.
func groups(findings []rules.Finding) []finding {
	all := lines.Map(rules.Groups(findings), func(alike []rules.Finding) finding { return finding{Finding: alike[0], All: alike} })
	distinguish(all)
	return all
}

// Subjects are those of the findings.
func (f finding) Subjects() []string {
	return lines.Map(f.All, func(one rules.Finding) string { return one.Subject })
}

// distinguish adds to titles that several groups have what the groups differ in: the variable, what they are about,
// or else what they say. Alike groups are one, so that something differs, if only how bad or how sure they are.
func distinguish(all []finding) {
	type titled struct {
		title  string
		object rules.Object
	}
	by := map[titled][]*finding{}
	for i := range all {
		key := titled{all[i].Title, all[i].Scope()}
		by[key] = append(by[key], &all[i])
	}
	for of, same := range by {
		if len(same) == 1 {
			continue
		}
		for _, what := range []func(*finding) string{
			(*finding).variable,
			(*finding).about,
			func(f *finding) string { return sentence(f.Message) },
			func(f *finding) string { return fmt.Sprintf("%s, %s, %s", f.about(), f.Severity, f.Confidence) },
		} {
			differences := lines.Map(same, what)
			if len(lines.Unique(differences)) < len(same) || slices.Contains(differences, "") {
				continue
			}
			for i, f := range same {
				f.Title = of.title + ": " + differences[i]
			}
			break
		}
	}
}

func (f *finding) variable() string {
	name, _ := f.Params["variable"].(string)
	return name
}

func (f *finding) about() string {
	if more := len(f.All) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", f.Subject, more)
	}
	return f.Subject
}

// Certainty says how sure the finding is, and of what: of a cause, or only of a symptom.
func (f finding) Certainty() string {
	if !atLeast(f.Severity, rules.Medium) {
		return string(f.Confidence)
	}
	cause := f.Confidence
	for _, one := range f.All {
		if one.OfCause.Rank() > cause.Rank() && one.OfCause != "" {
			cause = one.OfCause
		}
	}
	candidates := f.Candidates()
	suspected := len(candidates) > 0 && f.Order != nil // A program said that something failed.
	const open = "cause open"
	switch {
	case cause == rules.Confirmed && !f.Symptom:
		return "cause confirmed"
	case suspected && candidates[0].Against != "":
		return "symptom confirmed, " + open
	case suspected:
		return "symptom confirmed, cause " + string(cause)
	case f.Symptom && f.Confidence == rules.Possible:
		return open
	case f.Symptom:
		return "symptom " + string(f.Confidence) + ", " + open
	case cause != f.Confidence:
		return "symptom " + string(f.Confidence) + ", cause " + string(cause)
	}
	return "cause " + string(cause)
}

// Messages are what the findings say, with the subject before it where they say different things.
func (f finding) Messages() []string {
	all := lines.Unique(lines.Map(f.All, func(one rules.Finding) string { return one.Message }))
	if len(all) < 2 {
		return all
	}
	return lines.Map(f.All, withSubject)
}

// WithSubject is the message after its subject.
func (f finding) WithSubject() string { return withSubject(f.Finding) }

// Named reports whether the messages name every subject but the host, each address of a pair or a list.
func (f finding) Named() bool {
	all := strings.Join(f.Messages(), "\n")
	for _, subject := range f.Subjects() {
		for name := range strings.SplitSeq(strings.ReplaceAll(subject, " -> ", ", "), ", ") {
			if name != "host" && !strings.Contains(all, name) {
				return false
			}
		}
	}
	return true
}

// collect lists what findings have, each once.
func collect[T comparable](findings []rules.Finding, of func(rules.Finding) []T) []T {
	return lines.Unique(slices.Concat(lines.Map(findings, of)...))
}

// Candidates are what may lie behind it.
func (f finding) Candidates() []rules.Candidate {
	return collect(f.All, func(one rules.Finding) []rules.Candidate { return one.Candidates })
}

// Steps are what to look at.
func (f finding) Steps() []rules.Step {
	return collect(f.All, func(one rules.Finding) []rules.Step { return one.Steps })
}

// Effects are its consequences, each once.
func (f finding) Effects() []finding {
	var all []rules.Finding
	for _, one := range f.All {
		for _, e := range one.Explains {
			if !slices.ContainsFunc(all, func(o rules.Finding) bool { return o.Rule == e.Rule && o.Subject == e.Subject }) {
				all = append(all, e)
			}
		}
	}
	return groups(all)
}

// inFavour says what speaks for a cause and against it, and what decides.
func inFavour(c rules.Candidate, prose, code func(string) string) string {
	said := prose(c.For + lines.Behind("; but ", c.Against))
	switch {
	case c.Command != "":
		said += ". To check: " + code(c.Command) + " (if it is the cause, " + prose(c.Shows) + ")"
	case c.Shows != "":
		said += ". To check: " + prose(c.Shows)
	}
	return said
}

// places are the PCI addresses at which the findings lie. The subject may only count bridges.
func (f finding) places() []string {
	var all []string
	for _, one := range f.All {
		bridges, _ := one.Params["bridges"].([]any)
		all = append(all, lines.Map(bridges, func(b any) string { return fmt.Sprint(b) })...)
		all = append(all, topology.Addresses(one.Subject)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// withheld is what is not advised for a finding, and why, in words.
func (f finding) withheld(all []remedies.Withheld) []string {
	ours := lines.Filter(all, func(w remedies.Withheld) bool {
		return slices.ContainsFunc(w.Cures, f.has) && (w.Reason != remedies.Needed || f.isAbout(w))
	})
	return lines.Unique(lines.Map(ours, withheldInWords))
}

// isAbout reports whether a setting that is to stay is the finding's own variable: one remedy removes several.
func (f finding) isAbout(w remedies.Withheld) bool {
	variable := f.variable()
	return variable == "" || w.Setting == variable || strings.HasPrefix(w.Setting, variable+"=")
}

// keeps reports whether a remedy is withheld from the finding, whose variable another one needs.
func (f finding) keeps(a *remedies.Advice, all []remedies.Withheld) bool {
	return slices.ContainsFunc(all, func(w remedies.Withheld) bool {
		return w.Reason == remedies.Needed && w.Remedy == a.Remedy && slices.ContainsFunc(w.Cures, f.has) && f.isAbout(w)
	})
}

func withheldInWords(w remedies.Withheld) string {
	switch {
	case w.Reason == remedies.InForce && w.Where != nil:
		return fmt.Sprintf("%s is already set (%s)", w.Setting, w.Where) + lines.Behind("; ", w.MeasuredCost)
	case w.Reason == remedies.InForce:
		return w.Setting + " is already in effect"
	case w.By != nil:
		return fmt.Sprintf("%s stays set until %s is fixed", w.Setting, w.By.Rule)
	default:
		return w.Setting + " is not recommended, because another remedy does the opposite"
	}
}

func (f finding) has(c remedies.Cure) bool {
	return slices.ContainsFunc(f.All, func(one rules.Finding) bool { return remedies.CureOf(one) == c })
}

// reasonOf is why a rule could not be judged, in the fewest words that tell it.
func reasonOf(s Skipped) string {
	if len(s.Lacks) == 0 {
		return "no reason given"
	}
	return s.Lacks[0].Short()
}

func (d *Document) peerPaths() area.Line {
	all := newPaths(d)
	s, said := transfersLine(d, all)
	state := map[status]area.State{statusFail: area.Problem, statusSlow: area.Problem, statusOpen: area.Unknown, statusOK: area.OK}[s]
	if state == "" && len(all) > 0 {
		state = area.Note // The driver offers no path.
	}
	return area.Line{State: cmp.Or(state, area.NotApplicable), Summary: said}
}

// unseenGPUs says why there may be GPUs, or faults of them, although none is seen.
func (d *Document) unseenGPUs(lacks []rules.Missing) string {
	for _, m := range lacks {
		if m.Fact == "gpus.devices[].in_nvml" && !d.in.TextsOnly {
			return m.Short()
		}
	}
	return d.unseen()
}

var areaNames = map[rules.Area]string{
	rules.AreaGPUs: "GPUs", rules.AreaPCIe: "PCIe", rules.AreaIOMMU: "IOMMU", rules.AreaNUMA: "NUMA", rules.AreaKernelLog: "kernel log",
}

// AreaRows are the areas to be told, by the names that people know; those of which the input says too little stand in one row.
func (d *Document) AreaRows(verbose bool) []area.Line {
	var shown []area.Line
	var others []string
	for _, l := range d.Areas {
		left := len(d.in.Only) > 0 && l.State == area.Unknown && len(l.Rules) == 0 && l.Name != rules.AreaPaths
		name := cmp.Or(areaNames[l.Name], string(l.Name))
		l.Name = rules.Area(name)
		switch {
		case !verbose && (l.State == area.NotApplicable || left):
		case !verbose && d.in.TextsOnly && l.State == area.Unknown:
			others = append(others, name)
		default:
			shown = append(shown, l)
		}
	}
	if len(others) > 0 {
		shown = append(shown, area.Line{Name: "others", State: area.Unknown, Summary: "the input says too little about " + english.WordSeries(others, "and")})
	}
	return shown
}
