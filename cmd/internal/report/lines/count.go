package lines

import "strconv"

// Count counts things in words: "1 test", "2 tests".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
