package compare

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

//go:embed tables.yaml
var tablesYAML []byte

// table is tables.yaml, whose comments say what each part is.
type table struct {
	Identities map[string][]string
	Noise      map[string][]string
	Ordered    []string
	Measured   []string
	Kinds      map[Kind][]string
	Nouns      map[string]string
}

var tables = lines.FromYAML[table](tablesYAML)

// leftOut reports whether a field is no difference between machines.
func leftOut(id string) bool {
	name := id[strings.LastIndexByte(id, '.'):]
	for _, fields := range tables().Noise {
		if slices.Contains(fields, id) || slices.Contains(fields, name) {
			return true
		}
	}
	return false
}

func kindOf(pattern string) Kind {
	for at := pattern + "/"; at != ""; {
		for kind, places := range tables().Kinds {
			if slices.Contains(places, at) {
				return kind
			}
		}
		at = at[:max(strings.LastIndexAny(at, "./["), 0)]
	}
	return Fact
}
