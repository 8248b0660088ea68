package collective

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestMain(m *testing.M) {
	child.Main()
	os.Exit(m.Run())
}

// simulated is a run against the simulated libnccl with faults to order.
type simulated struct {
	mode   probe.Mode
	gpus   int
	faults string
	cuda   string
	arms   []string
	env    []string
	flags  []string
	files  int64
}

func (s simulated) run(t *testing.T) *probe.Collectives {
	t.Helper()
	driver, library := drivers.Build(t, "cuda"), drivers.Build(t, "nccl", s.flags...)
	patience := 2 * time.Minute // Where nothing is to hang, a busy test machine gets time.
	if strings.Contains(s.faults+s.cuda, "hang") || strings.Contains(s.faults, "stall") {
		patience = 2 * time.Second
	}
	r := expect.Value(Run(t.Context(), Options{
		Mode: s.mode, Arms: s.arms, Patience: patience, Start: 2 * patience, Join: patience, Whole: 5 * time.Minute, FilesLimit: s.files,
		Candidates: []probe.Candidate{{Path: library + "/libnccl.so.2", FoundBy: "option"}},
		Env: slices.Concat([]string{
			"LD_LIBRARY_PATH=" + driver, "NCCL_NVLS_ENABLE=0", fmt.Sprintf("GPUDOCTOR_SIM_GPUS=%d", s.gpus), "GPUDOCTOR_SIM_NCCL_FAULT=" + s.faults, "GPUDOCTOR_SIM_CUDA_FAULT=" + s.cuda,
		}, s.env),
	}))(t)
	expect.That(t, !r.Remains, "a process was left behind")
	return r
}

// summary condenses a report: for each arm its outcome and those of its ranks.
func summary(r *probe.Collectives) []string {
	lines := []string{}
	for _, a := range r.Arms {
		line := a.Name + ": " + string(a.Outcome) + " ("
		for i, rank := range a.Ranks {
			if i > 0 {
				line += " "
			}
			line += string(rank.Outcome)
			if rank.Cause != "" {
				line += "/" + string(rank.Cause)
			}
		}
		lines = append(lines, line+")")
	}
	return lines
}

// TestArms checks, for each fault, the outcome of each arm and of each rank.
func TestArms(t *testing.T) {
	t.Parallel()
	const good = "ok (ok ok)"
	all := func(change map[string]string) []string {
		var lines []string
		for _, name := range []string{probe.ArmConfigured, probe.ArmP2POff, probe.ArmSHMOff, probe.ArmP2PSHMOff, probe.ArmCuMemOff, probe.ArmInProcess} {
			line := good
			if is, changed := change[name]; changed {
				line = is
			} else if is, changed := change["*"]; changed {
				line = is
			}
			lines = append(lines, name+": "+line)
		}
		return lines
	}
	// withP2P are the arms whose ranks reach each other by P2P.
	withP2P := func(line string) []string {
		return all(map[string]string{probe.ArmConfigured: line, probe.ArmSHMOff: line, probe.ArmCuMemOff: line, probe.ArmInProcess: line})
	}
	for _, c := range expect.SomeRows(6, []struct {
		name, faults string
		want         []string
	}{
		{"healthy", "", all(nil)},
		{"wrong sums at one rank", "wrong-any@1", all(map[string]string{"*": "corrupt (ok corrupt)"})},
		{"wrong data by P2P", "wrong-p2p@0", withP2P("corrupt (corrupt ok)")},
		{"nothing arrives by P2P", "lost-p2p@1", withP2P("corrupt (ok corrupt)")},
		{"error by P2P", "fail-p2p=1@0", withP2P("error (error unknown/ended)")},
		{"error by cuMem", "fail-cumem=1@1", all(map[string]string{
			probe.ArmConfigured: "error (unknown/ended error)", probe.ArmSHMOff: "error (unknown/ended error)", probe.ArmInProcess: "error (unknown/ended error)",
		})},
		{"error by shared memory", "fail-shm=2@1", all(map[string]string{probe.ArmP2POff: "error (unknown/ended error)"})},
		{"error by the network", "fail-net=6@0", all(map[string]string{probe.ArmP2PSHMOff: "error (error unknown/ended)"})},
		{"asynchronous error by P2P", "abort-p2p=6@0", withP2P("error (error unknown/ended)")},
		{"hang in the start by P2P", "hang-init-p2p@1", withP2P("hang (unknown/ended hang)")},
		{"hang in a collective by P2P", "stall-p2p@1", withP2P("hang (hang hang)")},
		{"a rank crashes", "crash-exchange@1", all(map[string]string{"*": "error (unknown/ended error)", probe.ArmInProcess: "error (error error)"})},
	}) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := simulated{mode: probe.Full, gpus: 2, faults: c.faults}.run(t)
			expect.NoDiff(t, c.want, summary(r), "it")
			expect.That(t, r.Outcome == r.Arms[0].Outcome && r.Reason == r.Arms[0].Reason, "outcome %s: %s, but that of the first arm is %s: %s", r.Outcome, r.Reason, r.Arms[0].Outcome, r.Arms[0].Reason)
		})
	}
}

// TestJudge checks that collectives are never taken for good where what compares their data does not work, whatever becomes
// of the data.
func TestJudge(t *testing.T) {
	t.Parallel()
	for _, judge := range expect.SomeRows(4, []string{
		"error-launch=0", "error-launch-fill=0@1", "error-launch-verify=0", "error-launch-verify=0@1", "error-launch-verify=0#4", "error-to-host=0",
		"error-to-host=0@1", "zeros-to-host", "error-to-device=0", "zeros-to-device@1", "partial-launch", "blind-verify@1", "error-query=0",
	}) {
		for _, data := range []string{"", "wrong-any@1", "lost-any"} {
			t.Run(judge+" "+data, func(t *testing.T) {
				t.Parallel()
				r := simulated{mode: probe.Quick, gpus: 2, faults: data, cuda: judge, arms: []string{probe.ArmConfigured}}.run(t)
				if r.Outcome == probe.OK || r.Outcome == probe.Unknown && r.Cause != probe.CauseJudge && r.Cause != probe.CauseEnded {
					t.Errorf("%s (%s): %s\n%q", r.Outcome, r.Cause, r.Reason, summary(r))
				}
			})
		}
	}
}

// TestRCCL checks that the same runs through HIP and librccl.
func TestRCCL(t *testing.T) {
	t.Parallel()
	driver, library := drivers.Build(t, "hip"), drivers.Build(t, "rccl")
	for faults, want := range map[string]string{"": "as-configured: ok (ok ok)", "wrong-any@0": "as-configured: corrupt (corrupt ok)"} {
		r := expect.Value(Run(t.Context(), Options{
			Mode: probe.Quick, Arms: []string{probe.ArmConfigured}, Patience: 2 * time.Minute, Start: 2 * time.Minute, Join: 2 * time.Minute,
			Candidates: []probe.Candidate{{Path: library + "/librccl.so.1", FoundBy: "ld_cache"}},
			Env:        []string{"LD_LIBRARY_PATH=" + driver, "GPUDOCTOR_SIM_GPUS=2", "GPUDOCTOR_SIM_NCCL_FAULT=" + faults},
		}))(t)
		got := summary(r)
		expect.That(t, len(got) == 1 && got[0] == want && r.Library == "rccl", "%q: %s: %q, want %q; %s", faults, r.Library, got, want, r.Reason)
	}
}

// TestBusy checks that a GPU in use is left out, and that nothing is run where all are.
func TestBusy(t *testing.T) {
	t.Parallel()
	driver, library := drivers.Build(t, "cuda"), drivers.Build(t, "nccl")
	user := probe.User{PID: 7, Program: "train"}
	for _, tt := range []struct {
		busy map[string]probe.User
		gpus int
		want probe.Outcome
	}{
		{nil, 3, probe.OK},
		{map[string]probe.User{"0000:07:00.0": user}, 2, probe.OK},
		{map[string]probe.User{"0000:06:00.0": user, "0000:07:00.0": user}, 1, probe.OK},
		{map[string]probe.User{"0000:06:00.0": user, "0000:07:00.0": user, "0000:08:00.0": user}, 0, probe.Unknown},
	} {
		r := expect.Value(Run(t.Context(), Options{
			Mode: probe.Quick, Patience: 2 * time.Minute, Start: 2 * time.Minute, Join: 2 * time.Minute,
			Candidates: []probe.Candidate{{Path: library + "/libnccl.so.2", FoundBy: "ld_cache"}},
			Busy:       func(context.Context) map[string]probe.User { return tt.busy }, Env: []string{"LD_LIBRARY_PATH=" + driver, "GPUDOCTOR_SIM_GPUS=3"},
		}))(t)
		if len(r.GPUs) != tt.gpus || r.Outcome != tt.want || len(r.Left) != len(tt.busy) || tt.gpus == 0 && r.Cause != probe.CauseBusy {
			t.Errorf("%d busy: %d GPUs, %s (%s), %+v", len(tt.busy), len(r.GPUs), r.Outcome, r.Cause, r.Left)
		}
	}
}

// FuzzDecode checks that what is taken for a message of a rank has an outcome that exists and a time that can be.
func FuzzDecode(f *testing.F) {
	f.Add(`{"n":1,"rank":0,"result":{"seconds":1e-5,"verified":"gpu"}}`)
	f.Add(`{"n":1,"failure":{"outcome":"ok"}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		m, ok := decode([]byte(raw))
		expect.That(t, !ok || (m.Failure == nil || m.Failure.Outcome != probe.OK) && (m.Result == nil || m.Result.Seconds >= 0), "%s is taken for a message", raw)
	})
}
