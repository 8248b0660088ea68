package rdma_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestLsmod(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string // joined by blanks; "-" is not shown
		partial    bool
	}{
		{"whole", "Module                  Size  Used by\nxfs   1 0\nnvidia_peermem         16384  0\nib_core               438272  9 rdma_cm,nvidia_peermem,ib_uverbs\next4                  1 0\n", "nvidia_peermem ib_core rdma_cm ib_uverbs", false},
		{"filtered for it", "$ lsmod | grep peermem\nnvidia_peermem         16384  0\nib_core   557056  9 rdma_cm,nvidia_peermem\n", "nvidia_peermem ib_core rdma_cm", false},
		{"filtered for it, nothing", "$ lsmod | grep nv_peer_mem\n$ uname -r\n", "", false},
		{"filtered for all of NVIDIA's", "$ lsmod | grep -i NVIDIA\nnvidia_uvm           4943872  0\nnvidia              54566912  2 nvidia_uvm\n", "nvidia_uvm nvidia", false},
		{"filtered for others", "$ lsmod | grep mlx\nmlx5_ib               385024  0\nmlx5_core            1216512  1 mlx5_ib\n", "mlx5_ib mlx5_core", true},
		{"a part", "mlx5_ib               385024  0\nmlx5_core            1216512  1 mlx5_ib\n", "mlx5_ib mlx5_core", true},
		{"not shown", "the module ib_core is loaded\n", "-", false},
		{"advice, not a list", "use lsmod | grep nvidia_peermem to see it\n", "-", false},
	} {
		f := texttest.Parse("x", c.text)
		got, partial := "-", false
		if f.NICs != nil && f.NICs.Modules != nil {
			got, partial = strings.Join(f.NICs.Modules, " "), f.NICs.ModulesPartial
		}
		expect.That(t, got == c.want && partial == c.partial, "%s: got %q partial %v, want %q partial %v", c.name, got, partial, c.want, c.partial)
	}
}

func FuzzLsmod(f *testing.F) {
	f.Add("Module                  Size  Used by\nnvidia_peermem         16384  0\n")
	f.Add("$ lsmod | grep 'a\\|b'\nib_core 100 -1 [permanent],x\n")
	f.Fuzz(func(t *testing.T, text string) {
		bounded(t, text)
		if f := texttest.Parse("x", text); f.NICs != nil {
			for _, m := range f.NICs.Modules {
				expect.That(t, slices.Contains(network.Modules, m), "the module %q is not one of those that bear on RDMA", m)
			}
		}
	})
}
