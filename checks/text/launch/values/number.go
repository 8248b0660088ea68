package values

import (
	"math"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/internal/finite"
)

// Size reads a size as the container programs write it ("16g", "64m",
// "1073741824", "10.24gb": units of 1024, go-units RAMInBytes) or as
// Kubernetes does ("16Gi", "8G").
func Size(text string) *int64 {
	text = strings.ToLower(strings.TrimSpace(text))
	digits := strings.TrimRight(text, "bikmgtpe ")
	n, err := finite.Parse(digits)
	if err != nil || n < 0 {
		return nil
	}
	unit := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(text[len(digits):]), "b"), "i")
	if unit != "" {
		power := strings.Index("kmgtpe", unit)
		if power < 0 || len(unit) != 1 {
			return nil
		}
		n *= math.Pow(1024, float64(power+1))
	}
	if n >= math.MaxInt64 {
		return nil
	}
	size := int64(n)
	return &size
}

// Limit reads a limit; -1 is unlimited.
func Limit(text string, unit int64) *int64 {
	none := int64(-1)
	if text == "unlimited" || text == "infinity" {
		return &none
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n < 0:
		return nil
	case n > 1<<62/unit: // RLIM_INFINITY is written as a number by some.
		return &none
	}
	n *= unit
	return &n
}

// Capability is a capability without CAP_, in upper case.
func Capability(name string) string {
	return strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(name)), "CAP_")
}
