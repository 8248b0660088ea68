//go:build linux && cgo

package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// The tests here put the shim of fixtures/drivers between the program and the simulated driver. On a machine with GPUs
// it stands before the real one, which fixtures/drivers/gpu_run.py does.

// shimmed is a fault that both the simulated driver and the shim can show.
type shimmed struct {
	fault string
	mode  probe.Mode // Quick if empty.
	steps int        // How often --probe-timeout may pass.
	// copies is true where only what becomes of the copy engine's copies is to be
	// the same: the shim cannot reach into a kernel, nor into a real stream.
	copies bool
	// unseen is true where the outcomes of transfers are those of a healthy machine,
	// open where it is the probe's to decide whether they are.
	unseen, open bool
	short        bool
}

// shimmedFaults are faults of each kind: of what becomes of data, of time, of the process, and of calls of each kind.
func shimmedFaults() []shimmed {
	list := []shimmed{
		{fault: "error-peer=217", short: true},
		{fault: "error-launch-verify=0", short: true},
		{fault: "error-to-device=0@1"},
		{fault: "error-query=700@1#5"},
		{fault: "exit-init=0", short: true},
		{fault: "elapsed=nan", open: true, short: true},
		{fault: "dropped-from=3", open: true, short: true},
		{fault: "late-from=1@0>1", open: true},
		{fault: "refused@0>1"},
		{fault: "slow=20@0>1"},
		{fault: "no-ipc", mode: probe.Full},
		{fault: "crash-init"},
		{fault: "flood-init=1", unseen: true},
		{fault: "flood-messages-init"},

		{fault: "crash-copy@0>1", copies: true},
		{fault: "zeros", copies: true},
		{fault: "corrupt-first-page@1>0", copies: true},

		{fault: "hang-init", steps: 1},
		{fault: "hang-copy-call@0>1", steps: 4},
		{fault: "hang-copy@0>1", steps: 3, copies: true},
		{fault: "hang-cleanup", steps: 1, open: true},
	}
	for _, call := range []string{"count", "name", "context@1", "alloc@1", "copy@0>1", "to-host@1", "module@1", "free"} {
		list = append(list, errorOf(call, probe.Quick))
	}
	return append(list, errorOf("register", probe.Full), errorOf("wait@1", probe.Full), errorOf("ipc-open", probe.Full))
}

// errorOf is the fault that a call fails: CALL or CALL@SRC>DST.
func errorOf(call string, mode probe.Mode) shimmed {
	name, at, _ := strings.Cut(call, "@")
	if at != "" {
		at = "@" + at
	}
	return shimmed{fault: "error-" + name + "=999" + at, mode: mode}
}

// harmless are errors of calls without which transfers are still examined.
var harmless = []string{"name", "free", "register"}

func (f shimmed) harmless() bool {
	return f.unseen || slices.ContainsFunc(harmless, func(call string) bool { return f.fault == "error-"+call+"=999" })
}

// TestShim checks that each fault that the shim shows is the one that the simulated driver shows, by what the program
// makes of it; that it is not a healthy machine's; and that no process is left. Without an order the shim does nothing.
func TestShim(t *testing.T) {
	expect.NotByDay(t, "the simulated driver shows the same faults by day")
	t.Parallel()
	needsNoGPU(t)
	shim := drivers.BuildShim(t)
	healthy := map[probe.Mode]judgement{}
	for _, mode := range []probe.Mode{probe.Quick, probe.Full} {
		healthy[mode], _ = observed(t, simulated{mode: mode})
		for _, order := range []string{"", "GPUDOCTOR_SHIM_FAULT="} {
			with, _ := observed(t, simulated{mode: mode}, "LD_PRELOAD="+shim, order)
			diff := cmp.Diff(healthy[mode], with, cmp.AllowUnexported(judgement{}))
			expect.Must(t, diff == "", "the shim without an order, %s (-without it +with it):\n%s", mode, diff)
		}
	}
	for _, f := range shimmedFaults() {
		if !f.short && expect.FewRows() {
			continue
		}
		t.Run(strings.NewReplacer("@", " at ", ">", "-").Replace(f.fault), func(t *testing.T) {
			t.Parallel()
			s := simulated{mode: f.mode, steps: f.steps}
			if f.steps > 0 {
				s.patience = 4 * hangTimeout // Much else runs beside it.
			}
			got, document := observed(t, s, "LD_PRELOAD="+shim, "GPUDOCTOR_SHIM_FAULT="+f.fault)
			s.cuda = f.fault
			want, _ := observed(t, s)
			if f.copies {
				got, want = ofCopies(got), ofCopies(want)
			}
			diff := cmp.Diff(want, got, cmp.AllowUnexported(judgement{}))
			expect.That(t, diff == "", "(-simulated +shim):\n%s", diff)
			base := healthy[probe.Quick]
			if f.mode == probe.Full {
				base = healthy[probe.Full]
			}
			same := slices.Equal(base.transfers, got.transfers) && base.probe == got.probe
			if f.copies {
				same = slices.Equal(ofCopies(base).transfers, got.transfers)
			}
			expect.That(t, f.open || same == f.harmless(), "the outcomes are those of a healthy machine: %t, want %t\n%v", same, f.harmless(), document.Transfers)
		})
	}
}

// observed runs the program with these variables, and returns its judgement.
func observed(t *testing.T, s simulated, variables ...string) (judgement, *report.Document) {
	t.Helper()
	marker := runMarker + "=" + rand.Text()
	e := s.prepare(t, append(variables, marker)...)()
	expect.Must(t, e.err == nil, "%v\nstandard error: %.2000s", e.err, e.stderr)
	expect.That(t, e.stderr == "", "standard error: %.2000s", e.stderr)
	validate(t, e.stdout)
	d := decoded[report.Document](t, e.stdout)
	expect.That(t, within(gone, func() bool { return len(processes(marker)) == 0 }), "these processes are left: %v", processes(marker))
	return judged(e.exit, &d), &d
}

// ofCopies is what a judgement says of the copy engine's copies.
func ofCopies(j judgement) judgement {
	return judgement{exit: j.exit, state: j.state, transfers: slices.DeleteFunc(slices.Clone(j.transfers), func(line string) bool {
		return !strings.HasPrefix(line, probe.TestCopy+":")
	})}
}

// TestGPURun checks that the script for a machine with GPUs runs the program with
// each fault, prints what comes of it, and fails where that is wrong.
func TestGPURun(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	program := expect.Value(exec.LookPath("gpudoctor"))(t) // Of testscript.
	script := filepath.Join("..", "..", "fixtures", "drivers", "gpu_run.py")
	env := simulated{}.environment(t)
	shim := drivers.BuildShim(t)
	for _, tt := range []struct {
		name     string
		options  []string
		timeout  time.Duration
		exit     int
		contains []string
	}{
		{"faults", []string{"--only", "zeros crash-init"}, calmTimeout, 0, []string{
			"quick zeros                          1 findings", "p2p-broken-platform critical confirmed", "quick crash-init", "2 runs, 0 wrong",
		}},
		{"no shim", []string{"--shim", "/nowhere.so"}, calmTimeout, 2, []string{"no such file"}},
		{"no end", []string{"--only", "hang-init", "--limit", "1"}, time.Minute, 1, []string{"no end within 1 s", "1 runs, 1 wrong"}},
		{"no time", []string{"--only", "zeros", "--budget", "1e-9"}, calmTimeout, 1, []string{"not run, the budget is spent: zeros"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			results := filepath.Join(t.TempDir(), "results")
			line := slices.Concat([]string{script, "--gpudoctor", program, "--shim", shim, "--json", results}, tt.options,
				[]string{"--", "--probe-timeout", tt.timeout.String(), "--skip", strings.Join(surroundings, ",")})
			c := exec.Command(python, line...)
			c.Env = env
			out, err := c.CombinedOutput()
			expect.That(t, c.ProcessState.ExitCode() == tt.exit, "exit code %d, want %d (%v)", c.ProcessState.ExitCode(), tt.exit, err)
			for _, words := range tt.contains {
				expect.That(t, strings.Contains(string(out), words), "it does not print %q:\n%s", words, out)
			}
			kept, err := os.ReadFile(results)
			rows := strings.Count(string(out), "\nquick ")
			expect.That(t, tt.exit >= 2 || err == nil && bytes.Count(kept, []byte("\n")) == rows, "%d results are kept of %d (%v)", bytes.Count(kept, []byte("\n")), rows, err)
		})
	}
}

// TestShimActsInTheChild checks that the program's own process is left alone.
func TestShimActsInTheChild(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	s := simulated{arguments: []string{"--probe", "off"}}
	j, _ := observed(t, s, "LD_PRELOAD="+drivers.BuildShim(t), "GPUDOCTOR_SHIM_FAULT=crash-init")
	expect.That(t, j.exit == 0 && j.transfers == nil, "without a probe: %s", fmt.Sprint(j))
}
