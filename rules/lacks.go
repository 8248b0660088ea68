package rules

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/rules/internal/reach"
)

// This file says what facts may lack, so that what cannot apply without it is not even parsed: a section,
// a field of a section ("env.variables"), which is lacking as well if it is an empty list or false, or GPUs of
// a vendor. The index knows of each definition which of them it cannot apply without.

// vendorLack begins the name of what facts lack that have no GPU of a vendor.
const vendorLack = "vendor "

// vendors are the GPUs' vendors.
var vendors = []string{"amd", "nvidia"}

// lacksOf are the shapes of facts that lack something, by its name.
func lacksOf(schema map[string]any) map[string]*reach.Shape {
	properties := func(of any) map[string]any {
		m, _ := of.(map[string]any)
		fields, _ := m["properties"].(map[string]any)
		return fields
	}
	lacks := map[string]*reach.Shape{}
	for section, of := range properties(schema) {
		if section == "profile" {
			continue
		}
		lacks[section] = reach.Field(section, reach.Undefined)
		for field, of := range properties(of) {
			lacks[section+"."+field] = reach.Field(section, reach.Field(field, nothing(of)))
		}
	}
	for _, vendor := range vendors {
		var others []ast.Value
		for _, other := range vendors {
			if other != vendor {
				others = append(others, ast.String(other))
			}
		}
		lacks[vendorLack+vendor] = reach.Field("gpus", reach.Field("devices", reach.Collection(reach.Field("vendor", reach.ValuesOf(others...)))))
	}
	return lacks
}

// nothing is the shape of a field that is lacking; it may be undefined as well.
func nothing(schema any) *reach.Shape {
	m, _ := schema.(map[string]any)
	switch m["type"] {
	case "array":
		return reach.ValuesOf(ast.NewArray())
	case "boolean":
		return reach.ValuesOf(ast.Boolean(false))
	}
	return reach.Undefined
}

// lackedBy reports what facts lack of which some sections are known.
func lackedBy(known func(section string) (value ast.Value, ok bool)) func(lack string) bool {
	get := func(v ast.Value, field string) ast.Value {
		if object, ok := v.(ast.Object); ok {
			if t := object.Get(ast.StringTerm(field)); t != nil {
				return t.Value
			}
		}
		return nil
	}
	return func(lack string) bool {
		if vendor, ok := strings.CutPrefix(lack, vendorLack); ok {
			gpus, ok := known("gpus")
			if !ok {
				return false
			}
			devices, _ := get(gpus, "devices").(*ast.Array)
			return devices == nil || !devices.Until(func(t *ast.Term) bool {
				name, isText := get(t.Value, "vendor").(ast.String)
				return !isText || !slices.Contains(vendors, string(name)) || string(name) == vendor
			})
		}
		section, field, within := strings.Cut(lack, ".")
		value, ok := known(section)
		switch {
		case !ok:
			return false
		case value == nil || !within:
			return value == nil
		}
		switch v := get(value, field).(type) {
		case nil:
			return true
		case *ast.Array:
			return v.Len() == 0
		case ast.Boolean:
			return !bool(v)
		}
		return false
	}
}

// sectionsIn makes the sections of an input known, all of them.
func sectionsIn(input ast.Object) func(section string) (ast.Value, bool) {
	return func(section string) (ast.Value, bool) {
		if t := input.Get(ast.StringTerm(section)); t != nil {
			return t.Value, true
		}
		return nil, true
	}
}

// usualLack reports what facts of most machines lack: what only texts fill, and any field and any
// vendor, so that what is left is needed on all.
func usualLack(lack string) bool {
	return strings.ContainsAny(lack, ". ") || lack == "image" || lack == "target" || slices.Contains(TextSections, lack)
}
