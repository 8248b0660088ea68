// Package finite reads numbers for facts, which contain neither infinities nor
// NaN: JSON cannot express them, and no rule can compare them.
package finite

import (
	"fmt"
	"math"
	"strconv"
)

// Parse reads a number as strconv.ParseFloat does, and rejects "nan", "inf" and what
// is beyond the largest number.
func Parse(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64) //nolint:forbidigo // This is what it is replaced by.
	if err != nil {
		return 0, err
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a finite number", s)
	}
	return v, nil
}
