//go:build linux && cgo

package main

import (
	"bytes"
	stdcmp "cmp"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// The tests here run the whole program against the simulated drivers of fixtures/drivers: two H200s on NVSwitches that
// no PCI tree shows, as in a container with a masked /sys.

// surroundings are the rules that judge the machine on which the test runs.
var surroundings = []string{"shm-too-small", "memlock-limit", "ipc-namespace", "container-caps", "sys-not-mounted", "numa-affinity", "env-misconfig", "gpu-events", "oom"}

// simulated is one run of the program against the simulated drivers.
type simulated struct {
	name string
	// cuda and nvml are the faults to order, gpus how many there are; 0 is 2.
	cuda, nvml string
	gpus       int
	mode       probe.Mode // Quick if empty.
	// libraries are the drivers that are there and flags how they are built; nil is both.
	libraries, flags []string
	arguments        []string
	ulimit           string // What a shell's ulimit is given before.

	// steps is how often --probe-timeout may pass, 0 where nothing hangs.
	steps    int
	patience time.Duration // --probe-timeout; 0 is the usual.
	short    bool          // It is run with -short, too.
	hip      bool          // The same is run and wanted by HIP.
	bare     bool          // Without --probe-timeout.
	want     judgement
}

// judgement is what the program makes of a run, in short. GPUs are gpu0, gpu1.
type judgement struct {
	exit  int
	state report.State
	// probe is the probe's outcome, with the stage where that is not ok.
	probe string
	// transfers are the outcomes of each test in order of pairs.
	transfers []string
	// findings are each one's rule, severity, confidence and subject, and those that it explains behind a colon.
	findings []string
	// remedy is the first.
	remedy string
}

const (
	// calmTimeout is --probe-timeout where nothing hangs: a busy test machine gets time.
	calmTimeout = 2 * time.Minute
	// slack is what a run may take beside the timeouts: 0.2 s are usual. Only what hangs takes
	// as long: with the race detector on a busy machine, 20 s were too few.
	slack = 5 * time.Minute
)

// hangTimeout is --probe-timeout where something hangs. The race detector makes the start of a child several times as long.
var hangTimeout = map[bool]time.Duration{false: 2 * time.Second, true: 8 * time.Second}[withRace()]

// healthyQuick and healthyFull are the outcomes on two GPUs without a fault.
var (
	healthyQuick = []string{"copy: ok ok", "sm-store: ok ok", "sm-load: ok ok"}
	healthyFull  = []string{
		"copy: ok ok", "sm-store: ok ok", "sm-load: ok ok", "copy-read: ok ok", "bidirectional: ok", "all-at-once: ok ok", "handshake: ok",
		"latency: ok ok", "atomics: ok ok", "host-staged: ok ok", "between-processes/cudaIpc: ok ok",
	}
)

// hip is the one library of AMD's machines, and healthyHIP what it gives on two
// GPUs: memory goes to another process in one way.
var (
	hip        = []string{"hip"}
	healthyHIP = append(slices.DeleteFunc(slices.Clone(healthyFull), func(l string) bool {
		return strings.HasPrefix(l, probe.TestInterprocess)
	}), "between-processes/hipIpc: ok ok")
)

// changed returns lines with those of the same test in place of the old ones.
func changed(lines []string, by ...string) []string {
	lines = slices.Clone(lines)
	for _, l := range by {
		name, _, _ := strings.Cut(l, ":")
		for i, old := range lines {
			if strings.HasPrefix(old, name+":") {
				lines[i] = l
			}
		}
	}
	return lines
}

func quiet(transfers []string) judgement {
	return judgement{state: report.Healthy, probe: "ok", transfers: transfers}
}

// unproven is the judgement of a machine without a finding on which something could not be tried.
func unproven(transfers []string) judgement {
	return judgement{state: report.Inconclusive, probe: "ok", transfers: transfers}
}

func sick(outcome string, transfers []string, remedy string, findings ...string) judgement {
	return judgement{exit: exitFindings, state: report.Findings, probe: outcome, transfers: transfers, findings: findings, remedy: remedy}
}

// judgeBroken is the judgement of a machine on which what the probe needs does not work: what compares the data, the
// clock, or memory.
func judgeBroken(transfers []string) judgement {
	return judgement{exit: exitUnproven, state: report.Inconclusive, probe: "ok", transfers: transfers}
}

func broken(transfers []string, subject string) judgement {
	return sick("ok", transfers, "nccl-p2p-disable", "p2p-broken-platform critical confirmed "+subject)
}

// oneWay is broken where copies, stores and loads come out so from the first GPU to the second, and well the other way.
func oneWay(copied, stored, loaded string) judgement {
	return broken([]string{"copy: " + copied + " ok", "sm-store: " + stored + " ok", "sm-load: " + loaded + " ok", "host-staged: ok"}, "gpu0 -> gpu1")
}

// wayBack is broken where copies, stores and loads come out so from the second GPU to the first, and well the other way.
func wayBack(outcome string) judgement {
	return broken([]string{"copy: ok " + outcome, "sm-store: ok " + outcome, "sm-load: ok " + outcome, "host-staged: ok"}, "gpu1 -> gpu0")
}

// bothWays are copies, stores and loads that come out so between all GPUs, so many pairs of them.
func bothWays(copied, stored, loaded string, pairs int) []string {
	each := func(outcome string) string { return strings.Repeat(" "+outcome, pairs) }
	return []string{"copy:" + each(copied), "sm-store:" + each(stored), "sm-load:" + each(loaded)}
}

var simulations = []simulated{
	{name: "healthy", short: true, want: quiet(healthyQuick)},
	{name: "healthy full", mode: probe.Full, want: quiet(healthyFull)},
	{name: "a driver leaves a process behind", cuda: "daemon-init", want: quiet(healthyQuick)},
	{name: "healthy under a low limit", ulimit: "-v 8000000", want: quiet(healthyQuick)},
	{name: "healthy old driver", flags: []string{"-DOLD_DRIVER"}, want: quiet(healthyQuick)},
	{name: "transfers without NVML", libraries: []string{"cuda"}, short: true, want: unproven(healthyQuick)},
	{name: "healthy one GPU", gpus: 1, want: quiet(nil)},
	{name: "NVML without CUDA", libraries: []string{"nvml"}, want: judgement{exit: exitUnproven, state: report.Inconclusive, probe: "unknown in load library"}},

	{name: "no memory for cuInit", cuda: "error-init=2", want: judgement{exit: exitUnproven, state: report.Inconclusive, probe: "unknown in cuInit"}},

	// What becomes of the data.
	{name: "corrupt first page", hip: true, cuda: "corrupt-first-page@0>1", want: oneWay("corrupt(other)", "corrupt(other)", "corrupt(other)")},
	{name: "zeros", hip: true, cuda: "zeros", short: true, want: broken(append(bothWays("corrupt(zeros)", "corrupt(zeros)", "corrupt(zeros)", 2), "host-staged: ok ok"), "gpu0 -> gpu1")},
	{name: "owner never sees stores", hip: true, cuda: "dropped-sm", want: broken(append(bothWays("ok", "corrupt(poison)", "corrupt(poison)", 2), "host-staged: ok ok"), "gpu0 -> gpu1")},
	{name: "intermittent", hip: true, cuda: "intermittent", want: sick("ok", []string{
		"copy: corrupt(poison) corrupt(poison)", "sm-store: ok corrupt(poison)", "sm-load: ok corrupt(poison)", "host-staged: ok ok",
	}, "nccl-p2p-disable", "p2p-broken-platform critical confirmed gpu0 -> gpu1")},
	{name: "whole machine", cuda: "zeros", gpus: 3, want: broken([]string{
		"copy:" + strings.Repeat(" corrupt(zeros)", 6), "sm-store:" + strings.Repeat(" corrupt(zeros)", 6),
		"sm-load:" + strings.Repeat(" corrupt(zeros)", 6), "host-staged:" + strings.Repeat(" ok", 6),
	}, "host")},

	// What the driver refuses.
	{name: "peer refused", cuda: "refused", want: sick("ok", bothWays("unsupported", "unsupported", "unsupported", 2), "reboot-or-reload-driver", "p2p-unsupported-gpu high confirmed gpu0 -> gpu1")},
	{name: "error of a copy", hip: true, cuda: "error-copy=1@0>1", want: oneWay("error", "ok", "ok")},
	{name: "peer access not switched on", hip: true, cuda: "error-peer=711@0>1", want: broken([]string{"copy: error ok", "sm-store: ok", "sm-load: ok", "host-staged: ok"}, "gpu0 -> gpu1")},
	{name: "crash in a copy", hip: true, cuda: "crash-copy@1>0", want: wayBack("error")},
	{name: "no PTX compiler", cuda: "error-module=221", want: unproven([]string{"copy: ok ok"})},
	{name: "no PTX compiler and zeros", cuda: "error-module=221,zeros@0>1", want: broken([]string{"copy: corrupt(zeros) ok", "host-staged: ok"}, "gpu0 -> gpu1")},

	// What is slow.
	{name: "slow pair", cuda: "slow=20@0>1", want: sick("ok", changed(healthyQuick, "copy: slow ok"), "reset-gpu", "p2p-slow high confirmed gpu0 -> gpu1")},
	{name: "somewhat slow pair", cuda: "slow=1.5@0>1", want: judgement{
		state: report.Findings, probe: "ok", transfers: changed(healthyQuick, "copy: slow ok"),
		findings: []string{"p2p-slow medium confirmed gpu0 -> gpu1"}, remedy: "reset-gpu",
	}},
	{name: "collapse when all at once", cuda: "slow-together=20", gpus: 3, mode: probe.Full, want: sick("ok", []string{
		"copy: ok ok ok ok ok ok", "sm-store: ok ok ok ok ok ok", "sm-load: ok ok ok ok ok ok", "copy-read: ok ok ok ok ok ok",
		"bidirectional: slow slow slow", "all-at-once: slow slow slow slow slow slow", "handshake: ok ok ok", "latency: ok ok ok ok ok ok",
		"atomics: ok ok ok ok ok ok", "host-staged: ok ok ok ok ok ok",
		"between-processes/cudaIpc: ok ok ok ok ok ok",
	}, "reset-gpu", "p2p-slow high confirmed host")},

	// What the full probe alone sees.
	{name: "stale handshake flags", cuda: "stale-flags@1>0", mode: probe.Full, patience: 20 * time.Second, want: broken(changed(healthyFull, "handshake: hang"), "gpu0 -> gpu1")},
	{name: "lost atomics", cuda: "lost-atomics@0>1", mode: probe.Full, want: broken(changed(healthyFull, "atomics: corrupt ok"), "gpu0 -> gpu1")},
	{name: "lost between processes", cuda: "ipc-dropped", mode: probe.Full, want: sick("ok", changed(healthyFull,
		"between-processes/cudaIpc: corrupt(poison) corrupt(poison)",
	), "nccl-p2p-disable", "p2p-broken-platform high confirmed gpu0 -> gpu1")},

	// The driver does not start.
	{name: "system not ready", cuda: "error-init=802", short: true, want: sick("error in cuInit", nil, "start-fabric-manager", "fabric-manager critical confirmed host")},
	{name: "driver mismatch by CUDA", cuda: "error-init=803", want: sick("error in cuInit", nil, "reboot-or-reload-driver", "driver-library-mismatch critical confirmed driver")},
	{name: "unknown error", cuda: "error-init=999", want: sick("error in cuInit", nil, "reboot-or-reload-driver", "driver-hang high likely host")},
	{name: "CUDA sees no GPU", cuda: "error-init=100", want: sick("error in cuInit", nil, "pass-device-nodes", "gpu-visibility high confirmed CUDA")},
	{name: "crash in cuInit", cuda: "crash-init", want: sick("error in cuInit", nil, "reboot-or-reload-driver", "driver-hang critical confirmed host")},
	{name: "one GPU does not start", cuda: "error-context=999@1", want: sick("ok", notTried, "reset-gpu", "transfer-failed high confirmed gpu1")},
	{name: "one GPU has a memory error", cuda: "error-context=214@1", want: sick("ok", notTried, "reset-gpu", "gpu-fault critical confirmed gpu1")},
	{name: "no driver", cuda: "error-init=100", nvml: "driver-not-loaded", want: judgement{state: report.Inconclusive, probe: "error in cuInit"}},

	// What NVML says.
	{name: "no permission for NVML", nvml: "no-permission", want: unproven(healthyQuick)},
	{name: "crash in nvmlInit", nvml: "crash-init", want: sick("ok", healthyQuick, "reboot-or-reload-driver", "driver-hang high likely host")},
	{name: "crash in NVML at a GPU", nvml: "crash-device", want: sick("ok", healthyQuick, "reboot-or-reload-driver", "driver-hang high likely host")},
	{name: "lost GPU", nvml: "lost-gpu", cuda: "error-context=999@1", want: sick("ok", notTried, "reboot", "gpu-fault critical confirmed host: transfer-failed")},
	{name: "reset required", nvml: "reset-required", want: sick("ok", healthyQuick, "reset-gpu", "gpu-fault critical confirmed gpu1: gpu-fault")},
	{name: "fabric in progress", nvml: "fabric-in-progress", want: sick("ok", healthyQuick, "start-fabric-manager", "fabric-manager high likely host")},
	{name: "NVLink down", nvml: "nvlink-down", want: sick("ok", healthyQuick, "reset-gpu", "nvlink-down high likely gpu1")},
	{name: "NVLink down and slow", nvml: "nvlink-down", cuda: "slow=2", want: sick("ok", changed(healthyQuick, "copy: slow slow"), "reset-gpu", "nvlink-down high confirmed gpu1: p2p-slow")},
	{name: "chipset forbids reads", nvml: "p2p-blocked", want: sick("ok", healthyQuick, "reboot-or-reload-driver", "p2p-unsupported-gpu high confirmed gpu0 -> gpu1")},
	{name: "MIG on", nvml: "mig-on", want: judgement{state: report.Findings, probe: "ok", transfers: healthyQuick, findings: []string{"mig-mode medium likely gpu1"}, remedy: "disable-mig"}},
	{name: "busy GPU", nvml: "busy", want: judgement{state: report.Inconclusive, probe: "ok", transfers: notTried}},
	// The same by HIP: two GPUs of AMD's that nothing but the runtime shows.
	{name: "HIP healthy", libraries: hip, short: true, want: quiet(healthyQuick)},
	{name: "HIP healthy full", libraries: hip, mode: probe.Full, want: quiet(healthyHIP)},
	{name: "HIP without code for the GPU", libraries: hip, cuda: "error-module=209", want: unproven([]string{"copy: ok ok"})},
	{name: "HIP one GPU does not start", libraries: hip, cuda: "error-context=999@1", want: sick("ok", notTried, "reset-amd-gpu", "transfer-failed high confirmed gpu1")},
	{name: "HIP sees no GPU", libraries: hip, cuda: "error-init=100", want: judgement{state: report.Inconclusive}},
}

// failClosed are the faults that ended in "Healthy, exit 0" before transfers had a
// last resort, and the like: none may pass for health.
var failClosed = []simulated{
	{name: "peer access refused late, everywhere", hip: true, cuda: "error-peer=217", short: true, want: sick("ok", []string{"copy: error error", "host-staged: ok ok"},
		"nccl-p2p-disable", "transfer-failed high confirmed gpu0 -> gpu1 and 1 more")},
	{name: "no kernel can be launched", cuda: "error-launch=209", short: true, want: sick("ok", notTried, "upgrade-driver", "transfer-failed high confirmed gpu0 and gpu1")},
	{name: "no kernel can be launched on the only GPU", gpus: 1, cuda: "error-launch=209", want: sick("ok", nil, "upgrade-driver", "transfer-failed high confirmed gpu0")},
	{name: "the only GPU compares nothing", gpus: 1, cuda: "error-launch-verify=0", want: judgeBroken(nil)},
	{name: "the only GPU gets zeros from the host", gpus: 1, cuda: "zeros-to-device", want: sick("ok", nil, "reset-gpu", "transfer-failed critical confirmed gpu0")},
	{name: "nothing is compared, and zeros arrive", cuda: "error-launch-verify=0,zeros", short: true, want: judgeBroken(notTried)},
	{name: "nothing is copied back, and nothing arrives", cuda: "error-to-host=0,dropped", want: judgeBroken(notTried)},
	{name: "zeros are copied back, and zeros arrive", cuda: "zeros-to-host,zeros", want: judgeBroken(notTried)},
	{name: "nothing wrong is ever found, and nothing arrives", cuda: "blind-verify,dropped", want: judgeBroken(notTried)},
	{name: "one GPU compares nothing from the third time on", cuda: "error-launch-verify=0@1#3,zeros@0>1", want: judgeBroken(bothWays("unknown", "unknown", "unknown", 2))},
	{name: "a copy spoils its source", cuda: "spoiled-source@0>1", want: oneWay("corrupt(source)", "corrupt(source)", "corrupt(source)")},
	{name: "a copy writes past its end", cuda: "overrun@1>0", want: wayBack("corrupt(overrun)")},
	{name: "exits in cuInit", cuda: "exit-init=0", short: true, want: sick("error in cuInit", nil, "reset-gpu", "transfer-failed high confirmed host")},
	{name: "exits when a context is made", cuda: "exit-context=0@1", want: sick("error in contexts", nil, "reset-gpu", "transfer-failed high confirmed host")},
	{name: "exits in a copy", cuda: "exit-copy=0@0>1", want: oneWay("error", "ok", "ok")},
	{name: "no time", cuda: "elapsed=0", short: true, want: clockless},
	{name: "time runs backwards", cuda: "elapsed=-3", want: clockless},
	{name: "time is no number", hip: true, cuda: "elapsed=nan", want: clockless},
	{name: "endless time", cuda: "elapsed=inf", want: clockless},
	{name: "copies that come late", cuda: "late-from=3", want: clockless},
	{name: "copies that never come, from the third on", cuda: "dropped-from=3", short: true, want: sick("ok", append(bothWays("corrupt(poison)", "ok", "ok", 2), "host-staged: ok ok"), "nccl-p2p-disable", "p2p-broken-platform critical confirmed gpu0 -> gpu1")},
	{name: "a flood in cuInit", cuda: "flood-init", want: sick("error in cuInit", nil, "reset-gpu", "transfer-failed high confirmed host")},
	{name: "nobody can say whether there is peer access", cuda: "error-can-access=999", want: sick("ok", append(bothWays("error", "error", "error", 2), "host-staged: ok ok"), "reset-gpu", "transfer-failed high confirmed gpu0 -> gpu1 and 1 more")},
	{name: "memory of another process cannot be opened", mode: probe.Full, cuda: "error-ipc-open=999", want: sick("ok", changed(healthyFull,
		"between-processes/cudaIpc: error error",
	), "nccl-p2p-disable", "p2p-broken-platform high confirmed gpu0 -> gpu1")},
	{name: "a GPU has no memory left", cuda: "error-alloc=2@1", want: judgeBroken(notTried)},
	{name: "no GPU has memory left", cuda: "error-alloc=2", want: judgeBroken(notTried)},
	{name: "a process holds the memory of a GPU", cuda: "error-alloc=2@1", nvml: "busy", arguments: []string{"--probe-busy"}, want: unproven(notTried)},
	// The sources of the GPUs disagree, and nothing explains it.
	{name: "CUDA offers one GPU of two", cuda: "count=1", short: true, want: sick("ok", nil, "reboot-or-reload-driver", "gpu-missing high confirmed gpu1")},
	{name: "CUDA offers seven GPUs of eight", cuda: "count=7", gpus: 8, want: sick("ok", bothWays("ok", "ok", "ok", 42), "reboot-or-reload-driver", "gpu-missing high confirmed gpu7")},
	{name: "CUDA offers three GPUs of two", cuda: "count=3", want: sick("ok", bothWays("ok", "ok", "ok", 6), "reboot-or-reload-driver", "gpu-missing high confirmed gpu2")},
	{name: "HIP exits in hipInit", libraries: hip, cuda: "exit-init=0", want: sick("error in hipInit", nil, "reset-amd-gpu", "transfer-failed high confirmed host")},
	// A process that somebody kills says nothing of the driver, inside a call or not.
	{name: "killed in cuInit", cuda: "kill-init", short: true, want: judgement{exit: exitUnproven, state: report.Inconclusive, probe: "unknown in cuInit"}},
	{name: "killed in a copy", cuda: "kill-copy-call@0>1", want: judgeBroken(changed(healthyQuick, "copy: unknown ok"))},
	{name: "HIP killed in hipInit", libraries: hip, cuda: "kill-init", want: judgement{state: report.Inconclusive, probe: "unknown in hipInit"}},
	{name: "NVML killed", nvml: "kill-init", want: judgement{state: report.Inconclusive, probe: "ok", transfers: healthyQuick}},
}

// clockless is the judgement of a machine on which data arrives, and no time is known in which it does.
var clockless = judgeBroken(bothWays("unknown", "ok", "ok", 2))

// notTried are the transfers with a GPU that takes no part.
var notTried = bothWays("unknown", "unknown", "unknown", 2)

var hanging = []simulated{
	{name: "cuInit", cuda: "hang-init", steps: 1, short: true, want: sick("hang in cuInit", nil, "reset-gpu", "driver-hang critical confirmed host")},
	{name: "contexts of one GPU", cuda: "hang-contexts@1", steps: 1, want: sick("hang in contexts", nil, "reset-gpu", "driver-hang critical confirmed gpu1")},
	{name: "one copy call", cuda: "hang-copy-call@0>1", steps: 4, want: oneWay("hang", "ok", "ok")},
	{name: "one stream", hip: true, cuda: "hang-copy@0>1", steps: 3, want: oneWay("hang", "hang", "hang")},
	{name: "all streams", cuda: "hang-copy", steps: 4, want: sick("unknown in sm-store",
		[]string{"copy: hang hang", "sm-store: hang hang", "host-staged: ok ok"},
		"nccl-p2p-disable", "p2p-broken-platform critical confirmed gpu0 -> gpu1")},
	{name: "between processes", cuda: "hang-ipc@0>1", mode: probe.Full, steps: 2, want: sick("ok", changed(healthyFull,
		"between-processes/cudaIpc: hang ok",
	), "nccl-p2p-disable", "p2p-broken-platform high confirmed gpu0 -> gpu1")},
	{name: "hipInit", libraries: hip, cuda: "hang-init", steps: 1, want: sick("hang in hipInit", nil, "reset-amd-gpu", "driver-hang critical confirmed host")},
	{name: "cleanup", cuda: "hang-cleanup", steps: 1, want: sick("hang in cleanup", healthyQuick, "reset-gpu", "driver-hang critical confirmed host")},
	{name: "nvmlInit", nvml: "hang-init", steps: 1, want: sick("ok", healthyQuick, "reboot", "driver-hang high likely host")},
	{name: "NVML at a GPU", nvml: "hang-device", steps: 1, want: sick("ok", healthyQuick, "reboot", "driver-hang high likely host")},
	{name: "NVML at a pair", nvml: "hang-p2p", steps: 1, want: sick("ok", healthyQuick, "reboot", "driver-hang high likely host")},
	{name: "nvmlShutdown", nvml: "hang-shutdown", steps: 1, want: quiet(healthyQuick)},
	{name: "nvmlInit and cuInit", nvml: "hang-init", cuda: "hang-init", steps: 2, want: sick("hang in cuInit", nil, "reboot", "driver-hang critical confirmed host", "driver-hang high likely host")},
}

// chosen are the rows that are tried: all, with those by HIP, or those marked short.
func chosen(rows []simulated) (all []simulated) {
	for _, s := range rows {
		if s.short || !expect.FewRows() {
			all = append(all, s)
		}
		if s.hip && !expect.FewRows() {
			s.name, s.libraries = "HIP "+s.name, hip
			all = append(all, s)
		}
	}
	return all
}

// TestSimulated checks that each fault gives its outcomes, its finding and its
// first remedy, and that a healthy machine is quiet.
func TestSimulated(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	for _, s := range chosen(slices.Concat(simulations, failClosed)) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.check(t, s.run(t))
		})
	}
}

// TestDeadline checks that the program ends within its deadline whatever hangs, by
// the default timeouts, and is not green.
func TestDeadline(t *testing.T) {
	needsNoGPU(t)
	expect.NotShort(t, "it takes long")
	const most = 8 * time.Second
	for _, s := range expect.SomeRows(3, []simulated{
		{name: "cuInit hangs", cuda: "hang-init"},
		{name: "a context hangs", cuda: "hang-contexts@1"},
		{name: "one copy never returns", cuda: "hang-copy-call@0>1"},
		{name: "every copy hangs", cuda: "hang-copy", gpus: 4},
		{name: "stdout is flooded in copies", cuda: "flood-copy"},
		{name: "NVML hangs", nvml: "hang-init"},
		{name: "both hang", nvml: "hang-init", cuda: "hang-init"},
	}) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.arguments = []string{"--deadline", most.String()}
			s.bare = true
			start := time.Now()
			e := s.run(t)
			took := time.Since(start)
			expect.NoError(t, e.err)
			validate(t, e.stdout)
			// Where the tests of other packages use the machine too, its start and its end take longer.
			expect.That(t, took <= most+slack/2, "it took %s with a deadline of %s", took.Round(time.Millisecond), most)
			expect.That(t, e.exit != exitOK, "exit code 0")
		})
	}
}

// TestSimulatedHangs checks the same where something hangs, and that the program ends all the same. They wait at the
// same time, but each is left alone until it hangs: nothing else is to take longer than its short timeout.
func TestSimulatedHangs(t *testing.T) {
	needsNoGPU(t)
	runs := chosen(hanging)
	ended := make([]ending, len(runs))
	var wg sync.WaitGroup
	for i, s := range runs {
		marker := runMarker + "=" + crand.Text()
		run, done := s.prepare(t, marker), make(chan struct{})
		wg.Go(func() {
			defer close(done)
			ended[i] = run()
		})
		within(slack, func() bool {
			select {
			case <-done:
				return true
			default:
				return someHang(marker)
			}
		})
	}
	wg.Wait()
	for i, s := range runs {
		t.Run(s.name, func(t *testing.T) {
			var d report.Document
			if json.Unmarshal([]byte(ended[i].stdout), &d) == nil && !reflect.DeepEqual(s.want, judged(ended[i].exit, &d)) {
				t.Log("once more, with time: on a busy machine, what does not hang may be late too")
				s.patience = calmTimeout / 4
				ended[i] = s.run(t)
			}
			s.check(t, ended[i])
		})
	}
}

// needsNoGPU skips a test where real GPUs would be judged beside the simulated ones.
func needsNoGPU(tb testing.TB) {
	tb.Helper()
	for _, path := range []string{"/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/kfd"} {
		if _, err := os.Stat(path); err == nil {
			tb.Skipf("this machine has GPUs of its own: there is %s", path)
		}
	}
}

type ending struct {
	exit           int
	stdout, stderr string
	err            error // It could not be run, or did not end in time.
}

func (s simulated) timeout() time.Duration {
	if s.patience > 0 {
		return s.patience
	}
	if s.steps > 0 {
		return hangTimeout
	}
	return calmTimeout
}

// environment is the whole of the program's: nothing of the test's own bears on what is found.
func (s simulated) environment(tb testing.TB) []string {
	tb.Helper()
	libraries := s.libraries
	if libraries == nil {
		libraries = []string{"cuda", "nvml"}
	}
	dirs := expect.Map(libraries, func(l string) string { return drivers.Build(tb, l, s.flags...) })
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + tb.TempDir(), "GOCOVERDIR=" + os.Getenv("GOCOVERDIR"),
		"LD_LIBRARY_PATH=" + strings.Join(dirs, ":"),
		fmt.Sprintf("GPUDOCTOR_SIM_GPUS=%d", stdcmp.Or(s.gpus, 2)),
		"GPUDOCTOR_SIM_CUDA_FAULT=" + s.cuda, "GPUDOCTOR_SIM_NVML_FAULT=" + s.nvml,
	}
}

func (s simulated) commandLine() []string {
	mode := s.mode
	if mode == "" {
		mode = probe.Quick
	}
	line := []string{"check", "--format", "json", "--probe", string(mode), "--skip", strings.Join(surroundings, ",")}
	if !s.bare {
		line = append(line, "--probe-timeout", s.timeout().String())
	}
	return append(line, s.arguments...)
}

// prepare makes a run ready to be started on any goroutine, with these variables as well.
func (s simulated) prepare(t *testing.T, variables ...string) func() ending {
	t.Helper()
	env := append(s.environment(t), variables...)
	return func() ending {
		limit := time.Duration(s.steps)*s.timeout() + slack
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		var stdout, stderr bytes.Buffer
		c := s.command(ctx, s.commandLine())
		c.Env, c.Stdout, c.Stderr = env, &stdout, &stderr
		c.Cancel, c.WaitDelay = func() error { return c.Process.Signal(syscall.SIGTRAP) }, gone // Go prints its stacks.
		err := c.Run()
		e := ending{exit: c.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			e.err = fmt.Errorf("it did not end within %s; what it was at is on standard error", limit)
		case err != nil && !errors.As(err, &exit):
			e.err = err
		}
		return e
	}
}

// command is the program's, under the limit. Testscript puts this binary on the path under the program's name.
func (s simulated) command(ctx context.Context, line []string) *exec.Cmd {
	if s.ulimit == "" {
		return exec.CommandContext(ctx, "gpudoctor", line...)
	}
	return exec.CommandContext(ctx, "sh", append([]string{"-c", "ulimit " + s.ulimit + `; exec gpudoctor "$@"`, "sh"}, line...)...)
}

func (s simulated) run(t *testing.T) ending {
	t.Helper()
	return s.prepare(t)()
}

func (s simulated) check(t *testing.T, e ending) {
	t.Helper()
	expect.Must(t, e.err == nil, "%v\nstandard error: %s", e.err, e.stderr)
	expect.Equal(t, "", e.stderr, "standard error")
	validate(t, e.stdout)
	d := decoded[report.Document](t, e.stdout)
	diff := cmp.Diff(s.want, judged(e.exit, &d), cmp.AllowUnexported(judgement{}))
	expect.That(t, diff == "", "(-want +got):\n%s", diff)
	expect.That(t, d.Verdict.ExitCode == e.exit, "the report says exit code %d, and it is %d", d.Verdict.ExitCode, e.exit)
	for _, f := range d.Findings {
		expect.That(t, f.Message != "" && len(f.Evidence) > 0, "%s of %s has no message or no evidence", f.Rule, f.Subject)
	}
}

var reportSchema = sync.OnceValues(func() (*validator.Schema, error) {
	return validator.NewCompiler().Compile(filepath.Join("..", "..", "docs", "report.schema.json"))
})

// validate checks that standard output is one report that keeps the contract.
func validate(t *testing.T, stdout string) {
	t.Helper()
	schema := expect.Value(reportSchema())(t)
	v, err := validator.UnmarshalJSON(strings.NewReader(stdout))
	expect.Must(t, err == nil, "standard output is no report: %v\n%.500s", err, stdout)
	expect.NoError(t, schema.Validate(v))
}

var gpuNames = strings.NewReplacer("0000:06:00.0", "gpu0", "0000:07:00.0", "gpu1", "0000:08:00.0", "gpu2", "0000:09:00.0", "gpu3", "0000:0d:00.0", "gpu7")

func judged(exit int, d *report.Document) judgement {
	j := judgement{exit: exit, state: d.Verdict.State}
	if r := d.Transfers; r != nil {
		j.probe = string(r.Outcome)
		if r.Outcome != probe.OK {
			j.probe += " in " + r.Stage
		}
		j.transfers = outcomes(r.Transfers)
	}
	for _, f := range d.Findings {
		words := []string{f.Rule, string(f.Severity), string(f.Confidence), f.Subject}
		line := gpuNames.Replace(strings.Join(words, " "))
		if len(f.Explains) > 0 {
			line += ":"
		}
		for _, e := range f.Explains {
			line += " " + e.Rule
		}
		j.findings = append(j.findings, line)
	}
	if len(d.Advice) > 0 {
		j.remedy = d.Advice[0].Remedy
	}
	return j
}

// outcomes condenses transfers: for each test the outcomes of its pairs. Those with host memory are left out, since
// their number is that of this machine's NUMA nodes.
func outcomes(all []probe.Transfer) []string {
	var names []string
	words := map[string]string{}
	for _, x := range all {
		if x.Test == probe.TestHostToDevice || x.Test == probe.TestDeviceToHost {
			continue
		}
		name := x.Test
		if x.Way != "" {
			name += "/" + x.Way
		}
		if words[name] == "" {
			names = append(names, name)
		}
		words[name] += " " + string(x.Outcome)
		if x.Found != "" {
			words[name] += "(" + x.Found + ")"
		}
	}
	return expect.Map(names, func(name string) string { return name + ":" + words[name] })
}

// BenchmarkCheckSimulated measures a whole check of two healthy GPUs, the
// start of the program and of both drivers included.
func BenchmarkCheckSimulated(b *testing.B) {
	needsNoGPU(b)
	s := simulated{name: "healthy"}
	file, env := program(b), s.environment(b)
	for b.Loop() {
		c := exec.Command(file, s.commandLine()...)
		c.Env = env
		expect.NoError(b, c.Run())
	}
}

// slowCopies is how many copies from GPU 0 to GPU 1 the quick probe makes before it looks which are slow: twice one
// that wakes the link and three that are timed, and one by the SMs of either.
const slowCopies = 10

// TestOthers checks, for each time at which another process may use a GPU, for each state of the path and with
// --probe-busy and without: a rate that was measured meanwhile is never a finding and never health; wrong data always
// is a finding, and a path that is slow while nobody else is there, too. The management library is asked again only
// where a transfer is slow.
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
					if expect.FewRows() && (path != "slow" || flag != "" && when != "before") {
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

const (
	// runMarker is the variable by which all processes of one run are known.
	runMarker = "GPUDOCTOR_TEST_RUN"
	// hangingThread is how the simulated drivers name a thread that hangs.
	hangingThread = "simulated-hang"
	// gone is how long the processes of a run may outlast it: the kernel kills
	// them at once, and a busy machine takes its time.
	gone = time.Minute
)

// TestStopped checks that whatever ends the program while a driver hangs, no
// process, no file and no half-written report is left.
func TestStopped(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	for name, run := range map[string]simulated{
		"cuInit":                           {cuda: "hang-init"},
		"copy":                             {cuda: "hang-copy"},
		"between processes":                {cuda: "hang-ipc", mode: probe.Full},
		"nvmlInit":                         {nvml: "hang-init"},
		"cuInit under a low limit":         {cuda: "hang-init", ulimit: "-v 8000000"},
		"copy, with a process left behind": {cuda: "daemon-init,hang-copy"},
		"copy, with a process without an environment left behind": {cuda: "daemon-cleared-init,hang-copy"},
	} {
		for _, by := range []struct {
			signal syscall.Signal
			exit   int // -1 where the signal itself ends it.
		}{{syscall.SIGKILL, -1}, {syscall.SIGTERM, 143}, {syscall.SIGINT, 130}} {
			t.Run(fmt.Sprintf("%s by %s", name, by.signal), func(t *testing.T) {
				t.Parallel()
				if expect.FewRows() && name != "copy" {
					t.Skip("not by day")
				}
				if by.signal == syscall.SIGKILL && strings.Contains(run.cuda, "daemon") {
					t.Skip("nobody is left who would end it: the kernel kills the child at once")
				}
				stop(t, run, by.signal, by.exit)
			})
		}
	}
}

// stop starts a run, sends the signal once a driver hangs, and looks for what is left.
func stop(t *testing.T, s simulated, signal syscall.Signal, exit int) {
	t.Helper()
	before := names(t, "/dev/shm")
	daemon := rand.IntN(1e8)
	s.cuda = strings.Replace(s.cuda, "-init,", fmt.Sprintf("-init=%d,", daemon), 1) // Of a daemon that is ordered.
	scratch, marker := t.TempDir(), runMarker+"="+crand.Text()
	out := t.TempDir()
	c := s.command(t.Context(), append(s.commandLine(), "-o", filepath.Join(out, "report.json"), "-o", filepath.Join(out, "report.md")))
	var stdout, stderr bytes.Buffer
	c.Env, c.Stdout, c.Stderr = append(s.environment(t), "TMPDIR="+scratch, marker), &stdout, &stderr
	expect.NoError(t, c.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait() // Its state tells how it ended.
	}()
	t.Cleanup(func() { // Whatever fails, nothing outlasts the test.
		_ = c.Process.Kill()
		for _, pid := range slices.AppendSeq(drivers.Daemons(t, daemon), maps.Keys(processes(marker))) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	if !within(slack, func() bool {
		return someHang(marker) && (len(drivers.Daemons(t, daemon)) == 1 || !strings.HasPrefix(s.cuda, "daemon"))
	}) {
		t.Fatalf("nothing hangs; the run has these processes: %v\nstandard error: %s", processes(marker), &stderr)
	}
	expect.NoError(t, c.Process.Signal(signal))
	select {
	case <-ended:
	case <-time.After(gone):
		t.Fatalf("it did not end within %s", gone)
	}
	got := c.ProcessState.ExitCode()
	expect.That(t, got == exit, "exit code %d (%s), want %d", got, c.ProcessState, exit)
	if !within(gone, func() bool { return len(processes(marker)) == 0 && len(drivers.Daemons(t, daemon)) == 0 }) {
		t.Errorf("these processes are left: %v, and daemons: %v", processes(marker), drivers.Daemons(t, daemon))
	}
	expect.That(t, stdout.Len() == 0 && stderr.Len() <= 0, "it wrote %q and %q", &stdout, &stderr)
	for _, dir := range []string{out, scratch} {
		expect.Len(t, 0, names(t, dir), "these files are left")
	}
	for _, name := range names(t, "/dev/shm") {
		expect.That(t, slices.Contains(before, name) || !mine(filepath.Join("/dev/shm", name)), "/dev/shm/%s is left", name)
	}
}

func within(d time.Duration, holds func() bool) bool {
	for end := time.Now().Add(d); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// processes are the command lines of those that have the marker in their environment, by their numbers. One that has
// ended and waits for its parent has no environment any more.
func processes(marker string) map[int]string {
	found := map[int]string{}
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	for _, file := range files {
		environment, err := os.ReadFile(file) // Those of other users cannot be read.
		if err != nil || !slices.Contains(strings.Split(string(environment), "\x00"), marker) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err == nil {
			found[pid] = strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
		}
	}
	return found
}

func someHang(marker string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(processes(marker))), hangs)
}

func hangs(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", pid))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(threads, func(file string) bool {
		name, err := os.ReadFile(file)
		return err == nil && strings.TrimSpace(string(name)) == hangingThread
	})
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return expect.Map(entries, os.DirEntry.Name)
}

func mine(file string) bool {
	info, err := os.Lstat(file)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

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
	// What is counted is no query: how often the program asks depends on how busy the machine is.
	faults := strings.Fields(`error-peer=217 error-launch-verify=0 error-to-device=0@1 error-record=700@1#2 exit-init=0 elapsed=nan dropped-from=3 late-from=1@0>1
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
	marker := runMarker + "=" + crand.Text()
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
