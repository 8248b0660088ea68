package reach

import (
	"cmp"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/checks/sorting"
)

// References are the rules that each definition refers to, in order of package and name.
func References(modules map[string]*ast.Module) map[*ast.Rule][]Global {
	all := map[*ast.Rule][]Global{}
	r := New(modules, Anything)
	for _, s := range r.packages {
		for _, rule := range s.module.Rules {
			k := &keeper{Reach: r, kept: map[Global][]*ast.Rule{}}
			k.refer(s, rule)
			sorting.Stable(k.queue, func(a, b Global) int {
				return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Name, b.Name))
			})
			all[rule] = k.queue
		}
	}
	return all
}
