package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	_ "embed"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// entry is a known value of the facts.
type entry struct {
	*facts.Node

	path, pattern string   // pattern is the path without the names of elements.
	names         []string // Of the elements in the path.
}

// compareFacts compares two facts documents, place by place. Of what one side lacks, the parts are not listed.
func compareFacts(a, b *facts.Facts) []Item {
	before, after := entriesOf(a), entriesOf(b)
	all := maps.Clone(before)
	maps.Copy(all, after)
	var items []Item
	lacking := map[*facts.Node]bool{}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		x, y := before[path], after[path]
		switch {
		case x != nil && y != nil:
			if (x.IsLeaf() || y.IsLeaf()) && !equal(x, y) {
				items = append(items, itemOf(x, y))
			}
		case lacking[all[path].Parent]:
			lacking[all[path].Node] = true
		default:
			lacking[all[path].Node] = true
			items = append(items, itemOf(x, y))
		}
	}
	return items
}

func entriesOf(f *facts.Facts) map[string]*entry {
	nodes := nodesOf(f)
	numberAlike(nodes)
	all, of := make(map[string]*entry, len(nodes)), make(map[*facts.Node]*entry, len(nodes))
	for _, n := range nodes {
		e := &entry{Node: n, path: n.Path()}
		if above := of[n.Parent]; above != nil && n.Element {
			e.pattern, e.names = above.pattern+"[]", append(slices.Clone(above.names), n.Key)
		} else if above != nil {
			e.pattern, e.names = strings.TrimPrefix(above.pattern+"."+n.Field.Name, "."), above.names
		}
		of[n], all[e.path] = e, e
	}
	return all
}

// nodesOf are the known values of facts, but for what is no difference between machines.
func nodesOf(f *facts.Facts) []*facts.Node {
	var nodes []*facts.Node
	facts.Walk("", f, func(n *facts.Node) bool {
		switch {
		case n.Field == nil:
		case !n.Element && leftOut(n.Field.ID), n.Element && strings.HasSuffix(n.Field.ID, ".Fields") && leftOut("fields."+n.Key), !isKnown(n):
			return false
		case n.Element:
			if identity := tables().Identities[n.Value.Type().String()]; identity != nil {
				n.Key = facts.Key(n.Value, identity)
			}
		}
		nodes = append(nodes, n)
		return true
	})
	return nodes
}

// isKnown reports whether something is known: an empty value that JSON leaves out is not, unless it is a list or a truth value.
func isKnown(n *facts.Node) bool {
	switch n.Value.Kind() { //nolint:exhaustive // All others are plain values.
	case reflect.Struct, reflect.Map, reflect.Bool:
		return true
	case reflect.Slice:
		return n.Field.OmitEmpty || !n.Value.IsNil()
	}
	return n.Element || n.Pointed || !n.Field.OmitEmpty || !n.Value.IsZero()
}

// numberAlike tells the elements of a list that have one key apart, by their order.
func numberAlike(nodes []*facts.Node) {
	type sibling struct {
		parent *facts.Node
		key    string
	}
	seen := map[sibling]int{}
	for _, n := range nodes {
		if s := (sibling{n.Parent, n.Key}); n.Element {
			if seen[s]++; seen[s] > 1 {
				n.Key = fmt.Sprintf("%s (%d)", n.Key, seen[s])
			}
		}
	}
}

// valueOf is what a node holds. A list of plain values is sorted unless its order means something.
func valueOf(n *facts.Node) any {
	if n.Value.Kind() != reflect.Slice || !n.IsLeaf() {
		return n.Value.Interface()
	}
	all := make([]string, n.Value.Len())
	for i := range all {
		all[i] = fmt.Sprint(n.Value.Index(i).Interface())
	}
	if !slices.Contains(tables().Ordered, n.Field.ID) {
		slices.Sort(all)
	}
	return all
}

// itemOf is a difference between two values. One of them is nil where its side lacks the element, or does not know the fact.
func itemOf(x, y *entry) Item {
	e := cmp.Or(x, y)
	i := Item{Kind: kindOf(e.pattern), Change: Changed, Path: e.path, pattern: e.pattern, at: strings.Join(e.names, " ")}
	if x == nil {
		i.Change = New
	} else {
		i.Before = valueOf(x.Node)
	}
	if y == nil {
		i.Change = Gone
	} else {
		i.After = valueOf(y.Node)
	}
	if i.Change != Changed && !strings.HasSuffix(i.pattern, "]") && i.Kind != Part {
		i.Kind = Reading
	}
	return i
}

// equal compares two values. Measured values that differ by no more than two measurements of one thing do are equal.
func equal(x, y *entry) bool {
	a, isFloat := valueOf(x.Node).(float64)
	b, isToo := valueOf(y.Node).(float64)
	if isFloat && isToo && slices.Contains(tables().Measured, x.Field.ID) {
		return near(a, b)
	}
	return reflect.DeepEqual(valueOf(x.Node), valueOf(y.Node))
}

func near(x, y float64) bool {
	return max(math.Abs(x), math.Abs(y)) <= data.Thresholds().StagedFaster*min(math.Abs(x), math.Abs(y))
}

//go:embed tables.yaml
var tablesYAML []byte

// table is tables.yaml, whose comments say what each part is.
type table struct {
	Identities map[string][]string
	Noise      map[string][]string
	Ordered    []string
	Measured   []string
	Kinds      map[Kind][]string
	Nouns      map[string]string
}

var tables = lines.FromYAML[table](tablesYAML)

// leftOut reports whether a field is no difference between machines.
func leftOut(id string) bool {
	name := id[strings.LastIndexByte(id, '.'):]
	return slices.ContainsFunc(slices.Collect(maps.Values(tables().Noise)), func(fields []string) bool {
		return slices.Contains(fields, id) || slices.Contains(fields, name)
	})
}

func kindOf(pattern string) Kind {
	for at := pattern + "/"; at != ""; {
		for kind, places := range tables().Kinds {
			if slices.Contains(places, at) {
				return kind
			}
		}
		at = at[:max(strings.LastIndexAny(at, "./["), 0)]
	}
	return Fact
}
