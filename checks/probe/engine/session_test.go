package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/drive"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// healthyMessages are what the child says of two healthy GPUs.
func healthyMessages() []message {
	const a, b = "0000:06:00.0", "0000:07:00.0"
	list := []message{
		{Stage: drive.StageLibrary},
		{Library: &drive.Library{API: drive.CUDA, Path: "/lib/libcuda.so.1", Version: "13.0"}},
		{Stage: drive.StageInit},
		{Stage: stageDevices},
		{Stage: stageQuery},
		{Peer: &probe.Peer{Source: a, Destination: b, Access: new(true)}},
		{Peer: &probe.Peer{Source: b, Destination: a, Access: new(true)}},
		{Stage: stageContexts},
		{Step: &step{Name: stageContexts, GPU: a}},
		{Step: &step{Name: stageContexts, GPU: a, Done: true}},
		{Device: &probe.Device{Address: a, Outcome: probe.OK}},
		{Device: &probe.Device{Ordinal: 1, Address: b, Outcome: probe.OK}},
	}
	for _, test := range []string{probe.TestCopy, probe.TestStore, probe.TestLoad} {
		list = append(list, message{Stage: test})
		for _, pair := range [][2]string{{a, b}, {b, a}} {
			t := probe.Transfer{Test: test, Source: pair[0], Destination: pair[1], Outcome: probe.OK}
			list = append(list, message{Begin: &t})
			done := t
			done.Verified = "gpu"
			if test == probe.TestCopy {
				done.GBps, done.Bytes = new(394.5), 1<<28
			}
			list = append(list, message{Transfer: &done})
		}
	}
	list = append(list, message{Stage: stageCleanup}, message{Ended: new(true)})
	for i := range list {
		list[i].Number = i + 1
	}
	return list
}

// encoded are messages as they come through the pipe.
func encoded(tb testing.TB, list []message) [][]byte {
	tb.Helper()
	return expect.Map(list, func(m message) []byte { return expect.Value(json.Marshal(m))(tb) })
}

// heard is the report that a session makes of messages and of the child's end.
func heard(lines [][]byte, result child.Result) *probe.Report {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s := newSession(Options{Mode: probe.Quick, Patience: time.Second, Start: time.Second, Whole: time.Minute})
	s.ctx, s.stop, s.busy = ctx, stop, make(chan any, 1)
	for _, line := range lines {
		s.receive(line)
	}
	s.conclude(result)
	s.order()
	s.report.Stages = nil // They hold times.
	return s.report
}

// sound reports whether a report says that all that was begun on two GPUs went
// well. It is what a verdict of health rests on.
func sound(r *probe.Report) bool {
	return r.Outcome == probe.OK && len(r.Devices) == 2 && len(r.Peers) == 2 && len(r.Transfers) == 6 &&
		!slices.ContainsFunc(r.Transfers, func(t probe.Transfer) bool { return t.Outcome != probe.OK }) &&
		!slices.ContainsFunc(r.Devices, func(d probe.Device) bool { return d.Outcome != probe.OK })
}

var finished = child.Result{Finished: true, Exited: true}

// TestSessionNoticesLoss checks, by enumeration, that a report is sound only if every
// message came, once and in its place: each message is dropped, repeated, moved to
// every other place, cut short and replaced, and the stream ends after each.
func TestSessionNoticesLoss(t *testing.T) {
	t.Parallel()
	lines := encoded(t, healthyMessages())
	want := heard(lines, finished)
	expect.Must(t, sound(want), "the whole stream gives %+v", want)
	n := 0
	hold := func(what string, changed [][]byte, result child.Result) {
		n++
		expect.That(t, !sound(heard(changed, result)), "%s: the report is sound", what)
	}
	for i := range lines {
		without := slices.Concat(lines[:i], lines[i+1:])
		hold(fmt.Sprintf("without message %d", i+1), without, finished)
		for j := range without {
			if j != i {
				hold(fmt.Sprintf("message %d in place %d", i+1, j+1), slices.Insert(slices.Clone(without), j, lines[i]), finished)
			}
		}
		if i < len(lines)-1 {
			hold(fmt.Sprintf("message %d twice", i+1), slices.Insert(slices.Clone(lines), i, lines[i]), finished)
		}
		for _, with := range []string{`{`, `null`, `[]`, `{"n":-1}`, `7`, `{"n":1e99}`, fmt.Sprintf(`{"n":%d,"transfer":{"test":"copy","outcome":"fine"}}`, i+1)} {
			changed := slices.Clone(lines)
			changed[i] = []byte(with)
			hold(fmt.Sprintf("message %d is %s", i+1, with), changed, finished)
		}
		for _, result := range []child.Result{
			{Exited: true},
			{Exited: true, Code: 1},
			{Signal: "SIGSEGV"},
			{Signal: "SIGSEGV", Death: child.DeathByLibrary},
			{Signal: "SIGKILL", Death: child.DeathByOther},
			{Exited: true, Code: 2, Death: child.DeathByShortage},
			{Exited: true, Code: 2, Death: child.DeathByBug},
			{Death: child.DeathUnknown},
			{Flooded: "stdout"},
			{Finished: true, Failure: "x"},
			finished,
			{Finished: true, Unsent: 1},
			{},
		} {
			hold(fmt.Sprintf("%d messages, then %+v", i, result), lines[:i], result)
		}
	}
	// The whole stream, and a word that could not be sent.
	hold("all messages, and one unsent", lines, child.Result{Finished: true, Exited: true, Unsent: 1, UnsentReason: "NaN"})
	t.Logf("%d streams", n)
}

// TestSessionHang checks what becomes of a child that was ended for its silence.
func TestSessionHang(t *testing.T) {
	t.Parallel()
	lines := encoded(t, healthyMessages())
	for i := range len(lines) - 1 {
		for _, result := range []child.Result{{Silent: true, Quiet: time.Second}, {TimedOut: true}, {TimedOut: true, Quiet: time.Minute}} {
			result.Signal = "SIGKILL"
			got := heard(lines[:i], result)
			expect.That(t, !sound(got) && got.Signal == "", "%d messages and %+v: outcome %s, signal %q", i, result, got.Outcome, got.Signal)
		}
	}
}

// TestBlame checks, for every end of the process after every message, that the driver is blamed only where the process
// says that it was at work: no outcome beside unknown comes of any other end.
func TestBlame(t *testing.T) {
	t.Parallel()
	lines := encoded(t, healthyMessages())
	for i := range len(lines) - 1 {
		for _, death := range []child.Death{child.DeathByOther, child.DeathByShortage, child.DeathByBug, child.DeathUnknown, child.DeathByLibrary} {
			for _, result := range []child.Result{{Signal: "SIGKILL"}, {Signal: "SIGSEGV"}, {Exited: true}, {Exited: true, Code: 2, Signal: "SIGABRT"}} {
				result.Death, result.Recorded, result.Inside = death, true, []string{"cuInit"}
				blamed(t, heard(lines[:i], result), death == child.DeathByLibrary, fmt.Sprintf("%d messages, then %+v", i, result))
			}
		}
		for _, inside := range []bool{false, true} {
			for _, result := range []child.Result{{Silent: true, Quiet: time.Second}, {TimedOut: true, Quiet: time.Minute}} {
				result.Signal, result.Recorded = "SIGKILL", true
				if inside {
					result.Inside = []string{"cuInit"}
				}
				if inside && result.TimedOut {
					continue // Between two transfers the whole's end is what is told.
				}
				blamed(t, heard(lines[:i], result), inside, fmt.Sprintf("%d messages, then %+v", i, result))
			}
		}
	}
}

// blamed checks whether anything of a report is said to have failed.
func blamed(t *testing.T, r *probe.Report, want bool, what string) {
	t.Helper()
	got := r.Outcome.Failed() || slices.ContainsFunc(r.Transfers, func(t probe.Transfer) bool { return t.Outcome.Failed() })
	expect.That(t, got == want, "%s: the driver is blamed: %t, want %t (%s, %s)", what, got, want, r.Outcome, r.Reason)
	expect.That(t, !sound(r), "%s: the report is sound", what)
}

// FuzzSession checks the same for streams that are mixed up at random: whatever comes, a report is sound only if it
// equals that of the whole stream, and nothing crashes.
func FuzzSession(f *testing.F) {
	lines := encoded(f, healthyMessages())
	want := heard(lines, finished)
	f.Add(uint64(1), []byte(`{"n":3,"stage":"copy"}`), uint8(3), true)
	f.Add(uint64(9), []byte(`{"n":14,"transfer":{"test":"copy","source":"a","destination":"b","outcome":"ok","gbps":1e308}}`), uint8(0), false)
	f.Add(uint64(2), []byte(`{"n":27,"ended":true}`), uint8(200), true)
	f.Fuzz(func(t *testing.T, order uint64, alien []byte, changes uint8, whole bool) {
		r := rand.New(rand.NewPCG(order, 7))
		stream := slices.Clone(lines)
		for range changes % 8 {
			i, j := r.IntN(len(stream)), r.IntN(len(stream))
			switch r.IntN(6) {
			case 0:
				stream[i], stream[j] = stream[j], stream[i]
			case 1:
				stream = slices.Insert(stream, i, stream[j])
			case 2:
				if len(stream) > 1 {
					stream = slices.Delete(stream, i, i+1)
				}
			case 3:
				stream = slices.Insert(stream, i, alien)
			case 4:
				stream[i] = stream[i][:r.IntN(len(stream[i])+1)]
			case 5:
				stream = stream[:i+1]
			}
		}
		result := finished
		if !whole {
			result = child.Result{Exited: true}
		}
		got := heard(stream, result)
		if sound(got) && !cmp.Equal(got, want) {
			t.Errorf("a report that is sound differs from that of the whole stream:\n%s", cmp.Diff(want, got))
		}
		for _, x := range got.Transfers {
			if x.GBps != nil && (math.IsNaN(*x.GBps) || math.IsInf(*x.GBps, 0)) {
				t.Errorf("a rate of %g", *x.GBps)
			}
		}
	})
}

// TestBetter checks, for each two outcomes and rates of two tries of one transfer,
// that a failure is never forgotten, and that of two rates the better one stands.
func TestBetter(t *testing.T) {
	t.Parallel()
	rates := []*float64{nil, new(20.0), new(400.0)}
	for _, first := range rates {
		for _, outcome := range []probe.Outcome{probe.OK, probe.Corrupt, probe.Hang, probe.Error, probe.Unsupported, probe.Unknown} {
			for _, second := range rates {
				got := better(probe.Transfer{Outcome: probe.OK, GBps: first}, probe.Transfer{Outcome: outcome, GBps: second})
				expect.That(t, !outcome.Failed() || got.Outcome == outcome, "%s is forgotten", outcome)
				expect.That(t, first == nil || outcome != probe.OK || got.GBps != nil && *got.GBps >= *first && (second == nil || *got.GBps >= *second), "of %v and %v stands %v", first, second, got.GBps)
				expect.That(t, first == nil || outcome != probe.Unknown || got.Outcome == probe.OK && got.GBps == first, "a rate is given up for one that is not known: %+v", got)
			}
		}
	}
	for _, bad := range []probe.Outcome{probe.Corrupt, probe.Hang, probe.Error} {
		expect.That(t, better(probe.Transfer{Outcome: bad}, probe.Transfer{Outcome: probe.OK, GBps: new(400.0)}).Outcome == bad, "%s is forgotten", bad)
	}
}

// TestStepBlamed checks, for any two steps under way, that a process that ended names
// no GPU and the same stage whichever began first, and that a hang names the first.
func TestStepBlamed(t *testing.T) {
	t.Parallel()
	for i, a := range preparation {
		for j, b := range preparation {
			lines := encoded(t, []message{
				{Number: 1, Stage: stageContexts}, {Number: 2, Step: &step{Name: a, GPU: "a"}}, {Number: 3, Step: &step{Name: b, GPU: "b"}},
			})
			died := heard(lines, child.Result{Death: child.DeathByLibrary, Exited: true, Recorded: true})
			want := preparation[min(i, j)]
			expect.That(t, died.Stage == want && died.GPU == "", "ended in %s and %s: %s on GPU %q, want %s and none", a, b, died.Stage, died.GPU, want)
			hung := heard(lines, child.Result{Silent: true, Quiet: time.Second, Recorded: true, Inside: []string{"x", "y"}})
			expect.That(t, hung.Stage == a && hung.GPU == "a", "hung in %s and %s: %s on GPU %q, want %s on a", a, b, hung.Stage, hung.GPU, a)
		}
	}
}
