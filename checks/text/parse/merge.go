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
		fill(reflect.ValueOf(&link).Elem(), reflect.ValueOf(other.PCIe).Elem())
		g.PCIe = &link
	}
	fill(reflect.ValueOf(g).Elem(), reflect.ValueOf(other).Elem())
	g.UtilizationPercent = load
}

// fill sets each field of to that holds nothing from the same field of from.
func fill(to, from reflect.Value) {
	for i := range to.NumField() {
		if to.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
}
