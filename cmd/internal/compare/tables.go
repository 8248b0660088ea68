package compare

import (
	_ "embed"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

//go:embed tables.yaml
var tablesYAML []byte

// table is tables.yaml, with what its rows say by type, field and place.
type table struct {
	identities map[string][]string
	noise      map[string]string
	kinds      map[string]Kind
	Ordered    []string
	Measured   []string
	Nouns      map[string]string
}

var tables = sync.OnceValue(func() *table {
	var rows struct {
		table                    `yaml:",inline"`
		Identities, Noise, Kinds map[string][]string
	}
	if err := yaml.Unmarshal(tablesYAML, &rows); err != nil {
		panic(err) // It is part of the program, and a test reads it.
	}
	t := &rows.table
	t.identities, t.noise, t.kinds = map[string][]string{}, map[string]string{}, map[string]Kind{}
	for names, types := range rows.Identities {
		for _, of := range types {
			t.identities[of] = strings.Fields(names)
		}
	}
	for reason, fields := range rows.Noise {
		for _, id := range fields {
			t.noise[id] = reason
		}
	}
	for kind, places := range rows.Kinds {
		for _, at := range places {
			t.kinds[at] = Kind(kind)
		}
	}
	return t
})

// leftOut reports whether a field is no difference between machines.
func leftOut(id string) bool {
	noise := tables().noise
	return noise[id] != "" || noise[id[strings.LastIndexByte(id, '.'):]] != ""
}

// kindOf is what a fact is about.
func kindOf(pattern string) Kind {
	kinds := tables().kinds
	if kind, ok := kinds[pattern+"/"]; ok {
		return kind
	}
	for at := pattern; at != ""; {
		if kind, ok := kinds[at]; ok {
			return kind
		}
		if list, ok := strings.CutSuffix(at, "[]"); ok {
			at = list
		} else {
			at = at[:max(strings.LastIndexByte(at, '.'), 0)]
		}
	}
	return Fact
}
