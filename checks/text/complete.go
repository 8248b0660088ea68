package text

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// Complete fills what the facts of a machine lack from texts that were collected together with its files, such as those
// of a sosreport. Unlike with Join, they are of the same machine and time. What the files show stays.
func Complete(machine, texts *facts.Facts) *facts.Facts {
	joined := *machine
	missing := slices.DeleteFunc(slices.Clone(machine.Unknown), func(u facts.Unknown) bool { return isKnown(machine, u) })
	dropUnplaced(&joined, texts)
	if joined.GPUs != nil && texts.GPUs != nil && texts.GPUs.NVML != "" {
		joined.GPUs.NVML = "" // Nobody asked the library for the files.
	}
	partial := joined.PCI == nil || joined.PCI.Partial
	to, from := reflect.ValueOf(&joined).Elem(), reflect.ValueOf(texts).Elem()
	for i := range to.NumField() {
		name, _, _ := strings.Cut(to.Type().Field(i).Tag.Get("json"), ",")
		switch a, b := to.Field(i), from.Field(i); {
		case name == "env" && !a.IsNil() && !b.IsNil():
			joined.Env = joinEnv(machine.Env, texts.Env)
		case a.IsZero():
			a.Set(b)
		case a.Kind() == reflect.Pointer && !b.IsNil() && name != "transfers":
			fillSection(a.Elem(), b.Elem())
		}
	}
	if joined.PCI != nil && !partial {
		joined.PCI.Partial = false
	}
	checks.Derive(&joined)
	values := parse.Values(&joined)
	joined.Origins = slices.DeleteFunc(slices.Clone(texts.Origins), func(o facts.Origin) bool {
		section, _, _ := strings.Cut(o.Fact, ".")
		if port, ok := strings.CutSuffix(o.Fact, ".acs"); ok {
			o.Fact = port + ".acs.control"
		}
		return slices.Contains(gathered, section) && values[o.Fact] != o.Value
	})
	joined.Unknown = slices.DeleteFunc(slices.Clone(machine.Unknown), func(u facts.Unknown) bool {
		return slices.Contains(missing, u) && isKnown(&joined, u)
	})
	return &joined
}

// gathered are the sections whose values are among those of parse.Values.
var gathered = []string{"host", "pci", "iommu", "numa", "gpus", "links", "container", "nics", "storage"}

// dropUnplaced leaves out GPUs that texts know by index alone where the files show GPUs by
// address: which of them is meant is not known.
func dropUnplaced(machine, texts *facts.Facts) {
	if machine.GPUs == nil || len(machine.GPUs.Devices) == 0 {
		return
	}
	unplaced := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return facts.Address(name) == "" })
	}
	if g := texts.GPUs; g != nil {
		g.Devices = slices.DeleteFunc(g.Devices, func(d facts.GPU) bool { return unplaced(d.Address) })
		g.P2P = slices.DeleteFunc(g.P2P, func(p facts.GPUPeer) bool { return unplaced(p.A, p.B) })
	}
	if l := texts.Links; l != nil {
		l.Pairs = slices.DeleteFunc(l.Pairs, func(p facts.Pair) bool { return unplaced(p.A, p.B) })
	}
}

// fillSection fills what a structure lacks. A list of what has an address, a number or two ends
// is completed entry by entry, and an empty list tells that there is none.
func fillSection(to, from reflect.Value) {
	for i := range to.NumField() {
		a, b := to.Field(i), from.Field(i)
		switch {
		case a.Kind() == reflect.Slice && a.Len() > 0 && keyOf(a.Index(0)) != "":
			a.Set(fillList(a, b))
		case a.Kind() == reflect.Struct:
			fillSection(a, b)
		case a.IsZero():
			a.Set(b)
		}
	}
}

// fillList completes the entries of a list, and adds those that it lacks, in order of what names them.
func fillList(to, from reflect.Value) reflect.Value {
	list, at := reflect.MakeSlice(to.Type(), 0, to.Len()+from.Len()), make(map[string]int, to.Len())
	for i := range to.Len() {
		at[keyOf(to.Index(i))] = i
		list = reflect.Append(list, to.Index(i))
	}
	for i := range from.Len() {
		entry := from.Index(i)
		if same, ok := at[keyOf(entry)]; ok {
			fillSection(list.Index(same), entry)
		} else {
			list = reflect.Append(list, entry)
		}
	}
	if list.Len() > to.Len() {
		sort.SliceStable(list.Interface(), func(i, j int) bool { return keyOf(list.Index(i)) < keyOf(list.Index(j)) })
	}
	return list
}

// keyOf is what names an entry of a list: its address, its number, or its two ends in order. It is empty for
// other lists.
func keyOf(entry reflect.Value) string {
	if entry.Kind() != reflect.Struct {
		return ""
	}
	if address := entry.FieldByName("Address"); address.IsValid() {
		return address.String()
	}
	if id := entry.FieldByName("ID"); id.IsValid() && id.CanInt() {
		return fmt.Sprintf("%06d", id.Int())
	}
	a, b := entry.FieldByName("A"), entry.FieldByName("B")
	switch {
	case !a.IsValid() || !b.IsValid():
		return ""
	case entry.FieldByName("Kind").IsValid(): // A pair, whichever end comes first.
		return min(a.String(), b.String()) + " " + max(a.String(), b.String())
	}
	return a.String() + " " + b.String()
}

// isKnown reports whether a fact that is listed as unknown is known. Parts of the entries of a list are not looked at.
func isKnown(f *facts.Facts, u facts.Unknown) bool {
	path, known := strings.Trim(u.Section+"."+u.Fact, "."), false
	facts.Walk("", f, func(n *facts.Node) bool {
		at := n.Path()
		known = known || at == path && (n.Pointed || !n.Value.IsZero())
		return at == "" || !n.Element && strings.HasPrefix(path, at+".")
	})
	return known
}
