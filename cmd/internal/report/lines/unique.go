package lines

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
