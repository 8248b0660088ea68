package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// byKey is the suffix of the new name of a rule with keys when an object takes its name. No
// rule has such a name: Rego style does not use two underscores in a row.
const byKey = "__by_key"

// indexed is a module in which what is looked up by key is computed once. OPA
// evaluates "device[d.address] := d if some d in input.pci.devices" again for each
// address that is looked up, all devices each time: 1024 look-ups among 1024
// devices took 40 s. So each such rule gets another name, and an object of all that
// it gives takes the old one:
//
//	device := {k: v | v := device__by_key[k]}
func indexed(m *ast.Module) *ast.Module {
	names := keyed(m)
	if len(names) == 0 {
		return m
	}
	m = m.Copy()
	for _, rule := range m.Rules {
		name := headName(rule)
		if !slices.Contains(names, name) {
			continue
		}
		for r := rule; r != nil; r = r.Else {
			r.Head.Reference[0] = ast.VarTerm(name + byKey)
			r.Head.Name = ast.Var(name + byKey)
		}
	}
	lines := []string{"package p"}
	for _, name := range names { // A rule may be named k.
		lines = append(lines, fmt.Sprintf("%[1]s := {k__: v__ | v__ := %[1]s%[2]s[k__]}", name, byKey))
	}
	for _, whole := range ast.MustParseModuleWithOpts(strings.Join(lines, "\n"), ast.ParserOptions{RegoVersion: ast.RegoV1}).Rules {
		whole.Module = m
		m.Rules = append(m.Rules, whole)
	}
	return m
}

// keyed are the names of a module's rules that define an object key by key,
// with keys that follow from the facts.
func keyed(m *ast.Module) []string {
	follows := map[string]bool{}
	var names []string
	for _, rule := range m.Rules {
		name := headName(rule)
		if _, seen := follows[name]; !seen {
			names = append(names, name)
		}
		ref := rule.Head.Ref()
		follows[name] = follows[name] || len(ref) > 1 && !ast.IsConstant(ref[1].Value)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return !follows[name] || slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool { return headName(r) == name && len(r.Head.Ref()) == 1 })
	})
}

// headName is the name of a rule without its keys.
func headName(r *ast.Rule) string {
	name, _ := r.Head.Ref()[0].Value.(ast.Var)
	return string(name)
}

// withoutKeys gives a message of OPA the names that the rules have in their files.
func withoutKeys(message string) string { return strings.ReplaceAll(message, byKey, "") }

// packageName is a module's package without "data.".
func packageName(m *ast.Module) string {
	return strings.TrimPrefix(m.Package.Path.String(), "data.")
}
