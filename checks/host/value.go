package host

import (
	"strconv"
	"strings"
)

// Value is the value of a name in lines "Name: value" or "name value", as in /proc and /sys; empty if it is not there.
func Value(text, name string) string {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if value := strings.TrimLeft(rest, ": \t"); ok && value != rest {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// KiB is a size such as "1056411988 kB" in bytes; 0 if it is not one, or more than any machine has.
func KiB(value string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	if err != nil || n < 0 || n > 1<<50 {
		return 0
	}
	return n << 10
}
