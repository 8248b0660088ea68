package rules

import "slices"

// inert is the value of the param "effect" of a finding about a setting that does nothing.
const inert = "none"

// Inert reports whether the finding is about a setting that does nothing, such as a variable that no library reads.
func (f Finding) Inert() bool { return f.Params["effect"] == inert }

// likeness is what findings that a reader sees as one have in common. Those about
// different variables are not: each does something else.
type likeness struct {
	rule, title, variable string
	severity              Severity
	confidence            Confidence
	inert                 bool
	object                Object
}

func (f Finding) likeness() likeness {
	variable, _ := f.Params["variable"].(string)
	return likeness{f.Rule, f.Title, variable, f.Severity, f.Confidence, f.Inert(), f.Scope()}
}

// Groups groups findings that are alike, in their order.
func Groups(findings []Finding) [][]Finding {
	var all [][]Finding
	for _, f := range findings {
		i := slices.IndexFunc(all, func(group []Finding) bool { return group[0].likeness() == f.likeness() })
		if i < 0 {
			all = append(all, []Finding{f})
		} else {
			all[i] = append(all[i], f)
		}
	}
	return all
}
