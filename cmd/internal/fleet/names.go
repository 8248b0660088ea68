package fleet

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe/nodes"
)

// Names are the names of nodes in a list: separated by commas or white space, with ranges as Slurm writes them
// (n[01-03,7]).
func Names(list string) []string {
	var all []string
	depth := 0
	for _, word := range strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		}
		return strings.ContainsRune(" \t\r\n", r) || r == ',' && depth <= 0
	}) {
		names := nodes.Expand(word, max(0, maxNodes-len(all)))
		if names == nil && len(all) < maxNodes { // What is no range stays as it is.
			names = []string{word}
		}
		all = append(all, names...)
	}
	return all
}
