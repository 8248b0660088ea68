package report

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
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

// outlineOf lists all that facts hold: a row for each section and each element of a list, with its fields.
func outlineOf(f *facts.Facts) []section {
	var all []section
	rows := map[*facts.Node]int{} // The row of each node that has one, in the last section.
	facts.Walk("", f, func(n *facts.Node) bool {
		switch isSection := n.Parent != nil && n.Parent.Parent == nil; {
		case n.Parent == nil:
			return true
		case isSection && n.Value.Kind() == reflect.String, n.Field.OmitEmpty && !n.Element && !n.Pointed && (n.Value.IsZero() || n.Value.Kind() == reflect.Slice && n.Value.Len() == 0):
			return false
		case isSection:
			all = append(all, section{Name: n.Field.Name})
			fallthrough
		case n.Element && n.Value.Kind() == reflect.Struct:
			s := &all[len(all)-1]
			rows[n], s.Rows = len(s.Rows), append(s.Rows, outlined{Path: n.Path()})
		}
		if text := outlinedText(n); text != "" {
			i, isRow := rows[n]
			for owner := n.Parent; !isRow; owner = owner.Parent {
				i, isRow = rows[owner]
			}
			row := &all[len(all)-1].Rows[i]
			row.Fields = append(row.Fields, pair{strings.TrimPrefix(strings.TrimPrefix(n.Path(), row.Path), "."), text})
		}
		return true
	})
	for i := range all {
		all[i].Rows = slices.DeleteFunc(all[i].Rows, func(r outlined) bool { return len(r.Fields) == 0 })
	}
	return lines.Clean(slices.DeleteFunc(all, func(s section) bool { return len(s.Rows) == 0 }), false)
}

// outlinedText is a plain value, or a list of them, as text; empty for what has parts of its own, and what is not known.
func outlinedText(n *facts.Node) string {
	switch kind := n.Value.Kind(); {
	case kind == reflect.String:
		return n.Value.String()
	case kind != reflect.Slice && n.IsLeaf():
		return valueOf(n.Value.Interface())
	case kind != reflect.Slice || n.Value.IsNil():
		return ""
	case n.Value.Len() == 0:
		return "none"
	case !n.IsLeaf() || n.Value.Type().Elem().Kind() == reflect.Struct: // Texts and origins, which the report tells elsewhere.
		return ""
	}
	return strings.Trim(fmt.Sprint(n.Value.Interface()), "[]")
}
