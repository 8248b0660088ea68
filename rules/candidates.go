package rules

import (
	"cmp"
	"slices"

	"github.com/gpudoctor/gpudoctor/rules/data"
)

const (
	// maxCandidates bounds the causes that a finding lists: a longer list does not help to decide.
	maxCandidates = 3
	// firstRemedies is how many remedies a finding takes of its first candidate at least, where of the others it takes the
	// best: of one alone it takes as many as of several together.
	firstRemedies = 2
)

// weigh compares the candidates of a finding with the results of the rules: what a rule examined and did not find comes
// last. The finding then has the first cause, and its remedies are those of all, unless it has its own.
func (s *Set) weigh(f *Finding, v *Result, all []Finding) {
	if len(f.Candidates) == 0 {
		return
	}
	var known []Candidate
	for _, c := range f.Candidates {
		rule, ok := s.Rule(c.Cause)
		if !ok {
			continue // A test checks that each is known.
		}
		c.Title = rule.Title
		if d, ok := data.Areas().Decides[c.Cause]; ok {
			c.Command, c.Shows = d.Command, d.Shows
		}
		c.Against = v.against(rule.ID, all)
		known = append(known, c)
	}
	slices.SortStableFunc(known, func(a, b Candidate) int { return cmp.Compare(min(len(a.Against), 1), min(len(b.Against), 1)) })
	f.Candidates = known[:min(len(known), maxCandidates)]
	if len(f.Candidates) == 0 {
		return
	}
	own, _ := s.Rule(f.Rule)
	f.Cause = f.Candidates[0].Cause
	if !slices.Equal(f.Remedies, own.Remedies) {
		return
	}
	f.Remedies = nil
	for i, c := range f.Candidates {
		rule, _ := s.Rule(c.Cause)
		most := 1
		if i == 0 {
			most = max(firstRemedies, 1+maxCandidates-len(f.Candidates))
		}
		for _, id := range rule.Remedies[:min(len(rule.Remedies), most)] {
			if !slices.Contains(f.Remedies, id) {
				f.Remedies = append(f.Remedies, id)
			}
		}
	}
}

// against is what speaks against a cause: its rule had all it needs and found nothing, or has nothing to judge here. It
// is empty if the rule has a finding or could not be judged.
func (v *Result) against(rule string, all []Finding) string {
	switch why, never := v.NotApplicable[rule]; {
	case slices.ContainsFunc(all, func(f Finding) bool { return f.Rule == rule }):
		return ""
	case slices.Contains(v.Passed, rule):
		return "the input shows no sign of it"
	case never && why != noTexts:
		return why
	}
	return ""
}
