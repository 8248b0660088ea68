package data

// Required returns the table of what must be known before a verdict may be "healthy".
var Required = reader[RequiredTable]("required")

// RequiredTable holds what each profile requires.
type RequiredTable struct {
	Required []Requirement `json:"required"`
}

// Requirement is a fact without which nothing is healthy.
type Requirement struct {
	// Fact is the path of the fact, as in the needs of rules. Holds is the condition that
	// it must satisfy; where that is empty, it must be known.
	Fact  string `json:"fact"`
	Holds string `json:"holds,omitempty"`
	// If is the condition under which it is required; empty for always.
	If string `json:"if,omitempty"`
	// Profiles are the profiles that require it.
	Profiles []string `json:"profiles"`
	// Reason says in a sentence why.
	Reason string `json:"reason"`
}
