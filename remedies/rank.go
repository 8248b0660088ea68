package remedies

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/rules"
)

// The outcomes of a proof.
const (
	// Proven means that what the remedy leads to was tried here and works.
	Proven = "proven"
	// Disproven means that it was tried here and does not help.
	Disproven = "disproven"
)

// score is what an advice is ranked by, the weightiest first. A lower number
// is better in each.
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

func (s score) compare(t score) int {
	return cmp.Or(
		cmp.Compare(s.disproven, t.disproven), cmp.Compare(s.severity, t.severity), cmp.Compare(s.confidence, t.confidence),
		cmp.Compare(s.turn, t.turn), cmp.Compare(s.cured, t.cured), cmp.Compare(s.unproven, t.unproven),
		cmp.Compare(s.place, t.place), cmp.Compare(s.risk, t.risk), cmp.Compare(s.effort, t.effort),
	)
}

// candidate is a remedy with the findings that it cures.
type candidate struct {
	remedy Remedy
	cures  []rules.Finding
	proof  *Proof
	score  score
}

// Rank returns what can be done about the findings, the first thing to do
// first. Where communication fails that is a workaround that is quick and safe,
// if there is one; else it is what removes the cause. Beside it stands the
// other of the two for the same finding. proofs says, by remedy id, what was
// tried here. A remedy that does not exist is left out: Check finds it. One that
// would do more for findings of low severity than for the faults that it cures
// stands there several times, each for its own findings.
func (s *Set) Rank(findings []rules.Finding, proofs map[string]Proof) []Advice {
	candidates := s.candidates(findings, proofs)
	slices.SortFunc(candidates, func(a, b *candidate) int {
		return cmp.Or(a.score.compare(b.score), cmp.Compare(a.remedy.ID, b.remedy.ID))
	})
	pairUp(candidates)
	advice := make([]Advice, 0, len(candidates))
	for _, c := range candidates {
		advice = append(advice, c.advice())
	}
	return advice
}

// ForVendor returns the remedies as they are for a machine whose GPUs are all of
// one vendor.
func (s *Set) ForVendor(vendor string) *Set {
	own := *s
	own.forms = make(map[string]string)
	for id, r := range s.byID {
		if r.FormOf != "" && r.Vendor != "" && r.Vendor == vendor {
			own.forms[r.FormOf] = id
		}
	}
	return &own
}

// candidates collects the remedies that the findings name, each once for all
// findings of one band.
func (s *Set) candidates(findings []rules.Finding, proofs map[string]Proof) []*candidate {
	type key struct {
		id   string
		band int
	}
	byKey := map[key]*candidate{}
	var list []*candidate
	for _, f := range findings {
		seen := map[string]bool{} // A finding counts once, also under an alias.
		for place, name := range f.Remedies {
			r, ok := s.Remedy(name)
			if form := s.forms[r.ID]; form != "" {
				r = s.byID[form]
			}
			if !ok || seen[r.ID] {
				continue
			}
			seen[r.ID] = true
			k := key{r.ID, band(f.Severity)}
			c := byKey[k]
			if c == nil {
				c = &candidate{remedy: r, score: score{
					severity: f.Severity.Rank(), confidence: f.Confidence.Rank(), place: place, unproven: 1,
				}}
				if proof, tried := proofs[r.ID]; tried {
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
		c.rate()
	}
	return list
}

// band tells apart the findings for which a remedy is advised apart. Those of
// medium severity and above are one band: they are faults. Of those below, what
// they name may be meant as it is, so that no fault's cure may take it along.
func band(s rules.Severity) int { return max(s.Rank(), rules.Medium.Rank()) }

// joined puts the candidates of one remedy together again where the findings
// of the lower band add nothing to what is to be done for those of the higher.
func joined(list []*candidate) []*candidate {
	slices.SortStableFunc(list, func(a, b *candidate) int { return cmp.Compare(a.score.severity, b.score.severity) })
	var kept []*candidate
	for _, c := range list {
		i := slices.IndexFunc(kept, func(k *candidate) bool { return k.remedy.ID == c.remedy.ID && k.covers(c) })
		if i < 0 {
			kept = append(kept, c)
			continue
		}
		kept[i].cures = append(kept[i].cures, c.cures...)
		kept[i].score.place = min(kept[i].score.place, c.score.place)
	}
	return kept
}

// covers reports whether doing what the candidate says does all that the other
// one of the same remedy says, too.
func (c *candidate) covers(other *candidate) bool {
	one := newFiller(c.cures).apply(c.remedy.Apply)
	both := newFiller(slices.Concat(c.cures, other.cures)).apply(c.remedy.Apply)
	return reflect.DeepEqual(one, both)
}

// add adds a finding that the remedy cures.
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
	if c.proof != nil {
		switch c.proof.Outcome {
		case Proven:
			c.score.unproven = 0
		case Disproven:
			c.score.disproven = 1
		}
	}
	c.score.risk = slices.Index(risks, c.remedy.Risk)
	c.score.effort = effort(c.remedy.Needs)
	c.score.turn = c.turn()
}

// turn is 1 for a fix. A workaround that is quick and safe comes before it if
// the finding is critical, so that nothing works until something is done, or if
// the rule names it first; else it comes after, since it costs what the fix
// would bring.
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

// isQuick reports whether the needs are no more than a restart of the job or
// the container.
func isQuick(of []Need) bool { return effort(of) <= slices.Index(needs, NeedContainerRestart) }

// effort is the place of the hardest need; 0 is a restart of the job.
func effort(of []Need) int {
	hardest := 0
	for _, n := range of {
		hardest = max(hardest, slices.Index(needs, n))
	}
	return hardest
}

// pairUp moves next to the first candidate what stands beside it for the worst
// finding that it cures: beside a workaround the first fix, beside a fix the
// first quick workaround.
func pairUp(list []*candidate) {
	if len(list) == 0 || list[0].score.disproven > 0 {
		return
	}
	first := list[0]
	worst := slices.MinFunc(first.cures, rules.Finding.Compare)
	for i, c := range list {
		if c.remedy.Kind == first.remedy.Kind || c.score.disproven > 0 || !c.curesFinding(worst) {
			continue
		}
		if c.remedy.Kind == Fix || isQuick(c.remedy.Needs) {
			copy(list[2:i+1], list[1:i])
			list[1] = c
			return
		}
	}
}

func (c *candidate) curesFinding(f rules.Finding) bool {
	return slices.ContainsFunc(c.cures, func(g rules.Finding) bool { return g.Rule == f.Rule && g.Subject == f.Subject })
}

// advice fills the remedy's templates.
func (c *candidate) advice() Advice {
	r, fill := c.remedy, newFiller(c.cures)
	text := fill.merged.text
	a := Advice{
		Remedy: r.ID, Title: text(r.Title), Kind: r.Kind, Why: c.why(),
		Description: text(r.Description), Cost: text(r.Cost), Needs: r.Needs, Risk: r.Risk, Lasts: r.Lasts,
		Caution: text(r.Caution), Apply: fill.apply(r.Apply), Undo: text(r.Undo), Verify: text(r.Verify),
		Proof: c.proof, Links: r.Sources,
	}
	if r.FormOf != "" {
		a.Remedy, a.Form = r.FormOf, r.ID
	}
	for _, f := range c.cures {
		a.Cures = append(a.Cures, Cure{Rule: f.Rule, Subject: f.Subject})
	}
	return a
}

// why says in words what the score says in numbers.
func (c *candidate) why() string {
	worst := slices.MinFunc(c.cures, rules.Finding.Compare)
	equal := 0
	for _, f := range c.cures {
		if f.Severity == worst.Severity {
			equal++
		}
	}
	first := fmt.Sprintf("cures %s", count(equal, string(worst.Severity)))
	if more := len(c.cures) - equal; more > 0 {
		first += fmt.Sprintf(" and %d more", more)
	}
	parts := []string{first + ", " + string(worst.Confidence)}
	if c.proof != nil {
		switch c.proof.Outcome {
		case Proven:
			parts = append(parts, "measured here: "+c.proof.Detail)
		case Disproven:
			parts = append(parts, "tried here and of no help: "+c.proof.Detail)
		}
	}
	parts = append(parts, needsInWords(c.remedy.Needs)+", "+lastsInWords[c.remedy.Lasts])
	if c.remedy.Risk == "medium" || c.remedy.Risk == "high" {
		parts = append(parts, c.remedy.Risk+" risk")
	}
	return strings.Join(parts, "; ")
}

// needWords and lastsInWords are what needs and lasts say to a person.
var (
	needWords = map[Need]string{
		NeedContainerRestart: "a new container", NeedImageRebuild: "a new image", NeedRoot: "root",
		NeedDriverReload: "a reload of the driver", NeedReboot: "a reboot", NeedBIOS: "a BIOS setting", NeedHands: "hands on the machine",
	}
	lastsInWords = map[string]string{"job": "this job only", "boot": "until the next boot", "forever": "lasting"}
)

// needsInWords writes "no root", "root and a reboot".
func needsInWords(of []Need) string {
	var words []string
	for _, n := range of {
		if w := needWords[n]; w != "" {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return "no root"
	}
	return strings.Join(words, " and ")
}

// Pair returns, of ranked advice, what to do about a finding now and what to
// do about it for good. now is the first workaround that takes no more than a
// restart of the job or the container, and nil where the fix is as quick. fix
// is the first that removes the cause. What was tried here and is of no help is
// neither.
func Pair(advice []Advice, f rules.Finding) (now, fix *Advice) {
	for i := range advice {
		a := &advice[i]
		if !slices.Contains(a.Cures, Cure{Rule: f.Rule, Subject: f.Subject}) || a.Proof != nil && a.Proof.Outcome == Disproven {
			continue
		}
		switch {
		case a.Kind == Fix && fix == nil:
			fix = a
		case a.Kind == Workaround && now == nil && isQuick(a.Needs):
			now = a
		}
	}
	if now != nil && fix != nil && effort(fix.Needs) <= effort(now.Needs) && risky(fix) <= risky(now) {
		now = nil
	}
	return now, fix
}

func risky(a *Advice) int { return slices.Index(risks, a.Risk) }

// Proofs says, by remedy id, what the probe's report shows of the remedies
// that name one of its tests: proven when every transfer of that test arrived,
// disproven when one failed. A test that was not run proves nothing.
func (s *Set) Proofs(report *probe.Report) map[string]Proof {
	proofs := map[string]Proof{}
	if report == nil {
		return proofs
	}
	for _, r := range s.byID {
		if r.Proof == "" {
			continue
		}
		if proof, tried := proofOf(report, r.Proof); tried {
			proofs[r.ID] = proof
		}
	}
	return proofs
}

// proofOf sums up the transfers of one test.
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
