package finite

import (
	"math"
	"testing"
)

func TestParse(t *testing.T) {
	for _, s := range []string{"nan", "NaN", "-nan", "inf", "+Inf", "-infinity", "1e999", "-1e999", "", "x", "1 2"} {
		if v, err := Parse(s); err == nil || v != 0 {
			t.Errorf("Parse(%q) = %g, %v, want 0 and an error", s, v, err)
		}
	}
	for s, want := range map[string]float64{"0": 0, "-3": -3, "1e3": 1000, "0x1p4": 16, "4.9e-324": math.SmallestNonzeroFloat64} {
		if v, err := Parse(s); err != nil || v != want {
			t.Errorf("Parse(%q) = %g, %v, want %g", s, v, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1e308")
	f.Add("-Inf")
	f.Fuzz(func(t *testing.T, s string) {
		if v, _ := Parse(s); math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("Parse(%q) = %g", s, v)
		}
	})
}
