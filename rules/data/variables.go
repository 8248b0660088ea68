package data

import (
	"slices"
	"strings"
)

// Variables returns the table of variables of communication libraries.
var Variables = reader[VariableTable]("variables")

// VariableTable says which variables exist, and of which there are rows.
type VariableTable struct {
	Of     map[string][]int
	Known  map[string]string
	Beside []string
}

// IsKnown reports whether a variable exists, or rows are about it.
func (t VariableTable) IsKnown(name string) bool { return t.Known[name] != "" || t.Of[name] != nil }

// IsBeside reports whether a variable changes nothing about how NCCL and RCCL communicate.
func (t VariableTable) IsBeside(name string) bool {
	return slices.ContainsFunc(t.Beside, func(b string) bool { return name == b || strings.HasSuffix(b, "_") && strings.HasPrefix(name, b) })
}

// rowsOf are the places of the rows about each variable: looking at all rows for each variable takes a rule too long.
func rowsOf(rows []any) map[string][]int {
	of := map[string][]int{}
	for i, row := range rows {
		for _, name := range row.(map[string]any)["names"].([]any) {
			of[name.(string)] = append(of[name.(string)], i)
		}
	}
	return of
}
