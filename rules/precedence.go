package rules

import (
	"slices"
	"strings"
)

// Which finding is reported, and which is folded under another, is declared in the metadata of
// rules and applied here and in fold:
//
//   - explains: findings of other rules that are consequences of this rule's. An entry is
//     "RULE" or "RULE/ID", one kind of that rule's findings; "ID > RULE/ID" says so of one
//     kind of this rule's own findings only.
//   - own_log: findings of this rule are consequences of those, of any other rule, that quote a
//     cause from the log of the probe's own library.
//   - first_of: kinds of this rule's findings, by id. Of those that hold, only the ones of
//     the kind that comes first are reported. An entry "A > B > C" is a list of its own, for
//     rules with several of them.

// key names the kind of a finding: "rule/id".
func (f Finding) key() string { return f.Rule + "/" + f.ID }

// explanation is an entry of explains, read: what explains what. Both are "rule" or "rule/id".
type explanation struct{ cause, effect string }

// explanations reads the entries of a rule's explains.
func (r Rule) explanations() []explanation {
	all := make([]explanation, 0, len(r.Explains))
	for _, entry := range r.Explains {
		own, effect, narrowed := strings.Cut(entry, " > ")
		if narrowed {
			all = append(all, explanation{r.ID + "/" + own, effect})
		} else {
			all = append(all, explanation{r.ID, entry})
		}
	}
	return all
}

// ruleOf is the rule of a key.
func ruleOf(key string) string {
	rule, _, _ := strings.Cut(key, "/")
	return rule
}

// circular are the rules whose findings may be consequences of themselves, directly or through others: then folding
// them would not end.
func circular(rules []Rule) map[string]bool {
	direct := map[string][]string{} // What each rule, and each kind of finding, explains without others between.
	for _, r := range rules {
		for _, e := range r.explanations() {
			direct[e.cause] = append(direct[e.cause], e.effect)
		}
	}
	all := map[string]bool{}
	for cause, effects := range direct {
		seen, next := map[string]bool{}, slices.Clone(effects)
		for len(next) > 0 {
			key := next[0]
			next = next[1:]
			if seen[key] {
				continue
			}
			seen[key] = true
			all[ruleOf(cause)] = all[ruleOf(cause)] || meet(key, cause)
			for other := range direct {
				if meet(other, key) {
					next = append(next, direct[other]...)
				}
			}
		}
	}
	return all
}

// meet reports whether a finding may be of both: the same kind, or a rule and one of its kinds.
func meet(a, b string) bool { return a == b || ruleOf(a) == b || a == ruleOf(b) }

// checkPrecedence checks that what a rule explains is a rule, that no finding explains
// itself, directly or through others, and that first_of names each kind once.
func (s *Set) checkPrecedence(faults *faultsOf) {
	itself := circular(s.rules)
	for _, rule := range s.rules {
		faults.file, faults.line = rule.File, 0
		for _, e := range rule.explanations() {
			id := ruleOf(e.effect)
			if _, known := s.Rule(id); !known {
				faults.add("", "custom.explains: %v", s.unknownRule(id))
			}
		}
		if itself[rule.ID] {
			faults.add("a cause explains its consequences, never the reverse", "rule %s explains itself through custom.explains", rule.ID)
		}
		for _, kinds := range rule.firstOf() {
			for i, id := range kinds {
				if slices.Contains(kinds[:i], id) {
					faults.add("", "custom.first_of names %s twice", id)
				}
			}
		}
	}
}

// firstOf reads the lists of a rule's first_of.
func (r Rule) firstOf() [][]string {
	lists := [][]string{nil}
	for _, entry := range r.FirstOf {
		if kinds := strings.Split(entry, " > "); len(kinds) > 1 {
			lists = append(lists, kinds)
		} else {
			lists[0] = append(lists[0], entry)
		}
	}
	return lists
}

// foremostKinds leaves out of the rules' findings what comes after others of the same rule, and returns the rest.
func foremostKinds(rules []Rule, answers map[string]reading) []Finding {
	var all []Finding
	for _, rule := range rules {
		a := answers[rule.ID]
		a.findings = rule.foremostKind(a.findings)
		answers[rule.ID] = a
		all = append(all, a.findings...)
	}
	return all
}

// foremostKind leaves out the findings whose kind comes after that of another one in a list of the rule's first_of.
func (r Rule) foremostKind(findings []Finding) []Finding {
	late := map[string]bool{}
	for _, kinds := range r.firstOf() {
		first := slices.IndexFunc(kinds, func(id string) bool {
			return slices.ContainsFunc(findings, func(f Finding) bool { return f.ID == id })
		})
		if first < 0 {
			continue
		}
		for _, id := range kinds[first+1:] {
			late[id] = true
		}
	}
	return slices.DeleteFunc(findings, func(f Finding) bool { return late[f.ID] })
}
