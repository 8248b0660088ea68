package rules

import (
	"fmt"
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

// explanation is an entry of explains, read: what explains what. Both are "rule" or
// "rule/id".
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

// reached are the keys to which next leads from a start, at any distance; the start
// itself if a path leads back.
func reached(start string, next func(key string) []string) map[string]bool {
	seen := map[string]bool{}
	var visit func(key string)
	visit = func(key string) {
		for _, n := range next(key) {
			if !seen[n] {
				seen[n] = true
				visit(n)
			}
		}
	}
	visit(start)
	return seen
}

// directly lists what each rule, and each kind of finding, explains without others between.
func directly(rules []Rule) map[string][]string {
	direct := make(map[string][]string, len(rules))
	for _, r := range rules {
		for _, e := range r.explanations() {
			direct[e.cause] = append(direct[e.cause], e.effect)
		}
	}
	return direct
}

// circular are the rules whose findings may be consequences of themselves: then folding
// them would not end.
func circular(rules []Rule) map[string]bool {
	direct := directly(rules)
	next := func(key string) (effects []string) {
		for cause := range direct {
			if meet(cause, key) {
				effects = append(effects, direct[cause]...)
			}
		}
		return effects
	}
	all := map[string]bool{}
	for cause, effects := range direct {
		for _, effect := range effects {
			for key := range reached(effect, next) {
				all[ruleOf(cause)] = all[ruleOf(cause)] || meet(key, cause)
			}
			all[ruleOf(cause)] = all[ruleOf(cause)] || meet(effect, cause)
		}
	}
	return all
}

// meet reports whether a finding may be of both: the same kind, or a rule and one of its kinds.
func meet(a, b string) bool { return a == b || ruleOf(a) == b || a == ruleOf(b) }

// checkPrecedence checks that what a rule explains is a rule, that no finding explains
// itself, directly or through others, and that first_of names each kind once.
func (s *Set) checkPrecedence() []error {
	var faults []error
	itself := circular(s.rules)
	for _, rule := range s.rules {
		for _, e := range rule.explanations() {
			id := ruleOf(e.effect)
			if _, known := s.Rule(id); !known {
				faults = append(faults, &Problem{File: rule.File, Reason: "custom.explains: " + s.unknownRule(id).Error()})
			}
		}
		if itself[rule.ID] {
			faults = append(faults, &Problem{
				File: rule.File, Reason: fmt.Sprintf("rule %s explains itself through custom.explains", rule.ID),
				Hint: "a cause explains its consequences, never the reverse",
			})
		}
		for _, kinds := range rule.firstOf() {
			for i, id := range kinds {
				if slices.Contains(kinds[:i], id) {
					faults = append(faults, &Problem{File: rule.File, Reason: fmt.Sprintf("custom.first_of names %s twice", id)})
				}
			}
		}
	}
	return faults
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

// foremostKind leaves out the findings whose kind comes after that of another one in
// a list of the rule's first_of.
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
