// Package data holds the tables that rules and checks read. Each is a YAML file, NAME.yaml, whose head describes its
// keys. A rule imports it as data.tables.NAME; where Go reads a table, it has a type with what it reads.
package data

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// Files are the files of the tables.
//
//go:embed *.yaml
var Files embed.FS

// tables read each table by its name, once.
var tables = func() map[string]func() map[string]any {
	all := map[string]func() map[string]any{}
	files, _ := Files.ReadDir(".") // They are embedded.
	for _, file := range files {
		all[strings.TrimSuffix(file.Name(), ".yaml")] = sync.OnceValue(func() map[string]any {
			var table map[string]any
			text, err := Files.ReadFile(file.Name())
			if err = cmp.Or(err, yaml.Unmarshal(text, &table)); err != nil {
				panic(fmt.Sprintf("table %s: %v", file.Name(), err)) // TestTables reads each.
			}
			if file.Name() == "variables.yaml" {
				table["of"] = rowsOf(table["rows"].([]any))
			}
			return table
		})
	}
	return all
}()

// Names are the names of all tables, sorted.
func Names() []string { return slices.Sorted(maps.Keys(tables)) }

// Table returns a table as its file has it. Nobody changes it.
func Table(name string) map[string]any { return tables[name]() }

// Read reads what a type has of a table.
func Read[T any](name string) *T {
	t := new(T)
	raw, err := json.Marshal(Table(name))
	if err = cmp.Or(err, json.Unmarshal(raw, t)); err != nil {
		panic(fmt.Sprintf("table %s: %v", name, err)) // TestTables reads each.
	}
	return t
}

// reader returns a function that reads a table, and finishes it, when it is first called.
func reader[T any](name string, finish ...func(*T)) func() *T {
	return sync.OnceValue(func() *T {
		t := Read[T](name)
		for _, do := range finish {
			do(t)
		}
		return t
	})
}
