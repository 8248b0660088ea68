package parse

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// ByteSize reads a size as the container programs write it ("16g", "64m", "1073741824", "10.24gb": units of 1024, go-units
// RAMInBytes) or as Kubernetes does ("16Gi", "8G").
func ByteSize(text string) *int64 {
	m := sizeForm.FindStringSubmatch(strings.ToLower(text))
	n, err := facts.ParseFloat(m[1])
	if err != nil || n < 0 {
		return nil
	}
	n *= math.Pow(1024, float64(strings.Index(" kmgtpe", cmp.Or(m[2], " "))))
	if n >= math.MaxInt64 {
		return nil
	}
	return new(int64(n))
}

var sizeForm = lazy.New(`^(?s)\s*(.*?)\s*([kmgtpe]?)i?b?\s*$`)

// Limit reads a limit; -1 is unlimited.
func Limit(text string, unit int64) *int64 {
	if text == "unlimited" || text == "infinity" {
		return new(int64(-1))
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n < 0:
		return nil
	case n > 1<<62/unit: // RLIM_INFINITY is written as a number by some.
		return new(int64(-1))
	}
	return new(n * unit)
}

// Capability is a capability without CAP_, in upper case.
func Capability(name string) string {
	return strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(name)), "CAP_")
}
