package evidence

import (
	"reflect"

	"github.com/gpudoctor/gpudoctor/checks"
)

// mergeGPU fills what g does not know from another reading of the same GPU.
func mergeGPU(g, other *checks.GPU) {
	fill(reflect.ValueOf(g).Elem(), reflect.ValueOf(other).Elem())
}

// fill sets each field of to that holds nothing from the same field of from.
func fill(to, from reflect.Value) {
	for i := range to.NumField() {
		if to.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
}
