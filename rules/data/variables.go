package data

// Variables returns the table of variables of communication libraries.
var Variables = reader[VariableTable]("variables")

// VariableTable says which settings of variables do harm, and which variables there are.
type VariableTable struct {
	// Guide is the page of a row that names no other.
	Guide string `json:"guide"`
	// Losses are what it costs to do without something, by a name that rows use.
	Losses map[string]string `json:"losses"`
	// Rows are settings and what to say about them. The first row that fits a
	// variable decides.
	Rows []VariableRow `json:"rows"`
	// Levels are the distances that NCCL knows, from the nearest, and OldLevels those that
	// its numbers mean.
	Levels    []string `json:"levels"`
	OldLevels []string `json:"old_levels"`
	// PathLevels are the words of nvidia-smi in those of NCCL.
	PathLevels map[string]string `json:"path_levels"`
	// Algorithms and Protocols are the names that NCCL takes, in lower case.
	Algorithms []string `json:"algorithms"`
	Protocols  []string `json:"protocols"`
	// Joint are the variables on which all ranks of a communicator must agree.
	Joint []string `json:"joint"`
	// Misspelt are names that nothing reads, with those that are meant.
	Misspelt map[string]string `json:"misspelt"`
	// Known are the variables that NCCL and RCCL read or have read, with "number" or
	// "text".
	Known map[string]string `json:"known"`
}

// VariableRow is a setting and what to say about it. A row without Is, AtMost, Text,
// Like and Lacks fits any value.
type VariableRow struct {
	Names []string `json:"names"`
	// Is holds that the value, read as NCCL reads numbers, is one of these, and AtMost
	// that it is no more than this.
	Is     []int `json:"is,omitempty"`
	AtMost *int  `json:"at_most,omitempty"`
	// Text holds that the value is one of these, whatever its case, and Like that it
	// matches this expression.
	Text []string `json:"text,omitempty"`
	Like string   `json:"like,omitempty"`
	// Lacks holds that the value is a list of what to use, and none of these is in it.
	Lacks []string `json:"lacks,omitempty"`
	// When are circumstances that must be known to hold, and Unless those that must not:
	// env-misconfig names them. "nccl>=2.21" and "nccl<2.5" compare the NCCL found here.
	When   []string `json:"when,omitempty"`
	Unless []string `json:"unless,omitempty"`
	// Said are messages of which one must have been said (ids of the catalogue); the
	// finding shows it.
	Said []string `json:"said,omitempty"`
	// Silent is true where the setting is right.
	Silent bool `json:"silent,omitempty"`
	// Severity is that of a finding, or "by-loss": high or medium, by what was measured.
	Severity   string `json:"severity,omitempty"`
	Confidence string `json:"confidence,omitempty"`
	// Why is what the setting does, to follow "NAME=value, set in ..., ", and Loss names
	// what that costs.
	Why  string `json:"why,omitempty"`
	Loss string `json:"loss,omitempty"`
	// Remedies are unset-env where none are given.
	Remedies []string `json:"remedies,omitempty"`
	// Level is what NCCL_P2P_LEVEL should be, for the remedy nccl-p2p-level.
	Level string `json:"level,omitempty"`
	// Measured is true where the finding shows what was measured here.
	Measured bool `json:"measured,omitempty"`
	// Inert is true where the setting does nothing.
	Inert  bool   `json:"inert,omitempty"`
	Source string `json:"source,omitempty"`
}
