package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// section is a part of the facts.
type section struct {
	Name string
	Rows []outlined
}

// outlined is one thing that was read, with its fields.
type outlined struct {
	Path   string
	Fields []pair
}

// outlineOf lists all that facts hold: a row for each object, with its fields.
func outlineOf(facts any) []section {
	raw, err := json.Marshal(facts)
	if err != nil {
		panic(fmt.Sprintf("encode facts: %v", err)) // They were decoded from JSON, or can be.
	}
	var all []section
	gjson.ParseBytes(raw).ForEach(func(name, v gjson.Result) bool {
		s := section{Name: name.Str}
		if s.flatten(name.Str, v); v.Type != gjson.String && len(s.Rows) > 0 {
			all = append(all, s)
		}
		return true
	})
	return lines.Clean(all, false)
}

// flatten adds the rows of a value: one for its plain fields, and one for each object
// in a list of it.
func (s *section) flatten(path string, v gjson.Result) {
	at := len(s.Rows)
	s.Rows = append(s.Rows, outlined{Path: path})
	if s.plainFields(at, "", v); len(s.Rows[at].Fields) == 0 {
		s.Rows = append(s.Rows[:at], s.Rows[at+1:]...)
	}
}

// plainFields adds the fields of a value that stand in its own row, which is that at a place; the others
// become rows.
func (s *section) plainFields(at int, name string, v gjson.Result) {
	add := func(text string) { s.Rows[at].Fields = append(s.Rows[at].Fields, pair{name, text}) }
	switch {
	case v.Type == gjson.Null:
	case v.IsObject():
		v.ForEach(func(key, value gjson.Result) bool {
			s.plainFields(at, strings.TrimPrefix(name+"."+key.Str, "."), value)
			return true
		})
	case v.IsArray():
		var plain []string
		items := v.Array()
		for i, item := range items {
			if item.IsObject() {
				s.flatten(fmt.Sprintf("%s[%s]", strings.TrimSuffix(s.Rows[at].Path+"."+name, "."), keyOfObject(item, i)), item)
			} else {
				plain = append(plain, plainOf(item))
			}
		}
		if len(plain) > 0 || len(items) == 0 {
			add(cmp.Or(strings.Join(plain, " "), "none"))
		}
	default:
		add(plainOf(v))
	}
}

// plainOf is a plain value as text, a number with all its digits.
func plainOf(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return v.Raw
}

// keyOfObject names an object in a list as evidence does: by its address or name, else by its
// place.
func keyOfObject(v gjson.Result, i int) string {
	for _, names := range [][]string{{"address"}, {"a", "b"}, {"source", "destination"}, {"name"}, {"id"}} {
		var parts []string
		for _, name := range names {
			if s := plainOf(v.Get(name)); s != "" {
				parts = append(parts, s)
			}
		}
		if len(parts) == len(names) {
			return strings.Join(parts, " ")
		}
	}
	return fmt.Sprint(i)
}
