package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Outline lists all that facts hold: a row for each object, with its fields. What they
// hold was written by others: clean makes it safe to show.
func Outline(facts any, clean func(string) string) []Section {
	raw, err := json.Marshal(facts)
	if err != nil {
		panic(fmt.Sprintf("encode facts: %v", err)) // They were decoded from JSON, or can be.
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	document, _ := value(decoder).(object)
	var all []Section
	for _, f := range document.fields {
		o := outline{clean: clean}
		o.flatten(f.name, f.value)
		if _, isText := f.value.(string); !isText && len(o.rows) > 0 {
			all = append(all, Section{Name: f.name, Rows: o.rows})
		}
	}
	return all
}

// outline is the rows of a section.
type outline struct {
	clean func(string) string
	rows  []Fact
}

// object is a JSON object whose fields keep their order.
type object struct{ fields []field }

type field struct {
	name  string
	value any
}

// value reads the value that comes next. What is read was encoded a moment ago: it has
// no error.
func value(d *json.Decoder) any {
	token, err := d.Token()
	if err != nil {
		return nil
	}
	switch token {
	case json.Delim('{'):
		var o object
		for d.More() {
			name, _ := d.Token()
			o.fields = append(o.fields, field{fmt.Sprint(name), value(d)})
		}
		_, _ = d.Token() // The closing brace.
		return o
	case json.Delim('['):
		list := []any{}
		for d.More() {
			list = append(list, value(d))
		}
		_, _ = d.Token() // The closing bracket.
		return list
	}
	return token
}

// flatten adds the rows of a value: one for its plain fields, and one for each object
// in a list of it.
func (o *outline) flatten(path string, v any) {
	at := len(o.rows)
	o.rows = append(o.rows, Fact{Path: o.clean(path)})
	fields := o.plainFields(nil, path, "", v)
	if len(fields) == 0 {
		o.rows = slices.Delete(o.rows, at, at+1)
		return
	}
	o.rows[at].Fields = fields
}

// plainFields are the fields of a value that stand in its own row; the others become
// rows.
func (o *outline) plainFields(fields []Pair, path, name string, v any) []Pair {
	switch v := v.(type) {
	case object:
		for _, f := range v.fields {
			fields = o.plainFields(fields, path, strings.TrimPrefix(name+"."+f.name, "."), f.value)
		}
		return fields
	case []any:
		var plain []string
		for i, item := range v {
			if one, ok := item.(object); ok {
				o.flatten(fmt.Sprintf("%s[%s]", strings.TrimSuffix(path+"."+name, "."), one.key(i)), one)
			} else {
				plain = append(plain, plainOf(item))
			}
		}
		if len(plain) == 0 && len(v) > 0 {
			return fields
		}
		return append(fields, Pair{Name: name, Text: o.clean(cmp.Or(strings.Join(plain, " "), "none"))})
	case nil:
		return fields
	}
	return append(fields, Pair{Name: name, Text: o.clean(plainOf(v))})
}

// plainOf is a plain value as text. A list in a list is written as Go does.
func plainOf(v any) string { return fmt.Sprint(v) }

// key names an object in a list as evidence does: by its address or name, else by its
// place.
func (o object) key(i int) string {
	for _, names := range [][]string{{"address"}, {"a", "b"}, {"source", "destination"}, {"name"}, {"id"}} {
		var parts []string
		for _, name := range names {
			for _, f := range o.fields {
				if s := plainOf(f.value); f.name == name && s != "" {
					parts = append(parts, s)
				}
			}
		}
		if len(parts) == len(names) {
			return strings.Join(parts, " ")
		}
	}
	return fmt.Sprint(i)
}
