// Package fleet folds the reports of many nodes into one: which nodes are well, which causes they share, what those with
// a cause have that the others lack, and whose figures are far from those of like hardware.
package fleet

// Node is what the report of one node says.
type Node struct {
	Name string `json:"name"`
	// Hardware is the same for nodes whose figures can be compared.
	Hardware string            `json:"hardware,omitempty"`
	Traits   map[string]string `json:"traits,omitempty"`
	Figures  map[string]Figure `json:"figures,omitempty"`
}
