package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// node is a value of the facts: one that has parts, or a leaf.
type node struct {
	value any              // What it holds, as the facts do.
	parts map[string]*node // By field, key or name of the element; nil in a leaf.
	list  bool             // Parts are the elements of a list or the entries of a map.
	// figure is true for a measured value: two measurements of one thing differ.
	figure bool
}

// compareFacts compares two facts documents.
func compareFacts(a, b *facts.Facts) []Item {
	var items []Item
	differ(place{}, nodeOf(reflect.ValueOf(a), field{}), nodeOf(reflect.ValueOf(b), field{}), &items)
	return items
}

// field is what the declaration of a field says.
type field struct {
	// id is "facts.GPU.MIG"; empty where the value is no field.
	id string
	// empty is true where an empty value is left out of JSON, ordered where the order of
	// a list means something.
	empty, ordered bool
}

// nodeOf makes the node of a value; nil where it is not known.
func nodeOf(v reflect.Value, f field) *node {
	switch v.Kind() { //nolint:exhaustive // The facts hold no others.
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return nodeOf(v.Elem(), field{id: f.id})
	case reflect.Struct:
		return structNode(v)
	case reflect.Map:
		n := &node{value: v.Interface(), parts: map[string]*node{}, list: true}
		for _, key := range v.MapKeys() {
			if !strings.HasSuffix(f.id, ".Fields") || !leftOut("fields."+key.String()) {
				n.parts[key.String()] = nodeOf(v.MapIndex(key), field{id: f.id})
			}
		}
		return n
	case reflect.Slice:
		if v.IsNil() && !f.empty {
			return nil
		}
		return listNode(v, f)
	case reflect.Bool:
		return &node{value: v.Bool()}
	}
	if f.empty && v.IsZero() {
		return nil
	}
	return &node{value: v.Interface(), figure: slices.Contains(tables().Measured, f.id)}
}

func structNode(v reflect.Value) *node {
	n := &node{value: v.Interface(), parts: map[string]*node{}}
	for i := range v.NumField() {
		declared := v.Type().Field(i)
		name, options, _ := strings.Cut(declared.Tag.Get("json"), ",")
		id := fieldID(v.Type(), declared.Name)
		if name == "-" || leftOut(id) {
			continue
		}
		n.parts[name] = nodeOf(v.Field(i), field{id: id, empty: options == "omitempty", ordered: slices.Contains(tables().Ordered, id)})
	}
	return n
}

func listNode(v reflect.Value, f field) *node {
	identity, isList := tables().identities[v.Type().Elem().String()]
	if !isList {
		return &node{value: scalars(v, f.ordered)}
	}
	n := &node{value: v.Interface(), parts: map[string]*node{}, list: true}
	type element struct {
		key, text string
		node      *node
	}
	elements := make([]element, 0, v.Len())
	for i := range v.Len() {
		e := element{key: nameOf(v.Index(i), identity), node: nodeOf(v.Index(i), field{})}
		e.text = e.node.String()
		elements = append(elements, e)
	}
	// Elements of the same name are ordered by content, not by position.
	slices.SortStableFunc(elements, func(a, b element) int { return strings.Compare(a.key+"\x00"+a.text, b.key+"\x00"+b.text) })
	for _, e := range elements {
		key := e.key
		for i := 2; n.parts[key] != nil; i++ {
			key = fmt.Sprintf("%s (%d)", e.key, i)
		}
		n.parts[key] = e.node
	}
	return n
}

// String is all that the node holds, in one order.
func (n *node) String() string {
	if n == nil {
		return "?"
	}
	if n.parts == nil {
		raw, err := json.Marshal(n.value)
		if err != nil {
			return fmt.Sprint(n.value)
		}
		return string(raw)
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(n.parts)) {
		fmt.Fprintf(&b, "%q:%s,", key, n.parts[key])
	}
	return "{" + b.String() + "}"
}

// scalars is a list of values, sorted unless its order means something.
func scalars(v reflect.Value, ordered bool) []string {
	all := make([]string, v.Len())
	for i := range all {
		all[i] = fmt.Sprint(v.Index(i).Interface())
	}
	if !ordered {
		slices.Sort(all)
	}
	return all
}

// nameOf names an element of a list by what identifies it.
func nameOf(v reflect.Value, identity []string) string {
	var parts []string
	for _, name := range identity {
		at := reflect.Indirect(v.FieldByName(name))
		if !at.IsValid() {
			continue
		}
		var said string
		switch at.Kind() {
		case reflect.Slice:
			said = strings.Join(scalars(at, false), ",")
		case reflect.Map:
			var entries []string
			for _, key := range at.MapKeys() {
				entries = append(entries, key.String()+"="+fmt.Sprint(at.MapIndex(key).Interface()))
			}
			slices.Sort(entries)
			said = strings.Join(entries, ",")
		default:
			said = fmt.Sprint(at.Interface())
		}
		if said != "" {
			parts = append(parts, said)
		}
	}
	return strings.Join(parts, " ")
}

// place is where a node is.
type place struct {
	path, pattern string
	names         []string
	element       bool
}

func (p place) field(name string) place {
	p.path, p.pattern, p.element = strings.TrimPrefix(p.path+"."+name, "."), strings.TrimPrefix(p.pattern+"."+name, "."), false
	return p
}

func (p place) elementNamed(name string) place {
	p.path, p.pattern, p.element = p.path+"["+name+"]", p.pattern+"[]", true
	p.names = append(slices.Clone(p.names), name)
	return p
}

func (p place) item(change Change) Item {
	return Item{Kind: kindOf(p.pattern), Change: change, Path: p.path, pattern: p.pattern, at: strings.Join(p.names, " ")}
}

// differ adds what differs between two nodes.
func differ(at place, a, b *node, items *[]Item) {
	switch {
	case a == nil && b == nil:
	case a == nil || b == nil:
		*items = append(*items, oneSided(at, a, b))
	case a.parts == nil || b.parts == nil:
		if !equal(a, b) {
			i := at.item(Changed)
			i.Before, i.After = a.value, b.value
			*items = append(*items, i)
		}
	default:
		names := maps.Clone(a.parts)
		maps.Copy(names, b.parts)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			next := at.field(name)
			if a.list {
				next = at.elementNamed(name)
			}
			differ(next, a.parts[name], b.parts[name], items)
		}
	}
}

// oneSided is what is on one side only: an element that the other side lacks, or a fact
// that it does not know.
func oneSided(at place, a, b *node) Item {
	i, only := at.item(New), b
	if b == nil {
		i, only = at.item(Gone), a
	}
	if !at.element && i.Kind != Part {
		i.Kind = Reading
	}
	if b == nil {
		i.Before = only.value
	} else {
		i.After = only.value
	}
	return i
}

// equal compares two leaves. Measured values that differ by no more than two
// measurements of one thing do are equal.
func equal(a, b *node) bool {
	x, isFloat := a.value.(float64)
	y, isToo := b.value.(float64)
	if a.figure && isFloat && isToo {
		return near(x, y)
	}
	return reflect.DeepEqual(a.value, b.value)
}

// near reports whether two measured values may be of one thing.
func near(x, y float64) bool {
	return max(math.Abs(x), math.Abs(y)) <= data.Thresholds().StagedFaster*min(math.Abs(x), math.Abs(y))
}
