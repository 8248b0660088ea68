package rules

import (
	"cmp"
	"reflect"
	"slices"
)

// folding are the steps that decide which finding is reported and which is listed under another, in their order; each has what the one before it
// left, in order of rank. What comes before them is in the metadata of a rule alone: first_of (foremostKinds).
var folding = []func(findings []Finding, rules map[string]Rule) []Finding{
	joinSame,       // What facts say of a subject goes under what a log says of it.
	underCauses,    // A consequence goes under its cause.
	foldSameFault,  // One fault that two findings report is one finding.
	foldLastResort, // What says only that something failed goes under what may explain it.
	withoutGuesses, // A guess goes where a cause is known.
}

// fold applies the steps to what all rules found.
func fold(findings []Finding, all []Rule) []Finding {
	rules := make(map[string]Rule, len(all))
	for _, rule := range all {
		rules[rule.ID] = rule
	}
	for _, step := range folding {
		slices.SortStableFunc(findings, Finding.Compare)
		findings = step(findings, rules)
	}
	return findings
}

// underCauses puts each finding that is a consequence of another under that finding, and returns the causes.
//
// A finding is a consequence when the other's rule explains its rule, directly or through other rules, and the two
// share a GPU. A rule that judges only texts, which are always read whole, is in between only with a finding of its
// own. A finding that names no GPU concerns the whole host and shares all GPUs. It is one as well when its rule has
// own_log and the other quotes a cause from the log of the probe's library. If several could be its cause, it goes
// under the one that ranks highest. A cause is as severe as the worst of its consequences, and confirmed if one of them
// is: what was measured there is an effect of the cause.
func underCauses(findings []Finding, rules map[string]Rule) []Finding {
	effects := make([][]string, len(findings)) // Of the rule of each, and of its kind.
	for i, f := range findings {
		for _, e := range rules[f.Rule].explanations() {
			if e.cause == f.Rule || e.cause == f.key() {
				effects[i] = append(effects[i], e.effect)
			}
		}
		for at := 0; at < len(effects[i]); at++ { // And through rules that may lack a finding because nothing was measured.
			effect := effects[i][at]
			for _, e := range rules[ruleOf(effect)].explanations() {
				through := !rules[ruleOf(effect)].TextsOnly && (e.cause == effect || e.cause == ruleOf(effect))
				if through && !slices.Contains(effects[i], e.effect) {
					effects[i] = append(effects[i], e.effect)
				}
			}
		}
	}
	parent := make([]int, len(findings))
	for i := range findings {
		f, kind := &findings[i], findings[i].key()
		parent[i] = -1
		for at := range findings {
			cause := &findings[at]
			quotes := rules[f.Rule].OwnLog && cause.OwnLog && !rules[cause.Rule].LastResort && !rules[cause.Rule].OwnLog
			if cause.Past && !f.Past { // What is past does not explain what is not.
				continue
			}
			explained := slices.Contains(effects[at], f.Rule) || slices.Contains(effects[at], kind)
			if (quotes || explained) && cause.sharesGPU(f) {
				parent[i] = at
				break
			}
		}
	}
	for i := range findings {
		root := i
		for parent[root] >= 0 { // It ends, since no rule explains itself.
			root = parent[root]
		}
		if root == i {
			continue
		}
		cause, effect := &findings[root], findings[i]
		effect.Explains = nil
		cause.Explains = append(cause.Explains, effect)
		cause.Severity = worst(cause.Severity, effect.Severity)
		if effect.Confidence == Confirmed && cause.Confidence != Confirmed {
			cause.Confidence, cause.OfCause = Confirmed, cause.Confidence
		}
	}
	var causes []Finding
	for i, f := range findings {
		if parent[i] < 0 {
			causes = append(causes, f)
		}
	}
	return causes
}

// sharesGPU reports whether two findings are about a common GPU; one that names none is about all.
func (f *Finding) sharesGPU(other *Finding) bool {
	return len(f.Affects) == 0 || len(other.Affects) == 0 ||
		slices.ContainsFunc(f.Affects, func(gpu string) bool { return slices.Contains(other.Affects, gpu) })
}

// foldSameFault puts findings on the same fault under one of them: under the one of the rule that the cause is named
// after or, of one rule, the one that names the GPU; else under the one that ranks highest.
func foldSameFault(causes []Finding, _ map[string]Rule) []Finding {
	slices.SortStableFunc(causes, func(a, b Finding) int { return cmp.Compare(standing(a), standing(b)) })
	var kept []Finding
	for _, f := range causes {
		i := slices.IndexFunc(kept, func(k Finding) bool { return sameFault(k, f, causes) })
		if i < 0 {
			kept = append(kept, f)
			continue
		}
		k := &kept[i]
		k.Severity = worst(k.Severity, f.Severity)
		k.surer(f)
		if compareOrder(f.Order, k.Order) < 0 {
			k.Order = f.Order
		}
		if k.Rule == f.Rule {
			k.Evidence = slices.Concat(k.Evidence, f.Evidence)
		}
		under := f.Explains
		f.Explains = nil
		k.Explains = slices.Concat(k.Explains, []Finding{f}, under)
	}
	return kept
}

// worst is the worse of two severities.
func worst(a, b Severity) Severity { return severities[min(a.Rank(), b.Rank())] }

// surer takes the confidence of another finding on the same fault where that one is surer.
func (f *Finding) surer(other Finding) {
	ofCause := slices.MinFunc([]Confidence{cmp.Or(f.OfCause, f.Confidence), cmp.Or(other.OfCause, other.Confidence)}, Confidence.compare)
	f.Confidence = slices.MinFunc([]Confidence{f.Confidence, other.Confidence}, Confidence.compare)
	f.OfCause = ofCause
	if ofCause == f.Confidence {
		f.OfCause = ""
	}
}

// standing is lower for a finding under which others of its cause are folded.
func standing(f Finding) int {
	s := 0
	if f.Rule != f.Cause {
		s += 2
	}
	if len(f.Affects) == 0 {
		s++
	}
	return s
}

// noCause is the cause of findings without a named cause: that two rules share it does not make their findings one.
const noCause = "other"

// sameFault reports whether two findings of one cause are about the same fault. Those of one rule do where it says so
// (the param "fault") or where one names the only GPU at fault and the other none, as a program that does not know
// which it was. Those of two rules do where they concern the same GPUs, or rest on the same evidence.
func sameFault(k, f Finding, all []Finding) bool {
	switch {
	case k.Cause == "" || k.Cause != f.Cause:
		return false
	case k.Rule == f.Rule && len(k.Affects) == 1 && len(f.Affects) == 0:
		return f.Order != nil && !slices.ContainsFunc(all, func(o Finding) bool {
			return o.Rule == k.Rule && len(o.Affects) > 0 && !slices.Equal(o.Affects, k.Affects)
		})
	case k.Rule == f.Rule:
		return k.Subject == f.Subject && k.Params["fault"] != nil && k.Params["fault"] == f.Params["fault"]
	case k.Cause == noCause:
		return false
	case len(k.Affects) > 0 && len(f.Affects) > 0:
		return slices.Equal(k.Affects, f.Affects)
	}
	return slices.ContainsFunc(f.Evidence, func(e Evidence) bool {
		return slices.ContainsFunc(k.Evidence, func(o Evidence) bool {
			return e.Fact == o.Fact && e.Source == o.Source && reflect.DeepEqual(e.Value, o.Value)
		})
	})
}

// joinSame puts what the facts say of a subject under what a log said of it, of
// the same rule: the log names the fault, and the facts confirm it.
func joinSame(findings []Finding, _ map[string]Rule) []Finding {
	var kept []Finding
	for _, f := range findings {
		i := slices.IndexFunc(kept, func(told Finding) bool {
			return f.Order == nil && told.Order != nil && told.Rule == f.Rule && told.Subject == f.Subject && told.Confidence.compare(f.Confidence) <= 0
		})
		if i < 0 {
			kept = append(kept, f)
			continue
		}
		kept[i].Evidence = append(slices.Clip(kept[i].Evidence), f.Evidence...)
	}
	return kept
}

// foldLastResort puts findings that only say that something failed under the finding that ranks highest, if one of
// medium severity or above names a cause. That finding is then as severe as the failure.
func foldLastResort(causes []Finding, rules map[string]Rule) []Finding {
	kept := slices.DeleteFunc(slices.Clone(causes), func(f Finding) bool { return rules[f.Rule].LastResort })
	folded := slices.DeleteFunc(slices.Clone(causes), func(f Finding) bool { return !rules[f.Rule].LastResort })
	if len(kept) == 0 || kept[0].Severity.Rank() > Medium.Rank() {
		return causes
	}
	kept[0].Explains = append(kept[0].Explains, folded...)
	for _, f := range folded {
		kept[0].Severity = worst(kept[0].Severity, f.Severity)
	}
	return kept
}

// withoutGuesses takes from the consequences of a cause what only guessed at it: findings
// of a last resort that comes before another one. The failure itself stays.
func withoutGuesses(causes []Finding, rules map[string]Rule) []Finding {
	isLast := func(e explanation) bool { return rules[ruleOf(e.effect)].LastResort }
	for i := range causes {
		causes[i].Explains = slices.DeleteFunc(causes[i].Explains, func(f Finding) bool {
			return rules[f.Rule].LastResort && slices.ContainsFunc(rules[f.Rule].explanations(), isLast)
		})
	}
	return causes
}
