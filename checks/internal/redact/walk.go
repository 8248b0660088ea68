package redact

import (
	"reflect"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// This file redacts values of any type: facts, reports, decoded JSON. What a
// field is called in JSON says what it holds.

// Value returns a deep copy of a value in which all strings are redacted. The names in it are to be studied first.
// Strings of a type of their own are words of gpudoctor, and stay, as do unexported fields.
func Value[T any](r *Redactor, v T) T {
	out, _ := reflect.TypeAssert[T](r.walk(fieldPlace{}, reflect.ValueOf(&v).Elem())) // A walk keeps the type; null has none.
	return out
}

// Study learns the names in a value, so that they are replaced wherever they stand, also in what is redacted before it.
func (r *Redactor) Study(v any) {
	r.Learning(func() {
		if value := reflect.ValueOf(v); value.IsValid() && !r.secretsOnly {
			r.walk(fieldPlace{}, value)
		}
	})
}

// Learning learns the names in what f redacts, of which nothing is used.
func (r *Redactor) Learning(f func()) {
	r.studying = true
	defer func() { r.studying = false }()
	f()
}

// fieldPlace is where a value stands: in the field key of what stands in the
// field parent, both in lower case. A list's elements stand where the list does.
type fieldPlace struct {
	parent, key string
	// ours is true for the field of a type, false for the key of a map.
	ours bool
}

func (r *Redactor) walk(at fieldPlace, v reflect.Value) reflect.Value {
	switch v.Kind() { //nolint:exhaustive // What holds no string stays.
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(r.walk(at, v.Elem()))
		return out
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		return r.walk(at, v.Elem())
	case reflect.Struct:
		return r.structure(at, v)
	case reflect.Map:
		return r.dictionary(at, v)
	case reflect.Slice:
		return r.list(at, v)
	case reflect.String:
		if v.Type() != reflect.TypeFor[string]() {
			return v
		}
		return reflect.ValueOf(r.field(at, v.String()))
	}
	return v
}

func (r *Redactor) structure(at fieldPlace, v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			out.Field(i).Set(r.walk(at, v.Field(i)))
			continue
		}
		out.Field(i).Set(r.walk(fieldPlace{at.key, strings.ToLower(name), true}, v.Field(i)))
	}
	// A variable: its name says what its value is.
	name, value := out.FieldByName("Name"), out.FieldByName("Value")
	if name.IsValid() && value.IsValid() && name.Kind() == reflect.String && value.Kind() == reflect.String {
		value.SetString(r.setting(v.FieldByName("Name").String(), v.FieldByName("Value").String()))
	}
	return out
}

func (r *Redactor) dictionary(at fieldPlace, v reflect.Value) reflect.Value {
	if v.IsNil() || v.Type().Key().Kind() != reflect.String {
		return v
	}
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	keys := v.MapKeys()
	slices.SortStableFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	variable, _ := stringIn(v.MapIndex(reflect.ValueOf("name").Convert(v.Type().Key())))
	for _, k := range keys {
		key, value := k.String(), v.MapIndex(k)
		shown := k
		if !at.ours || !slices.Contains(known().OurKeys, at.key) {
			shown = reflect.ValueOf(r.Text(key)).Convert(k.Type())
		}
		text, isText := stringIn(value)
		switch {
		case isText && key == "value" && variable != "":
			value = reflect.ValueOf(r.setting(variable, text))
		case isText && (key == strings.ToUpper(key) || SecretVariable(key, text)):
			value = reflect.ValueOf(r.setting(key, text))
		default:
			value = r.walk(fieldPlace{at.key, strings.ToLower(key), false}, value)
		}
		out.SetMapIndex(shown, value)
	}
	return out
}

// stringIn is the string that a value is, or that an interface holds.
func stringIn(v reflect.Value) (string, bool) {
	if v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || v.Type() != reflect.TypeFor[string]() {
		return "", false
	}
	return v.String(), true
}

func (r *Redactor) list(at fieldPlace, v reflect.Value) reflect.Value {
	if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
		return v
	}
	out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	var words []string
	for i := range v.Len() {
		if word, ok := stringIn(v.Index(i)); ok {
			words = append(words, word)
		}
	}
	if len(words) == v.Len() {
		if together := r.together(at, words); together != nil {
			for i, word := range together {
				out.Index(i).Set(reflect.ValueOf(word))
			}
			return out
		}
	}
	for i := range v.Len() {
		out.Index(i).Set(r.walk(at, v.Index(i)))
	}
	return out
}

// together redacts the strings of a list as one text, for what one says about the next; nil if each is to be
// redacted by itself.
func (r *Redactor) together(at fieldPlace, list []string) []string {
	switch {
	case len(list) < 2:
		return nil
	case at.key == "command":
		if out := r.joined(list, "\t"); out != nil {
			return out
		}
		out := make([]string, len(list))
		for i, word := range list {
			before := strings.Join(list[max(0, i-2):i], " ") + " " // Such as "Authorization: Bearer".
			out[i] = r.behind(before, word, true)
		}
		return out
	case at.oneWord() || at.ours && slices.Contains(known().OurWords, at.key) || isHostKey(at.key) || versionName.MatchString(at.key) || strings.Contains(at.key, "serial") || strings.Contains(at.key, "uuid"):
		return nil
	}
	return r.joined(list, "\n")
}

// joined redacts strings with a separator between them; nil if they cannot be distinguished after it.
func (r *Redactor) joined(list []string, between string) []string {
	text := strings.Join(list, between)
	if strings.Count(text, between) != len(list)-1 || strings.Contains(text, "\n") && between != "\n" {
		return nil
	}
	if out := strings.Split(r.Text(text), between); len(out) == len(list) {
		return out
	}
	return nil
}

// behind redacts a text by what stands before it, which stays.
func (r *Redactor) behind(head, s string, addresses bool) string {
	if out, ok := strings.CutPrefix(r.Content(head+s, addresses), head); ok {
		return out
	}
	return r.Content(s, addresses)
}

func (r *Redactor) setting(name, value string) string {
	if value == "" {
		return value
	}
	if SecretVariable(name, value) {
		return redacted
	}
	if !r.secretsOnly && isHostVariable(name) {
		value = r.hostVariable(value)
	}
	return r.behind(name+"=", value, !versionName.MatchString(name))
}

// noUUID says that there is none.
var noUUID = lazy.New(`^(?i:[0-]*|\[*N/A\]*|unknown|none)$`)

// field redacts a text by what its key says about it.
func (r *Redactor) field(at fieldPlace, s string) string {
	switch {
	case s == "" || at.ours && slices.Contains(known().OurWords, at.key):
		return s
	case r.studying && strings.Contains(at.key, "uuid"):
		return s // No name.
	case r.secretsOnly:
		return r.Text(s)
	case isHostKey(at.key):
		s = r.hosts(s)
	case at.parent == "launches" && at.key == "image":
		if image := r.image(s); image != s {
			return image
		}
	case at.parent == "launches" && at.key == "name":
		if job := r.job(s); job != s {
			return job
		}
	case strings.Contains(at.key, "serial"):
		return r.serial(s)
	case strings.Contains(at.key, "uuid"):
		if text := r.Text(s); text != s || strings.Contains(s, uuidStandIn) || noUUID.MatchString(s) {
			return text
		}
		return r.uuid(s)
	}
	if at.oneWord() && !strings.ContainsAny(s, " \t\n/=@") {
		return r.Numbers(secrets(s), !versionName.MatchString(at.key))
	}
	return r.Content(s, !versionName.MatchString(at.key))
}

// oneWord reports whether a value of one word was written by gpudoctor or a driver.
func (at fieldPlace) oneWord() bool {
	if at.key == "name" {
		return at.ours && at.parent != "launches" && at.parent != "texts"
	}
	return at.ours && !slices.Contains(known().FreeKeys, at.key)
}

// isHostKey reports whether a field of this name holds names of hosts.
func isHostKey(key string) bool { return slices.Contains(known().HostKeys, key) }
