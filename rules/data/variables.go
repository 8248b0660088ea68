package data

import (
	"slices"
	"strings"
)

// Variables returns the table of variables of communication libraries.
var Variables = reader("variables", func(t *VariableTable) {
	t.Of = map[string][]int{}
	for i, row := range t.Rows {
		for _, name := range row.Names {
			t.Of[name] = append(t.Of[name], i)
		}
	}
})

// VariableTable says which settings of variables are harmful, and which variables exist.
type VariableTable struct {
	// Guide is the default page of a row.
	Guide string `json:"guide"`
	// Losses are what it costs to disable something, by a name that rows use.
	Losses map[string]string `json:"losses"`
	// Rows are settings and what to say about them. The first row that fits a
	// variable decides.
	Rows []VariableRow `json:"rows"`
	// Of are the places in Rows of those about a variable. It is not part of the file.
	Of map[string][]int `json:"of"`
	// Levels are the distances that NCCL knows, from the nearest.
	Levels []string `json:"levels"`
	// PathLevels translate the words of nvidia-smi to those of NCCL.
	PathLevels map[string]string `json:"path_levels"`
	// Algorithms and Protocols are the names that NCCL accepts, in lower case.
	Algorithms []string `json:"algorithms"`
	Protocols  []string `json:"protocols"`
	// Joint are the variables on which all ranks of a communicator must agree.
	Joint []string `json:"joint"`
	// Misspelt are names that nothing reads, with the correct names.
	Misspelt map[string]string `json:"misspelt"`
	// Beside are the variables that change nothing about how NCCL and RCCL communicate; a name
	// that ends in _ stands for all that begin with it.
	Beside []string `json:"beside"`
	// Known are the variables that NCCL and RCCL read or have read, with "number" or
	// "text".
	Known map[string]string `json:"known"`
}

// VariableRow is a setting and what to say about it. A row without Is, AtMost, Text,
// Like and Lacks fits any value.
type VariableRow struct {
	Names []string `json:"names"`
	// Is requires that the value, parsed as NCCL parses numbers, is one of these, and AtMost
	// that it is at most this.
	Is     []int `json:"is,omitempty"`
	AtMost *int  `json:"at_most,omitempty"`
	// Text requires that the value is one of these, ignoring case, and Like that it
	// matches this expression.
	Text []string `json:"text,omitempty"`
	Like string   `json:"like,omitempty"`
	// Lacks requires that the value is a list of what to use without any of these.
	Lacks []string `json:"lacks,omitempty"`
	// When are conditions that must be known to hold, and Unless those that must not:
	// env-misconfig defines them. "nccl>=2.21" and "nccl<2.5" compare the NCCL found here.
	When   []string `json:"when,omitempty"`
	Unless []string `json:"unless,omitempty"`
	// Said are messages (ids of the catalogue) of which at least one must occur; the
	// finding shows it.
	Said []string `json:"said,omitempty"`
	// Silent is true if the setting is correct.
	Silent bool `json:"silent,omitempty"`
	// Severity is that of a finding, or "by-loss": high or medium, depending on the measurement.
	Severity   string `json:"severity,omitempty"`
	Confidence string `json:"confidence,omitempty"`
	// Why is what the setting does; it follows "NAME=value, set in ..., ". Loss names
	// what that costs.
	Why  string `json:"why,omitempty"`
	Loss string `json:"loss,omitempty"`
	// Remedies are unset-env if none are given.
	Remedies []string `json:"remedies,omitempty"`
	// Level is what NCCL_P2P_LEVEL should be, for the remedy nccl-p2p-level.
	Level string `json:"level,omitempty"`
	// Measured is true if the finding shows what was measured here.
	Measured bool `json:"measured,omitempty"`
	// Inert is true if the setting has no effect.
	Inert  bool   `json:"inert,omitempty"`
	Source string `json:"source,omitempty"`
}

// IsBeside reports whether a variable changes nothing about how NCCL and RCCL communicate.
func (t VariableTable) IsBeside(name string) bool {
	return slices.ContainsFunc(t.Beside, func(b string) bool { return name == b || strings.HasSuffix(b, "_") && strings.HasPrefix(name, b) })
}
