//go:build linux && cgo

package main

import (
	"bytes"
	"crypto/rand"
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

// TestShim checks that each fault that the shim shows is the one that the simulated driver shows, by what the program
// makes of it, and that no process is left. Without an order the shim does nothing, nor in the program's own process.
func TestShim(t *testing.T) {
	expect.NotByDay(t, "the simulated driver shows the same faults by day")
	t.Parallel()
	needsNoGPU(t)
	shim := "LD_PRELOAD=" + drivers.BuildShim(t)
	same := func(t *testing.T, want, got judgement) {
		t.Helper()
		diff := cmp.Diff(want, got, cmp.AllowUnexported(judgement{}))
		expect.That(t, diff == "", "(-simulated +shim):\n%s", diff)
	}
	healthy := map[probe.Mode]judgement{}
	for _, mode := range []probe.Mode{probe.Quick, probe.Full} {
		healthy[mode] = observed(t, simulated{mode: mode})
		same(t, healthy[mode], observed(t, simulated{mode: mode}, shim, "GPUDOCTOR_SHIM_FAULT="))
	}
	off := simulated{arguments: []string{"--probe", "off"}}
	same(t, observed(t, off), observed(t, off, shim, "GPUDOCTOR_SHIM_FAULT=crash-init"))
	// Faults of each kind: of what becomes of data, of time, of the process, and of calls. The shim cannot reach into a kernel,
	// nor into a real stream: of the last four, only what becomes of the copy engine's copies is to be the same.
	faults := strings.Fields(`error-peer=217 error-launch-verify=0 error-to-device=0@1 error-query=700@1#5 exit-init=0 elapsed=nan dropped-from=3 late-from=1@0>1
		refused@0>1 slow=20@0>1 no-ipc crash-init flood-init=1 error-context=999@1 error-alloc=999@1 error-copy=999@0>1 error-wait=999@1 error-ipc-open=999
		hang-init hang-copy-call@0>1 crash-copy@0>1 zeros corrupt-first-page@1>0 hang-copy@0>1`)
	for _, fault := range expect.SomeRows(5, faults) {
		t.Run(strings.NewReplacer("@", " at ", ">", "-").Replace(fault), func(t *testing.T) {
			t.Parallel()
			s := simulated{mode: probe.Quick}
			if strings.Contains(fault, "ipc") || strings.HasPrefix(fault, "error-wait") {
				s.mode = probe.Full
			} else if strings.HasPrefix(fault, "hang-") {
				s.steps, s.patience = 4, 4*hangTimeout // Much else runs beside it.
			}
			got := observed(t, s, shim, "GPUDOCTOR_SHIM_FAULT="+fault)
			s.cuda = fault
			want := observed(t, s)
			if slices.Contains(faults[len(faults)-4:], fault) {
				got, want = ofCopies(got), ofCopies(want)
			}
			same(t, want, got)
			open := slices.Contains([]string{"elapsed=nan", "dropped-from=3", "late-from=1@0>1", "flood-init=1"}, fault) || s.steps > 0
			expect.That(t, open || !slices.Equal(healthy[s.mode].transfers, got.transfers) || healthy[s.mode].probe != got.probe, "the outcomes are those of a healthy machine")
		})
	}
}

// observed runs the program with these variables, and returns its judgement.
func observed(t *testing.T, s simulated, variables ...string) judgement {
	t.Helper()
	marker := runMarker + "=" + rand.Text()
	e := s.prepare(t, append(variables, marker)...)()
	expect.Must(t, e.err == nil, "%v\nstandard error: %.2000s", e.err, e.stderr)
	expect.That(t, e.stderr == "", "standard error: %.2000s", e.stderr)
	validate(t, e.stdout)
	d := decoded[report.Document](t, e.stdout)
	expect.That(t, within(gone, func() bool { return len(processes(marker)) == 0 }), "these processes are left: %v", processes(marker))
	return judged(e.exit, &d)
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
