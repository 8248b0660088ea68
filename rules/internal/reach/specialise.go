package reach

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Specialised are the modules that some names need on input of a shape: without the
// definitions that cannot apply there, and without what nothing else refers to. On that
// input they evaluate to the same result. Compiling takes most of the start-up time, and on most
// machines nine tenths of the rules have nothing to judge: no log was given, there is
// no GPU of that vendor, a variable is not set.
func Specialised(modules map[string]*ast.Module, roots []Global, input *Shape) map[string]*ast.Module {
	k := &keeper{Reach: New(modules, input), kept: map[Global][]*ast.Rule{}}
	for _, root := range roots {
		k.keep(root)
	}
	for len(k.queue) > 0 {
		next := k.queue[0]
		k.queue = k.queue[1:]
		k.follow(next)
	}
	return k.modules(modules)
}

// keeper collects the definitions to keep.
type keeper struct {
	*Reach
	kept  map[Global][]*ast.Rule
	queue []Global
}

// keep notes that a rule is referred to.
func (k *keeper) keep(g Global) {
	s := k.packages[g.Package]
	if s == nil || len(s.rules[g.Name]) == 0 {
		return
	}
	if _, known := k.kept[g]; !known {
		k.kept[g] = nil
		k.queue = append(k.queue, g)
	}
}

// follow keeps the definitions of a rule that may apply, and what they refer to.
func (k *keeper) follow(g Global) {
	s := k.packages[g.Package]
	definitions := s.rules[g.Name]
	if len(definitions[0].Head.Args) > 0 {
		for _, rule := range definitions {
			k.definition(s, rule, nil)
		}
	} else {
		k.Rule(g)
	}
	for _, rule := range definitions {
		if alive := k.alive(rule); alive != nil {
			k.kept[g] = append(k.kept[g], alive)
			k.refer(s, alive)
		}
	}
	switch {
	case len(k.kept[g]) == 0:
		k.kept[g] = []*ast.Rule{never(s.module, definitions[0])}
	case slices.ContainsFunc(definitions, ByVariable) && !slices.ContainsFunc(k.kept[g], ByVariable):
		// With a key that is not written out, the object has no empty sets.
		k.kept[g] = append(k.kept[g], noKey(s.module, g.Name))
	}
}

// ByVariable reports whether a definition adds to an object under a key that is not
// written out.
func ByVariable(rule *ast.Rule) bool {
	ref := rule.Head.Ref()
	return len(ref) > 1 && !ast.IsConstant(ref[1].Value)
}

// noKey is "name[key] contains element if some key, element in {}".
func noKey(m *ast.Module, name string) *ast.Rule {
	key, element := ast.VarTerm("key"), ast.VarTerm("element")
	head := ast.RefHead(ast.Ref{ast.VarTerm(name), key})
	head.Key, head.Value = element, nil
	each := ast.MemberWithKey.Call(key, element, ast.ObjectTerm())
	return placed(&ast.Rule{Head: head, Body: ast.NewBody(&ast.Expr{Terms: &ast.SomeDecl{Symbols: []*ast.Term{each}}})}, m)
}

// alive is a definition without what cannot be true in it; nil if nothing can.
func (k *keeper) alive(rule *ast.Rule) *ast.Rule {
	var other *ast.Rule
	if rule.Else != nil {
		other = k.alive(rule.Else)
	}
	if k.dead[rule] {
		if other == nil {
			return nil
		}
		first := *rule
		first.Head = rule.Head.Copy()
		if first.Head.Value != nil {
			first.Head.Value = located(ast.BooleanTerm(true), rule.Location)
		}
		first.Body, first.Else = impossible(rule.Location), other
		return &first
	}
	kept := *rule
	kept.Else = other
	if slices.ContainsFunc(rule.Body, func(e *ast.Expr) bool { return k.idle[e] }) {
		kept.Body = slices.DeleteFunc(slices.Clone(rule.Body), func(e *ast.Expr) bool { return k.idle[e] })
		if len(kept.Body) == 0 {
			kept.Body = certain(rule.Location)
		}
	}
	return &kept
}

// refer keeps the rules that a definition refers to.
func (k *keeper) refer(s *scope, rule *ast.Rule) {
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case ast.Ref:
			k.referTo(s, x)
			rest := x
			if _, named := x[0].Value.(ast.Var); named {
				rest = x[1:] // The name alone is no reference.
			}
			for _, t := range rest {
				visitor.Walk(t)
			}
			return true
		case ast.Var:
			k.referTo(s, ast.Ref{ast.NewTerm(x)})
		}
		return false
	})
	for r := rule; r != nil; r = r.Else {
		visitor.Walk(r.Head.Ref()) // The visitor leaves it out.
		visitor.Walk(r)
	}
}

func (k *keeper) referTo(s *scope, ref ast.Ref) {
	if to, _, ok := k.global(s, ref); ok {
		k.keep(to)
		return
	}
	ref, ok := s.path(ref)
	if !ok {
		return
	}
	// It chooses among rules by what is only known later, so all of them are kept.
	prefix := strings.TrimPrefix(ref.ConstantPrefix().String(), "data.")
	for name, p := range k.packages {
		if name == prefix || strings.HasPrefix(name, prefix+".") {
			for rule := range p.rules {
				k.keep(Global{name, rule})
			}
		}
	}
}

// modules are the modules with the kept definitions, in the order of the files.
func (k *keeper) modules(all map[string]*ast.Module) map[string]*ast.Module {
	out := map[string]*ast.Module{}
	for file, m := range all {
		s := k.packages[PackageName(m)]
		var rules []*ast.Rule
		done := map[string]bool{}
		for _, rule := range m.Rules {
			if name := HeadName(rule); !done[name] {
				done[name] = true
				rules = append(rules, k.kept[Global{s.name, name}]...)
			}
		}
		if len(rules) > 0 {
			out[file] = &ast.Module{Package: m.Package, Imports: m.Imports, Rules: rules}
		}
	}
	for _, m := range out {
		for _, rule := range m.Rules {
			for r := rule; r != nil; r = r.Else {
				r.Module = m
			}
		}
	}
	return out
}

// never is a definition with the value of a rule of which no definition applies: an
// empty set, an empty object, or nothing.
func never(m *ast.Module, like *ast.Rule) *ast.Rule {
	at := m.Package.Location
	head := ast.RefHead(ast.Ref{ast.VarTerm(HeadName(like))})
	body := impossible(at)
	switch {
	case len(like.Head.Args) > 0:
		head.Args = make(ast.Args, len(like.Head.Args))
		for i := range head.Args {
			head.Args[i] = ast.VarTerm("unused_" + strings.Repeat("x", i))
		}
		head.Value = ast.BooleanTerm(true)
	case !isCollection(like):
		head.Value = ast.BooleanTerm(true)
	case len(like.Head.Ref()) == 1:
		head.Value, body = ast.SetTerm(), certain(at)
	default:
		head.Value, body = ast.ObjectTerm(), certain(at)
	}
	head.Assign = true
	return placed(&ast.Rule{Head: head, Body: body}, m)
}

// placed puts a generated rule into a module, at its package line.
func placed(rule *ast.Rule, m *ast.Module) *ast.Rule {
	at := m.Package.Location
	rule.Module, rule.Location, rule.Head.Location = m, at, at
	ast.WalkTerms(rule, func(t *ast.Term) bool { return located(t, at) == nil })
	ast.WalkTerms(rule.Head.Ref(), func(t *ast.Term) bool { return located(t, at) == nil })
	ast.WalkExprs(rule, func(e *ast.Expr) bool { return e.SetLocation(at) == nil })
	return rule
}

func impossible(at *ast.Location) ast.Body { return constant(false, at) }

func certain(at *ast.Location) ast.Body { return constant(true, at) }

func constant(v bool, at *ast.Location) ast.Body {
	return ast.NewBody(ast.NewExpr(located(ast.BooleanTerm(v), at)).SetLocation(at))
}

func located(t *ast.Term, at *ast.Location) *ast.Term {
	t.Location = at
	return t
}
