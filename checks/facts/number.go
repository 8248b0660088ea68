package facts

import (
	"fmt"
	"math"
	"strconv"
)

// ParseFloat reads a number as strconv.ParseFloat does, and rejects what JSON cannot express and no rule can compare:
// "nan", "inf" and what is beyond the largest number.
func ParseFloat(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64) //nolint:forbidigo // This is what it is replaced by.
	if err != nil {
		return 0, err
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a finite number", s)
	}
	return v, nil
}
