package reach

import "github.com/open-policy-agent/opa/v1/ast"

// Shape is what a term may evaluate to: any value, one of a list of values, or a
// collection that the rules compute. A term with an empty shape is certainly undefined.
// A shape may allow too much, never too little.
type Shape struct {
	// Any is true if nothing is known except some fields of an object.
	Any   bool
	Known map[string]*Shape
	// values are the possible values: parts of the facts, and constants.
	values []ast.Value
	// set is true if it may be a collection that the rules compute, or an empty
	// one, with these keys and elements.
	set            bool
	keys, elements *Shape
}

// Anything is a value about which nothing is known, Undefined that of what does not exist.
var (
	Anything  = &Shape{Any: true}
	Undefined = &Shape{}
)

// maxValues bounds the values of a shape: enough for the devices of the largest machines.
const maxValues = 4096

// None reports whether a term is certainly undefined.
func (s *Shape) None() bool { return !s.Any && !s.set && len(s.values) == 0 }

// ValuesOf returns the shape of a term with one of these values.
func ValuesOf(values ...ast.Value) *Shape { return &Shape{values: values} }

// collectionOf returns the shape of a computed collection.
func collectionOf(keys, elements *Shape) *Shape {
	return &Shape{set: true, keys: keys, elements: elements}
}

// or returns the shape of a term that has either of two shapes.
func (s *Shape) or(other *Shape) *Shape {
	switch {
	case s == other || other.None():
		return s
	case s.None():
		return other
	case s.Any || other.Any || len(s.values)+len(other.values) > maxValues:
		return Anything
	}
	u := &Shape{values: s.values, set: s.set || other.set}
	if len(other.values) > 0 {
		u.values = distinct(append(append(make([]ast.Value, 0, len(s.values)+len(other.values)), s.values...), other.values...))
	}
	switch {
	case s.set && other.set:
		u.keys, u.elements = s.keys.or(other.keys), s.elements.or(other.elements)
	case s.set:
		u.keys, u.elements = s.keys, s.elements
	case other.set:
		u.keys, u.elements = other.keys, other.elements
	}
	return u
}

// isScalar reports whether a value has no parts.
func isScalar(v ast.Value) bool {
	switch v.(type) {
	case ast.String, ast.Number, ast.Boolean, ast.Null:
		return true
	}
	return false
}

// distinct removes duplicate scalars.
func distinct(values []ast.Value) []ast.Value {
	if len(values) < 2 {
		return values
	}
	seen := make(map[ast.Value]bool, len(values))
	kept := values[:0]
	for _, v := range values {
		if isScalar(v) { // Their types are comparable.
			if seen[v] {
				continue
			}
			seen[v] = true
		}
		kept = append(kept, v)
	}
	return kept
}

// field returns the shape of the value under a key.
func (s *Shape) field(key ast.Value) *Shape {
	if s.Any {
		if name, ok := key.(ast.String); ok && s.Known[string(name)] != nil {
			return s.Known[string(name)]
		}
		return Anything
	}
	var found []ast.Value
	k := ast.NewTerm(key)
	for _, v := range s.values {
		switch v := v.(type) {
		case ast.Object:
			if t := v.Get(k); t != nil {
				found = append(found, t.Value)
			}
		case *ast.Array:
			if t := v.Get(k); t != nil {
				found = append(found, t.Value)
			}
		case ast.Set:
			if v.Contains(k) {
				found = append(found, key)
			}
		}
	}
	out := ValuesOf(distinct(found)...)
	if s.set && s.keys.mayBe(key) {
		out = out.or(s.elements)
	}
	return out
}

// each returns the shapes of the keys and of the elements.
func (s *Shape) each() (keys, elements *Shape) {
	if s.Any {
		return Anything, Anything
	}
	var names, found []ast.Value
	for _, v := range s.values {
		switch v := v.(type) {
		case ast.Object:
			v.Foreach(func(k, e *ast.Term) { names, found = append(names, k.Value), append(found, e.Value) })
		case *ast.Array:
			v.Foreach(func(e *ast.Term) { found = append(found, e.Value) })
			names = append(names, indices(v.Len())...)
		case ast.Set:
			v.Foreach(func(e *ast.Term) { names, found = append(names, e.Value), append(found, e.Value) })
		}
		if len(found) > maxValues {
			return Anything, Anything
		}
	}
	keys, elements = ValuesOf(distinct(names)...), ValuesOf(distinct(found)...)
	if s.set {
		keys, elements = keys.or(s.keys), elements.or(s.elements)
	}
	return keys, elements
}

func indices(n int) []ast.Value {
	list := make([]ast.Value, n)
	for i := range list {
		list[i] = ast.InternedTerm(i).Value
	}
	return list
}

// mayBe reports whether the shape may have a value.
func (s *Shape) mayBe(v ast.Value) bool {
	if s.Any || s.set {
		return true
	}
	for _, own := range s.values {
		if !isScalar(own) || !isScalar(v) || own.Compare(v) == 0 {
			return true
		}
	}
	return false
}

// few is the largest number of values that are compared pair by pair.
const few = 128

// mayHold reports whether a comparison may be true for values of two shapes.
func mayHold(a, b *Shape, holds func(order int) bool) bool {
	if a.Any || a.set || b.Any || b.set || len(a.values) > few || len(b.values) > few {
		return true
	}
	for _, x := range a.values {
		for _, y := range b.values {
			if !isScalar(x) || !isScalar(y) || holds(x.Compare(y)) {
				return true
			}
		}
	}
	return false
}

// mayMeet reports whether two shapes may have a value in common.
func mayMeet(a, b *Shape) bool {
	if a.Any || a.set || b.Any || b.set {
		return true
	}
	if len(a.values) > len(b.values) {
		a, b = b, a
	}
	scalars := make(map[ast.Value]bool, len(a.values))
	for _, v := range a.values {
		if !isScalar(v) {
			return true
		}
		scalars[v] = true
	}
	for _, v := range b.values {
		if !isScalar(v) || scalars[v] {
			return true
		}
		if _, ok := v.(ast.Number); ok { // 1 and 1.0 are equal, and differ as texts.
			return true
		}
	}
	return false
}

// orders are the comparisons, by the name of their function.
var orders = map[string]func(order int) bool{
	"equal": func(o int) bool { return o == 0 },
	"neq":   func(o int) bool { return o != 0 },
	"gt":    func(o int) bool { return o > 0 },
	"gte":   func(o int) bool { return o >= 0 },
	"lt":    func(o int) bool { return o < 0 },
	"lte":   func(o int) bool { return o <= 0 },
}

// size returns the shape of the number of elements.
func (s *Shape) size() *Shape {
	_, elements := s.each()
	if s.Any || s.set && !elements.None() || len(s.values) > few {
		return Anything
	}
	var counts []ast.Value
	if s.set {
		counts = append(counts, ast.InternedTerm(0).Value)
	}
	for _, v := range s.values {
		n, ok := v.(interface{ Len() int })
		if !ok {
			return Anything
		}
		if _, isText := v.(ast.String); isText {
			return Anything
		}
		counts = append(counts, ast.InternedTerm(n.Len()).Value)
	}
	return ValuesOf(distinct(counts)...)
}

// empty reports whether a collection certainly has no elements.
func (s *Shape) empty() bool {
	if s.Any {
		return false
	}
	_, elements := s.each()
	return elements.None()
}
