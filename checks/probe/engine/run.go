package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/drive"
)

const probeTask = "probe"

func init() {
	child.Register(probeTask, func(ctx context.Context, o order, send func(any) error) error {
		e := newEngine(o, drive.Numbered(send, func(m *message, n int) { m.Number = n }))
		e.askBusy = func() (map[string]probe.User, error) { return child.Receive[map[string]probe.User](ctx) }
		e.askSlow = func() ([]string, error) { return child.Receive[[]string](ctx) }
		e.send(message{Ended: new(e.run())})
		return nil
	})
}

// Options says how the probe is run.
type Options struct {
	// Mode is how much of it is run.
	Mode probe.Mode
	// Patience bounds one transfer, Start each step of starting the driver, and
	// Whole everything; 0 means deadline.Transfer, deadline.Start and deadline.Full.
	Patience time.Duration
	Start    time.Duration
	Whole    time.Duration
	// Busy returns which GPUs are in use, by address, and by what; those are
	// left alone. It is called while the driver starts. Nil means none.
	Busy func(ctx context.Context) map[string]probe.User
	// Slow returns the transfers that are slower than they should be, for the
	// given number of GPUs. It is called once all are tried; if it is nil, speed is not judged.
	Slow func(ctx context.Context, gpus int, all []probe.Transfer) []probe.Transfer
	// Users returns which GPUs others use at this moment, by address. It is only called if a transfer is slow.
	Users func(ctx context.Context) map[string]probe.User
	// Progress, if set, is called with each stage as it begins.
	Progress func(stage string)
	// API is the only one to try, "cuda" or "hip"; empty means CUDA, and HIP if there is no GPU for CUDA.
	API string
	// Env is added to the child's environment.
	Env []string
}

// maxChildren bounds how often the probe continues in a new process after a transfer that left the old one unusable: each
// start of the driver takes seconds. The last only runs the control arm, whether data arrives through host memory.
const maxChildren = 5

// environment is added to gpudoctor's own for the child: nothing may serialise what should run at once: fewer than 8 connections, CUDA's default, make streams wait for each other.
// (32 were tried: they make each context take five times as long, 0.98 s for 2 x H200, not 0.19.)
func environment() []string {
	env := append(drive.Environment(), "CUDA_LAUNCH_BLOCKING=0", "HIP_LAUNCH_BLOCKING=0")
	if n, err := strconv.Atoi(os.Getenv("CUDA_DEVICE_MAX_CONNECTIONS")); err == nil && n < 8 {
		env = append(env, "CUDA_DEVICE_MAX_CONNECTIONS=8")
	}
	return env
}

// Run runs the probe. A driver that hangs, crashes or refuses is part of the
// report; an error means that the probe could not be started.
func Run(ctx context.Context, o Options) (*probe.Report, error) {
	o.Patience, o.Start, o.Whole = cmp.Or(o.Patience, deadline.Transfer), cmp.Or(o.Start, deadline.Start), cmp.Or(o.Whole, deadline.Full)
	s := newSession(o)
	for n := range maxChildren {
		if n > 0 && s.left() <= 0 {
			s.outOfTime()
			break
		}
		stage := s.stage
		// The last process is for the control arm, and so is one for which too little time is left.
		s.control = n == maxChildren-1 || n > 0 && s.left() < s.options.Whole/3
		again, err := s.child(ctx, n > 0)
		if err != nil {
			return nil, err
		}
		if s.control {
			s.stopped(stage, probe.CauseGaveUp, fmt.Sprintf("%d transfers left their process unusable; the rest was not tried", s.useless))
		}
		if !again || s.control {
			break
		}
	}
	s.excuse(ctx)
	s.order()
	return s.report, nil
}

func newSession(o Options) *session {
	return &session{
		options: o, begun: time.Now(), at: map[string]int{}, users: map[string]probe.User{},
		report: &probe.Report{Mode: o.Mode, Outcome: probe.OK, Devices: []probe.Device{}, Peers: []probe.Peer{}, Transfers: []probe.Transfer{}},
	}
}

func (s *session) left() time.Duration { return s.options.Whole - time.Since(s.begun) }

// session is one run of the probe: one child, or several when a transfer made one unusable.
type session struct {
	options  Options
	report   *probe.Report
	begun    time.Time
	at       map[string]int // Where each transfer that is known is in the report, by its key.
	suspects [][2]string
	lost     []string // GPUs that could not be made ready.
	useless  int      // How many processes a transfer made useless.
	rounds   int      // How often slow transfers were timed again.
	// users are those that were seen on a GPU when a transfer was slow, by address.
	// The goroutine that answers the child writes both.
	users   map[string]probe.User
	looking sync.Mutex // One such goroutine at a time.
	judging sync.WaitGroup

	// Of the present child, written by the goroutine that receives its messages and read once it is gone:
	resumed bool
	control bool // It only runs the control arm.
	stage   string
	since   time.Time        // When the stage began.
	asking  bool             // It waits for word from here which GPUs are busy.
	asked   bool             // It did, once.
	steps   []step           // Under way, of making GPUs ready.
	under   []probe.Transfer // Begun and not yet reported.
	number  int              // Of the last message.
	garbled bool             // A message was lost, repeated or malformed.
	ended   bool             // It came to its end; whole says that nothing is left to do.
	whole   bool
	failed  bool // It said that it cannot go on; its last word may still come.
	busy    chan any
	stop    context.CancelFunc // Ends it.
	ctx     context.Context    //nolint:containedctx // The life of one child, whose callback needs it.
}

func (s *session) child(ctx context.Context, resumed bool) (again bool, err error) {
	life, stop := context.WithCancel(ctx)
	defer stop()
	s.resumed, s.stage, s.asking, s.steps, s.under, s.ended, s.whole = resumed, "", false, nil, nil, false, false
	s.number, s.garbled, s.failed, s.asked = 0, false, false, false
	s.busy, s.stop, s.ctx = make(chan any, 1), stop, life
	result, err := child.Run(life, child.Spec{
		Task: probeTask,
		Args: order{
			Mode: s.options.Mode, API: s.options.API, Patience: s.options.Patience, Skip: keysOf(s.report.Transfers), Suspects: s.suspects,
			Await: s.options.Busy != nil && !resumed, Leave: s.lost, Control: s.control, Judge: s.options.Slow != nil,
		},
		Env:      append(environment(), s.options.Env...),
		Input:    s.busy,
		Receive:  s.receive,
		Silence:  s.limit,
		Deadline: max(s.left(), time.Nanosecond),
	})
	stop()
	s.judging.Wait()
	switch {
	case err != nil:
		return false, err
	case ctx.Err() != nil && !s.ended:
		return false, fmt.Errorf("the probe was interrupted: %w", ctx.Err())
	}
	s.report.Left = s.report.Left || result.Left
	return s.conclude(result), nil
}

// late is true for a child that was ended because it was silent for too long, or the time for the whole ran out.
func late(r child.Result) bool { return r.Silent || r.TimedOut }

// limit is how long the child may be silent in its present stage. Past the start it watches each transfer itself: here only a
// call of the driver that does not return is detected.
func (s *session) limit() time.Duration {
	switch {
	case s.asking:
		// It waits for this process, not for the driver. The functions called have deadlines.
		return math.MaxInt64
	case s.stage == "":
		return max(s.options.Start, deadline.Spawn)
	case s.preparing():
		return s.options.Start
	case s.stage == probe.TestInterprocess: // A second process starts the driver again.
		return s.options.Start + deadline.Calls*s.options.Patience
	case s.stage == stageCleanup:
		return s.options.Patience
	}
	return deadline.Calls * s.options.Patience
}

// preparing is true before any transfer: a stage of transfers is named after their test.
func (s *session) preparing() bool {
	return s.stage != stageCleanup && !slices.Contains(reportOrder, s.stage)
}

func (s *session) receive(raw json.RawMessage) {
	var m message
	if s.garbled || json.Unmarshal(raw, &m) != nil || m.Number != s.number+1 || !m.known() ||
		s.asked && m.Await || m.Judge && s.options.Slow == nil || s.ended && (m.Ended == nil || !s.failed) {
		// What follows cannot be trusted to be whole.
		s.garbled = true
		s.stop()
		return
	}
	s.number = m.Number
	s.take(m)
}

// known reports whether the outcomes in a message are among those that exist.
func (m *message) known() bool {
	all := []probe.Outcome{probe.OK, probe.Slow, probe.Corrupt, probe.Hang, probe.Error, probe.Unsupported, probe.Unknown}
	return (m.Device == nil || slices.Contains(all, m.Device.Outcome)) &&
		(m.Transfer == nil || slices.Contains(all, m.Transfer.Outcome) && slices.Contains(reportOrder, m.Transfer.Test)) &&
		(m.Failure == nil || slices.Contains(all, m.Failure.Outcome) && m.Failure.Outcome != probe.OK)
}

func (s *session) take(m message) {
	r := s.report
	s.asking, s.asked = m.Await || m.Judge, s.asked || m.Await
	switch {
	case m.Stage != "":
		s.enter(m.Stage)
		if s.options.Progress != nil {
			s.options.Progress(m.Stage)
		}
	case m.Step != nil:
		s.steps = slices.DeleteFunc(s.steps, func(x step) bool { return x.GPU == m.Step.GPU })
		if !m.Step.Done {
			s.steps = append(s.steps, *m.Step)
		}
	case m.Library != nil:
		r.API, r.Library, r.DriverVersion = m.Library.API, m.Library.Path, m.Library.Version
	case m.Device != nil:
		s.device(*m.Device)
	case m.Peer != nil && !s.resumed:
		r.Peers = append(r.Peers, *m.Peer)
	case m.SMTests != "":
		r.SMTests = m.SMTests
	case m.Await && s.options.Busy != nil:
		go func() {
			busy := s.options.Busy(s.ctx)
			select {
			case s.busy <- busy:
			case <-s.ctx.Done():
			}
		}()
	case m.Judge:
		gpus, all := len(r.Devices), slices.Clone(r.Transfers)
		s.judging.Go(func() {
			select {
			case s.busy <- s.slow(gpus, all):
			case <-s.ctx.Done():
			}
		})
	case m.Begin != nil:
		s.under = append(s.under, *m.Begin)
	case m.Transfer != nil:
		s.record(*m.Transfer)
	case m.Failure != nil:
		s.fail(*m.Failure)
		s.ended, s.whole, s.failed = true, true, true
	case m.Ended != nil:
		s.ended, s.whole, s.failed = true, *m.Ended, false
	}
}

// device keeps the outcome of a GPU. If its comparison turned out not to work, nothing that it said of transfers counts.
func (s *session) device(d probe.Device) {
	r := s.report
	i := slices.IndexFunc(r.Devices, func(known probe.Device) bool { return known.Address == d.Address })
	switch {
	case i < 0 && !s.resumed:
		r.Devices = append(r.Devices, d)
	case i >= 0 && d.Cause == probe.CauseJudge:
		r.Devices[i] = d
		for n := range r.Transfers {
			if t := &r.Transfers[n]; t.Outcome.Correct() && (t.Source == d.Address || t.Destination == d.Address) {
				t.Outcome, t.Cause, t.Reason, t.GBps, t.Microseconds = probe.Unknown, d.Cause, d.Reason, nil, nil
			}
		}
	default:
		return
	}
	if d.Outcome != probe.OK {
		s.lost = append(s.lost, d.Address)
	}
}

// enter begins a stage, and keeps the time that the one before took.
func (s *session) enter(stage string) {
	now := time.Now()
	if s.stage != "" {
		ms := drive.RoundTo(now.Sub(s.since).Seconds()*1e3, 10)
		if i := slices.IndexFunc(s.report.Stages, func(x probe.Stage) bool { return x.Name == s.stage }); i >= 0 {
			s.report.Stages[i].Milliseconds += ms
		} else {
			s.report.Stages = append(s.report.Stages, probe.Stage{Name: s.stage, Milliseconds: ms})
		}
	}
	s.stage, s.since, s.steps = stage, now, nil
}

func (s *session) record(t probe.Transfer) {
	key := transferKey(&t)
	s.under = slices.DeleteFunc(s.under, func(u probe.Transfer) bool { return transferKey(&u) == key })
	if i, known := s.at[key]; known {
		s.report.Transfers[i] = better(s.report.Transfers[i], t) // It was timed again.
	} else {
		s.at[key] = len(s.report.Transfers)
		s.report.Transfers = append(s.report.Transfers, t)
	}
	if t.Outcome.Failed() && t.Test != probe.TestStaged {
		s.suspects = append(s.suspects, [2]string{t.Source, t.Destination})
	}
}

// better is the result of two tries of one transfer: what went wrong, otherwise the better rate.
func better(first, second probe.Transfer) probe.Transfer {
	switch {
	case first.Outcome.Failed():
		return first
	case first.Outcome != probe.OK || first.GBps == nil:
		return second
	case second.Outcome == probe.Unknown || second.Outcome == probe.OK && (second.GBps == nil || *second.GBps < *first.GBps):
		return first
	}
	return second
}

// maxRounds is how often slow transfers are timed again, and pause the time before the first, which doubles: another quick
// probe moves data for 0.2 s (8 x H200), and a job pauses for longer.
const (
	maxRounds = 3
	pause     = 250 * time.Millisecond
)

// slow checks who uses the GPUs if a transfer is slow, waits, and returns the keys of those to time again.
func (s *session) slow(gpus int, all []probe.Transfer) []string {
	s.looking.Lock()
	defer s.looking.Unlock()
	slow := s.options.Slow(s.ctx, gpus, all)
	if len(slow) == 0 {
		return nil
	}
	s.look()
	// What runs all at once shares the links unfairly: the best of several tries would hide a collapse.
	slow = slices.DeleteFunc(slow, func(t probe.Transfer) bool { return t.Test == probe.TestAllAtOnce })
	// The remaining time is reserved for what failed.
	if len(slow) == 0 || s.rounds == maxRounds || s.left() < s.options.Whole/3 {
		return nil
	}
	select {
	case <-time.After(pause << s.rounds):
	case <-s.ctx.Done():
	}
	s.rounds++
	return keysOf(slow)
}

func keysOf(all []probe.Transfer) []string {
	keys := make([]string, 0, len(all))
	for i := range all {
		keys = append(keys, transferKey(&all[i]))
	}
	return keys
}

func (s *session) look() {
	if s.options.Users == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.left()/4)
	defer cancel()
	for address, u := range s.options.Users(ctx) {
		if _, known := s.users[address]; !known {
			s.users[address] = u
		}
	}
}

// excuse leaves the speed of slow transfers open if others were seen using a GPU of the pair.
func (s *session) excuse(ctx context.Context) {
	if len(s.users) == 0 {
		return
	}
	for _, slow := range s.options.Slow(ctx, len(s.report.Devices), s.report.Transfers) {
		t := &s.report.Transfers[s.at[transferKey(&slow)]]
		for _, address := range []string{t.Source, t.Destination} {
			if u, used := s.users[address]; used {
				t.InUse(address, u)
				break
			}
		}
	}
}

func (s *session) fail(f drive.Failure) {
	r := s.report
	r.Outcome, r.Stage, r.Reason, r.Cause, r.ErrorCode, r.ErrorName, r.Call = f.Outcome, s.stage, f.Reason, f.Cause, f.ErrorCode, f.ErrorName, f.Call
}

// conclude evaluates the end of a child and reports whether another one should continue.
func (s *session) conclude(result child.Result) (again bool) {
	f := s.ending(result)
	switch {
	case s.ended && !s.garbled && result.Unsent == 0 && !late(result):
		for _, t := range slices.Clone(s.under) {
			t.Outcome, t.Cause, t.Reason = probe.Unknown, probe.CauseProtocol, "the process that drives the GPUs never reported its outcome"
			s.record(t)
		}
		if !s.whole {
			s.useless++
		}
		return !s.whole && !result.Left
	case f.Cause == probe.CauseProtocol:
		s.fail(f)
		return false
	case s.stage == stageCleanup:
		f.Reason += ", when the memory was freed after all transfers"
		s.fail(f)
		s.report.Signal = signalOf(result)
		return false
	case s.preparing():
		s.stage, s.report.GPU = s.blamed(result)
		if s.resumed {
			f.Reason += ", when it was restarted after a failed transfer"
		}
		s.fail(f)
		s.report.Signal, s.report.ExitCode = signalOf(result), exitCode(result)
		return false
	}
	under := slices.Clone(s.under)
	for _, t := range under {
		t.Outcome, t.Reason, t.Cause, t.Call = f.Outcome, f.Reason, f.Cause, f.Call
		s.record(t)
	}
	if result.TimedOut {
		s.outOfTime()
		return false
	}
	if len(under) == 0 { // It ended between two transfers.
		s.fail(f)
		s.report.Signal, s.report.ExitCode = signalOf(result), exitCode(result)
		return false
	}
	s.useless++
	return !result.Left
}

// preparation is the order of the steps that make a GPU ready.
var preparation = []string{stageContexts, stageMemory, stageKernels, stageCheck, stagePeers}

// blamed is the step of the preparation that failed, and its GPU. Of several running steps, the first that began is the one
// that hangs. A process that ended could have done so in any of them: then it is the earliest step, and no GPU is named.
func (s *session) blamed(result child.Result) (stage, gpu string) {
	switch {
	case len(s.steps) == 0:
		return s.stage, s.report.GPU
	case len(s.steps) == 1 || late(result):
		return s.steps[0].Name, s.steps[0].GPU
	}
	first := slices.MinFunc(s.steps, func(a, b step) int {
		return cmp.Compare(slices.Index(preparation, a.Name), slices.Index(preparation, b.Name))
	})
	return first.Name, ""
}

// ending says how a child came to its end, as the outcome of what it was at.
func (s *session) ending(result child.Result) drive.Failure {
	switch {
	case result.Flooded != "" || result.Unsent > 0:
		return drive.Ended(result, "the driver")
	case s.garbled:
		return drive.Failure{Outcome: probe.Unknown, Cause: probe.CauseProtocol, Reason: "messages from the process that drives the GPUs were lost or garbled"}
	case result.Silent && result.InLibrary():
		return drive.Failure{Outcome: probe.Hang, Reason: fmt.Sprintf("a call of the driver did not return within %s", roughly(result.Quiet)), Call: drive.Call(result)}
	case result.Silent:
		return drive.Failure{Outcome: probe.Unknown, Cause: probe.CauseStalled, Reason: fmt.Sprintf("the process that drives the GPUs made no progress within %s, outside any call of the driver", roughly(result.Quiet))}
	case result.TimedOut && result.Quiet > s.options.Patience && result.InLibrary():
		return drive.Failure{Outcome: probe.Hang, Reason: fmt.Sprintf("a call of the driver had not returned after %s, when the time for the probe ran out", roughly(result.Quiet)), Call: drive.Call(result)}
	case result.TimedOut:
		return drive.Failure{Outcome: probe.Unknown, Cause: probe.CauseDeadline, Reason: s.lateReason()}
	}
	return drive.Ended(result, "the driver")
}

// signalOf is the signal that ended a process, but for one that was ended from here.
func signalOf(r child.Result) string {
	if late(r) || r.Canceled || r.Flooded != "" {
		return ""
	}
	return r.Signal
}

// exitCode is the exit code of a process that ended by itself before its work did.
func exitCode(r child.Result) *int {
	if r.Death != child.DeathByLibrary || r.Signal != "" {
		return nil
	}
	return &r.Code
}

// roughly rounds a time for a sentence.
func roughly(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

func (s *session) lateReason() string {
	return fmt.Sprintf("the time for the probe ran out after %s, at the step %s", roughly(s.options.Whole), cmp.Or(s.stage, "start"))
}

// stopped notes that the rest was not tried, unless worse stopped the probe.
func (s *session) stopped(stage string, cause probe.Cause, reason string) {
	if r := s.report; r.Outcome == probe.OK {
		r.Outcome, r.Stage, r.Cause, r.Reason = probe.Unknown, stage, cause, reason
	}
}

func (s *session) outOfTime() {
	s.stopped(s.stage, probe.CauseDeadline, s.lateReason()+"; the rest was not tried")
}

func (s *session) order() {
	slices.SortStableFunc(s.report.Transfers, func(a, b probe.Transfer) int {
		return cmp.Or(
			cmp.Compare(slices.Index(reportOrder, a.Test), slices.Index(reportOrder, b.Test)),
			cmp.Compare(a.Source, b.Source), cmp.Compare(a.Destination, b.Destination),
		)
	})
}

var reportOrder = []string{
	probe.TestCopy, probe.TestStore, probe.TestLoad, probe.TestCopyRead, probe.TestBidirectional, probe.TestAllAtOnce, probe.TestHandshake, probe.TestLatency, probe.TestAtomics,
	probe.TestStaged, probe.TestInterprocess, probe.TestHostToDevice, probe.TestDeviceToHost,
}
