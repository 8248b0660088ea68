package remedies

import (
	"strconv"
	"strings"
)

// SizeBytes reads a size in units of 1024, as units.RAMInBytes of docker does.
func SizeBytes(size string) (int64, bool) {
	shift, known := map[string]int{"b": 0, "k": 10, "m": 20, "g": 30}[strings.ToLower(size[max(len(size)-1, 0):])]
	if known {
		size = size[:len(size)-1]
	}
	n, err := strconv.ParseInt(size, 10, 32)
	return n << shift, err == nil
}

// SizeQuantity is a size as a quantity of Kubernetes: "16Gi".
func SizeQuantity(size string) string {
	unit := map[string]string{"k": "Ki", "m": "Mi", "g": "Gi"}[size[max(len(size)-1, 0):]]
	if unit == "" {
		return size
	}
	return size[:len(size)-1] + unit
}
