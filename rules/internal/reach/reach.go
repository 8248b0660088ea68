// Package reach finds what a rule can reach on input of a shape, and removes from modules
// what no rule can reach.
package reach

import (
	"maps"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/rules/internal/tables"
)

// Reach finds what rules can evaluate to on some facts, without evaluating them: it
// computes shapes instead of values. What it calls undefined is undefined; what it
// calls possible may still be undefined.
type Reach struct {
	input *Shape
	// packages are the modules by package, without "data.".
	packages map[string]*scope
	// known are the shapes of rules; one that is still being computed is any.
	known map[Global]*Shape
	// idle are the negated expressions that hold for certain, in the bodies of rules.
	idle map[*ast.Expr]bool
	// dead are the definitions that never hold, whatever their arguments.
	dead map[*ast.Rule]bool
	// tables are the shapes of the tables that were read.
	tables map[string]*Shape
	// fields and parts remember what was looked up.
	fields map[fieldOf]*Shape
	parts  map[*Shape][2]*Shape
	// depth and steps count the calls that were followed: nested, and all.
	depth, steps int
}

// scope is what names mean in a module.
type scope struct {
	name   string
	module *ast.Module
	rules  map[string][]*ast.Rule
	// imports are packages, or rules of packages, by their local name.
	imports map[ast.Var]ast.Ref
}

// Global names a rule of a package.
type Global struct{ Package, Name string }

type fieldOf struct {
	*Shape
	key ast.Value
}

// env holds the shapes of local variables.
type env map[ast.Var]*Shape

// New returns the analysis of modules on input of a shape.
func New(modules map[string]*ast.Module, input *Shape) *Reach {
	r := &Reach{
		input: input, packages: make(map[string]*scope, len(modules)), known: map[Global]*Shape{}, tables: map[string]*Shape{},
		idle: map[*ast.Expr]bool{}, dead: map[*ast.Rule]bool{}, fields: map[fieldOf]*Shape{}, parts: map[*Shape][2]*Shape{},
	}
	for _, m := range modules {
		s := newScope(m)
		r.packages[s.name] = s
	}
	return r
}

func newScope(m *ast.Module) *scope {
	s := &scope{name: PackageName(m), module: m, rules: map[string][]*ast.Rule{}, imports: map[ast.Var]ast.Ref{}}
	for _, rule := range m.Rules {
		s.rules[HeadName(rule)] = append(s.rules[HeadName(rule)], rule)
	}
	for _, imported := range m.Imports {
		s.imports[imported.Name()] = imported.Path.Value.(ast.Ref)
	}
	return s
}

// global finds the rule that a reference names, and what follows after its name.
func (r *Reach) global(s *scope, ref ast.Ref) (to Global, rest ast.Ref, ok bool) {
	head, isVar := ref[0].Value.(ast.Var)
	if !isVar {
		return Global{}, nil, false
	}
	if _, own := s.rules[string(head)]; own {
		return Global{s.name, string(head)}, ref[1:], true
	}
	if ref, ok = s.path(ref); !ok {
		return Global{}, nil, false
	}
	name := make([]string, 0, len(ref))
	for i, t := range ref[1:] {
		word, isText := t.Value.(ast.String)
		if !isText {
			break
		}
		if p, known := r.packages[strings.Join(name, ".")]; known {
			if _, defined := p.rules[string(word)]; defined {
				return Global{p.name, string(word)}, ref[i+2:], true
			}
		}
		name = append(name, string(word))
	}
	return Global{}, nil, false
}

// path is a reference to a document below data, as a full path.
func (s *scope) path(ref ast.Ref) (path ast.Ref, ok bool) {
	head, _ := ref[0].Value.(ast.Var)
	if imported, ok := s.imports[head]; ok {
		return imported.Concat(ref[1:]), true
	}
	return ref, head == "data"
}

// table finds the shape of the table that a reference names, and what follows after
// its name.
func (r *Reach) table(s *scope, ref ast.Ref) (at *Shape, rest ast.Ref, ok bool) {
	path, ok := s.path(ref)
	if !ok {
		return nil, nil, false
	}
	name, rest, ok := tables.Find(path)
	if ok && r.tables[name] == nil {
		r.tables[name] = ValuesOf(tables.Values[name]())
	}
	return r.tables[name], rest, ok
}

// Rule returns the shape of a rule's value.
func (r *Reach) Rule(g Global) *Shape {
	if known, ok := r.known[g]; ok {
		return known
	}
	r.known[g] = Anything
	s := r.packages[g.Package]
	all := Undefined
	for _, rule := range s.rules[g.Name] {
		all = all.or(r.definition(s, rule, nil))
	}
	if all.None() && isCollection(s.rules[g.Name][0]) {
		all = collectionOf(Undefined, Undefined)
	}
	r.known[g] = all
	return all
}

// isCollection reports whether a definition adds to a collection, which is empty if
// no definition applies.
func isCollection(rule *ast.Rule) bool {
	head := rule.Head
	return len(head.Args) == 0 && (head.Key != nil || len(head.Ref()) > 1)
}

// definition returns the shape of what one definition adds to a rule's value.
// Arguments are those of a call; without them they may be anything.
func (r *Reach) definition(s *scope, rule *ast.Rule, args []*Shape) *Shape {
	e := env{}
	recorded := args == nil
	possible := true
	for i, arg := range rule.Head.Args {
		given := Anything
		if args != nil && i < len(args) {
			given = args[i]
		}
		possible = r.bind(e, arg, given) && possible
	}
	possible = possible && r.body(s, e, rule.Body, recorded)
	value := Undefined
	if possible {
		value = r.value(s, e, rule.Head)
		possible = !value.None()
	}
	if fixed := fixedSet(rule.Head); fixed != nil && value.None() {
		value, possible = collectionOf(ValuesOf(fixed), collectionOf(Undefined, Undefined)), true
	}
	if recorded {
		r.dead[rule] = !possible
	}
	if rule.Else != nil {
		value = value.or(r.definition(s, rule.Else, args))
	}
	return value
}

// fixedSet returns the key of a set that always exists, even if empty: "a" of
// "p.a contains x".
func fixedSet(head *ast.Head) ast.Value {
	if ref := head.Ref(); head.RuleKind() == ast.MultiValue && len(ref) > 1 && isScalar(ref[1].Value) {
		return ref[1].Value
	}
	return nil
}

// value returns the shape of what a rule's head adds.
func (r *Reach) value(s *scope, e env, head *ast.Head) *Shape {
	ref := head.Ref()
	value := ValuesOf(ast.Boolean(true))
	if head.Value != nil {
		value = r.term(s, e, head.Value)
	}
	if head.RuleKind() == ast.MultiValue { // An entry of an object has a key as well.
		if value = r.term(s, e, head.Key); !value.None() {
			value = collectionOf(value, value)
		}
	}
	if len(head.Args) > 0 {
		return value
	}
	for i := len(ref) - 1; i > 0 && !value.None(); i-- {
		key := r.term(s, e, ref[i])
		if key.None() {
			return Undefined
		}
		value = collectionOf(key, value)
	}
	return value
}

// body reports whether a body may be true, and records the shapes of its variables.
// If the variables may be anything, it records what is always true.
func (r *Reach) body(s *scope, e env, body ast.Body, recorded bool) bool {
	declare(e, body)
	for _, expr := range body {
		if !r.expr(s, e, expr, recorded) {
			return false
		}
	}
	return true
}

// declare hides the rules that local variables shadow.
func declare(e env, body ast.Body) {
	hide := func(t *ast.Term) {
		ast.WalkVars(t, func(v ast.Var) bool {
			e[v] = Anything
			return false
		})
	}
	for _, expr := range body {
		switch terms := expr.Terms.(type) {
		case *ast.SomeDecl:
			for _, symbol := range terms.Symbols {
				if call, ok := symbol.Value.(ast.Call); ok {
					for _, declared := range call[1 : len(call)-1] {
						hide(declared)
					}
				} else {
					hide(symbol)
				}
			}
		case []*ast.Term:
			if expr.IsAssignment() {
				hide(terms[1])
			}
		}
	}
}

// expr reports whether an expression may be true.
func (r *Reach) expr(s *scope, e env, expr *ast.Expr, recorded bool) bool {
	if len(expr.With) > 0 {
		return true
	}
	if expr.Negated {
		positive := *expr
		positive.Negated = false
		if recorded && !r.expr(s, maps.Clone(e), &positive, false) {
			r.idle[expr] = true
		}
		return true
	}
	switch terms := expr.Terms.(type) {
	case *ast.Term:
		return r.term(s, e, terms).mayBeTrue()
	case *ast.SomeDecl:
		for _, symbol := range terms.Symbols {
			if call, ok := symbol.Value.(ast.Call); ok && !r.member(s, e, call) {
				return false
			}
		}
	case *ast.Every:
		return !r.term(s, e, terms.Domain).None()
	case []*ast.Term:
		return r.holds(s, e, terms)
	}
	return true
}

// mayBeTrue reports whether a term may be defined and not false.
func (s *Shape) mayBeTrue() bool {
	if s.Any || s.set {
		return true
	}
	for _, v := range s.values {
		if v != ast.Value(ast.Boolean(false)) {
			return true
		}
	}
	return false
}

// holds reports whether a call, as an expression, may be true.
func (r *Reach) holds(s *scope, e env, call []*ast.Term) bool {
	switch operator(call) {
	case "assign", "eq":
		right := r.term(s, e, call[2])
		if right.None() {
			return false
		}
		if operator(call) == "eq" {
			if v, ok := call[1].Value.(ast.Var); !ok || e[v] != nil || r.isGlobal(s, v) {
				left := r.term(s, e, call[1])
				return !left.None() && mayMeet(left, right)
			}
		}
		return r.bind(e, call[1], right)
	case "internal.member_2", "internal.member_3":
		return r.member(s, e, call)
	}
	return r.call(s, e, call).mayBeTrue()
}

// isGlobal reports whether a name is that of a rule, an import or a document.
func (r *Reach) isGlobal(s *scope, v ast.Var) bool {
	_, rule := s.rules[string(v)]
	_, imported := s.imports[v]
	return rule || imported || v == "input" || v == "data"
}

// bind records that a pattern matches a value of a shape, and reports whether that is possible.
func (r *Reach) bind(e env, pattern *ast.Term, to *Shape) bool {
	if to.None() {
		return false
	}
	switch p := pattern.Value.(type) {
	case ast.Var:
		if p.IsWildcard() {
			return true
		}
		if was, ok := e[p]; !ok || was.Any && len(was.Known) == 0 {
			e[p] = to
			return true
		}
		return mayMeet(e[p], to)
	case *ast.Array:
		parts := Anything
		if !to.Any {
			_, parts = r.each(to)
		}
		p.Foreach(func(t *ast.Term) {
			// Which part it matches is not tracked.
			if v, ok := t.Value.(ast.Var); ok && !v.IsWildcard() && !parts.None() {
				e[v] = parts
			}
		})
	case ast.Object, ast.Ref, ast.Call:
		return true
	}
	return !isScalar(pattern.Value) || to.mayBe(pattern.Value)
}

// member reports whether "x in c", or "k, v in c", may hold.
func (r *Reach) member(s *scope, e env, call []*ast.Term) bool {
	in := r.term(s, e, call[len(call)-1])
	if in.None() || in.empty() {
		return false
	}
	keys, elements := r.each(in)
	if len(call) == 4 && !r.bind(e, call[1], keys) {
		return false
	}
	element := call[len(call)-2]
	switch element.Value.(type) {
	case ast.Ref, ast.Call:
		one := r.term(s, e, element)
		return !one.None() && mayMeet(one, elements)
	}
	return r.bind(e, element, elements)
}

// each caches the keys and elements of a shape.
func (r *Reach) each(s *Shape) (keys, elements *Shape) {
	if p, ok := r.parts[s]; ok {
		return p[0], p[1]
	}
	keys, elements = s.each()
	r.parts[s] = [2]*Shape{keys, elements}
	return keys, elements
}

// field caches the value under a key.
func (r *Reach) field(s *Shape, key ast.Value) *Shape {
	if s.Any {
		return s.field(key)
	}
	k := fieldOf{s, key}
	if known, ok := r.fields[k]; ok {
		return known
	}
	f := s.field(key)
	r.fields[k] = f
	return f
}

// term returns the shape of a term.
func (r *Reach) term(s *scope, e env, t *ast.Term) *Shape {
	switch v := t.Value.(type) {
	case ast.String, ast.Number, ast.Boolean, ast.Null:
		return ValuesOf(v)
	case ast.Var:
		return r.ref(s, e, ast.Ref{t})
	case ast.Ref:
		return r.ref(s, e, v)
	case ast.Call:
		return r.call(s, e, v)
	case *ast.Array:
		return r.literal(s, e, v.Len(), func(each func(k, t *ast.Term)) { v.Foreach(func(t *ast.Term) { each(nil, t) }) })
	case ast.Set:
		return r.literal(s, e, v.Len(), func(each func(k, t *ast.Term)) { v.Foreach(func(t *ast.Term) { each(t, t) }) })
	case ast.Object:
		return r.literal(s, e, v.Len(), func(each func(k, t *ast.Term)) { v.Foreach(each) })
	case *ast.ArrayComprehension:
		return r.comprehension(s, e, v.Body, nil, v.Term)
	case *ast.SetComprehension:
		return r.comprehension(s, e, v.Body, v.Term, v.Term)
	case *ast.ObjectComprehension:
		return r.comprehension(s, e, v.Body, v.Key, v.Value)
	}
	return Anything
}

// literal returns the shape of an array, a set or an object that is written out. It
// is undefined if a part of it is.
func (r *Reach) literal(s *scope, e env, n int, foreach func(func(k, t *ast.Term))) *Shape {
	keys, elements := Undefined, Undefined
	whole := true
	foreach(func(k, t *ast.Term) {
		element := r.term(s, e, t)
		whole = whole && !element.None()
		elements = elements.or(element)
		switch k {
		case nil:
			keys = Anything
		case t:
			keys = keys.or(element)
		default:
			key := r.term(s, e, k)
			whole = whole && !key.None()
			keys = keys.or(key)
		}
	})
	if !whole {
		return Undefined
	}
	if n == 0 {
		return collectionOf(Undefined, Undefined)
	}
	return collectionOf(keys, elements)
}

func (r *Reach) comprehension(s *scope, e env, body ast.Body, key, element *ast.Term) *Shape {
	inner := maps.Clone(e)
	if !r.body(s, inner, body, false) {
		return collectionOf(Undefined, Undefined)
	}
	elements, keys := r.term(s, inner, element), Anything
	if key != nil {
		keys = r.term(s, inner, key)
	}
	if elements.None() || keys.None() {
		return collectionOf(Undefined, Undefined)
	}
	return collectionOf(keys, elements)
}

// ref returns the shape of what a reference refers to.
func (r *Reach) ref(s *scope, e env, ref ast.Ref) *Shape {
	at, rest := Anything, ref[1:]
	switch head := ref[0].Value.(type) {
	case ast.Var:
		if local, ok := e[head]; ok {
			at = local
		} else if head == "input" {
			at = r.input
		} else if to, after, ok := r.global(s, ref); ok {
			if r.isFunction(to) {
				return Anything
			}
			at, rest = r.Rule(to), after
		} else if table, after, ok := r.table(s, ref); ok {
			at, rest = table, after
		}
	default:
		at = r.term(s, e, ref[0])
	}
	for _, t := range rest {
		if at.None() {
			return Undefined
		}
		at = r.step(s, e, at, t)
	}
	return at
}

// step returns the shape of the value in a collection under a key: a key that is
// written out, one of the values of a variable, or any.
func (r *Reach) step(s *scope, e env, at *Shape, key *ast.Term) *Shape {
	if isScalar(key.Value) {
		return r.field(at, key.Value)
	}
	keys, elements := r.each(at)
	v, isVar := key.Value.(ast.Var)
	if isVar && !r.isGlobal(s, v) {
		if _, bound := e[v]; !bound {
			e[v] = keys // It takes each in turn.
			return elements
		}
	}
	k := r.term(s, e, key)
	switch {
	case k.None():
		return Undefined
	case k.Any || k.set || len(k.values) > few || at.Any:
		return elements
	}
	found := Undefined
	for _, one := range k.values {
		if !isScalar(one) {
			return elements
		}
		found = found.or(r.field(at, one))
	}
	return found
}

func (r *Reach) isFunction(g Global) bool {
	return len(r.packages[g.Package].rules[g.Name][0].Head.Args) > 0
}

// operator is the name of the called function, as the rules write it.
func operator(call []*ast.Term) string {
	if ref, ok := call[0].Value.(ast.Ref); ok {
		return ref.String()
	}
	return ""
}

// maxDepth and maxSteps bound the calls that are followed. The built-in rules need at
// most depth 6 and 1,029 steps on the facts of the cases.
const (
	maxDepth = 12
	maxSteps = 50_000
)

// call returns the shape of a function's result.
func (r *Reach) call(s *scope, e env, call []*ast.Term) *Shape {
	args := make([]*Shape, 0, len(call)-1)
	for _, t := range call[1:] {
		arg := r.term(s, e, t)
		if arg.None() {
			return Undefined
		}
		args = append(args, arg)
	}
	ref, ok := call[0].Value.(ast.Ref)
	if !ok {
		return Anything
	}
	to, rest, ok := r.global(s, ref)
	if !ok {
		return builtin(ref.String(), args)
	}
	if r.steps++; len(rest) > 0 || r.depth >= maxDepth || r.steps > maxSteps {
		return Anything
	}
	r.depth++
	defer func() { r.depth-- }()
	found := Undefined
	for _, rule := range r.packages[to.Package].rules[to.Name] {
		found = found.or(r.definition(r.packages[to.Package], rule, args))
	}
	if len(args) > len(r.packages[to.Package].rules[to.Name][0].Head.Args) && !found.None() {
		return Anything // The last argument takes what the function gives, be it false.
	}
	return found
}

// builtin returns the shape of the result of a built-in function of Rego.
func builtin(name string, args []*Shape) *Shape {
	switch name {
	case "count":
		return args[0].size()
	case "min", "max":
		if args[0].empty() {
			return Undefined
		}
	case "sort", "array.reverse":
		if args[0].empty() {
			return collectionOf(Undefined, Undefined)
		}
	case "array.concat", "or", "object.union":
		if len(args) == 2 && args[0].empty() && args[1].empty() {
			return collectionOf(Undefined, Undefined)
		}
	case "and":
		if args[0].empty() || args[1].empty() {
			return collectionOf(Undefined, Undefined)
		}
	case "minus":
		if args[0].set && args[0].empty() && len(args[0].values) == 0 {
			return collectionOf(Undefined, Undefined)
		}
	case "internal.member_2":
		if args[1].empty() {
			return ValuesOf(ast.Boolean(false))
		}
	}
	if holds, ok := orders[name]; ok && len(args) == 2 && !mayHold(args[0], args[1], holds) {
		return ValuesOf(ast.Boolean(false))
	}
	return Anything
}
