package launch_test

import (
	"fmt"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestScriptOfContainer checks which variables the script of a container sets, and which are not known: those set in
// a branch, or twice to different values. A question mark stands for what is not known, a dash for what is not set.
func TestScriptOfContainer(t *testing.T) {
	for script, want := range map[string]string{
		"export NCCL_P2P_DISABLE=1; python train.py":                                  "1",
		"NCCL_P2P_DISABLE=1 python train.py":                                          "1",
		"cd /; mpirun -x NCCL_P2P_DISABLE=1 -np 8 python train.py":                    "1",
		"mpirun -np 8 --mca a b -x NCCL_P2P_DISABLE=1 -x NCCL_DEBUG=INFO python t.py": "1",
		"env NCCL_P2P_DISABLE=1 torchrun --nproc-per-node=8 train.py":                 "1",
		"if a; then export NCCL_P2P_DISABLE=1; fi; python train.py":                   "?",
		"export NCCL_P2P_DISABLE=1; NCCL_P2P_DISABLE=0 python train.py":               "?",
		"export NCCL_P2P_DISABLE=$OFF; python train.py":                               "?",
		"echo NCCL_P2P_DISABLE=1 is bad; python train.py":                             "-",
		"python train.py NCCL_P2P_DISABLE=1":                                          "-",
	} {
		f := texttest.Parse("pod.yaml", fmt.Sprintf("apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    image: i\n    command: [bash, -c, %q]\n    resources: {limits: {nvidia.com/gpu: 8}}\n", script))
		expect.Must(t, len(f.Launches) > 0, "%s: no launch", script)
		l, got := f.Launches[0], "-"
		if value, set := l.Variables["NCCL_P2P_DISABLE"]; set {
			got = value
		} else if l.Unknown["variables[NCCL_P2P_DISABLE]"] != "" {
			got = "?"
		}
		expect.Equal(t, want, got, "%s", script)
	}
}
