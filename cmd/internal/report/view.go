package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
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

	// Gaps are the reasons of the verdict that are no findings, without what Said says.
	Gaps []string
	// Recheck is the command that judges everything again.
	Recheck string
}

// finding is findings that are alike, with what to do about them.
type finding struct {
	Number      int
	Severity    rules.Severity
	Rule, Title string
	// Certainty says how sure it is, and of what. About is the part of a file that it is about.
	Certainty, About string
	// Topic is the variable or the rule that it is about.
	Topic string
	// Subjects are those of the findings. Named is true where Messages name all of them.
	Subjects, Messages []string
	Named              bool
	// Terms explains the abbreviations that no finding before it uses.
	Terms   string
	Effects []effect
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

// effect is findings that are alike and consequences of another.
type effect struct {
	Rule, Message string
	Subjects      []string
}

// evidence is a fact that led to a finding. Value is as JSON has it, Text without the quotes of a string.
type evidence struct{ Fact, Value, Text, Source string }

// remedy is one of the advice.
type remedy struct {
	// Label is "now", "fix" or "or".
	Label, Title, ID string
	// Same is the number of the first finding that shows it, if that is another one.
	Same       int
	Workaround bool
	// Effort is what it takes. PerBlock is true where the blocks take different things.
	Effort   string
	PerBlock bool

	Proof, Cost, Caution, Description, Why, Undo, Verify string
	// Blocks are what to type or to do, More says the same for other places.
	Blocks, More []block
	// OfContainer is true where the first block is what the container runtime takes by which the job is started.
	OfContainer bool
	// Kept is true where another finding needs what the remedy would take away.
	Kept  bool
	Links []string
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

// Alike are the messages of the consequences that are findings of the same rule, Consequences the rules of
// the others.
func (f *finding) Alike() []string {
	alike := lines.Filter(f.Effects, func(e effect) bool { return e.Rule == f.Rule })
	return lines.Map(alike, func(e effect) string { return e.Message })
}

func (f *finding) Consequences() []string {
	others := lines.Filter(f.Effects, func(e effect) bool { return e.Rule != f.Rule })
	return lines.Map(others, func(e effect) string { return e.Rule })
}

// Serious are the findings of medium severity and above, Slight the others.
func (v *view) Serious() []finding { return v.Found[:v.Grave] }
func (v *view) Slight() []finding  { return v.Found[v.Grave:] }

// viewer makes the findings of a view.
type viewer struct {
	d *Document
	// shown holds the number of the finding under which a remedy is shown first.
	shown map[string]int
	// explained are the terms that were explained.
	explained map[string]bool
	n         int
}

func newViewer(d *Document) *viewer {
	return &viewer{d: d, shown: map[string]int{}, explained: map[string]bool{}}
}

// newView makes the view of a report.
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
	made := newViewer(d)
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
	v.Gaps = lines.Map(d.Verdict.gaps(), Reason.shortly)
	v = lines.Clean(v, ascii)
	return &v
}

// slight reports whether a finding is below medium severity.
func (f finding) slight() bool { return !atLeast(f.Severity, rules.Medium) }

// finding describes findings that are alike.
func (v *viewer) finding(g group) finding {
	v.n++
	f := finding{
		Number: v.n, Severity: g.Severity, Rule: g.Rule, Title: g.Title, Certainty: g.certainty(), About: v.d.objectOf(g), Topic: cmp.Or(g.variable(), g.Rule),
		Subjects: g.subjects, Messages: g.messages(), Candidates: g.candidates(), Steps: collect(g.findings, func(f rules.Finding) []rules.Step { return f.Steps }), Notes: g.withheld(v.d.Withheld),
		Check: v.d.recheck.Command(g.ids()...), Fresh: v.d.recheck.Fresh(), Places: g.places(), OnLink: g.Cause == "pcie-link-degraded",
		WithSubject: withSubject(g.Finding),
	}
	f.Named = g.namesSubjects(f.Messages)
	leads := remedies.LeadsOf(v.d.Advice, g.findings)
	labels := map[*remedies.Advice]string{leads.Or: "or", leads.Fix: "fix", leads.Now: "now"}
	for i := range v.d.Advice {
		switch a := &v.d.Advice[i]; {
		case !slices.ContainsFunc(a.Cures, g.has):
		case labels[a] == "":
			f.More = append(f.More, pair{a.Remedy, a.Title + " (" + apply.Effort(a.Needs, a.Lasts) + ")" + behind("; ", apply.Proof(a.Proof))})
		default:
			r := v.remedy(a, labels[a])
			r.Kept = g.keeps(a, v.d.Withheld)
			f.Remedies = append(f.Remedies, r)
		}
	}
	if !f.slight() {
		f.Terms = v.terms(&f)
	}
	f.Effects = lines.Map(g.explained(), func(e group) effect { return effect{e.Rule, e.Message, e.subjects} })
	for _, one := range g.findings {
		f.Evidence = append(f.Evidence, lines.Map(one.Evidence, shownEvidence)...)
	}
	f.Quotes = lines.Map(v.d.quotes(g), shownEvidence)
	return f
}

// terms explains the abbreviations that a finding and its remedies use, each once in a report.
func (v *viewer) terms(f *finding) string {
	texts := append([]string{f.Title}, f.Messages...)
	for _, s := range f.Steps {
		texts = append(texts, s.Look)
	}
	for _, c := range f.Candidates {
		texts = append(texts, c.Title, c.For, c.Against, c.Shows)
	}
	for _, r := range f.Remedies {
		texts = append(texts, r.Title, sentence(r.Caution))
		for _, b := range r.Typed() {
			if b.IsByHand() {
				texts = append(texts, b.Lines...)
			}
		}
	}
	var said []string
	for _, t := range TermsIn(strings.Join(texts, "\n")) {
		if !v.explained[t.Name] {
			v.explained[t.Name] = true
			said = append(said, t.Name+": "+t.Means)
		}
	}
	return strings.Join(said, "; ")
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

// remedy describes one of the advice.
func (v *viewer) remedy(a *remedies.Advice, label string) remedy {
	r := remedy{
		Label: label, Title: a.Title, ID: a.Remedy, Workaround: a.Kind == remedies.Workaround,
		Effort: apply.Effort(a.Needs, a.Lasts), Proof: apply.Proof(a.Proof), Cost: a.Cost, Caution: a.Caution, Description: a.Description,
		Why: a.Why, Undo: a.Undo, Verify: a.Verify,
	}
	if key := a.Remedy + "\x00" + valueOf(a.Apply); v.shown[key] == 0 { // The same for advice that a reader cannot distinguish.
		v.shown[key] = v.n
	} else {
		r.Same = v.shown[key]
	}
	runs := v.d.runsOf(a)
	r.Blocks, r.More = apply.Instructions(a.Apply, runs)
	r.PerBlock = apply.Efforts(r.Blocks, a.Needs, a.Lasts)
	r.OfContainer = !r.Workaround && apply.InContainer(r.Blocks, runs)
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
