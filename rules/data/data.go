// Package data holds the tables that rules and checks read. Each is a YAML file,
// NAME.yaml; a rule imports it as data.tables.NAME, and Go has a function for it.
//
// The Go types here are the schema.
package data

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"gopkg.in/yaml.v3"
)

// Files are the files of the tables.
//
//go:embed *.yaml
var Files embed.FS

// tables return a pointer to each table by its name, as reader notes them.
var tables = map[string]func() any{}

// Names are the names of all tables, sorted.
func Names() []string { return slices.Sorted(maps.Keys(tables)) }

// Table returns a table by its name, a pointer to a struct, or nil if it does not exist.
func Table(name string) any {
	if read, ok := tables[name]; ok {
		return read()
	}
	return nil
}

// reader returns a function that reads a table, and finishes it, when it is first called.
func reader[T any](name string, finish ...func(*T)) func() *T {
	once := sync.OnceValue(func() *T {
		t := new(T)
		if err := read(name, t); err != nil {
			panic(fmt.Sprintf("table %s: %v", name, err)) // TestTables reads each.
		}
		for _, do := range finish {
			do(t)
		}
		return t
	})
	tables[name] = func() any { return once() }
	return once
}

// read reads a table. The types name their fields as in JSON, of which YAML is another spelling.
func read(name string, table any) error {
	text, err := Files.ReadFile(name + ".yaml")
	if err != nil {
		return err
	}
	var document any
	if err := yaml.Unmarshal(text, &document); err != nil {
		return err
	}
	raw, err := json.Marshal(document)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(table)
}
