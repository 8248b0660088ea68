package rules

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

// valueOf turns facts into the Rego value of their JSON, without nulls: a rule sees an
// unknown fact as undefined and never as null.
func valueOf(v any) (ast.Object, error) {
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
	switch v := v.(type) {
	case map[string]any:
		for name, part := range v {
			if v[name] = withoutNull(part); part == nil {
				delete(v, name)
			}
		}
	case []any:
		v = slices.DeleteFunc(v, func(part any) bool { return part == nil })
		for i, part := range v {
			v[i] = withoutNull(part)
		}
		return v
	}
	return v
}

// tables are the tables of rules/data as Rego values, each made on first use.
var tables = func() map[string]func() ast.Value {
	all := make(map[string]func() ast.Value, len(data.Names()))
	for _, name := range data.Names() {
		all[name] = sync.OnceValue(func() ast.Value {
			value, err := valueOf(data.Table(name))
			if err != nil {
				panic(fmt.Sprintf("table %s: %v", name, err)) // Its type has no fields of such kinds.
			}
			return value
		})
	}
	return all
}()

// storeOf holds tables for an evaluation.
func storeOf(names []string) storage.Store {
	all := make([][2]*ast.Term, 0, len(names))
	for _, name := range names {
		all = append(all, [2]*ast.Term{ast.StringTerm(name), ast.NewTerm(tables[name]())})
	}
	root := ast.NewObject([2]*ast.Term{ast.StringTerm(tablesName), ast.ObjectTerm(all...)})
	return inmem.NewFromASTObject(root)
}

// importedTables are the tables that modules import, the way to read them in the built-in rules.
func importedTables(modules map[string]*ast.Module) []string {
	found := map[string]bool{}
	for _, m := range modules {
		for _, i := range m.Imports {
			if path, ok := strings.CutPrefix(i.Path.String(), "data."+tablesName+"."); ok {
				name, _, _ := strings.Cut(path, ".") // It may import a part of one.
				found[name] = true
			}
		}
	}
	return slices.Collect(maps.Keys(found))
}
