// Package tables turns Go values into Rego values: the facts, and the tables of rules/data.
package tables

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/gpudoctor/gpudoctor/rules/data"
)

// tablesName is the document below data that holds the tables of rules/data, by name.
const tablesName = "tables"

// ValueOf turns facts into the Rego value of their JSON, without nulls: a rule sees an
// unknown fact as undefined and never as null.
func ValueOf(v any) (ast.Object, error) {
	document := v
	if err := util.RoundTrip(&document); err != nil {
		return nil, fmt.Errorf("facts as JSON: %w", err)
	}
	value, err := ast.InterfaceToValue(withoutNull(document))
	if err != nil {
		return nil, fmt.Errorf("facts as a Rego value: %w", err)
	}
	object, ok := value.(ast.Object)
	if !ok {
		return nil, fmt.Errorf("facts are a %T, not an object", v)
	}
	return object, nil
}

// withoutNull leaves out the parts of a JSON document that are null.
func withoutNull(v any) any {
	isNull := func(part any) bool { return part == nil }
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, part any) bool { return isNull(part) })
		for name, part := range v {
			v[name] = withoutNull(part)
		}
	case []any:
		v = slices.DeleteFunc(v, isNull)
		for i, part := range v {
			v[i] = withoutNull(part)
		}
		return v
	}
	return v
}

// Values are the tables as Rego values, each made on first use.
var Values = func() map[string]func() ast.Value {
	all := make(map[string]func() ast.Value, len(data.Names()))
	for _, name := range data.Names() {
		all[name] = sync.OnceValue(func() ast.Value {
			value, err := ValueOf(data.Table(name))
			if err != nil {
				panic(fmt.Sprintf("table %s: %v", name, err)) // Its type has no fields of such kinds.
			}
			return value
		})
	}
	return all
}()

// Store holds tables for an evaluation.
func Store(names []string) storage.Store {
	all := make([][2]*ast.Term, 0, len(names))
	for _, name := range names {
		all = append(all, [2]*ast.Term{ast.StringTerm(name), ast.NewTerm(Values[name]())})
	}
	root := ast.NewObject([2]*ast.Term{ast.StringTerm(tablesName), ast.ObjectTerm(all...)})
	return inmem.NewFromASTObject(root)
}

// Imported are the tables that modules import, the way to read them in the
// built-in rules.
func Imported(modules map[string]*ast.Module) []string {
	var names []string
	for name := range Values {
		for _, m := range modules {
			if imports(m, name) {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// imports reports whether a module imports a table, or a part of it.
func imports(m *ast.Module, table string) bool {
	path := "data." + tablesName + "." + table
	for _, imported := range m.Imports {
		if p := imported.Path.String(); p == path || strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}
