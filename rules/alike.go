package rules

import "slices"

// inert is the value of the param "effect" of a finding about a setting that
// does nothing.
const inert = "none"

// Inert reports whether the finding is about a setting that does nothing, such
// as a variable that no library reads.
func (f Finding) Inert() bool { return f.Params["effect"] == inert }

// Alike reports whether a person reads two findings as one. Those about
// different variables are not: each does something else.
func (f Finding) Alike(other Finding) bool {
	return f.Rule == other.Rule && f.Title == other.Title && f.Severity == other.Severity && f.Confidence == other.Confidence &&
		f.variable() == other.variable() && f.Inert() == other.Inert()
}

// variable is the variable that a finding is about; empty where it is about none.
func (f Finding) variable() string {
	name, _ := f.Params["variable"].(string)
	return name
}

// Groups gathers findings that are alike, in their order.
func Groups(findings []Finding) [][]Finding {
	var all [][]Finding
	for _, f := range findings {
		i := slices.IndexFunc(all, func(g []Finding) bool { return g[0].Alike(f) })
		if i < 0 {
			all = append(all, nil)
			i = len(all) - 1
		}
		all[i] = append(all[i], f)
	}
	return all
}
