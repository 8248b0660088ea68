package lines

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize/english"
)

// Map is what a function gives of each item of a list.
func Map[T, R any](list []T, of func(T) R) []R {
	var all []R
	for _, item := range list {
		all = append(all, of(item))
	}
	return all
}

// Filter is the items of a list that a function wants.
func Filter[T any](list []T, keep func(T) bool) []T {
	var all []T
	for _, item := range list {
		if keep(item) {
			all = append(all, item)
		}
	}
	return all
}

// Lacking are the texts of a list that another lacks, each after a lead.
func Lacking(lead string, list, other []string) []string {
	own := Filter(list, func(s string) bool { return !slices.Contains(other, s) })
	return Map(own, func(s string) string { return lead + s })
}

// Unique returns the items of a list in order, each once.
func Unique[T comparable](list []T) []T {
	return Map(Grouped(list, func(item T) T { return item }), func(same []T) T { return same[0] })
}

// Grouped gathers the items of a list that have the same key, in the order of the first of each.
func Grouped[T any, K comparable](list []T, key func(T) K) [][]T {
	var all [][]T
	at := map[K]int{}
	for _, item := range list {
		i, known := at[key(item)]
		if !known {
			i = len(all)
			at[key(item)], all = i, append(all, nil)
		}
		all[i] = append(all[i], item)
	}
	return all
}

// First joins the first of several texts, and counts the others.
func First(texts []string, most int, separator string) string {
	if rest := len(texts) - most; rest > 0 {
		texts = append(slices.Clone(texts[:most]), fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(texts, separator)
}

// Ranges writes numbers with those that follow each other as ranges: "0 to 3, 6".
func Ranges(numbers []int) string {
	slices.Sort(numbers)
	var parts []string
	for first, i := 0, 0; i < len(numbers); i++ {
		switch followed := i+1 < len(numbers) && numbers[i+1] == numbers[i]+1; {
		case followed:
			continue
		case first == i:
			parts = append(parts, strconv.Itoa(numbers[i]))
		default:
			parts = append(parts, fmt.Sprintf("%d to %d", numbers[first], numbers[i]))
		}
		first = i + 1
	}
	return strings.Join(parts, ", ")
}

// NonEmpty are the texts that are not empty.
func NonEmpty(texts ...string) []string { return Filter(texts, func(s string) bool { return s != "" }) }

// Joined joins the texts that are not empty.
func Joined(separator string, texts ...string) string {
	return strings.Join(NonEmpty(texts...), separator)
}

// After is a lead with what separates it from what it leads to; nothing if it is empty.
func After(lead, separator string) string {
	if lead == "" {
		return ""
	}
	return lead + separator
}

// Behind is a text with what separates it from what stands before it; nothing if it is empty.
func Behind(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

// Count counts things in words: "1 test", "2 tests".
func Count(n int, thing string) string {
	return fmt.Sprintf("%d %s", n, english.PluralWord(n, thing, ""))
}

// Table lays rows out in columns.
func Table(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		_, _ = w.Write([]byte(strings.TrimRight(strings.Join(row, "\t"), "\t") + "\n")) // A builder takes all.
	}
	_ = w.Flush()
	return b.String()
}

// LeastToMost is "2 to 3" of numbers, or "2" where the least and the most read alike.
func LeastToMost(numbers []float64, format func(float64) string) string {
	return strings.Join(Unique([]string{format(slices.Min(numbers)), format(slices.Max(numbers))}), " to ")
}

// Rate writes a rate with its significant digits.
func Rate(v float64) string {
	switch {
	case math.Abs(v) >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 0.095 || v == 0:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

// Percent writes a number of percent.
func Percent(v float64) string {
	if v > 0 && v < 0.5 {
		return "<1"
	}
	return fmt.Sprintf("%.0f", v)
}

// Microseconds writes a time in microseconds.
func Microseconds(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.2f", v)
	}
	return Rate(v)
}
