package remedies

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Outcomes of a proof.
const (
	// Proven means that the effect of the remedy was tried here and works.
	Proven = "proven"
	// Disproven means that it was tried here and does not help.
	Disproven = "disproven"
)

// outcome is empty where nothing was tried.
func (p *Proof) outcome() string {
	if p == nil {
		return ""
	}
	return p.Outcome
}

// score is what an advice is ranked by, the most important field first. A lower number is better in each.
type score struct {
	disproven  int // 1 when it was tried here and does not help.
	severity   int // Of the worst finding that it cures.
	confidence int // Of the surest among those.
	turn       int // Of the kinds of cure: see candidate.turn.
	cured      int // The number of findings that it cures, negative.
	unproven   int // 0 when it was tried here and helps.
	place      int // The best place that a rule gives it.
	risk       int // From none.
	effort     int // Of what it needs: 0 a restart of the job.
}

func (s score) list() []int {
	return []int{s.disproven, s.severity, s.confidence, s.turn, s.cured, s.unproven, s.place, s.risk, s.effort}
}

// candidate is a remedy with the findings that it cures.
type candidate struct {
	remedy Remedy
	cures  []rules.Finding
	proof  *Proof
	cost   string // What was measured here; empty if nothing was.
	score  score
	filler filler
	// removal says how the variables that it unsets are removed here.
	removal string
	// apply is the remedy's, filled, as it fits here.
	apply Apply
}

// Ranking is what can be done about findings.
type Ranking struct {
	// Advice is what to do, in order.
	Advice []Advice
	// Withheld is what the findings name but need not or must not be done here.
	Withheld []Withheld
}

// Rank returns what can be done about the findings, the first thing to do first. If communication fails, that is a
// quick and safe workaround, if there is one; otherwise it is what removes the cause. Next comes the other of the two
// for the same finding. The leading advice for each finding comes first, finding by finding; further advice comes
// after. A remedy that does not exist is left out: Check reports it. One that would do more for findings of low
// severity than for the faults that it cures is listed several times, each for its own findings. No advice sets what is
// in force already, and no two advices set and unset one variable.
func (s *Set) Rank(findings []rules.Finding, here Situation) Ranking {
	here.Facts = cmp.Or(here.Facts, &facts.Facts{})
	findings = slices.Clone(findings)
	slices.SortStableFunc(findings, rules.Finding.Compare)
	candidates := s.candidates(findings, here)
	slices.SortFunc(candidates, func(a, b *candidate) int {
		return cmp.Or(slices.Compare(a.score.list(), b.score.list()), cmp.Compare(a.remedy.ID, b.remedy.ID))
	})
	candidates, withheld := s.fit(candidates, findings, here)
	advice := make([]Advice, 0, len(candidates))
	for _, c := range candidates {
		advice = append(advice, c.advice())
	}
	return Ranking{Advice: inOrder(advice, findings), Withheld: withheld}
}

// inOrder puts the leading advice for each group of similar findings first, in the order of the groups: for those of
// medium severity and above, then what else would help these, and the same for those below.
func inOrder(advice []Advice, findings []rules.Finding) []Advice {
	ordered := make([]Advice, 0, len(advice))
	rest := advice
	take := func(which func(*Advice) bool) {
		rest = slices.DeleteFunc(rest, func(a Advice) bool {
			if !which(&a) {
				return false
			}
			ordered = append(ordered, a)
			return true
		})
	}
	groups := rules.Groups(findings)
	for _, slight := range []bool{false, true} {
		for _, group := range groups {
			if isSlight(group[0]) != slight {
				continue
			}
			// The leading ones that are not listed yet follow in this order.
			for _, lead := range LeadsOf(slices.Concat(ordered, rest), group).inTurn() {
				take(func(a *Advice) bool { return a.Remedy == lead.Remedy && slices.Equal(a.Cures, lead.Cures) })
			}
		}
		take(func(a *Advice) bool {
			return !a.disproven() && slices.ContainsFunc(findings, func(f rules.Finding) bool { return isSlight(f) == slight && a.cures(f) })
		})
	}
	return append(ordered, rest...)
}

func isSlight(f rules.Finding) bool { return f.Severity.Rank() > rules.Medium.Rank() }

// Suiting returns the remedies in their forms for what the facts show: GPUs that are all from
// one vendor, and a scheduler.
func (s *Set) Suiting(f *facts.Facts) *Set {
	vendor, scheduler := vendorOf(f), schedulerOf(f)
	own := *s
	own.forms = make(map[string]string)
	for id, r := range s.byID {
		if r.FormOf != "" && (r.Vendor != "" && r.Vendor == vendor || r.Scheduler != "" && r.Scheduler == scheduler) {
			own.forms[r.FormOf] = id
		}
	}
	return &own
}

// candidates collects the remedies that the findings name, each once for all findings of one band. One that removes
// variables is listed separately for those that are removed in another way, since its needs and duration differ, and
// for those whose removal is proven by itself, so that the proof is of what it says.
func (s *Set) candidates(findings []rules.Finding, here Situation) []*candidate {
	type key struct {
		id      string
		band    int
		removal string
		proven  string
	}
	byKey := map[key]*candidate{}
	var list []*candidate
	for _, f := range findings {
		seen := map[string]bool{} // A finding counts once, also where it names two that have one form here.
		for place, name := range f.Remedies {
			r, ok := s.form(name)
			if general, _ := s.Remedy(name); r.Scheduler != "" && here.ownSetting(general, f) {
				r = general
			}
			if !ok || seen[r.ID] {
				continue
			}
			seen[r.ID] = true
			k := key{id: r.ID, band: band(f.Severity)}
			if len(r.Apply.Unset) > 0 {
				a := newFiller([]rules.Finding{f}, Recheck{}).apply(r.Apply)
				if len(a.Unset) > 0 {
					k.removal = here.removal(a.Unset[0])
				}
				k.proven = here.provenBy(a)
			}
			c := byKey[k]
			if c == nil {
				c = &candidate{remedy: r, removal: k.removal, score: score{
					severity: f.Severity.Rank(), confidence: f.Confidence.Rank(), place: place, unproven: 1,
				}}
				if proof, tried := here.Proofs[r.ID]; tried {
					c.proof = &proof
				}
				byKey[k] = c
				list = append(list, c)
			}
			c.add(f, place)
		}
	}
	list = joined(list)
	for _, c := range list {
		c.filler = newFiller(c.cures, here.Recheck)
		c.apply = c.filler.apply(c.remedy.Apply)
		c.proof = cmp.Or(triedBy(here.Facts, c.apply), c.proof)
		c.cost = costOf(here.Facts, c.apply.Environment)
		c.edit(here)
		c.rate()
	}
	return list
}

// form returns the remedy of that id, in its form for the GPUs and the scheduler of this machine.
func (s *Set) form(id string) (Remedy, bool) {
	r, ok := s.Remedy(id)
	if form := s.forms[r.ID]; form != "" {
		r = s.byID[form]
	}
	return r, ok
}

// band distinguishes the findings for which a remedy is advised separately. Those of
// medium severity and above are one band: they are faults. Of those below, what
// they name may be meant as it is, so that no fault's cure may take it along.
func band(s rules.Severity) int { return max(s.Rank(), rules.Medium.Rank()) }

// joined puts the candidates of one remedy together again where the findings
// of the lower band add nothing to the remedies for those of the higher.
func joined(list []*candidate) []*candidate {
	slices.SortStableFunc(list, func(a, b *candidate) int { return cmp.Compare(a.score.severity, b.score.severity) })
	var kept []*candidate
	for _, c := range list {
		i := slices.IndexFunc(kept, func(k *candidate) bool { return k.remedy.ID == c.remedy.ID && k.removal == c.removal && k.covers(c) })
		if i < 0 {
			kept = append(kept, c)
			continue
		}
		kept[i].cures = append(kept[i].cures, c.cures...)
		kept[i].score.place = min(kept[i].score.place, c.score.place)
	}
	return kept
}

// covers reports whether doing what the candidate says does all that the other one of the same remedy also says.
func (c *candidate) covers(other *candidate) bool {
	one := newFiller(c.cures, Recheck{}).apply(c.remedy.Apply)
	both := newFiller(slices.Concat(c.cures, other.cures), Recheck{}).apply(c.remedy.Apply)
	return reflect.DeepEqual(one, both)
}

func (c *candidate) add(f rules.Finding, place int) {
	c.cures = append(c.cures, f)
	severity, confidence := f.Severity.Rank(), f.Confidence.Rank()
	if cmp.Or(cmp.Compare(severity, c.score.severity), cmp.Compare(confidence, c.score.confidence)) < 0 {
		c.score.severity, c.score.confidence = severity, confidence
	}
	c.score.place = min(c.score.place, place)
}

// rate fills the parts of the score that follow from the remedy itself.
func (c *candidate) rate() {
	c.score.cured = -len(c.cures)
	switch c.proof.outcome() {
	case Proven:
		c.score.unproven = 0
	case Disproven:
		c.score.disproven = 1
	}
	c.score.risk = slices.Index(risks, c.remedy.Risk)
	c.score.effort = effort(c.remedy.Needs)
	c.score.turn = c.turn()
}

// turn is 1 for a fix. A workaround that is quick and safe comes before it if the finding is critical, so that nothing
// works until something is done, or if the rule names it first; else it comes after, since it costs what the fix would
// bring.
func (c *candidate) turn() int {
	urgent := c.score.severity == rules.Critical.Rank() || c.score.place == 0
	switch {
	case c.remedy.Kind == Fix:
		return 1
	case urgent && isQuick(c.remedy.Needs) && c.score.risk <= slices.Index(risks, "low"):
		return 0
	}
	return 2
}

// isQuick reports whether the needs are no more than a restart of the job or the container.
func isQuick(of []Need) bool { return effort(of) <= slices.Index(needs, NeedContainerRestart) }

// effort is the rank of the hardest need; 0 is a restart of the job.
func effort(of []Need) int {
	hardest := 0
	for _, n := range of {
		hardest = max(hardest, slices.Index(needs, n))
	}
	return hardest
}

func (c *candidate) advice() Advice {
	r, text := c.remedy, c.filler.text
	return Advice{
		Remedy: r.ID, FormOf: r.FormOf, Title: text(r.Title), Kind: r.Kind, Why: c.why(), Cures: c.curesOf(),
		Description: text(r.Description), Cost: cmp.Or(c.cost, text(r.Cost)), Needs: r.Needs, Risk: r.Risk, Lasts: r.Lasts,
		Caution: text(r.Caution), Apply: c.apply.WithForms(), Undo: text(r.Undo), Verify: text(r.Verify),
		Proof: c.proof, Links: r.Sources,
	}
}

func (c *candidate) curesOf() []Cure {
	all := make([]Cure, 0, len(c.cures))
	for _, f := range c.cures {
		all = append(all, CureOf(f))
	}
	return all
}

func (c *candidate) why() string {
	worst := slices.MinFunc(c.cures, rules.Finding.Compare)
	equal := 0
	for _, f := range c.cures {
		if f.Severity == worst.Severity {
			equal++
		}
	}
	first := "cures " + english.Plural(equal, string(worst.Severity)+" finding", "")
	if more := len(c.cures) - equal; more > 0 {
		first += fmt.Sprintf(" and %d more", more)
	}
	parts := []string{first + ", " + string(worst.Confidence)}
	switch c.proof.outcome() {
	case Proven:
		parts = append(parts, "measured here: "+c.proof.Detail)
	case Disproven:
		parts = append(parts, "tried here without success: "+c.proof.Detail)
	}
	parts = append(parts, Effort(c.remedy.Needs, c.remedy.Lasts))
	if c.remedy.Risk == "medium" || c.remedy.Risk == "high" {
		parts = append(parts, c.remedy.Risk+" risk")
	}
	return strings.Join(parts, "; ")
}

// Effort says in words what applying a remedy takes and how long it lasts.
func Effort(needs []Need, lasts string) string {
	words := map[Need]string{
		NeedJobRestart:       "restart of the job",
		NeedContainerRestart: "a new container",
		NeedImageRebuild:     "a new image",
		NeedRoot:             "root",
		NeedDriverReload:     "reload of the driver",
		NeedReboot:           "reboot",
		NeedBIOS:             "BIOS setup",
		NeedHands:            "physical access to the machine",
	}
	var parts []string
	if !slices.Contains(needs, NeedRoot) {
		parts = append(parts, "no root")
	}
	for _, n := range needs {
		if n == NeedJobRestart && lasts == "job" {
			continue // It says the same twice.
		}
		parts = append(parts, cmp.Or(words[n], string(n)))
	}
	duration := map[string]string{"job": "this job only", "boot": "until the next boot", "forever": "persistent"}
	return strings.Join(append(parts, duration[lasts]), ", ")
}

// Leads are the leading parts of the advice for similar findings. Each is nil if there is no such advice.
type Leads struct {
	// Now is the first workaround that takes no more than a restart of the job or
	// the container; nil if the fix is as quick.
	Now *Advice
	// Fix is the first that removes the cause, and Or the second.
	Fix, Or *Advice
	// FixFirst is true if the fix ranks before the workaround: if everything works,
	// but badly, a workaround would cost what the fix gains.
	FixFirst bool
}

// LeadsOf returns the leading parts of ranked advice for findings. What was tried here without success does not lead.
func LeadsOf(advice []Advice, findings []rules.Finding) Leads {
	var l Leads
	for i := range advice {
		a := &advice[i]
		if a.disproven() || !slices.ContainsFunc(findings, a.cures) {
			continue
		}
		switch {
		case a.Kind == Fix && l.Fix == nil:
			l.Fix = a
			l.FixFirst = l.Now == nil
		case a.Kind == Fix && l.Or == nil:
			l.Or = a
		case a.Kind == Workaround && l.Now == nil && isQuick(a.Needs):
			l.Now = a
		}
	}
	if l.Now != nil && l.Fix != nil && effort(l.Fix.Needs) <= effort(l.Now.Needs) && risky(l.Fix) <= risky(l.Now) {
		l.Now = nil
	}
	return l
}

// inTurn returns those that exist, in the order of the report.
func (l Leads) inTurn() []*Advice {
	all := []*Advice{l.Now, l.Fix, l.Or}
	if l.FixFirst {
		all = []*Advice{l.Fix, l.Now, l.Or}
	}
	return slices.DeleteFunc(all, func(a *Advice) bool { return a == nil })
}

func (a *Advice) disproven() bool { return a.Proof.outcome() == Disproven }

// cures reports whether the advice is for a finding.
func (a *Advice) cures(f rules.Finding) bool { return slices.Contains(a.Cures, CureOf(f)) }

func risky(a *Advice) int { return slices.Index(risks, a.Risk) }

// Proofs says, by remedy id, what the probe's report shows about the remedies that name one of its tests: proven when
// every transfer of that test arrived, disproven when one failed. A test that was not run proves nothing.
func (s *Set) Proofs(report *probe.Report) map[string]Proof {
	proofs := map[string]Proof{}
	if report == nil {
		return proofs
	}
	for _, r := range s.byID {
		if proof, tried := proofOf(report, r.Proof); tried && r.Proof != "" {
			proofs[r.ID] = proof
		}
	}
	return proofs
}

func proofOf(report *probe.Report, test string) (Proof, bool) {
	arrived, slowest := 0, 0.0
	for _, t := range report.Transfers {
		if t.Test != test {
			continue
		}
		switch t.Outcome {
		case probe.OK, probe.Slow:
			arrived++
			if t.GBps != nil && (slowest == 0 || *t.GBps < slowest) {
				slowest = *t.GBps
			}
		case probe.Corrupt, probe.Hang, probe.Error:
			return Proof{Outcome: Disproven, Detail: fmt.Sprintf("%s: %s from %s to %s", test, t.Outcome, t.Source, t.Destination)}, true
		default: // Not offered or not tried: it says nothing.
		}
	}
	switch {
	case arrived == 0:
		return Proof{}, false
	case slowest == 0:
		return Proof{Outcome: Proven, Detail: "correct"}, true
	}
	return Proof{Outcome: Proven, Detail: fmt.Sprintf("%.1f GB/s, correct", slowest)}, true
}
