package parse

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// ledger notes which line told which value of which fact.
//
// A place is kept together with the value that was read there, and finish
// compares that value with the one in the finished facts: where another text
// replaced it, the place of the other text counts, and where nobody noted a
// place for the value, the fact has none. So a place never speaks of another
// value than the one that is shown.
type ledger struct {
	told []toldAt
	// known has the values of facts that have a place already.
	known map[toldValue]bool
	open  []watched
}

// toldValue is a fact, by its path, and its value as text.
type toldValue struct{ fact, value string }

// toldAt is where a value was read.
type toldAt struct {
	toldValue
	source string
	line   int
}

// watched is an object whose changes one line tells.
type watched struct {
	path           string
	object, before reflect.Value
	source         string
	line           int
}

// MaxOrigins bounds the places that are kept, and maxWatched the objects that
// one line may change.
const (
	MaxOrigins = 20000
	maxWatched = 256
)

// note keeps the first place of a value. Line 0 means no single line: several
// lines give the value together.
func (g *ledger) note(fact, value, source string, line int) {
	t := toldValue{fact, value}
	if g.known[t] || len(g.told) >= MaxOrigins {
		return
	}
	if g.known == nil {
		g.known = make(map[toldValue]bool)
	}
	g.known[t] = true
	g.told = append(g.told, toldAt{t, source, line})
}

// watch notes that what changes in an object from now on is told by one line:
// until another line is looked at, or an object is watched for another one.
// object is a pointer.
func (g *ledger) watch(path string, object any, source string, line int) {
	if len(g.open) > 0 && (g.open[0].line != line || g.open[0].source != source) {
		g.close()
	}
	v := reflect.ValueOf(object)
	if slices.ContainsFunc(g.open, func(w watched) bool { return w.is(v) }) {
		return
	}
	if len(g.open) >= maxWatched {
		return
	}
	g.open = append(g.open, watched{path: path, object: v, before: clone(v), source: source, line: line})
}

// is reports whether an object is this one: the first field of a structure lies
// where the structure does.
func (w *watched) is(object reflect.Value) bool {
	return w.object.Pointer() == object.Pointer() && w.object.Type() == object.Type()
}

// settle notes what changed.
func (g *ledger) settle(w *watched) {
	leaves(w.path, w.before, w.object, false, func(fact, value string, grown bool) {
		line := w.line
		if grown {
			line = 0
		}
		g.note(fact, value, w.source, line)
	})
}

// reached ends the watching of objects for lines before one.
func (g *ledger) reached(line int) {
	if len(g.open) > 0 && g.open[0].line < line {
		g.close()
	}
}

// close ends the watching of all objects.
func (g *ledger) close() {
	for i := range g.open {
		g.settle(&g.open[i])
	}
	clear(g.open)
	g.open = g.open[:0]
}

// drop ends the watching of an object whose change no one line tells: a sum.
func (g *ledger) drop(object any) {
	v := reflect.ValueOf(object)
	g.open = slices.DeleteFunc(g.open, func(w watched) bool { return w.is(v) })
}

// rename carries new names of GPUs into the paths of facts.
func (g *ledger) rename(names map[string]string) {
	for i := range g.told {
		t := &g.told[i]
		for _, list := range []string{"gpus.devices[", "gpus.p2p[", "links.pairs["} {
			rest, ok := strings.CutPrefix(t.fact, list)
			if !ok {
				continue
			}
			key, below, _ := strings.Cut(rest, "]")
			ends := strings.Split(key, " -> ")
			for j, end := range ends {
				if names[end] != "" {
					ends[j] = names[end]
				}
			}
			t.fact = list + strings.Join(ends, " -> ") + "]" + below
		}
	}
}

// origins are the places of the values that the finished facts hold.
func (g *ledger) origins(f *facts.Facts) []facts.Origin {
	if len(g.told) == 0 {
		return nil
	}
	final, shared := Values(f), sharedPaths(f.NICs)
	var list []facts.Origin
	placed := make(map[string]bool)
	for _, t := range g.told {
		value, ok := final[t.fact]
		// Each setting of a variable bears its own place: nothing replaces it.
		if holds := ok && value == t.value || strings.HasPrefix(t.fact, "env.variables["); !holds || placed[t.fact] {
			continue
		}
		if entry, _, _ := strings.Cut(t.fact, "]"); shared[entry+"]"] {
			continue
		}
		placed[t.fact] = true
		if t.line <= 0 {
			continue
		}
		list = append(list, facts.Origin{Fact: t.fact, Source: t.source, Line: t.line, Value: t.value})
		// Rules ask for the place of a port's ACS bits by this path.
		if port, ok := strings.CutSuffix(t.fact, ".acs.control"); ok {
			list = append(list, facts.Origin{Fact: port + ".acs", Source: t.source, Line: t.line, Value: t.value})
		}
	}
	return list
}

// Values are the facts that lines of texts tell, each by its path, as text.
func Values(f *facts.Facts) map[string]string {
	values := make(map[string]string)
	for path, section := range map[string]any{
		"host": f.Host, "pci": f.PCI, "iommu": f.IOMMU, "numa": f.NUMA, "gpus": f.GPUs, "links": f.Links, "container": f.Container,
		"nics": f.NICs, "storage": f.Storage,
	} {
		v := reflect.ValueOf(section)
		leaves(path, reflect.Zero(v.Type()), v, false, func(fact, value string, _ bool) { values[fact] = value })
	}
	return values
}

// sharedPaths are the paths that stand for several entries: interfaces of two
// hosts that bear one name. Nobody could tell whose line is given for them.
func sharedPaths(f *facts.NICFacts) map[string]bool {
	if f == nil {
		return nil
	}
	count, shared := map[string]int{}, map[string]bool{}
	note := func(path string) {
		if count[path]++; count[path] > 1 {
			shared[path] = true
		}
	}
	for _, n := range f.Interfaces {
		note("nics.interfaces[" + n.Name + "]")
	}
	for _, q := range f.QoS {
		note("nics.qos[" + q.Interface + "]")
	}
	return shared
}

// clone copies a value, what it points to included.
func clone(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(clone(v.Elem()))
		return c
	case reflect.Struct:
		c := reflect.New(v.Type()).Elem()
		c.Set(v)
		for i := range v.NumField() {
			switch f := v.Field(i); f.Kind() {
			case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Struct:
				if !f.IsZero() && c.Field(i).CanSet() {
					c.Field(i).Set(clone(f))
				}
			default:
			}
		}
		return c
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				c.Index(i).Set(clone(v.Index(i)))
			}
		}
		return c
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			c.SetMapIndex(entries.Key(), entries.Value())
		}
		return c
	default:
		return v
	}
}

// leaves calls emit with the path and the value of each part of after that
// before lacks, or has with another value. A part is a plain value or a list of
// plain values; grown is true for a list that was begun before. Zero says
// nothing, unless a pointer leads to it.
func leaves(path string, before, after reflect.Value, set bool, emit func(fact, value string, grown bool)) {
	switch after.Kind() {
	case reflect.Pointer:
		if after.IsNil() {
			return
		}
		switch {
		case !before.IsValid() || before.IsNil():
			leaves(path, reflect.Value{}, after.Elem(), true, emit)
		case after.Elem().Kind() == reflect.Struct:
			leaves(path, before.Elem(), after.Elem(), false, emit)
		case plainValue(before) != plainValue(after): // Zero is also reported.
			emit(path, plainValue(after), false)
		}
	case reflect.Struct:
		for _, field := range fieldsOf(after.Type()) {
			var old reflect.Value
			if before.IsValid() {
				old = before.Field(field.index)
			}
			f := after.Field(field.index)
			if f.IsZero() || field.omitted && f.Kind() == reflect.Slice && f.Len() == 0 {
				continue
			}
			leaves(path+"."+field.name, old, f, false, emit)
		}
	case reflect.Slice:
		if after.IsNil() {
			return
		}
		listLeaves(path, before, after, emit)
	case reflect.Map:
		for entries := after.MapRange(); entries.Next(); {
			var old reflect.Value
			if before.IsValid() {
				old = before.MapIndex(entries.Key())
			}
			if value := plainValue(entries.Value()); !old.IsValid() || plainValue(old) != value {
				emit(path+"["+entries.Key().String()+"]", value, false)
			}
		}
	default:
		if set || !after.IsZero() && (!before.IsValid() || !before.Equal(after)) {
			emit(path, plainValue(after), false)
		}
	}
}

// listLeaves is leaves for a list. Structures in it are known by what names
// them.
func listLeaves(path string, before, after reflect.Value, emit func(fact, value string, grown bool)) {
	if after.Type().Elem().Kind() != reflect.Struct {
		old := 0
		if before.IsValid() {
			old = before.Len()
		}
		if value := plainValue(after); !before.IsValid() || before.IsNil() || plainValue(before) != value {
			emit(path, value, old > 0 && old < after.Len())
		}
		return
	}
	for i := range after.Len() {
		var old reflect.Value
		key := keyOf(after.Index(i), i)
		if before.IsValid() && i < before.Len() && keyOf(before.Index(i), i) == key {
			old = before.Index(i)
		}
		at := path + "[" + key + "]"
		leaves(at, old, after.Index(i), false, emit)
		if old.IsValid() {
			continue
		}
		// One line tells a whole entry, and false is reported as well: a link is down.
		for _, field := range fieldsOf(after.Type().Elem()) {
			if f := after.Index(i).Field(field.index); f.Kind() == reflect.Bool && !f.Bool() && !field.omitted {
				emit(at+"."+field.name, "false", false)
			}
		}
	}
}

func plainValue(v reflect.Value) string {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Int, reflect.Int64, reflect.Int32:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	default:
		return fmt.Sprint(v.Interface())
	}
}

// keyOf names an entry of a list as rules do in the paths of their evidence.
func keyOf(v reflect.Value, index int) string {
	named := make(map[string]reflect.Value, 4)
	for i := range v.NumField() {
		switch name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); name {
		case "a", "b", "device", "port", "address", "name", "path", "id", "index", "block", "interface", "pid", "link":
			named[name] = v.Field(i)
		default:
		}
	}
	if a, b := named["a"], named["b"]; a.IsValid() && b.IsValid() {
		return plainValue(a) + " -> " + plainValue(b)
	}
	if device, port := named["device"], named["port"]; device.IsValid() && port.IsValid() {
		return plainValue(device) + ":" + plainValue(port)
	}
	for _, name := range []string{"address", "name", "path", "id", "block", "interface", "index", "pid", "link"} {
		if field := named[name]; field.IsValid() {
			return plainValue(field)
		}
	}
	return strconv.Itoa(index)
}

// factField is a field of the facts by the name that it has in their document.
type factField struct {
	index int
	name  string
	// omitted is true for one that the document leaves out where it is zero.
	omitted bool
}

var factFields sync.Map // From reflect.Type to []factField.

// unsaid are the fields that no line tells as such: the places that entries bear
// themselves, what names an entry in its path, and what follows from other facts.
var unsaid = map[string]bool{
	"source": true, "line": true, "lines": true, "address": true, "a": true, "b": true, "index": true, "kind": true, "vendor": true, "in_nvml": true,
	"in_pci": true, "class": true, "root_bus": true, "ancestors": true, "bridges": true, "common_bridge": true, "config_bytes": true,
	"extended": true, "io": true,
}

// fieldsOf lists the fields of a type whose values lines of texts tell.
func fieldsOf(t reflect.Type) []factField {
	if known, ok := factFields.Load(t); ok {
		return known.([]factField) //nolint:forcetypeassert // Nothing else is stored.
	}
	var fields []factField
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names := name == "link" && t.Field(i).Type.Kind() == reflect.Int // An NVLink's number.
		if name != "" && name != "-" && !unsaid[name] && !names {
			fields = append(fields, factField{i, name, strings.Contains(options, "omitempty")})
		}
	}
	factFields.Store(t, fields)
	return fields
}
