package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/page"
)

// facts lists all that was read: a row for each object, with its fields.
func (h *pageOf) facts() []page.Section {
	raw, err := json.Marshal(h.d.facts())
	if err != nil {
		panic(fmt.Sprintf("encode facts: %v", err)) // They were decoded from JSON, or can be.
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	document := ordered(decoder)
	var all []page.Section
	for _, f := range document.fields {
		section := page.Section{Name: f.name}
		flatten(&section.Rows, f.name, f.value)
		if _, isText := f.value.(string); !isText && len(section.Rows) > 0 {
			all = append(all, section)
		}
	}
	return all
}

// object is a JSON object whose fields keep their order.
type object struct{ fields []field }

type field struct {
	name  string
	value any
}

// ordered reads the object that comes next.
func ordered(d *json.Decoder) object {
	o, _ := value(d).(object)
	return o
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
func flatten(rows *[]page.Fact, path string, v any) {
	row := page.Fact{Path: line(path)}
	at := len(*rows)
	*rows = append(*rows, row)
	row.Fields = plainFields(rows, nil, path, "", v)
	if len(row.Fields) == 0 {
		*rows = append((*rows)[:at], (*rows)[at+1:]...)
		return
	}
	(*rows)[at] = row
}

// plainFields are the fields of a value that stand in its own row; the others become
// rows.
func plainFields(rows *[]page.Fact, fields []page.Pair, path, name string, v any) []page.Pair {
	switch v := v.(type) {
	case object:
		for _, f := range v.fields {
			fields = plainFields(rows, fields, path, strings.TrimPrefix(name+"."+f.name, "."), f.value)
		}
		return fields
	case []any:
		var plain []string
		for i, item := range v {
			if o, ok := item.(object); ok {
				flatten(rows, fmt.Sprintf("%s[%s]", strings.TrimSuffix(path+"."+name, "."), o.key(i)), o)
			} else {
				plain = append(plain, plainOf(item))
			}
		}
		if len(plain) == 0 && len(v) > 0 {
			return fields
		}
		return append(fields, page.Pair{Name: name, Text: line(cmp.Or(strings.Join(plain, " "), "none"))})
	case nil:
		return fields
	}
	return append(fields, page.Pair{Name: name, Text: line(plainOf(v))})
}

// plainOf is a plain value as text.
func plainOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any, object:
		return valueOf(v)
	}
	return fmt.Sprint(v)
}

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
