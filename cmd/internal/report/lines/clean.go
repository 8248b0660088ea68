package lines

import "reflect"

// Clean returns a copy of a value in which every string that a format can reach is safe to print, as
// Printable makes it. Fields that are not exported stay as they are.
func Clean[T any](v T, ascii bool) T {
	return cleaned(reflect.ValueOf(&v).Elem(), ascii).Interface().(T) //nolint:forcetypeassert // The copy has the type.
}

func cleaned(v reflect.Value, ascii bool) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() { //nolint:exhaustive // The others hold no strings.
	case reflect.String:
		out.SetString(Printable(v.String(), ascii))
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(cleaned(v.Elem(), ascii))
		}
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(cleaned(v.Elem(), ascii))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(cleaned(v.Field(i), ascii))
			}
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		}
		for i := range v.Len() {
			out.Index(i).Set(cleaned(v.Index(i), ascii))
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		}
		for _, key := range v.MapKeys() {
			out.SetMapIndex(cleaned(key, ascii), cleaned(v.MapIndex(key), ascii))
		}
	}
	return out
}
