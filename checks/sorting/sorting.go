// Package sorting sorts lists of structs.
package sorting

import "sort"

// Stable sorts a list and keeps the order of equal elements, like slices.SortStableFunc. That is compiled
// once for each type of element, in 10 to 20 KB of the program; this once for all, and it is slower.
func Stable[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}
