package facts_test

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

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
		expect.Equal(t, tt.want, facts.NCCLSelects(tt.filter, tt.device), "NCCL_IB_HCA=%s selects %s", tt.filter, tt.device)
	}
}

func FuzzNCCLSelects(f *testing.F) {
	f.Add("^=eth0:1,ib", "eth0")
	f.Fuzz(func(t *testing.T, list, name string) {
		plain, not := strings.CutPrefix(list, "^")
		expect.That(t, !not || facts.NCCLSelects(list, name) != facts.NCCLSelects(strings.TrimLeft(plain, "^"), name) || strings.HasPrefix(plain, "^"), "%q and its opposite both select %q", list, name)
	})
}
