// Package lines makes what others wrote fit to be shown: safe to print, broken into lines, coloured, escaped for
// Markdown, with what can be typed marked as code, and with as many digits as a number is worth.
package lines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/escape"
)

// MaxField bounds how much of one string from the machine is printed, in characters; JSON holds the whole of it.
const MaxField = 2000

// Printable makes a string safe to show on a terminal: control characters, marks that turn the direction of writing, characters
// without width and bytes that are no UTF-8 stand as escapes, line breaks as blanks. With ascii, so does all that is not ASCII.
func Printable(s string, ascii bool) string {
	var b strings.Builder
	n := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case n == MaxField:
			b.WriteString("...")
			return b.String()
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case r < utf8.RuneSelf && !escape.Visible(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case !escape.Visible(r) || ascii && r >= utf8.RuneSelf:
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteRune(r)
		}
		n++
		i += size
	}
	return b.String()
}

// Clean returns a copy of a value in which every string that a format can reach is safe to print, as
// Printable makes it. Fields that are not exported stay as they are.
func Clean[T any](v T, ascii bool) T {
	return copied(v, func(s string) string { return Printable(s, ascii) }, false)
}

// Filled returns a copy of a value without a nil list or map, so that none is null in JSON.
func Filled[T any](v T) T { return copied(v, func(s string) string { return s }, true) }

func copied[T any](v T, text func(string) string, fill bool) T {
	var walk func(v reflect.Value) reflect.Value
	walk = func(v reflect.Value) reflect.Value {
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		switch v.Kind() { //nolint:exhaustive // The others hold no strings.
		case reflect.String:
			out.SetString(text(v.String()))
		case reflect.Pointer:
			if !v.IsNil() {
				out.Set(reflect.New(v.Type().Elem()))
				out.Elem().Set(walk(v.Elem()))
			}
		case reflect.Interface:
			if !v.IsNil() {
				out.Set(walk(v.Elem()))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					out.Field(i).Set(walk(v.Field(i)))
				}
			}
		case reflect.Slice:
			if fill || !v.IsNil() {
				out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			}
			for i := range v.Len() {
				out.Index(i).Set(walk(v.Index(i)))
			}
		case reflect.Map:
			if fill || !v.IsNil() {
				out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			}
			for _, key := range v.MapKeys() {
				out.SetMapIndex(walk(key), walk(v.MapIndex(key)))
			}
		}
		return out
	}
	return walk(reflect.ValueOf(&v).Elem()).Interface().(T) //nolint:forcetypeassert // The copy has the type.
}

// FromYAML returns what decodes a part of the program, once it is first asked for.
func FromYAML[T any](raw []byte) func() T {
	return sync.OnceValue(func() (v T) {
		if err := yaml.Unmarshal(raw, &v); err != nil {
			panic(err) // It is part of the program, and tests read it.
		}
		return v
	})
}

// JSON encodes a value as indented JSON that is safe to show on a terminal: every character that does not print is
// escaped, which changes nothing for a program that decodes it.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return escape.JSON(b.Bytes()), nil
}

// WriteJSON writes a value as JSON.
func WriteJSON(w io.Writer, v any) error {
	raw, err := JSON(v)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = w.Write(raw)
	return err
}
