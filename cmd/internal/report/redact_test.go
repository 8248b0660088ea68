package report

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// plant sets every string that a value can hold, fields without a name in JSON included, to what next returns, and
// returns where they are. Types that lead to themselves are entered twice.
func plant(v reflect.Value, at string, depth int, next func() string) []string {
	if depth == 0 {
		return nil
	}
	if !v.CanSet() && v.CanAddr() { // An unexported field.
		v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	}
	switch v.Kind() { //nolint:exhaustive // The others hold no strings.
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString(next())
			return []string{at}
		}
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*facts.Facts]() {
			return nil // What the report is made of is no part of it.
		}
		v.Set(reflect.New(v.Type().Elem()))
		return plant(v.Elem(), at, depth-1, next)
	case reflect.Struct:
		var all []string
		for i := range v.NumField() {
			all = append(all, plant(v.Field(i), at+"."+v.Type().Field(i).Name, depth-1, next)...)
		}
		return all
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return plant(v.Index(0), at+"[]", depth-1, next)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		all := plant(value, at+"{}", depth-1, next)
		v.SetMapIndex(reflect.ValueOf("a").Convert(v.Type().Key()), value)
		return all
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf(map[string]any{"list": []any{next()}}))
			return []string{at}
		}
	}
	return nil
}

// TestRedactReachesEverything checks that every string of a report is redacted, but
// those that are words of ours: rules, remedies and links.
func TestRedactReachesEverything(t *testing.T) {
	const depth = 12
	for _, tt := range []struct {
		what    string
		planted string
		redact  func(*Document) *Document
	}{
		{"a name", "atlas%d.hpc.acme.example:4021:4077 [0] NCCL INFO /home/alice/x", (*Document).Redact},
		{"a secret", "hf_%dAbCdEfGhIjKlMnOpQrStUvWx", (*Document).WithoutSecrets},
		{"a secret", "hf_%dAbCdEfGhIjKlMnOpQrStUvWx", (*Document).Redact},
	} {
		d := &Document{}
		n := 0
		places := plant(reflect.ValueOf(d).Elem(), "", depth, func() string { n++; return fmt.Sprintf(tt.planted, n) })
		d.shown = func() *facts.Facts { return &facts.Facts{} }
		before := dump(reflect.ValueOf(d).Elem(), "", depth)
		after := dump(reflect.ValueOf(tt.redact(d)).Elem(), "", depth)
		expect.Must(t, len(places) >= 150, "only %d strings were planted", len(places))
		expect.That(t, reflect.DeepEqual(before, dump(reflect.ValueOf(d).Elem(), "", depth)), "the report itself was changed")
		kept := 0
		for at, text := range after {
			if strings.Contains(text, "alice") || strings.Contains(text, "atlas") || strings.Contains(text, "hf_") {
				if kept++; !ours(at) {
					t.Errorf("%s is seen in %s: %q", tt.what, at, text)
				}
			}
		}
		t.Logf("%d strings, %d of them words of ours", len(places), kept)
	}
}

// ours reports whether a place holds what no input reaches.
func ours(at string) bool {
	for _, end := range []string{
		".Schema", ".ID", ".Rule", ".Remedy", ".Kind", ".Test", ".Program", ".Role", ".Section", ".Outcome", ".Mode", ".Code", ".FoundBy", ".Links[]", ".Remedies[]", ".Passed[]", ".Cause",
	} {
		if strings.HasSuffix(at, end) {
			return true
		}
	}
	return false
}

// dump lists all strings of a value by their places.
func dump(v reflect.Value, at string, depth int) map[string]string {
	all := map[string]string{}
	if depth == 0 {
		return all
	}
	add := func(v reflect.Value, at string) {
		maps.Copy(all, dump(v, at, depth-1))
	}
	switch v.Kind() { //nolint:exhaustive // The others hold no strings.
	case reflect.String:
		all[at] = v.String()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*facts.Facts]() {
			add(v.Elem(), at)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			add(v.Field(i), at+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		for i := range v.Len() {
			add(v.Index(i), at+"[]")
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			add(v.MapIndex(k), at+"{}")
		}
	}
	return all
}
