package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/drive"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestHIPOnCUDA runs the whole probe over the door to HIP on real GPUs of NVIDIA's, through a library that hands HIP's
// calls on to libcuda and the compiler's to NVRTC (fixtures/drivers/hip.c). It shows that the door's calls are made as
// the header says, that the kernels in HIP C++ are right, and that the probe's logic holds for either API. Of AMD's
// hardware and software it shows nothing.
func TestHIPOnCUDA(t *testing.T) {
	if _, err := os.Stat("/dev/nvidia1"); err != nil {
		t.Skip("there are no two GPUs of NVIDIA's here")
	}
	for _, mode := range []probe.Mode{probe.Quick, probe.Full} {
		t.Run(string(mode), func(t *testing.T) {
			r := expect.Value(Run(t.Context(), Options{
				Mode: mode, API: drive.HIP, Patience: 20 * time.Second,
				Env: []string{"LD_LIBRARY_PATH=" + drivers.Build(t, "hip-on-cuda"), "GPUDOCTOR_NVRTC=" + nvrtc(t)},
			}))(t)
			expect.Must(t, r.Outcome == probe.OK && r.API == drive.HIP && r.SMTests == "", "outcome %s of %q in %q: %s; SM tests: %q", r.Outcome, r.API, r.Stage, r.Reason, r.SMTests)
			var tests []string
			for _, x := range r.Transfers {
				rate := ""
				if x.GBps != nil {
					rate = fmt.Sprintf(" at %.1f GB/s", *x.GBps)
				}
				t.Logf("%-18s %s -> %s %s: %s%s, compared by %q", x.Test, x.Source, x.Destination, x.Way, x.Outcome, rate, x.Verified)
				expect.That(t, x.Outcome == probe.OK, "%s %s -> %s: %s (%s)", x.Test, x.Source, x.Destination, x.Outcome, x.Reason)
				if (x.Test == probe.TestCopy || x.Test == probe.TestStore || x.Test == probe.TestLoad) && x.Verified != "gpu" {
					t.Errorf("%s %s -> %s was compared by %q", x.Test, x.Source, x.Destination, x.Verified)
				}
				if !slices.Contains(tests, x.Test) {
					tests = append(tests, x.Test)
				}
			}
			want := map[probe.Mode]int{probe.Quick: 3, probe.Full: len(reportOrder)}[mode]
			expect.That(t, len(tests) == want, "%d tests were made, want %d: %v", len(tests), want, tests)
		})
	}
}

// nvrtc finds NVIDIA's compiler where a toolkit or PyTorch brought it.
func nvrtc(t *testing.T) string {
	t.Helper()
	for _, pattern := range []string{
		os.Getenv("GPUDOCTOR_NVRTC"), "/usr/local/cuda*/lib64/libnvrtc.so", "/usr/local/cuda*/lib64/libnvrtc.so.1*", "/usr/lib/x86_64-linux-gnu/libnvrtc.so*",
		"/usr/lib*/python3*/*-packages/nvidia/*/lib/libnvrtc.so.1*", "/usr/local/lib*/python3*/*-packages/nvidia/*/lib/libnvrtc.so.1*",
		"/opt/*/lib*/python3*/*-packages/nvidia/*/lib/libnvrtc.so.1*", filepath.Join(os.Getenv("HOME"), "*/lib*/python3*/*-packages/nvidia/*/lib/libnvrtc.so.1*"),
	} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return found[0]
		}
	}
	t.Skip("there is no NVRTC here: set GPUDOCTOR_NVRTC to its file")
	return ""
}

// TestRealHIP checks that a real runtime of AMD's, on a machine without a GPU of
// theirs, gives an unknown with its reason, and nothing worse.
func TestRealHIP(t *testing.T) {
	found := expect.Value(filepath.Glob("/usr/lib/*/libamdhip64.so.5"))(t)
	if _, err := os.Stat("/dev/kfd"); err == nil {
		t.Skip("there may be a GPU of AMD's here")
	}
	if len(found) == 0 {
		expect.LacksTool(t, "libamdhip64.so.5 is not installed here")
	}
	r := expect.Value(Run(t.Context(), Options{Mode: probe.Quick, API: drive.HIP}))(t)
	if r.Outcome != probe.Unknown || r.API != drive.HIP || r.Stage != "hipInit" || !strings.HasPrefix(r.Reason, "HIP offers no GPU to this process: hipInit: ") || len(r.Transfers) > 0 || r.Signal != "" {
		t.Errorf("outcome %s of %q in %q, signal %q: %s", r.Outcome, r.API, r.Stage, r.Signal, r.Reason)
	}
	expect.That(t, strings.HasSuffix(filepath.Dir(r.Library), filepath.Dir(found[0])), "loaded %q, want the one of %s", r.Library, found[0])
}
