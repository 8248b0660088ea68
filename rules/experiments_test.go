package rules

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// TestExperiments checks, from transcripts on, which cause a switch speaks for by what became of the runs with and
// without it, that nothing is said where both end alike, and that the variable is then no misconfiguration.
func TestExperiments(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	s := compiledSet(t)
	values := map[string]string{"NCCL_P2P_LEVEL": "LOC", "NCCL_SOCKET_IFNAME": "eth0", "GLOO_SOCKET_IFNAME": "eth0", "TP_SOCKET_IFNAME": "eth0", "NCCL_IB_HCA": "mlx5_0", "NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple", "NCCL_NET_PLUGIN": "none", "NCCL_NET": "Socket", "UCX_TLS": "^cuda_ipc", "HSA_FORCE_FINE_GRAIN_PCIE": "1", "HSA_NO_SCRATCH_RECLAIM": "1"}
	const works, fails, hangs = "all_reduce: PASSED\n", "node1: task 0: exit code 1\n", "loading\nhangs here\n^C\n"
	for _, row := range data.Read[struct {
		Switches []struct {
			Names, Causes      []string
			When, Reverse, Off string
		}
	}]("experiments").Switches {
		for _, name := range row.Names {
			if name == strings.ToLower(name) || row.When != "" {
				continue // Headings alone say it, or an earlier row is for another network.
			}
			value, reverse := cmp.Or(values[name], "0"), cmp.Or(row.Reverse, "env-misconfig")
			if strings.Contains(name, "_DISABLE") || name == "NCCL_IB_GID_INDEX" {
				value = "1"
			}
			if name == "UCX_TLS" && row.Off == "." { // Behind the row for its own value.
				value = "rc"
			}
			if strings.HasSuffix(name, "_") {
				name += "OF_NO_ROW"
			}
			for _, tt := range []struct{ without, with, cause string }{
				{fails, works, row.Causes[0]},
				{hangs, works, row.Causes[0]},
				{works, fails, reverse},
				{works, hangs, reverse},
				{works, works, ""},
				{fails, fails, ""},
				{hangs, hangs, ""},
				{"loading\n", works, ""},
			} {
				f := texttest.Parse("session.txt", fmt.Sprintf("$ ./t.sh\n%s$ %s=%s ./t.sh\n%s$ \n", tt.without, name, value, tt.with))
				v := expect.Value(s.Evaluate(t.Context(), f, Options{Only: []string{"control-experiment", "env-misconfig"}}))(t)
				got := ""
				for _, found := range v.Findings {
					got += found.Cause
				}
				expect.Equal(t, tt.cause, got, "%s=%s: %q without it, %q with it", name, value, tt.without, tt.with)
			}
		}
	}
}
