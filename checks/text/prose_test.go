package text_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestProse checks which sentences say that a program needs a variable: those that
// tell of a run, and none that explains, advises or asks.
func TestProse(t *testing.T) {
	for line, want := range map[string]bool{
		"on our AMD R9700 it needs `NCCL_P2P_DISABLE=1`":                              true,
		"vLLM must have the variable `NCCL_P2P_DISABLE=1` to start":                   true,
		"TP=4 works only with NCCL_P2P_DISABLE=1":                                     true,
		"It only runs when NCCL_P2P_DISABLE is set; NCCL_P2P_DISABLE=1 is required":   true,
		"hangs forever unless NCCL_P2P_DISABLE=1 is set":                              true,
		"Fixed by setting NCCL_P2P_DISABLE to 1":                                      true,
		"NCCL_P2P_DISABLE=1 makes it work":                                            true,
		"但在 R9700 下需要 `NCCL_P2P_DISABLE=1`，所以":                                        true,
		"目前必須有 `NCCL_P2P_DISABLE=1`，才能執行":                                             true,
		"Läuft nur mit NCCL_P2P_DISABLE=1":                                            true,
		"работает только с NCCL_P2P_DISABLE=1":                                        true,
		"`NCCL_P2P_DISABLE` switches the P2P transport off":                           false,
		"設了 `NCCL_P2P_DISABLE=1` 之後會改走 SHM":                                           false,
		"If you see a hang, you need to set NCCL_P2P_DISABLE=1":                       false,
		"You may need NCCL_P2P_DISABLE=1":                                             false,
		"it does not need NCCL_P2P_DISABLE=1":                                         false,
		"ROCm 7 no longer needs NCCL_P2P_DISABLE=1":                                   false,
		"works without NCCL_P2P_DISABLE=1":                                            false,
		"Do I need NCCL_P2P_DISABLE=1?":                                               false,
		"如果卡住，需要設 `NCCL_P2P_DISABLE=1`":                                               false,
		"export NCCL_P2P_DISABLE=1 # needs it":                                        false,
		"node1:77:77 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.":         false,
		"Please set `NCCL_P2P_DISABLE=\"1\"`":                                         false,
		"we had to set NCCL_P2P_DISABLE=0 again":                                      false,
		"# NCCL_P2P_DISABLE=1 needs no root":                                          false,
		"docker run -e NCCL_P2P_DISABLE=1 vllm/vllm-openai  # required for our cards": false,
	} {
		f := texttest.Parse("x.md", line+"\n")
		got := false
		if f.Logs != nil {
			for _, m := range f.Logs.Messages {
				got = got || m.ID == "prose-p2p-off-needed"
			}
		}
		expect.Equal(t, want, got, "%q", line)
		if f.Env != nil && len(f.Env.Variables) > 0 && want {
			t.Errorf("%q: a variable in running text was taken for set: %+v", line, f.Env.Variables)
		}
	}
}
