package facts

// FleetFacts is what the reports of many nodes say of that which a job expects to be alike on all of them. Only
// gpudoctor fleet makes it, for the rules of the profile "fleet"; it is a fact of no machine.
type FleetFacts struct {
	// Nodes is how many nodes have a report.
	Nodes int `json:"nodes"`
	// Traits are what the nodes were compared by, in order of name and hardware.
	Traits []FleetTrait `json:"traits"`
}

// FleetTrait is a trait of nodes, with the values that it has. A node on which it is not known is in none of them.
type FleetTrait struct {
	// Name is the name of a row of rules/data/fleet.yaml, of a variable, "subnet of mlx5_0", or a part of the
	// summary of a host in a report ("kernel").
	Name string `json:"name"`
	// Hardware are the GPUs of the nodes that are compared ("8 x NVIDIA H200"); empty if all nodes are.
	Hardware string `json:"hardware,omitempty"`
	// Values are the values, the most frequent first.
	Values []FleetValue `json:"values"`
}

// FleetValue is a value of a trait.
type FleetValue struct {
	Value string `json:"value"`
	// Count is how many nodes have it, and Nodes are their names; nil if it is the value of more than half of
	// those on which the trait is known, or the one that nodes should have (expected of rules/data/fleet.yaml).
	Count int      `json:"count"`
	Nodes []string `json:"nodes,omitempty"`
}
