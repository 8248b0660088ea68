package reach

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// byKey is the suffix of the new name of a rule with keys when whole takes its name. No
// rule has such a name: Rego style does not use two underscores in a row.
const byKey = "__by_key"

// Indexed is a module in which what is looked up by key is computed once. OPA
// evaluates "device[d.address] := d if some d in input.pci.devices" again for each
// address that is looked up, all devices each time: 1024 look-ups among 1024
// devices took 40 s. So each such rule gets another name, and an object of all that
// it gives takes the old one:
//
//	device := {k: v | some k, v in device__by_key}
func Indexed(m *ast.Module) *ast.Module {
	names := keyed(m)
	if len(names) == 0 {
		return m
	}
	m = m.Copy()
	for _, rule := range m.Rules {
		name := HeadName(rule)
		if !slices.Contains(names, name) {
			continue
		}
		for r := rule; r != nil; r = r.Else {
			r.Head.Reference[0] = ast.VarTerm(name + byKey)
			r.Head.Name = ast.Var(name + byKey)
		}
	}
	for _, name := range names {
		m.Rules = append(m.Rules, whole(m, name))
	}
	return m
}

// keyed are the names of a module's rules that define an object key by key,
// with keys that follow from the facts.
func keyed(m *ast.Module) []string {
	follows := map[string]bool{}
	var names []string
	for _, rule := range m.Rules {
		name := HeadName(rule)
		if _, seen := follows[name]; !seen {
			names = append(names, name)
		}
		follows[name] = follows[name] || ByVariable(rule)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return !follows[name] || slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool { return HeadName(r) == name && len(r.Head.Ref()) == 1 })
	})
}

// HeadName is the name of a rule without its keys.
func HeadName(r *ast.Rule) string {
	name, _ := r.Head.Ref()[0].Value.(ast.Var)
	return string(name)
}

// whole is the rule "name := {k: v | v := name__by_key[k]}".
func whole(m *ast.Module, name string) *ast.Rule {
	k, v := ast.VarTerm("k"), ast.VarTerm("v")
	each := ast.RefTerm(ast.VarTerm(name+byKey), k)
	all := ast.ObjectComprehensionTerm(k, v, ast.NewBody(ast.Equality.Expr(v, each)))
	head := ast.RefHead(ast.Ref{ast.VarTerm(name)})
	head.Value, head.Assign = all, true
	return placed(&ast.Rule{Head: head, Body: certain(m.Package.Location)}, m)
}

// WithoutKeys gives a message of OPA the names that the rules have in their files.
func WithoutKeys(message string) string { return strings.ReplaceAll(message, byKey, "") }

// PackageName is a module's package without "data.".
func PackageName(m *ast.Module) string {
	return strings.TrimPrefix(m.Package.Path.String(), "data.")
}
