package lazy

import (
	"fmt"
	"sync"

	"gopkg.in/yaml.v3"
)

// Table returns a function that reads a table in YAML, which is part of the program, when it is first called.
func Table[T any](text []byte) func() *T {
	return sync.OnceValue(func() *T {
		t := new(T)
		if err := yaml.Unmarshal(text, t); err != nil {
			panic(fmt.Sprintf("a table of the program: %v", err)) // Tests read each.
		}
		return t
	})
}

// UnmarshalYAML takes the expression of a row.
func (r *Regexp) UnmarshalYAML(node *yaml.Node) error { return node.Decode(&r.expression) }
