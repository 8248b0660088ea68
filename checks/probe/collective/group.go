package collective

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/drive"
)

// group is the processes of one arm. They end together.
type group struct {
	session *session
	order   order
	env     []string
	unset   []string
	members []*member
	ranks   []*rankState
	events  chan event
	stop    context.CancelFunc
	ended   sync.WaitGroup
	remains bool

	operations []probe.Operation
	// failed are the ranks that failed, in the order in which that was noticed.
	failed []int
	// blamed are those that the reason names.
	blamed []int
	log    string
}

type member struct {
	places  []place
	input   chan any
	number  int
	garbled bool
	gone    bool
	result  child.Result
}

type rankState struct {
	member   *member
	gpu      string
	stage    string
	answered bool // It did what it was told last.
	failure  *drive.Failure
	late     bool // It did not answer in time.
	left     bool
	corrupt  bool
	signal   string
	exit     *int
}

type event struct {
	from  *member
	raw   json.RawMessage
	ended *child.Result
	err   error
}

func newGroup(s *session, o order, env, unset []string) *group {
	return &group{session: s, order: o, env: env, unset: unset, events: make(chan event, 256)}
}

// run runs a plan with a process for each of some places, and says how it went.
func (g *group) run(ctx context.Context, each [][]place, todo plan, a *probe.Arm) {
	begun := time.Now()
	g.start(ctx, each)
	g.work(ctx, todo)
	g.end()
	g.describe(a)
	a.Milliseconds = drive.RoundTo(time.Since(begun).Seconds()*1e3, 10)
}

func (g *group) start(ctx context.Context, each [][]place) {
	ctx, g.stop = context.WithCancel(ctx)
	for _, places := range each {
		m := &member{places: places, input: make(chan any, 64)}
		g.members = append(g.members, m)
		for range max(1, len(places)) {
			g.ranks = append(g.ranks, &rankState{member: m})
		}
	}
	for i, p := range g.session.places {
		if i < len(g.ranks) && g.order.Ranks > 0 {
			g.ranks[p.Rank].gpu = g.session.report.GPUs[i]
		}
	}
	for _, m := range g.members {
		g.startOne(ctx, m)
	}
}

func (g *group) startOne(ctx context.Context, m *member) {
	o := g.order
	o.Mine = m.places
	spec := child.Spec{
		Task: rankTask, Args: o, Input: m.input, Unset: g.unset, Stdout: maxLog,
		Env: append(drive.Environment(), g.env...),
		Receive: func(raw json.RawMessage) {
			select {
			case g.events <- event{from: m, raw: slices.Clone(raw)}:
			case <-ctx.Done():
			}
		},
	}
	spec.Env = append(slices.DeleteFunc(spec.Env, isLogVariable), logLevel...)
	g.ended.Go(func() {
		run := child.Run
		if launch := g.session.launch; launch != nil {
			run = func(ctx context.Context, spec child.Spec) (child.Result, error) {
				return launch(ctx, m.places[0], spec)
			}
		}
		r, err := run(ctx, spec)
		g.events <- event{from: m, ended: &r, err: err}
	})
}

func isLogVariable(s string) bool {
	return slices.ContainsFunc([]string{"NCCL_DEBUG=", "NCCL_DEBUG_FILE=", "NCCL_DEBUG_SUBSYS="}, func(p string) bool { return strings.HasPrefix(s, p) })
}

func (g *group) end() {
	g.stop()
	go func() {
		g.ended.Wait()
		close(g.events)
	}()
	for e := range g.events {
		g.take(e, nil)
	}
	for _, m := range g.members[:min(len(g.members), maxLogs)] {
		g.log += m.result.Stdout + "\n"
	}
}

// maxLogs bounds the logs that are read, and maxLog what is kept of each: with INFO it is some tens of kB.
const (
	maxLogs = 16
	maxLog  = 512 << 10
)

func (g *group) tell(c command) {
	for _, r := range g.ranks {
		r.answered = false
	}
	for _, m := range g.members {
		select {
		case m.input <- c:
		default: // It is gone, or reads nothing; then it does not answer.
		}
	}
}

// grace is how long other ranks may still say what they met after one has failed.
const grace = 300 * time.Millisecond

// await waits until done, which is called with each message, is true of one of each rank, and returns why not.
func (g *group) await(ctx context.Context, limit time.Duration, done func(m *member, x message) bool) *drive.Failure {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var end <-chan time.Time
	for !g.all() {
		if len(g.failed) > 0 && end == nil {
			end = time.After(grace)
		}
		select {
		case e := <-g.events:
			g.take(e, done)
		case <-end:
			return g.ranks[g.failed[0]].failure
		case <-timer.C:
			return g.expire(&drive.Failure{Outcome: probe.Hang, Reason: fmt.Sprintf("did not return within %s", limit.Round(100*time.Millisecond))})
		case <-ctx.Done():
			return g.expire(&drive.Failure{Outcome: probe.Unknown, Cause: probe.CauseDeadline, Reason: "the time for the collectives ran out"})
		}
	}
	if len(g.failed) > 0 {
		return g.ranks[g.failed[0]].failure
	}
	return nil
}

func (g *group) all() bool {
	return !slices.ContainsFunc(g.ranks, func(r *rankState) bool { return !r.answered && r.failure == nil })
}

// expire notes that the ranks that have not answered did not do so in time. Whether a library
// hindered them shows once their processes have ended.
func (g *group) expire(f *drive.Failure) *drive.Failure {
	for i, r := range g.ranks {
		if !r.answered && r.failure == nil {
			r.failure, r.late = f, true
			g.failed = append(g.failed, i)
		}
	}
	return f
}

func (g *group) take(e event, done func(m *member, x message) bool) {
	m := e.from
	if e.ended != nil || e.err != nil {
		g.gone(m, e)
		return
	}
	x, ok := decode(e.raw)
	if m.garbled || !ok || x.Number != m.number+1 || !g.owns(m, x.Rank) {
		m.garbled = true
		g.fail(m, drive.Failure{Outcome: probe.Unknown, Cause: probe.CauseProtocol, Reason: "messages from the process were lost or garbled"}, true)
		return
	}
	m.number = x.Number
	r := g.ranks[x.Rank]
	switch {
	case x.Stage != "":
		if slices.Contains(stages, x.Stage) {
			r.stage = x.Stage
		}
	case x.Failure != nil:
		f := *x.Failure
		f.Reason, f.ErrorName, f.Call, f.LastError = printable(f.Reason), printable(f.ErrorName), printable(f.Call), printable(f.LastError)
		g.failRank(x.Rank, f)
	case x.Left:
		r.left, r.stage = true, stageEnd
	}
	if done != nil && done(m, x) {
		r.answered = true
	}
}

func (g *group) owns(m *member, rank int) bool {
	return rank >= 0 && rank < len(g.ranks) && g.ranks[rank].member == m
}

func (g *group) failRank(i int, f drive.Failure) {
	if g.ranks[i].failure == nil {
		g.ranks[i].failure = &f
		g.failed = append(g.failed, i)
	}
}

// fail notes it for the ranks of a process that have not left.
func (g *group) fail(m *member, f drive.Failure, first bool) {
	for i, r := range g.ranks {
		if r.member == m && !r.left {
			g.failRank(i, f)
			if first { // What the others say follows from it.
				g.failed = slices.Insert(slices.DeleteFunc(g.failed, func(j int) bool { return j == i }), 0, i)
			}
		}
	}
}

func (g *group) gone(m *member, e event) {
	m.gone = true
	if e.err != nil {
		g.fail(m, drive.Failure{Outcome: probe.Unknown, Cause: probe.CauseEnded, Reason: "could not start a process: " + e.err.Error()}, false)
		return
	}
	r := e.ended
	m.result = *r
	g.remains = g.remains || r.Left
	if r.Canceled || r.TimedOut {
		return
	}
	f := drive.Ended(*r, "the library")
	f.Reason = printable(f.Reason)
	for _, s := range g.ranks {
		if s.member == m && !s.left {
			s.signal = r.Signal
			if r.Exited {
				s.exit = new(r.Code)
			}
		}
	}
	g.fail(m, f, len(g.failed) == 0 || f.Outcome == probe.Unknown)
}

func (g *group) outcome(i int) probe.Rank {
	s := g.ranks[i]
	r := probe.Rank{Rank: i, GPU: s.gpu, Outcome: probe.OK, Stage: s.stage, Signal: s.signal}
	if s.corrupt {
		r.Outcome, r.Reason = probe.Corrupt, "received wrong data"
		return r
	}
	if s.failure != nil {
		f := s.failure
		r.Outcome, r.Reason, r.Cause = f.Outcome, f.Reason, f.Cause
		r.ErrorCode, r.ErrorName, r.Call, r.LastError = f.ErrorCode, f.ErrorName, f.Call, f.LastError
		if r.Outcome == probe.Hang && r.Call == "" {
			r.Call = drive.Call(s.member.result)
		}
		if m := s.member; r.Outcome == probe.Hang && m.gone && !m.result.InLibrary() && s.late {
			r.Outcome, r.Cause, r.Reason = probe.Unknown, probe.CauseStalled, f.Reason+", outside any call of a library"
		}
		if s.exit != nil && *s.exit != 0 {
			r.ExitCode = s.exit
		}
		return r
	}
	if len(g.failed) > 0 && !s.left {
		r.Outcome, r.Cause, r.Reason = probe.Unknown, probe.CauseEnded, fmt.Sprintf("ended because rank %d failed", g.failed[0])
	}
	return r
}

func (g *group) work(ctx context.Context, todo plan) {
	var id []byte
	room := g.order.Bytes
	ready := func(_ *member, x message) bool {
		if x.Ready == nil {
			return false
		}
		room = min(room, x.Ready.Bytes)
		return true
	}
	s := g.session
	if g.await(ctx, s.options.Start+s.options.Join, ready) != nil {
		return
	}
	for _, r := range g.ranks {
		r.answered = true
	}
	g.members[0].input <- command{Identify: true}
	g.ranks[0].answered = false
	if g.await(ctx, s.options.Start, func(_ *member, x message) bool {
		if x.ID != nil {
			id = x.ID
		}
		return x.ID != nil
	}) != nil {
		return
	}
	g.tell(command{Join: id})
	if g.await(ctx, s.join(), func(_ *member, x message) bool { return x.Joined }) != nil {
		return
	}
	if !g.runPlan(ctx, todo, room) {
		return
	}
	g.tell(command{Leave: true})
	_ = g.await(ctx, deadline.Calls*s.options.Patience, func(_ *member, x message) bool { return x.Left }) // It is in the outcome of the rank.
}

// mostSeconds is the longest that the runs of one size may take together.
const mostSeconds = 1.5

// affordable is the size nearest to the one asked for, and how often it can be run for its time, where a smaller size took
// some seconds once: on a slow path less often, and if even one run and the verified one before it would take too long, the
// size is halved, down to the smaller one. The time is taken to grow as the size does, which it does on no path.
func affordable(asked, smaller int64, seconds float64) (bytes int64, n int) {
	bytes = asked
	if smaller == 0 || bytes <= mib {
		return bytes, times(bytes)
	}
	once := func() float64 { return seconds * float64(bytes) / float64(smaller) }
	for bytes > smaller && 2*once() > mostSeconds {
		bytes /= 2
	}
	if bytes <= smaller {
		return smaller, 0
	}
	return bytes, max(1, min(times(bytes), int(mostSeconds/once())-1))
}

// runPlan runs the collectives, and reports false where one failed.
func (g *group) runPlan(ctx context.Context, todo plan, room int64) bool {
	ranks := len(g.ranks)
	number := 0
	for _, step := range todo {
		seconds, size := 0.0, int64(0)
		for _, asked := range step.bytes {
			bytes, n := affordable(min(asked, room), size, seconds)
			bytes = fit(step.name, bytes, ranks)
			if bytes > room || bytes <= size {
				continue
			}
			number++
			t := task{Name: step.name, Bytes: bytes, Times: n, Seed: drive.Seed(number, ranks, ranks, 0)}
			op, whole := g.runOne(ctx, t)
			if bytes > mib && n > 1 && whole && op.Microseconds != nil { // What else runs on the machine slows one of two runs: the faster counts.
				if again, ok := g.runOne(ctx, t); !ok || again.Microseconds == nil || *again.Microseconds < *op.Microseconds {
					op, whole = again, ok
				}
			}
			g.operations = append(g.operations, op)
			if !whole {
				return false
			}
			if op.Outcome == probe.Unsupported || op.Outcome == probe.Corrupt {
				break
			}
			if op.Microseconds != nil {
				seconds, size = *op.Microseconds/1e6, bytes
			}
		}
	}
	return true
}

// runOne runs one collective of one size on all ranks, and reports false where a rank failed.
func (g *group) runOne(ctx context.Context, t task) (op probe.Operation, whole bool) {
	op = probe.Operation{Name: t.Name, Bytes: t.Bytes, Outcome: probe.OK}
	slowest, clock := 0.0, true
	g.tell(command{Run: &t})
	f := g.await(ctx, g.session.join()+deadline.Calls*g.session.options.Patience, func(_ *member, x message) bool {
		r := x.Result
		if r == nil {
			return false
		}
		if r.Unsupported {
			op.Outcome, op.Reason = probe.Unsupported, "the library lacks it"
			return true
		}
		op.Verified = cmp.Or(op.Verified, r.Verified)
		if r.Verified == "host" {
			op.Verified = "host"
		}
		slowest, clock = max(slowest, r.Seconds), clock && r.Seconds > 0
		g.ranks[x.Rank].corrupt = g.ranks[x.Rank].corrupt || r.BadWords > 0
		if r.BadWords > 0 && (op.Rank == nil || x.Rank < *op.Rank) {
			op.Outcome, op.Rank, op.BadBytes, op.FirstBad, op.Found = probe.Corrupt, new(x.Rank), int64(8*r.BadWords), new(int64(8*r.First)), r.Found
		}
		return true
	})
	us, rate := drive.RoundTo(slowest*1e6, 100), drive.RoundTo(float64(t.Bytes)/slowest/1e9*busFactor(t.Name, len(g.ranks)), 1e4)
	switch {
	case f != nil && op.Outcome != probe.Corrupt:
		op.Outcome, op.Reason, op.Cause, op.Rank = f.Outcome, f.Reason, f.Cause, new(g.failed[0])
		return op, false
	case op.Outcome == probe.Corrupt:
		op.Reason = fmt.Sprintf("the library reported success, but %d of %d bytes at rank %d are wrong, from offset %d on", op.BadBytes, op.Bytes, *op.Rank, *op.FirstBad)
		return op, f == nil
	case op.Outcome == probe.Unsupported:
		return op, true
	case !clock, math.IsInf(us, 0), math.IsInf(rate, 0):
		op.Outcome, op.Cause, op.Reason = probe.Unknown, probe.CauseClock, "every value is correct, but the driver's timer gave no usable time"
		return op, true
	}
	op.Microseconds = &us
	if len(g.ranks) > 1 && rate > 0 { // The smallest messages show a latency, and no rate.
		op.BusGBps = &rate
	}
	return op, true
}

func (g *group) describe(a *probe.Arm) {
	a.Ranks, a.Operations = []probe.Rank{}, g.operations
	for i := range g.ranks {
		a.Ranks = append(a.Ranks, g.outcome(i))
	}
	a.Outcome = probe.OK
	for _, op := range g.operations {
		switch {
		case op.Outcome == probe.Corrupt && a.Outcome != probe.Corrupt:
			a.Outcome, a.Reason, a.Stage = probe.Corrupt, fmt.Sprintf("%s of %d bytes: %s", op.Name, op.Bytes, op.Reason), op.Name
		case op.Outcome == probe.Unknown && a.Outcome == probe.OK && len(g.failed) == 0:
			a.Outcome, a.Reason, a.Cause, a.Stage = probe.Unknown, op.Name+": "+op.Reason, op.Cause, op.Name
		}
	}
	if len(g.failed) > 0 && a.Outcome != probe.Corrupt {
		g.blame(a)
	}
	if read := g.session.options.ReadLog; read != nil {
		l := read(g.log, len(g.session.report.Arms) == 0 && a.Outcome.Failed())
		a.Transports, a.Channels, a.Network = l.Transports, l.Channels, l.Network
		if l.Channels != nil {
			a.NVLS = new(l.Channels["nvls"] > 0)
		}
		for _, w := range l.Warnings[:min(len(l.Warnings), maxWarnings)] {
			a.Warnings = append(a.Warnings, printable(w))
		}
		a.Messages = g.placed(a.Name, l.Messages)
	}
}

// placed are messages with the arm that they are from, and with ranks instead of ordinals of GPUs.
func (g *group) placed(arm string, messages []probe.Message) []probe.Message {
	for i := range messages {
		m := &messages[i]
		m.Source, m.Order, m.Count, m.Ranks = probe.LogSource+arm, i, 1, 1
		if at := slices.IndexFunc(g.session.places, func(p place) bool { return m.Device != nil && p.Ordinal == *m.Device }); at >= 0 {
			m.Rank = new(g.session.places[at].Rank)
		}
		m.Device = nil
	}
	return messages
}

const maxWarnings = 8

// blame says which rank failed, and who waited for it. Of ranks that hang, the one that is
// furthest behind keeps the others waiting.
func (g *group) blame(a *probe.Arm) {
	at := g.failed[0]
	if g.ranks[at].failure.Outcome == probe.Hang {
		for _, i := range g.failed {
			if slices.Index(stages, g.ranks[i].stage) < slices.Index(stages, g.ranks[at].stage) {
				at = i
			}
		}
	}
	r := a.Ranks[at]
	a.Outcome, a.Cause, a.Stage = r.Outcome, r.Cause, r.Stage
	who := []int{at}
	var waiting []int
	for i, other := range a.Ranks {
		switch {
		case i == at:
		case other.Outcome == r.Outcome && other.Stage == r.Stage && other.Reason == r.Reason:
			who = append(who, i)
		case other.Stage != stageEnd:
			waiting = append(waiting, i)
		}
	}
	slices.Sort(who)
	g.blamed = who
	where := cmp.Or(r.Stage, "its start")
	if r.ErrorName != "" && r.Call != r.Stage {
		where += ", " + r.Call
	}
	a.Reason = fmt.Sprintf("%s in %s: %s", ranksIn(who), where, r.Reason)
	if len(waiting) > 0 && len(who) < len(a.Ranks) {
		a.Reason += fmt.Sprintf("; %s waited in %s", ranksIn(waiting), cmp.Or(a.Ranks[waiting[0]].Stage, "the start"))
	}
}
