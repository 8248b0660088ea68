package arguments

import (
	"errors"
	"math"

	"github.com/dustin/go-humanize"
)

// Size reads a number of bytes, with or without a unit.
func Size(value string) (int64, error) {
	size, err := humanize.ParseBytes(value)
	if err != nil || size == 0 || size > math.MaxInt64 {
		return 0, errSize
	}
	return int64(size), nil
}

var errSize = errors.New("a size is a positive number with a unit: 500MB, 2GiB")
