package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/internal/child"
)

// probeTask is the task of the child that drives the GPUs.
const probeTask = "probe"

func init() {
	child.Register(probeTask, func(ctx context.Context, args json.RawMessage, send func(any) error) error {
		var o order
		if err := json.Unmarshal(args, &o); err != nil {
			return err
		}
		e := newEngine(o, func(m message) { _ = send(m) }) // A parent that is gone ends this process.
		e.askBusy = func() (map[string]string, error) {
			var busy map[string]string
			err := child.Receive(ctx, &busy)
			return busy, err
		}
		whole := e.run()
		e.send(message{Ended: &whole})
		return nil
	})
}

// Options says how the probe is run.
type Options struct {
	// Mode is how much of it.
	Mode Mode
	// Patience bounds one transfer, Start each step of starting the driver;
	// 0 means 5 s and 60 s.
	Patience time.Duration
	Start    time.Duration
	// Busy says which GPUs are in use, by address, and by what; those are
	// left alone. It is asked while the driver starts. Nil means none.
	Busy func(ctx context.Context) map[string]string
	// Progress, if set, is told each stage as it begins.
	Progress func(stage string)
	// API is the only one that is to be tried, "cuda" or "hip"; empty is CUDA's,
	// and HIP's where there is no GPU for it.
	API string
	// Env is added to the child's environment.
	Env []string
}

// maxChildren bounds how often the probe goes on in a new process after a
// transfer that made the old one useless. Each start of the driver takes
// seconds, and a machine on which so many pairs fail is understood. The last
// process only runs the control arm: whether data arrives through host memory
// is what a person needs to know then.
const maxChildren = 5

// environment is what the child gets beside the doctor's own: nothing is to
// be written to the disk (the compiler's cache), and nothing may serialise
// what is to run at once. Fewer than 8 connections, CUDA's default, which some
// frameworks ask for, make streams wait for each other. (32 were tried: they
// make each context take five times as long, 0.98 s for 2 x H200, not 0.19.)
func environment() []string {
	env := []string{"CUDA_CACHE_DISABLE=1", "CUDA_LAUNCH_BLOCKING=0", "AMD_COMGR_CACHE=0", "HIP_LAUNCH_BLOCKING=0"}
	if n, err := strconv.Atoi(os.Getenv("CUDA_DEVICE_MAX_CONNECTIONS")); err == nil && n < 8 {
		env = append(env, "CUDA_DEVICE_MAX_CONNECTIONS=8")
	}
	return env
}

// Run runs the probe. A driver that hangs, crashes or refuses is what it
// reports; an error means that it could not be begun.
func Run(ctx context.Context, o Options) (*Report, error) {
	s := &session{options: o, report: &Report{Mode: o.Mode, Outcome: OK, Devices: []Device{}, Peers: []Peer{}, Transfers: []Transfer{}}}
	s.options.Patience = cmp.Or(o.Patience, defaultPatience)
	s.options.Start = cmp.Or(o.Start, startPatience)
	for n := range maxChildren {
		stage := s.stage
		s.control = n == maxChildren-1
		again, err := s.child(ctx, n > 0)
		if err != nil {
			return nil, err
		}
		if s.control {
			s.giveUp(stage)
		}
		if !again {
			break
		}
	}
	s.order()
	return s.report, nil
}

// session is one run of the probe: one child, or several when a transfer made
// an earlier one useless.
type session struct {
	options  Options
	report   *Report
	tried    []string // Keys of the transfers that are known.
	suspects [][2]string
	lost     []string // GPUs that could not be made ready.

	// Of the present child, written by the goroutine that receives its
	// messages and read once it is gone:
	resumed bool
	control bool // It only runs the control arm.
	stage   string
	since   time.Time  // When the stage began.
	asking  bool       // It waits for word from here which GPUs are busy.
	steps   []step     // Under way, of making GPUs ready.
	under   []Transfer // Begun and not yet reported.
	ended   bool       // It came to its end; whole says that nothing is left to do.
	whole   bool
	busy    chan any
	heard   chan time.Duration // How long it may be silent from now on.
	ctx     context.Context    //nolint:containedctx // The life of one child, whose callback needs it.
}

// child runs one child and reports whether another one should go on.
func (s *session) child(ctx context.Context, resumed bool) (again bool, err error) {
	life, stop := context.WithCancel(ctx)
	defer stop()
	s.resumed, s.stage, s.asking, s.steps, s.under, s.ended, s.whole = resumed, "", false, nil, nil, false, false
	s.busy, s.heard, s.ctx = make(chan any, 1), make(chan time.Duration), life
	silent := make(chan bool, 1)
	go func() {
		silent <- s.listen(life)
		stop()
	}()
	result, err := child.Run(life, child.Spec{
		Task: probeTask,
		Args: order{
			Mode: s.options.Mode, API: s.options.API, Patience: s.options.Patience, Skip: s.tried, Suspects: s.suspects,
			Await: s.options.Busy != nil && !resumed, Leave: s.lost, Control: s.control,
		},
		Env:     append(environment(), s.options.Env...),
		Input:   s.busy,
		Receive: s.receive,
	})
	stop()
	hung := <-silent
	switch {
	case err != nil:
		return false, err
	case ctx.Err() != nil && !s.ended:
		return false, fmt.Errorf("the probe was interrupted: %w", ctx.Err())
	}
	s.report.Left = result.Left
	return s.conclude(result, hung), nil
}

// listen returns true when the child was silent for longer than it may be,
// false when it is gone.
func (s *session) listen(life context.Context) bool {
	timer := time.NewTimer(max(s.options.Start, child.SpawnPatience))
	defer timer.Stop()
	for {
		select {
		case limit := <-s.heard:
			timer.Reset(limit)
		case <-timer.C:
			return true
		case <-life.Done():
			return false
		}
	}
}

// limit is how long the child may be silent in its present stage. Past the
// start it watches each transfer itself, some waits in each: from here only a
// call of the driver that does not return is seen.
func (s *session) limit() time.Duration {
	switch {
	case s.asking:
		// It waits for us, not for the driver. Whoever is asked has a deadline.
		return math.MaxInt64
	case s.preparing():
		return s.options.Start
	case s.stage == TestInterprocess: // A second process starts the driver anew.
		return s.options.Start + 4*s.options.Patience
	case s.stage == stageCleanup:
		return s.options.Patience
	}
	return 4 * s.options.Patience
}

// preparing is true before any transfer.
func (s *session) preparing() bool {
	switch s.stage {
	case "", stageLibrary, stageInit, stageInitHIP, stageDevices, stageQuery, stageContexts, stageMemory, stagePeers, stageKernels:
		return true
	}
	return false
}

// receive takes one message of the child.
func (s *session) receive(raw json.RawMessage) {
	var m message
	if json.Unmarshal(raw, &m) != nil {
		return // Noise of a library is no word of ours.
	}
	r := s.report
	s.asking = m.Await
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
	case m.Device != nil && !s.resumed:
		r.Devices = append(r.Devices, *m.Device)
		if m.Device.Outcome != OK {
			s.lost = append(s.lost, m.Device.Address)
		}
	case m.Peer != nil && !s.resumed:
		r.Peers = append(r.Peers, *m.Peer)
	case m.SMTests != "":
		r.SMTests = m.SMTests
	case m.Await:
		go func() {
			busy := s.options.Busy(s.ctx)
			select {
			case s.busy <- busy:
			case <-s.ctx.Done():
			}
		}()
	case m.Begin != nil:
		s.under = append(s.under, *m.Begin)
	case m.Transfer != nil:
		s.record(*m.Transfer)
	case m.Failure != nil:
		s.fail(*m.Failure)
		s.ended, s.whole = true, true
	case m.Ended != nil:
		s.ended, s.whole = true, s.whole || *m.Ended
	}
	select {
	case s.heard <- s.limit():
	case <-s.ctx.Done():
	}
}

// enter begins a stage, and keeps the time that the one before took.
func (s *session) enter(stage string) {
	now := time.Now()
	if s.stage != "" {
		ms := math.Round(now.Sub(s.since).Seconds()*1e4) / 10
		if i := slices.IndexFunc(s.report.Stages, func(x Stage) bool { return x.Name == s.stage }); i >= 0 {
			s.report.Stages[i].Milliseconds += ms
		} else {
			s.report.Stages = append(s.report.Stages, Stage{Name: s.stage, Milliseconds: ms})
		}
	}
	s.stage, s.since, s.steps = stage, now, nil
}

// record keeps the outcome of a transfer.
func (s *session) record(t Transfer) {
	s.under = slices.DeleteFunc(s.under, func(u Transfer) bool { return u.key() == t.key() })
	if i := slices.IndexFunc(s.report.Transfers, func(old Transfer) bool { return old.key() == t.key() }); i >= 0 {
		s.report.Transfers[i] = t // It was timed again.
	} else {
		s.tried = append(s.tried, t.key())
		s.report.Transfers = append(s.report.Transfers, t)
	}
	if bad(t.Outcome) && t.Test != TestStaged {
		s.suspects = append(s.suspects, [2]string{t.Source, t.Destination})
	}
}

// bad is true for an outcome that blames the path.
func bad(o Outcome) bool { return o == Corrupt || o == Hang || o == Error }

// fail notes what stopped the probe as a whole.
func (s *session) fail(f failure) {
	r := s.report
	r.Outcome, r.Stage, r.Reason, r.ErrorCode, r.ErrorName = f.Outcome, s.stage, f.Reason, f.ErrorCode, f.ErrorName
}

// conclude draws the conclusion from the end of a child and reports whether
// another one should go on.
func (s *session) conclude(result child.Result, hung bool) (again bool) {
	outcome, reason := Error, "the process that drives the GPUs ended early"
	switch {
	case hung:
		outcome, reason = Hang, "a call of the driver did not return"
	case result.Signal != "":
		reason = "the driver crashed: " + result.Signal
	case result.Failure != "":
		reason += ": " + result.Failure
	}
	switch {
	case s.ended && !hung:
		return !s.whole && !result.Left
	case s.stage == stageCleanup:
		s.fail(failure{Outcome: outcome, Reason: reason + ", when the memory was given back after all transfers"})
		s.report.Signal = result.Signal
		return false
	case s.preparing():
		if len(s.steps) > 0 { // The step that is under way for longest.
			s.stage = s.steps[0].Name
			s.report.GPU = s.steps[0].GPU
			reason += ", on GPU " + s.report.GPU
		}
		if s.resumed {
			reason += ", when it was started again after a transfer that failed"
		}
		s.fail(failure{Outcome: outcome, Reason: reason})
		s.report.Signal = result.Signal
		return false
	}
	for _, t := range slices.Clone(s.under) {
		t.Outcome, t.Reason = outcome, reason
		s.record(t)
	}
	return !result.Left
}

// giveUp notes that the rest was not tried, unless worse stopped the probe.
func (s *session) giveUp(stage string) {
	if s.report.Outcome != OK {
		return
	}
	s.report.Outcome, s.report.Stage = Unknown, stage
	s.report.Reason = fmt.Sprintf("%d transfers made the process useless that drove them; the rest was not tried", maxChildren-1)
}

// order puts the transfers in order of test and pair.
func (s *session) order() {
	slices.SortStableFunc(s.report.Transfers, func(a, b Transfer) int {
		return cmp.Or(
			cmp.Compare(slices.Index(reportOrder, a.Test), slices.Index(reportOrder, b.Test)),
			cmp.Compare(a.Source, b.Source), cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.Way, b.Way),
		)
	})
}

// reportOrder is the order of the tests in a report.
var reportOrder = []string{
	TestCopy, TestStore, TestLoad, TestCopyRead, TestBidirectional, TestAllAtOnce, TestHandshake, TestLatency, TestAtomics,
	TestStaged, TestInterprocess, TestHostToDevice, TestDeviceToHost,
}
