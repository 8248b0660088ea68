package lines

import (
	"fmt"
	"math"
)

// Range is the least and the most of N numbers.
type Range struct {
	Least, Most float64
	N           int
}

// Add counts a number in.
func (s *Range) Add(v float64) {
	if s.N == 0 || v < s.Least {
		s.Least = v
	}
	if s.N == 0 || v > s.Most {
		s.Most = v
	}
	s.N++
}

// Text is "2 to 3", or "2" where both ends read alike.
func (s Range) Text(format func(float64) string) string {
	least, most := format(s.Least), format(s.Most)
	if least == most {
		return least
	}
	return least + " to " + most
}

// Rate writes a rate with its significant digits.
func Rate(v float64) string {
	switch {
	case math.Abs(v) >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 0.095 || v == 0:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

// Percent writes a number of percent.
func Percent(v float64) string {
	if v > 0 && v < 0.5 {
		return "<1"
	}
	return fmt.Sprintf("%.0f", v)
}

// Microseconds writes a time in microseconds.
func Microseconds(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.2f", v)
	}
	return Rate(v)
}
