package lines

import (
	"fmt"
	"slices"
	"strings"
)

// Unique returns the items of a list in order, each once.
func Unique[T comparable](list []T) []T {
	var all []T
	seen := map[T]bool{}
	for _, item := range list {
		if !seen[item] {
			seen[item] = true
			all = append(all, item)
		}
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
