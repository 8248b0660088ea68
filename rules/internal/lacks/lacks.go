// Package lacks says what facts may lack, so that what cannot apply without it is not even parsed: a section,
// a field of a section ("env.variables"), which is lacking as well if it is an empty list or false, or GPUs of
// a vendor. The index of the rules knows of each definition which of them it cannot apply without.
package lacks

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/rules/internal/reach"
)

// noneOf begins the name of what facts lack that have no GPU of a vendor.
const noneOf = "vendor "

// vendors are the GPUs' vendors.
var vendors = []string{"amd", "nvidia"}

// Of are the shapes of facts that lack something, by its name.
func Of(schema map[string]any) map[string]*reach.Shape {
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
			if none := nothing(of); none != nil {
				lacks[section+"."+field] = reach.Field(section, reach.Field(field, none))
			}
		}
	}
	for _, vendor := range vendors {
		var others []ast.Value
		for _, other := range vendors {
			if other != vendor {
				others = append(others, ast.String(other))
			}
		}
		lacks[noneOf+vendor] = reach.Field("gpus", reach.Field("devices", reach.Collection(reach.Field("vendor", reach.ValuesOf(others...)))))
	}
	return lacks
}

// nothing is the shape of a field that is lacking; it may be undefined as well. It is nil for a field on which
// few definitions depend: each lack takes 0.1 s of make update.
func nothing(schema any) *reach.Shape {
	m, _ := schema.(map[string]any)
	kind := m["type"]
	if either, ok := kind.([]any); ok && len(either) > 0 { // ["array", "null"]
		kind = either[0]
	}
	switch kind {
	case "array":
		return reach.ValuesOf(ast.NewArray())
	case "boolean":
		return reach.ValuesOf(ast.Boolean(false))
	case "object":
		return reach.Undefined
	}
	return nil
}

// By reports what facts lack of which some sections are known.
func By(known func(section string) (value ast.Value, ok bool)) func(lack string) bool {
	get := func(v ast.Value, field string) ast.Value {
		if object, ok := v.(ast.Object); ok {
			if t := object.Get(ast.StringTerm(field)); t != nil {
				return t.Value
			}
		}
		return nil
	}
	return func(lack string) bool {
		if vendor, ok := strings.CutPrefix(lack, noneOf); ok {
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

// In reports what an input lacks.
func In(input ast.Object) func(lack string) bool {
	return By(func(section string) (ast.Value, bool) {
		if t := input.Get(ast.StringTerm(section)); t != nil {
			return t.Value, true
		}
		return nil, true
	})
}

// Usual reports what facts of most machines lack: some sections, and any field and any vendor, so that what is
// left is needed on all.
func Usual(sections []string) func(lack string) bool {
	return func(lack string) bool { return strings.ContainsAny(lack, ". ") || slices.Contains(sections, lack) }
}
