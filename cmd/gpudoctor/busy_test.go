//go:build linux && cgo

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
)

// slowCopies is how many copies from GPU 0 to GPU 1 the quick probe makes before it
// looks which are slow: twice one that wakes the link and three that are timed, and
// one by the SMs of either.
const slowCopies = 10

// TestOthers checks, for each time at which another process may use a GPU, for each
// state of the path and with --probe-busy and without: a rate that was measured
// meanwhile is never a finding and never health; wrong data always is a finding, and
// a path that is slow while nobody else is there, too. The management library is
// asked again only where a transfer is slow.
func TestOthers(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	corrupt := []string{"copy: corrupt(zeros) ok", "sm-store: corrupt(zeros) ok", "sm-load: corrupt(zeros) ok", "host-staged: ok"}
	paths := map[string]string{"slow": "slow=20@0>1", "ok": "", "corrupt": "zeros@0>1"}
	found := map[string]judgement{
		"slow":    sick("ok", changed(healthyQuick, "copy: slow ok"), "reset-gpu", "p2p-slow high confirmed gpu0 -> gpu1"),
		"ok":      quiet(healthyQuick),
		"corrupt": broken(corrupt, "gpu0 -> gpu1"),
	}
	open := unproven(changed(healthyQuick, "copy: unknown ok"))
	for when, nvml := range map[string]string{"before": "busy-until#2", "while": "", "after": "busy#2", "throughout": "busy", "never": ""} {
		for path, cuda := range paths {
			for _, flag := range []string{"", "--probe-busy"} {
				want := found[path]
				switch {
				case when == "while" && path != "slow":
					continue // It leaves no trace: the same as never.
				case when == "never" && path != "slow" && flag == "", when == "throughout" && (path != "slow" || flag == ""):
					continue // TestSimulated runs it, or it is as before.
				case when == "while":
					// It slows the first copies, and is gone before anybody looks.
					cuda, want = fmt.Sprintf("slow-until=20@0>1#%d", slowCopies+1), found["ok"]
				case flag == "" && (when == "before" || when == "throughout"):
					want = unproven(notTried) // The GPU is left alone.
				case path == "slow" && when != "never":
					want = open
				}
				s := simulated{name: when + ", " + path + " " + flag, cuda: cuda, nvml: nvml, want: want}
				if flag != "" {
					s.arguments = []string{flag}
				}
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					if night.Few() && (path != "slow" || flag != "" && when != "before") {
						t.Skip("not by day")
					}
					count := filepath.Join(t.TempDir(), "starts")
					s.check(t, s.prepare(t, "GPUDOCTOR_SIM_NVML_COUNT="+count)())
					starts := expect.Value(os.ReadFile(count))(t)
					expect.That(t, s.want.state != report.Healthy || path != "ok" || len(starts) == 1, "the management library was asked %d times", len(starts))
					expect.That(t, when != "after" || path != "slow" || len(starts) >= 2, "nobody looked again")
				})
			}
		}
	}
}
