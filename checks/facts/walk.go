package facts

import (
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Node is a value in the facts, and where it stands.
type Node struct {
	// Parent is what it is a part of; nil for the value that the walk begins with.
	Parent *Node
	// Field is what holds the value, an element of a list or an entry of a map included; nil at the beginning.
	Field *Field
	// Key names an element of a list or an entry of a map, Element is true for both.
	Key     string
	Element bool
	// Value is neither a pointer nor an interface. Pointed is true if one leads to it: zero is then known.
	Value   reflect.Value
	Pointed bool

	root string
}

// Field is a field of a structure of the facts.
type Field struct {
	// ID is its name in Go ("facts.GPU.MIG"), Name that in JSON.
	ID, Name string
	// OmitEmpty is true where JSON leaves out what is empty.
	OmitEmpty bool
	index     int
}

// Walk calls visit for a value and for all that is in it, down to plain values and lists of them. What is nil is left out, and
// so are the parts of what visit returns false for. path is where the value stands.
func Walk(path string, value any, visit func(*Node) bool) {
	walk(&Node{root: path, Value: reflect.ValueOf(value)}, visit)
}

func walk(n *Node, visit func(*Node) bool) {
	for n.Value.Kind() == reflect.Pointer || n.Value.Kind() == reflect.Interface {
		n.Pointed, n.Value = true, n.Value.Elem()
	}
	if !n.Value.IsValid() || !visit(n) || n.IsLeaf() {
		return
	}
	switch n.Value.Kind() { //nolint:exhaustive // All others are leaves.
	case reflect.Struct:
		for _, f := range FieldsOf(n.Value.Type()) {
			walk(&Node{Parent: n, Field: f, Value: n.Value.Field(f.index)}, visit)
		}
	case reflect.Map:
		keys := n.Value.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			walk(&Node{Parent: n, Field: n.Field, Key: key.String(), Element: true, Value: n.Value.MapIndex(key)}, visit)
		}
	case reflect.Slice:
		identity := Identity(n.Value.Type().Elem())
		for i := range n.Value.Len() {
			element := n.Value.Index(i)
			walk(&Node{Parent: n, Field: n.Field, Key: Key(element, identity), Element: true, Value: element}, visit)
		}
	}
}

// IsLeaf reports whether the value has no parts of its own: it is a plain value, or a list of them.
func (n *Node) IsLeaf() bool {
	switch n.Value.Kind() { //nolint:exhaustive // All others are plain values.
	case reflect.Struct, reflect.Map:
		return false
	case reflect.Slice:
		return Identity(n.Value.Type().Elem()) == nil
	}
	return true
}

// Path is where the value stands: "gpus.devices[0000:3b:00.0].mig". What stands in brackets names an element.
func (n *Node) Path() string {
	if n.Parent == nil {
		return n.root
	}
	if n.Element {
		return n.Parent.Path() + "[" + n.Key + "]"
	}
	return strings.TrimPrefix(n.Parent.Path()+"."+n.Field.Name, ".")
}

// Identity lists the fields that name the elements of a list; nil for plain values.
func Identity(element reflect.Type) []string { return (*identities())[element.String()] }

// Key names an element of a list by the fields that identify it.
func Key(element reflect.Value, identity []string) string {
	key := ""
	for _, name := range identity {
		part := plain(element.FieldByName(name))
		switch {
		case part == "":
		case key == "":
			key = part
		case name == "B":
			key += " -> " + part
		case name == "Port":
			key += ":" + part
		default:
			key += " " + part
		}
	}
	return key
}

// plain is a value in a key. A list and a map are written in order of what they hold.
func plain(v reflect.Value) string {
	var parts []string
	switch v = reflect.Indirect(v); v.Kind() {
	case reflect.Invalid:
		return "" // It is not known.
	case reflect.Slice:
		for i := range v.Len() {
			parts = append(parts, fmt.Sprint(v.Index(i).Interface()))
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			parts = append(parts, fmt.Sprintf("%v=%v", entries.Key(), entries.Value()))
		}
	default:
		return fmt.Sprint(v.Interface())
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

var fields sync.Map // Of each type of a structure.

// FieldsOf lists the fields of a structure that JSON has.
func FieldsOf(of reflect.Type) []*Field {
	if known, ok := fields.Load(of); ok {
		return known.([]*Field) //nolint:forcetypeassert // Nothing else is stored.
	}
	var all []*Field
	for i := range of.NumField() {
		name, options, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			all = append(all, &Field{ID: of.String() + "." + of.Field(i).Name, Name: name, OmitEmpty: options == "omitempty", index: i})
		}
	}
	fields.Store(of, all)
	return all
}

//go:embed identities.yaml
var identitiesYAML []byte

// identities are the fields that name the elements of lists, by the type of the elements.
var identities = lazy.Table[map[string][]string](identitiesYAML)
