package facts

import (
	"math"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestParse(t *testing.T) {
	for _, s := range []string{"nan", "NaN", "-nan", "inf", "+Inf", "-infinity", "1e999", "-1e999", "", "x", "1 2"} {
		v, err := ParseFloat(s)
		expect.That(t, err != nil && v == 0, "Parse(%q) = %g, %v, want 0 and an error", s, v, err)
	}
	for s, want := range map[string]float64{"0": 0, "-3": -3, "1e3": 1000, "0x1p4": 16, "4.9e-324": math.SmallestNonzeroFloat64} {
		v, err := ParseFloat(s)
		expect.That(t, err == nil && v == want, "Parse(%q) = %g, %v, want %g", s, v, err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1e308")
	f.Add("-Inf")
	f.Fuzz(func(t *testing.T, s string) {
		v, _ := ParseFloat(s)
		expect.That(t, !math.IsNaN(v) && !math.IsInf(v, 0), "Parse(%q) = %g", s, v)
	})
}
