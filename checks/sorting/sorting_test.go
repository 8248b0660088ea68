package sorting_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/sorting"
)

// TestStable holds that the result is that of slices.SortStableFunc, for lists of all lengths up to some.
func TestStable(t *testing.T) {
	type element struct{ key, place int }
	compare := func(a, b element) int { return cmp.Compare(a.key, b.key) }
	source := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		list := make([]element, n)
		for i := range list {
			list[i] = element{source.IntN(1 + n/3), i}
		}
		want := slices.Clone(list)
		slices.SortStableFunc(want, compare)
		if sorting.Stable(list, compare); !slices.Equal(list, want) {
			t.Fatalf("%d elements: %v, want %v", n, list, want)
		}
	}
}
