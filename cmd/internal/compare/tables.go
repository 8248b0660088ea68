package compare

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
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

var tables = sync.OnceValue(func() *table {
	t := &table{}
	if err := yaml.Unmarshal(tablesYAML, t); err != nil {
		panic(err) // It is part of the program, and a test reads it.
	}
	return t
})

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
