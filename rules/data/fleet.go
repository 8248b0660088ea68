package data

// Fleet returns the table of what should be alike on all nodes of a job.
var Fleet = reader[FleetTable]("fleet")

// FleetTable says by what nodes are compared.
type FleetTable struct {
	Traits []FleetTrait `json:"traits"`
	// Own are variables that each node or process may have its own value of.
	Own []string `json:"own"`
}

// FleetTrait is something by which nodes are compared.
type FleetTrait struct {
	Name string `json:"name"`
	// Fact is the path of its value. "[]" stands for all elements of a list, whose values count once each, in order,
	// and "[kind=libnccl]" for those whose field has that value. Where it is empty, the report's summary of
	// the host has a field of that name.
	Fact string `json:"fact,omitempty"`
	// Counted is true if the elements with each value are counted ("8 x 400").
	Counted bool `json:"counted,omitempty"`
	// Expected is the value that nodes should have. Those with another one are named even if most nodes have it.
	Expected string `json:"expected,omitempty"`
	// LikeHardware is true if it is compared between nodes with the same GPUs only.
	LikeHardware bool `json:"like_hardware,omitempty"`
	// Severity, Confidence, Why and Remedies are those of the finding. Why says what it leads to.
	Severity   string   `json:"severity"`
	Confidence string   `json:"confidence,omitempty"`
	Why        string   `json:"why"`
	Remedies   []string `json:"remedies,omitempty"`
	Source     string   `json:"source"`
}
