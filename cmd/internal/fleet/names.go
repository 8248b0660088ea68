package fleet

import (
	"fmt"
	"strconv"
	"strings"
)

// Names are the names of nodes in a list: separated by commas or white space, with ranges as Slurm writes them
// (n[01-03,7]).
func Names(list string) []string {
	var all []string
	depth := 0
	for _, word := range strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		}
		return strings.ContainsRune(" \t\r\n", r) || r == ',' && depth <= 0
	}) {
		all = append(all, expand(word, maxNodes-len(all))...)
	}
	return all
}

// expand writes out the ranges of a name, up to a number of names. What is no range stays as it is.
func expand(name string, most int) []string {
	before, rest, open := strings.Cut(name, "[")
	ranges, after, closed := strings.Cut(rest, "]")
	if !open || !closed {
		return []string{name}[:min(1, max(0, most))]
	}
	var all []string
	for part := range strings.SplitSeq(ranges, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, errFirst := strconv.Atoi(low)
		last, errLast := strconv.Atoi(high)
		if errFirst != nil || errLast != nil {
			return []string{name}[:min(1, max(0, most))]
		}
		for i := first; i <= last && len(all) < most; i++ {
			all = append(all, expand(fmt.Sprintf("%s%0*d%s", before, len(low), i, after), most-len(all))...)
		}
	}
	return all
}
