package parse

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// MergeGPU fills what g does not know from another reading of the same GPU.
//
// The load and the state of the link tell something together only where both are
// of one moment, so the load comes from the reading that the generation is of.
func MergeGPU(g, other *facts.GPU) {
	if strings.HasSuffix(g.Name, "...") { // nvidia-smi's table has cut it.
		g.Name = cmp.Or(other.Name, g.Name)
	}
	load := g.UtilizationPercent
	if g.PCIe == nil || g.PCIe.Generation == 0 {
		// A text that tells neither, as a matrix of the topology, changes nothing.
		if load == nil || other.PCIe != nil && other.PCIe.Generation != 0 {
			load = other.UtilizationPercent
		}
	}
	if g.PCIe != nil && other.PCIe != nil {
		link := *g.PCIe
		Fill(&link, other.PCIe)
		g.PCIe = &link
	}
	Fill(g, other)
	g.UtilizationPercent = load
}

// Fill sets each field of a structure that holds nothing, or an empty list, from the same field of another one.
func Fill[T any](to, from *T) {
	a, b := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for i := range a.NumField() {
		if f := a.Field(i); f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0 && !b.Field(i).IsZero() {
			f.Set(b.Field(i))
		}
	}
}
