package facts

import (
	"math"
	"strings"
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

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"0000:3B:00": "0000:3b:00.0", "3b:00.1": "0000:3b:00.1", "3b:00": "0000:3b:00.0", "00000000:01:00.0": "0000:01:00.0",
		"10000:e1:00.0": "10000:e1:00.0", "0009:01:00.0": "0009:01:00.0", "new_id": "", "3b:00.9": "", "": "",
	} {
		expect.Equal(t, want, Address(in), "Address(%q)", in)
	}
}

// TestNCCLSelects checks what NCCL takes by NCCL_IB_HCA.
func TestNCCLSelects(t *testing.T) {
	for _, tt := range []struct {
		filter, device string
		want           bool
	}{
		{"mlx5_1", "mlx5_1", true},
		{"mlx5_1", "mlx5_10", true},
		{"=mlx5_1", "mlx5_10", false},
		{"=mlx5_1:1,mlx5_2", "mlx5_2", true},
		{"^mlx5_1", "mlx5_0", true},
		{"^mlx5_1", "mlx5_1", false},
		{"^=mlx5_1", "mlx5_10", true},
		{"mlx5", "rdmap1s0", false},
	} {
		expect.Equal(t, tt.want, NCCLSelects(tt.filter, tt.device), "NCCL_IB_HCA=%s selects %s", tt.filter, tt.device)
	}
}

func FuzzNCCLSelects(f *testing.F) {
	f.Add("^=eth0:1,ib", "eth0")
	f.Fuzz(func(t *testing.T, list, name string) {
		plain, not := strings.CutPrefix(list, "^")
		expect.That(t, !not || NCCLSelects(list, name) != NCCLSelects(strings.TrimLeft(plain, "^"), name) || strings.HasPrefix(plain, "^"), "%q and its opposite both select %q", list, name)
	})
}
