package parse

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// ledger notes which line told which value of which fact. A place is kept together with the value that was read
// there, and counts only where the finished facts have that value: so it never speaks of another than is shown.
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
	path   string
	object any // A pointer.
	before map[string]said
	source string
	line   int
}

// said is a value as text, and of a list how long it is.
type said struct {
	value  string
	length int
}

// MaxOrigins bounds the places that are kept, and maxWatched the objects that one line may change.
const (
	MaxOrigins = 20000
	maxWatched = 256
)

// note keeps the first place of a value. Line 0 means no single line: several lines give the value together.
func (g *ledger) note(fact, value, source string, line int) {
	t := toldValue{fact, value}
	if g.known[t] || len(g.told) >= MaxOrigins {
		return
	}
	facts.Put(&g.known, t, true)
	g.told = append(g.told, toldAt{t, source, line})
}

// watch notes that what changes in an object, a pointer, from now on is told by one line: until another line is looked
// at, or an object is watched for another one.
func (g *ledger) watch(path string, object any, source string, line int) {
	if len(g.open) > 0 && (g.open[0].line != line || g.open[0].source != source) {
		g.close()
	}
	if len(g.open) >= maxWatched || slices.ContainsFunc(g.open, func(w watched) bool { return w.object == object }) {
		return
	}
	w := watched{path: path, object: object, before: map[string]said{}, source: source, line: line}
	valuesIn(path, object, func(fact string, s said) { w.before[fact] = s })
	g.open = append(g.open, w)
}

// settle notes what changed.
func (g *ledger) settle(w *watched) {
	valuesIn(w.path, w.object, func(fact string, now said) {
		line, was := w.line, w.before[fact]
		if 0 < was.length && was.length < now.length {
			line = 0 // An earlier line began the list.
		}
		if _, known := w.before[fact]; !known || was.value != now.value {
			g.note(fact, now.value, w.source, line)
		}
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
				ends[j] = cmp.Or(names[end], end)
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
		valuesIn(path, section, func(fact string, s said) { values[fact] = s.value })
	}
	return values
}

// sharedPaths are the paths that stand for several entries: interfaces of two
// hosts that bear one name. Nobody could tell whose line is given for them.
func sharedPaths(f *facts.NICFacts) map[string]bool {
	if f == nil {
		return nil
	}
	shared := map[string]bool{} // False of those that stand for one so far.
	note := func(path string) { _, shared[path] = shared[path] }
	for _, n := range f.Interfaces {
		note("nics.interfaces[" + n.Name + "]")
	}
	for _, q := range f.QoS {
		note("nics.qos[" + q.Interface + "]")
	}
	return shared
}

// valuesIn calls emit with the path of each value that lines of texts tell, and the value: plain ones, and lists of them. Zero says
// nothing unless a pointer leads to it; but one line tells a whole entry of a list, so there false is a value as well: a link is down.
func valuesIn(path string, v any, emit func(fact string, s said)) {
	facts.Walk(path, v, func(n *facts.Node) bool {
		isField := n.Parent != nil && !n.Element
		switch kind := n.Value.Kind(); {
		case isField && (unsaid[n.Field.Name] || n.Field.ID == "facts.NVLink.Link"):
			return false
		case !n.IsLeaf():
			return true
		case kind == reflect.Slice && (n.Value.IsNil() || isField && n.Field.OmitEmpty && n.Value.Len() == 0):
		case kind == reflect.Slice:
			emit(n.Path(), said{fmt.Sprint(n.Value.Interface()), n.Value.Len()})
		case !isField, n.Pointed, !n.Value.IsZero(), kind == reflect.Bool && n.Parent.Element && !n.Field.OmitEmpty:
			emit(n.Path(), said{value: fmt.Sprint(n.Value.Interface())})
		}
		return false
	})
}

// unsaid are the fields that no line tells as such: the places that entries bear
// themselves, what names an entry in its path, and what follows from other facts.
var unsaid = map[string]bool{
	"source": true, "line": true, "lines": true, "address": true, "a": true, "b": true, "index": true, "kind": true, "vendor": true, "in_nvml": true,
	"in_pci": true, "class": true, "root_bus": true, "ancestors": true, "bridges": true, "common_bridge": true, "config_bytes": true,
	"extended": true, "io": true,
}
