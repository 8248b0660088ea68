package engine

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/drive"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestMain(m *testing.M) {
	child.Main()
	expect.SideBySide(3)
	os.Exit(m.Run())
}

// simulate runs the quick probe against the simulated libcuda with faults to order.
func simulate(t *testing.T, gpus, faults string, flags ...string) *probe.Report {
	t.Helper()
	return simulateAPI(t, drive.CUDA, probe.Quick, gpus, faults, nil, flags...)
}

// eachAPI runs a test for the simulated libcuda and the simulated libamdhip64. By day only for the one named: the
// session, the steps and the outcomes are the same for both.
func eachAPI(t *testing.T, byDay string, run func(t *testing.T, api string)) {
	t.Helper()
	for _, api := range []string{drive.CUDA, drive.HIP} {
		if expect.FewRows() && api != byDay {
			continue
		}
		t.Run(api, func(t *testing.T) { run(t, api) })
	}
}

// simulateAPI does it with either library.
func simulateAPI(t *testing.T, api string, mode probe.Mode, gpus, faults string, env []string, flags ...string) *probe.Report {
	t.Helper()
	dir := drivers.Build(t, api, flags...)
	patience := 2 * time.Minute // Where nothing is late, a busy test machine gets time.
	switch {
	case strings.Contains(faults, "hang"):
		patience = 2 * time.Second
	case strings.Contains(faults, "-flags"): // A handshake gets a fifth: less than all its rounds take with slow flags.
		patience = 20 * time.Second
	}
	r := expect.Value(Run(t.Context(), Options{
		Mode: mode, Patience: patience, Start: 2 * patience, API: api,
		Env: append([]string{"LD_LIBRARY_PATH=" + dir, "GPUDOCTOR_SIM_GPUS=" + gpus, "GPUDOCTOR_SIM_CUDA_FAULT=" + faults}, env...),
	}))(t)
	expect.That(t, r.API == api || r.Library == "", "API %q by %s, want %s", r.API, r.Library, api)
	expect.That(t, !r.Left, "a process was left behind")
	return r
}

// outcomes condenses a report: for each test the outcomes of its pairs, in order, as in "copy: ok corrupt".
func outcomes(r *probe.Report) []string {
	var lines []string
	for _, x := range r.Transfers {
		name := x.Test
		if x.Way != "" {
			name += "/" + x.Way
		}
		word := string(x.Outcome)
		if x.Found != "" {
			word += "(" + x.Found + ")"
		}
		if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, name+":") }); i >= 0 {
			lines[i] += " " + word
		} else {
			lines = append(lines, name+": "+word)
		}
	}
	return lines
}

// TestQuick checks that a fault gives its outcome, and nothing else is blamed. TestSimulated of cmd/gpudoctor has
// the other faults. GPU 0 is 0000:06:00.0, GPU 1 is 0000:07:00.0.
func TestQuick(t *testing.T) { eachAPI(t, drive.CUDA, quick) }

func quick(t *testing.T, api string) {
	t.Helper()
	healthy := []string{"copy: ok ok", "sm-store: ok ok", "sm-load: ok ok"}
	for _, c := range []struct {
		name, faults string
		want         []string
	}{
		{"healthy", "", healthy},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := simulateAPI(t, api, probe.Quick, "2", c.faults, nil)
			expect.That(t, r.Outcome == probe.OK, "outcome %s in stage %q (%s)", r.Outcome, r.Stage, r.Reason)
			expect.NoDiff(t, c.want, outcomes(r), "transfers")
			for _, x := range r.Transfers {
				expect.That(t, x.Outcome != probe.OK || x.Verified != "", "%s %s -> %s is ok and was not verified", x.Test, x.Source, x.Destination)
				expect.That(t, x.Outcome == probe.OK || x.Reason != "", "%s %s -> %s is %s without a reason", x.Test, x.Source, x.Destination, x.Outcome)
			}
		})
	}
}

// TestFull checks that the full probe sees what the quick one cannot.
func TestFull(t *testing.T) { eachAPI(t, drive.HIP, full) }

func full(t *testing.T, api string) {
	t.Helper()
	all := []string{
		"copy: ok ok", "sm-store: ok ok", "sm-load: ok ok", "copy-read: ok ok", "bidirectional: ok", "all-at-once: ok ok", "handshake: ok",
		"latency: ok ok", "atomics: ok ok", "host-staged: ok ok",
		probe.TestInterprocess + "/" + map[string]string{drive.CUDA: "cudaIpc", drive.HIP: "hipIpc"}[api] + ": ok ok",
	}
	changed := func(test string, lines ...string) []string {
		return append(slices.DeleteFunc(slices.Clone(all), func(l string) bool { return strings.HasPrefix(l, test) }), lines...)
	}
	for _, c := range []struct {
		name, faults string
		want         []string
	}{
		{"healthy", "", all},
		{"flags slowly seen", "slow-flags=50@1>0", changed("handshake", "handshake: unknown")},
		{"nothing to share", "no-ipc", changed(probe.TestInterprocess, probe.TestInterprocess+": unsupported unsupported")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := simulateAPI(t, api, probe.Full, "2", c.faults, nil)
			got := slices.DeleteFunc(outcomes(r), func(l string) bool {
				return strings.HasPrefix(l, probe.TestHostToDevice) || strings.HasPrefix(l, probe.TestDeviceToHost)
			})
			slices.Sort(got)
			slices.Sort(c.want)
			expect.NoDiff(t, c.want, got, "transfers")
			for _, x := range r.Transfers {
				expect.That(t, x.Test != probe.TestHostToDevice && x.Test != probe.TestDeviceToHost || x.Outcome == probe.OK && x.GBps != nil && x.Verified != "", "host copy: %+v", x)
			}
		})
	}
}

// TestHIP checks what is HIP's alone.
func TestHIP(t *testing.T) {
	t.Run("a version that is not known is not used", func(t *testing.T) {
		t.Parallel()
		r := simulateAPI(t, drive.HIP, probe.Quick, "2", "", []string{"GPUDOCTOR_SIM_HIP_VERSION=80012345"})
		expect.That(t, r.Outcome == probe.Unknown && strings.Contains(r.Reason, "HIP 8.0.12345: version not supported; supported are 5 to 7") && len(r.Transfers) == 0, "outcome %s: %s", r.Outcome, r.Reason)
	})
	t.Run("HIP 5 opens memory of another process with another flag", func(t *testing.T) {
		t.Parallel()
		r := simulateAPI(t, drive.HIP, probe.Full, "2", "", []string{"GPUDOCTOR_SIM_HIP_VERSION=50221153"})
		i := slices.IndexFunc(r.Transfers, func(x probe.Transfer) bool { return x.Test == probe.TestInterprocess })
		expect.That(t, i >= 0 && r.Transfers[i].Outcome == probe.OK, "transfers %v", outcomes(r))
		expect.Equal(t, "5.2.21153", r.DriverVersion, "version")
	})
	t.Run("no compiler", func(t *testing.T) {
		t.Parallel()
		r := simulateAPI(t, drive.HIP, probe.Quick, "2", "zeros@0>1", []string{"GPUDOCTOR_SIM_HIP_FAULT=no-compiler"})
		expect.NoDiff(t, []string{"copy: corrupt(zeros) ok", "host-staged: ok"}, outcomes(r), "transfers")
		want := "hiprtcCompileProgram: hiprtc error 6: gpudoctor.hip:1:1: error: simulated"
		expect.That(t, strings.Contains(r.SMTests, want), "SM tests: %q, want %q", r.SMTests, want)
	})
	t.Run("no memory for kernels that talk", func(t *testing.T) {
		t.Parallel()
		r := simulateAPI(t, drive.HIP, probe.Full, "2", "", []string{"GPUDOCTOR_SIM_HIP_FAULT=no-fine-grained"})
		for _, x := range r.Transfers {
			needs := x.Test == probe.TestHandshake || x.Test == probe.TestAtomics
			expect.That(t, needs == (x.Outcome == probe.Unknown), "%s: %s (%s)", x.Test, x.Outcome, x.Reason)
		}
	})
	t.Run("no GPU", func(t *testing.T) {
		t.Parallel()
		r := simulateAPI(t, drive.HIP, probe.Quick, "0", "", nil)
		expect.That(t, r.Outcome == probe.Unknown && r.Stage == "hipInit" && strings.Contains(r.Reason, "HIP offers no GPU to this process"), "outcome %s in %q: %s", r.Outcome, r.Stage, r.Reason)
	})
	// Where there are both libraries, that one counts which has GPUs.
	t.Run("CUDA without a GPU beside HIP", func(t *testing.T) {
		t.Parallel()
		r := expect.Value(Run(t.Context(), Options{Mode: probe.Quick, Env: []string{
			"LD_LIBRARY_PATH=" + drivers.Build(t, "cuda") + ":" + drivers.Build(t, "hip"), "GPUDOCTOR_SIM_CUDA_FAULT=error-init=100",
		}}))(t)
		// Both obey the same order, so that HIP has none either: CUDA is named.
		expect.That(t, r.Outcome == probe.Error && r.API == drive.CUDA && r.Stage == drive.StageInit && r.ErrorCode == 100, "outcome %s of %q in %q: %s", r.Outcome, r.API, r.Stage, r.Reason)
	})
	t.Run("HIP alone", func(t *testing.T) {
		t.Parallel()
		r := expect.Value(Run(t.Context(), Options{Mode: probe.Quick, Env: []string{"LD_LIBRARY_PATH=" + drivers.Build(t, "hip")}}))(t)
		expect.That(t, r.Outcome == probe.OK && r.API == drive.HIP && len(r.Transfers) == 6 && r.DriverVersion == "6.2.41133", "outcome %s of %q: %s", r.Outcome, r.API, r.Reason)
	})
}

// TestBusy checks that a GPU in use is left alone, and that this is said.
func TestBusy(t *testing.T) {
	t.Parallel()
	dir := drivers.Build(t, "cuda")
	r := expect.Value(Run(t.Context(), Options{
		Mode: probe.Quick, Env: []string{"LD_LIBRARY_PATH=" + dir, "GPUDOCTOR_SIM_GPUS=3"},
		Busy: func(context.Context) map[string]probe.User {
			return map[string]probe.User{"0000:07:00.0": {PID: 4711, Program: "python3"}}
		},
	}))(t)
	for _, x := range r.Transfers {
		touched := x.Source == "0000:07:00.0" || x.Destination == "0000:07:00.0"
		want := map[bool]probe.Outcome{true: probe.Unknown, false: probe.OK}[touched]
		expect.That(t, x.Outcome == want, "%s %s -> %s: %s (%s), want %s", x.Test, x.Source, x.Destination, x.Outcome, x.Reason, want)
		expect.That(t, !touched || strings.Contains(x.Reason, "in use by process 4711 (python3)"), "%s %s -> %s: reason %q", x.Test, x.Source, x.Destination, x.Reason)
	}
}

// TestSlowWord checks that the driver is not blamed for the time that it takes to find out which GPUs are busy.
func TestSlowWord(t *testing.T) {
	t.Parallel()
	const start = 5 * time.Second
	r, err := Run(t.Context(), Options{
		Mode: probe.Quick, Start: start, Env: []string{"LD_LIBRARY_PATH=" + drivers.Build(t, "cuda")},
		Busy: func(ctx context.Context) map[string]probe.User {
			select {
			case <-time.After(start + start/2):
			case <-ctx.Done(): // The driver was given up.
			}
			return nil
		},
	})
	expect.NoError(t, err)
	expect.That(t, r.Outcome == probe.OK, "outcome %s in stage %q: %s", r.Outcome, r.Stage, r.Reason)
}

// TestInterrupted checks that an interruption ends the probe at once.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	dir := drivers.Build(t, "cuda")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	expect.Fails(Run(ctx, Options{Mode: probe.Quick, Env: []string{"LD_LIBRARY_PATH=" + dir, "GPUDOCTOR_SIM_CUDA_FAULT=hang-init"}}))(t, context.DeadlineExceeded, "error")
}
