package text_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
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
		f := texttest.Sections("x.md", line+"\n")
		got := slices.ContainsFunc(f.Logs.Messages, func(m facts.Message) bool { return m.ID == "prose-p2p-off-needed" })
		expect.Equal(t, want, got, "%q", line)
		expect.That(t, len(f.Env.Variables) == 0 || !want, "%q: a variable in running text was taken for set: %+v", line, f.Env.Variables)
	}
}

// TestSettingHelps checks which sentences say that a program works with a setting, and with which: those that tell of a
// run, and none that advises, asks, denies or quotes a command. Whole sentences are in checks/text/runs.
func TestSettingHelps(t *testing.T) {
	for line, want := range map[string]string{
		"With `NCCL_P2P_DISABLE=1` it works fine.":                            "NCCL_P2P_DISABLE=1",
		"After adding iommu=pt to the kernel command line, it works.":         "iommu=pt",
		"amd_iommu=off made the hang disappear, all is fine":                  "iommu=off",
		"The hang goes away when I set NCCL_SHM_DISABLE=1":                    "NCCL_SHM_DISABLE=1",
		"It works with --ipc=host":                                            "ipc=host",
		"Training runs once I pass --shm-size 16g to docker":                  "shm-size=larger",
		"Disabling ACS in the BIOS fixed it for us.":                          "acs=off",
		"After turning ACS off in the BIOS everything works.":                 "acs=off",
		"`--disable-custom-all-reduce` makes it start.":                       "custom-all-reduce=off",
		"works when --disable-custom-all-reduce is passed":                    "custom-all-reduce=off",
		"Setting NCCL_IB_DISABLE=1 helps":                                     "NCCL_IB_DISABLE=1",
		"crashes without NCCL_NVLS_ENABLE=0":                                  "NCCL_NVLS_ENABLE=0",
		"vLLM 0.11 hangs on our box unless NCCL_NVLS_ENABLE=0 is set":         "NCCL_NVLS_ENABLE=0",
		"NCCL_SOCKET_IFNAME=eth1 solved the problem":                          "NCCL_SOCKET_IFNAME=eth1",
		"I set NCCL_IB_DISABLE to 1. Now it trains.":                          "NCCL_IB_DISABLE=1",
		"It still hangs with NCCL_IB_DISABLE=1 but works with NCCL_ALGO=Ring": "NCCL_ALGO=Ring",
		"- [x] TP=4 → hang; TP=4 with `NCCL_P2P_DISABLE=1` → OK":              "NCCL_P2P_DISABLE=1",
		"设了 NCCL_P2P_DISABLE=1 就正常":                                           "NCCL_P2P_DISABLE=1",
		"NCCL_P2P_DISABLE=1 无效":                                               "",
		"NCCL_P2P_DISABLE=1 does not help":                                    "",
		"With NCCL_P2P_DISABLE=1 it still hangs":                              "",
		"Tried NCCL_P2P_DISABLE=1 and NCCL_IB_DISABLE=1, no luck.":            "",
		"You could try NCCL_P2P_DISABLE=1, which works for some":              "",
		"Does it work with NCCL_SHM_DISABLE=1?":                               "",
		"If it hangs, NCCL_IB_DISABLE=1 works":                                "",
		"export NCCL_IB_DISABLE=1 # works":                                    "",
		"node1:77:77 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.": "",
		"NCCL_DEBUG=INFO is set and the job works on one node":                "", // It changes what is written.
		"$ NCCL_P2P_DISABLE=1 python works.py":                                "",
		"NCCL_P2P_DISABLE=1 python run.py":                                    "",
		"Disabled P2P for GPU 0":                                              "",
		"same error with iommu=pt, so that works around nothing":              "",
	} {
		f, got := texttest.Sections("x.md", "# It hangs\n\nOur training hangs.\n"+line+"\n"), ""
		for _, c := range f.Comparisons {
			for _, r := range []facts.Run{f.Runs[c.A], f.Runs[c.B]} {
				if value := r.Variables[c.Name]; r.Outcome == "ok" && value != "" {
					got = c.Name + "=" + value
				}
			}
		}
		expect.Equal(t, want, got, "%q", line)
	}
}

// TestTold checks that what is told of a run is read alike for each setting, however the sentence puts it.
func TestTold(t *testing.T) {
	helps := []string{
		"With %s it works.", "It works with %s.", "%s fixes it.", "After setting %s the hang is gone.", "%s: works", "%s -> OK", "- [x] %s → works",
		"I tried %s. Now it works.", "It hangs, but with %s it runs.", "With %s it works, without it it hangs.", "%s is a workaround.", "With %s: no hang.", "%s 正常",
		"It wedges behind its first step; with %s the job comes up.", "%s got rid of the crash.", "%s did the trick.", "Once we had %s, all ranks got past the barrier.",
		"Only with %s does the job get past its first broadcast.", "No more timeouts with %s.", "We use %s. Without it the workers wait indefinitely.",
		"What fixed the deadlock was %s.", "Every job freezes unless I use %s.", "%s stopped the bus errors.", "It dies, and with %s it goes through.",
		"With %s the job was through in a minute, by default the ranks wait endlessly.",
	}
	same := []string{
		"With %s it still hangs.", "It still hangs with %s.", "%s does not help.", "%s: no change", "%s makes no difference.", "Tried %s, same error.",
		"I tried %s. It still hangs.", "%s: hangs as before", "It works, people say, with %s.", "If you set %s it works.", "Does it work with %s?", "You could try %s, which works.", "%s 无效",
		"%s alone did not do it.", "We got the identical timeout with %s.", "It keeps crashing with %s.", "Maybe %s works.", "We run with %s as always.",
		"Tomorrow I will try %s, which should work.", "My colleague swears that %s fixed it elsewhere.", "It hangs regardless of %s.",
	}
	harms := []string{
		"It hangs with %s. Without it all is fine.", "I had %s from a guide. It hangs. Took it out. No hang.", "%s is what hangs it; with it unset the run passes.",
		"Fails as long as %s is there; commented it out and the job starts.", "It works unless I use %s.", "With %s it never gets past init, and by default it passes.",
	}
	for _, setting := range []string{"NCCL_P2P_DISABLE=1", "`NCCL_IB_DISABLE=1`", "**NCCL_NVLS_ENABLE=0**", "iommu=pt", "--ipc=host", "P2P disabled", "HSA_ENABLE_SDMA=0"} {
		for i, form := range slices.Concat(helps, same, harms) {
			line := fmt.Sprintf(form, setting)
			f, good, bad := texttest.Sections("x.md", "Our training hangs.\n\n"+line+"\n"), false, false
			for _, c := range f.Comparisons {
				for _, run := range []facts.Run{f.Runs[c.A], f.Runs[c.B]} {
					if f.Runs[c.A].Outcome != f.Runs[c.B].Outcome && len(run.Variables) > 0 {
						good, bad = good || run.Outcome == "ok", bad || run.Outcome != "ok"
					}
				}
			}
			expect.That(t, good == (i < len(helps)) && bad == (i >= len(helps)+len(same)), "%q: %+v", line, f.Runs)
		}
	}
}
