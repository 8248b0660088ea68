package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/drive"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// judgeFaults are faults of what judges the data: calls that succeed and do nothing (error-CALL=0), copies and kernels
// that do something else, and numbers that cannot be. harmless are those that change nothing of what is judged.
var (
	judgeFaults = []string{
		"error-count=0", "count=-1", "count=1000000", "count=0", "error-device=0@1", "error-address=0@1", "error-context=0@1", "error-current=0@1", "error-current-device=0@1", "error-current-device=201@1", "error-alloc=0@1", "error-alloc=2",
		"error-host-alloc=0@1", "error-to-device=0@1", "error-to-device=0", "error-to-host=0@1", "error-to-host=0", "error-memset=0@1", "error-memset=0",
		"error-stream=0@1", "error-query=0@1", "error-query=0", "error-event=0@1", "error-record=0@1", "error-elapsed=0@1", "elapsed=0", "elapsed=nan",
		"error-module=0@1", "error-module=0", "error-function=0@1", "error-function=0", "error-launch=0@1", "error-launch=0", "error-launch=209@1",
		"error-launch=209", "error-launch-fill=0@1", "error-launch-verify=0@1", "error-launch-verify=0", "error-launch-verify=0#6", "error-launch-copy=0@1",
		"zeros-to-host@1", "zeros-to-host", "zeros-to-device@1", "zeros-to-device", "partial-launch@1", "partial-launch", "blind-verify@1", "blind-verify",
		"total=0@1", "total=1", "error-total=0@1",
	}
	harmless = []string{"error-peer=0", "error-free=0", "error-name=0"}
	// dataFaults are what becomes of the data between the GPUs; the first is nothing.
	dataFaults = []string{
		"", "zeros", "dropped", "dropped@0>1", "dropped-sm", "corrupt-first-page", "corrupt-word@1>0", "missing-part", "spoiled-source@0>1", "overrun@1>0",
		"intermittent", "dropped-from=3", "error-copy=0", "error-copy=1@0>1", "refused",
	}
)

// proven is true for a report by which nothing is wrong with two GPUs.
func proven(r *probe.Report) bool {
	return r.Outcome == probe.OK && len(r.Devices) == 2 && len(r.Transfers) == 6 && r.SMTests == "" &&
		!slices.ContainsFunc(r.Devices, func(d probe.Device) bool { return d.Outcome != probe.OK }) &&
		!slices.ContainsFunc(r.Transfers, func(x probe.Transfer) bool { return x.Outcome != probe.OK || x.Verified == "" })
}

// TestJudge checks that two GPUs are proven to work only if nothing is wrong: for each fault of what judges the data, each
// fault of the data, and, in CI, both.
func TestJudge(t *testing.T) {
	t.Parallel()
	dir := drivers.Build(t, drive.CUDA)
	type pair struct{ judge, data string }
	var pairs []pair
	for _, j := range slices.Concat([]string{""}, judgeFaults, harmless) {
		for _, d := range dataFaults {
			pairs = append(pairs, pair{j, d})
		}
	}
	if expect.FewRows() {
		pairs = slices.DeleteFunc(pairs, func(p pair) bool { return p.judge != "" && p.data != "" })
	}
	outcomes := map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	turns := make(chan struct{}, 4)
	for _, p := range pairs {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			faults := strings.Trim(p.judge+","+p.data, ",")
			r, err := Run(context.Background(), Options{
				Mode: probe.Quick, Patience: 2 * time.Second, Start: 10 * time.Second, API: drive.CUDA,
				Env: []string{"LD_LIBRARY_PATH=" + dir, "GPUDOCTOR_SIM_GPUS=2", "GPUDOCTOR_SIM_CUDA_FAULT=" + faults},
			})
			if err != nil {
				t.Errorf("%s: %v", faults, err)
				return
			}
			fine := p.data == "" && (p.judge == "" || slices.Contains(harmless, p.judge))
			if proven(r) != fine {
				t.Errorf("%q: proven to work: %t, want %t\n%s", faults, proven(r), fine, shortly(r))
			}
			for _, d := range r.Devices {
				touches := func(x probe.Transfer) bool {
					return x.Outcome.Correct() && (x.Source == d.Address || x.Destination == d.Address)
				}
				if d.Cause == probe.CauseJudge && slices.ContainsFunc(r.Transfers, touches) {
					t.Errorf("%q: results of a judge that does not work count\n%s", faults, shortly(r))
				}
			}
			if r.Left || r.Cause == probe.CauseBug {
				t.Errorf("%q: %s", faults, shortly(r))
			}
			mu.Lock()
			outcomes[worst(r)]++
			mu.Unlock()
		})
	}
	wg.Wait()
	t.Logf("%d pairs of %d faults of the judge and %d of the data: %v", len(pairs), len(judgeFaults)+len(harmless), len(dataFaults)-1, outcomes)
}

// worst is the worst outcome in a report.
func worst(r *probe.Report) string {
	all := append(expect.Map(r.Devices, func(d probe.Device) probe.Outcome { return d.Outcome }), r.Outcome)
	all = append(all, expect.Map(r.Transfers, func(x probe.Transfer) probe.Outcome { return x.Outcome })...)
	for _, o := range []probe.Outcome{probe.Hang, probe.Corrupt, probe.Error, probe.Unknown, probe.Unsupported} {
		if slices.Contains(all, o) {
			return string(o)
		}
	}
	return string(probe.OK)
}

func shortly(r *probe.Report) string {
	said := fmt.Sprintf("%s in %q: %s; SM tests: %s", r.Outcome, r.Stage, r.Reason, r.SMTests)
	for _, d := range r.Devices {
		said += fmt.Sprintf("\n%s: %s %s %s", d.Address, d.Outcome, d.Cause, d.Reason)
	}
	return said + "\n" + strings.Join(outcomes(r), "\n")
}

// TestParts checks that wrong data is described by where it is, and that what a copy changes beside its
// destination, or of its source, is found.
func TestParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		faults, found, reason string
		first, last           int64 // In 2 MiB, which the first copy of the simulated GPUs moves; -1 where nothing of it is wrong.
	}{
		{"zeros@0>1", drive.FoundZeros, "all %d bytes are wrong: the destination holds zeros", 0, 1<<21 - 1},
		{"dropped@0>1", drive.FoundPoison, "all %d bytes are wrong: the destination still holds its previous data", 0, 1<<21 - 1},
		{"missing-part@0>1", drive.FoundPoison, "the bytes 524288 to 1048575 of %d are wrong: the destination still holds its previous data", 1 << 19, 1<<20 - 1},
		{"corrupt-first-page@0>1", drive.FoundOther, "the bytes 0 to 4095 of %d are wrong: the destination holds other data", 0, 4095},
		{"corrupt-word@0>1", drive.FoundOther, "of %d are wrong: the destination holds other data", 1<<21 - 8, 1<<21 - 1},
		{"spoiled-source@0>1", foundSource, "of %d are wrong: the copy changed its source", 1 << 20, 1<<20 + 7},
		{"overrun@0>1", foundOverrun, "8 bytes beside the destination were changed", -1, -1},
	} {
		t.Run(c.faults, func(t *testing.T) {
			t.Parallel()
			for _, x := range simulate(t, "2", c.faults).Transfers {
				if x.Test != probe.TestCopy || x.Source != "0000:06:00.0" {
					continue
				}
				reason := c.reason
				if strings.Contains(reason, "%d") {
					reason = fmt.Sprintf(reason, x.Bytes)
				}
				expect.That(t, x.Outcome == probe.Corrupt && x.Found == c.found && strings.Contains(x.Reason, reason), "%s (%s): %s; want %s: %s", x.Outcome, x.Found, x.Reason, c.found, reason)
				first, last := orNone(x.FirstBad), orNone(x.LastBad)
				expect.That(t, first == c.first && last == c.last, "bytes %d to %d are wrong, want %d to %d", first, last, c.first, c.last)
			}
		})
	}
}

func orNone(offset *int64) int64 {
	if offset == nil {
		return -1
	}
	return *offset
}

// TestAddresses checks that GPUs that could be taken for each other are not judged, with the reason.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ addresses, reason string }{
		{"0000:06:00.0,0000:06:00.0", "two GPUs the PCI address 0000:06:00.0"},
		{"0000:06:00.0,0000:07:00.0,0000:06:00.0", "two GPUs the PCI address 0000:06:00.0"},
		{"garbage", `"garbage" as the PCI address`},
		{"0000:06:00.0,06:00.0", `"06:00.0" as the PCI address`},
		{"0000:06:00.0,0000:06:00", `"0000:06:00" as the PCI address`},
		{"0000:06:00.0,0000:06:00.9", `"0000:06:00.9" as the PCI address`},
		{"\x1b[2J", `"\x1b[2j" as the PCI address`},
	} {
		r := simulateAPI(t, drive.CUDA, probe.Quick, fmt.Sprint(1+strings.Count(c.addresses, ",")), "", []string{"GPUDOCTOR_SIM_ADDRESSES=" + c.addresses})
		expect.That(t, r.Outcome == probe.Unknown && strings.Contains(r.Reason, c.reason) && len(r.Transfers) == 0, "%q: %s: %s; want %s", c.addresses, r.Outcome, r.Reason, c.reason)
	}
	r := simulate(t, "2", "error-address=0@1")
	expect.That(t, r.Outcome == probe.Unknown && strings.Contains(r.Reason, `"" as the PCI address`), "no address: %s: %s", r.Outcome, r.Reason)
}
