package collective_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
	"github.com/gpudoctor/gpudoctor/checks/text/nccl"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// realNCCL is NCCL as a wheel of PyTorch, a package or the environment has it.
func realNCCL(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/dev/nvidia0"); err != nil {
		t.Skip("there is no GPU of NVIDIA's here")
	}
	for _, pattern := range []string{
		os.Getenv("GPUDOCTOR_NCCL"), "/opt/*/.venv/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2",
		"/usr/local/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2", "/usr/lib/x86_64-linux-gnu/libnccl.so.2",
	} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return found[0]
		}
	}
	t.Skip("there is no NCCL here: set GPUDOCTOR_NCCL to its file")
	return ""
}

// TestRealNCCL runs two ranks of a real NCCL on one GPU, over TCP: what one machine with one GPU can
// show of collectives between ranks. Each case names what is broken, the outcome as configured, and the
// variables whose removal cures it.
func TestRealNCCL(t *testing.T) {
	library := realNCCL(t)
	for _, c := range []struct {
		name  string
		env   []string
		first probe.Outcome
		cure  []string
	}{
		{name: "healthy", first: probe.OK},
		{name: "an interface that does not exist", env: []string{"NCCL_SOCKET_IFNAME=dead0"}, first: probe.Error, cure: []string{"NCCL_SOCKET_IFNAME"}},
		{name: "a missing plugin is harmless", env: []string{"NCCL_NET_PLUGIN=nowhere"}, first: probe.OK},
		{name: "a network that does not exist", env: []string{"NCCL_NET=Nowhere", "NCCL_NTHREADS=256"}, first: probe.Error, cure: []string{"NCCL_NET"}},
		{name: "an unknown algorithm", env: []string{"NCCL_ALGO=Bogus", "NCCL_NTHREADS=256"}, first: probe.Error, cure: []string{"NCCL_ALGO"}},
		{name: "an unreadable topology", env: []string{"NCCL_TOPO_FILE=" + malformed(t), "NCCL_BUFFSIZE=4194304"}, first: probe.Error, cure: []string{"NCCL_TOPO_FILE"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := collective.RunOnOneGPU(t.Context(), collective.Options{
				Mode: probe.Full, Patience: 10 * time.Second, Join: 12 * time.Second, Whole: 3 * time.Minute, ReadLog: nccl.Read,
				Arms: []string{probe.ArmCleaned, probe.ArmWithout}, Candidates: []probe.Candidate{{Path: library, FoundBy: "option"}},
				Env: append([]string{"NCCL_NVLS_ENABLE=0"}, c.env...),
			})
			for _, a := range r.Arms {
				t.Logf("%s without %v: %s %s %s %.0f ms; transports %v, network %s, warnings %q", a.Name, a.Unset, a.Outcome, a.Stage, a.Reason, a.Milliseconds, a.Transports, a.Network, a.Warnings)
			}
			expect.Must(t, r.Outcome == c.first && !r.Remains, "outcome %s, want %s: %s", r.Outcome, c.first, r.Reason)
			if c.first == probe.OK {
				verifiedOverTCP(t, &r.Arms[0])
				return
			}
			last := r.Arms[len(r.Arms)-1]
			i := slices.IndexFunc(r.Arms, func(a probe.Arm) bool { return a.Outcome == probe.OK && slices.Equal(a.Unset, c.cure) })
			if i < 0 {
				t.Errorf("no arm works without %v alone; the last is without %v: %s", c.cure, last.Unset, last.Outcome)
			} else {
				verified(t, &r.Arms[i])
			}
		})
	}
}

// verified checks that each value of both ranks was compared on the GPU, and has a time.
func verified(t *testing.T, a *probe.Arm) {
	t.Helper()
	for _, op := range a.Operations {
		if op.Outcome != probe.OK || op.Verified != "gpu" || op.Microseconds == nil || op.Bytes > 16 && (op.BusGBps == nil || !(*op.BusGBps > 0) || math.IsInf(*op.BusGBps, 0)) {
			t.Errorf("%s of %d bytes: %s, compared by %q: %s", op.Name, op.Bytes, op.Outcome, op.Verified, op.Reason)
			continue
		}
		t.Logf("%-12s %10d bytes %12.1f us %8.3f GB/s", op.Name, op.Bytes, *op.Microseconds, value(op.BusGBps))
	}
}

func value(rate *float64) float64 {
	if rate == nil {
		return 0
	}
	return *rate
}

func verifiedOverTCP(t *testing.T, a *probe.Arm) {
	t.Helper()
	verified(t, a)
	for _, name := range []string{probe.AllReduce, probe.SendReceive, probe.AllToAll} {
		expect.That(t, slices.ContainsFunc(a.Operations, func(o probe.Operation) bool { return o.Name == name && o.Bytes >= 32<<20 }), "no %s of 32 MiB and more", name)
	}
	if len(a.Transports) == 0 || slices.ContainsFunc(a.Transports, func(x probe.CollectiveTransport) bool {
		return x.Kind != "net" || !strings.EqualFold(x.Network, "socket")
	}) {
		t.Errorf("the log was read as transports %v, want NET/Socket", a.Transports)
	}
}

func malformed(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "topo.xml")
	expect.NoError(t, os.WriteFile(file, []byte("<system version=\"1\"><cpu"), 0o600))
	return file
}
