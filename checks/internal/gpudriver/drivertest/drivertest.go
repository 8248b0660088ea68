// Package drivertest holds what the tests of packages cuda and hip have in common.
package drivertest

import (
	"reflect"
	"testing"
)

// Functions checks that functions are bound to each field of the structs of a package,
// and that all needed ones are among them.
func Functions(t *testing.T, functions map[string]any, needed []string, structs ...any) {
	t.Helper()
	bound := make(map[any]bool)
	for _, fn := range functions {
		bound[fn] = true
	}
	for _, s := range structs {
		v := reflect.ValueOf(s).Elem()
		for i := range v.NumField() {
			if !bound[v.Field(i).Addr().Interface()] {
				t.Errorf("no function is bound to %s of %T", v.Type().Field(i).Name, s)
			}
		}
	}
	for _, name := range needed {
		if functions[name] == nil {
			t.Errorf("%s is needed and never bound", name)
		}
	}
}
