package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/drive"
)

// ownerTask is the task of the process that owns the memory in the test between processes.
const ownerTask = "probe-owner"

// sharedBytes is how much is copied: the test is whether sharing works, not its speed.
const sharedBytes = 16 << 20

// shared is memory of the owner that another process may open by the driver's IPC handles: "cudaIpc", "hipIpc".
type shared struct {
	Address string `json:"address"` // Of the GPU.
	Size    uint64 `json:"size"`
	Handle  []byte `json:"handle,omitempty"`
	// Failed is the driver's error if it offers the mechanism and then failed.
	Failed *drive.Failure `json:"failed,omitempty"`
}

// ownerMessage is what the owner sends: its list of memory, then an answer to each demand.
type ownerMessage struct {
	Shared   []shared        `json:"shared,omitempty"`
	Failed   string          `json:"failed,omitempty"`
	Transfer *probe.Transfer `json:"transfer,omitempty"`
}

// demand asks the owner to compare the memory with an index with a pattern, and to poison it again.
type demand struct {
	Index int    `json:"index"`
	Bytes uint64 `json:"bytes"`
	Seed  uint64 `json:"seed"`
}

func init() {
	child.Register(ownerTask, func(ctx context.Context, o order, send func(any) error) error {
		e := newEngine(o, func(message) {}) // What it sees of the GPUs, the other process has already told.
		return e.own(ctx, func(m ownerMessage) { _ = send(m) })
	})
}

func (e *engine) own(ctx context.Context, send func(ownerMessage)) error {
	if f := e.prepare(); f != nil {
		send(ownerMessage{Failed: f.Reason})
		return nil
	}
	var list []shared
	for _, g := range e.alive() {
		s, err := e.share(g)
		switch {
		case errors.Is(err, gpudriver.NotSupported), errors.Is(err, gpudriver.ErrMissing):
			continue // What the driver does not offer is not on the list.
		case err != nil:
			s.Failed = failOnGPU(err)
		}
		list = append(list, s)
	}
	send(ownerMessage{Shared: list})
	for {
		d, err := child.Receive[demand](ctx)
		if err != nil {
			return err
		}
		t := &probe.Transfer{Outcome: probe.OK}
		if d.Index < 0 || d.Index >= len(list) {
			return fmt.Errorf("no memory %d", d.Index)
		}
		g := e.gpus[e.index(list[d.Index].Address)]
		if err = e.verify(t, areaOf(g, g.out, d.Bytes, d.Seed, 0)); err == nil {
			err = e.blank(g, g.out, d.Bytes, 0)
		}
		if err != nil {
			setError(t, err)
		}
		send(ownerMessage{Transfer: t})
	}
}

// share blanks memory of a GPU, and lets another process open it. A handle refers to the start of an allocation: the out buffer.
func (e *engine) share(g *gpu) (shared, error) {
	s := shared{Address: g.Address, Size: min(sharedBytes, g.size)}
	if err := e.d.SetCurrent(g.context); err != nil {
		return s, err
	}
	h, err := e.d.IPCHandle(g.out)
	if err != nil {
		return s, err
	}
	s.Handle = h.Reserved[:]
	return s, e.blank(g, g.out, s.Size, 0)
}

type ownerProcess struct {
	demands chan any
	answers chan ownerMessage
	stop    context.CancelFunc
	ended   chan struct{} // Closed once it has ended, and end tells how.
	end     child.Result
}

// errOwner is wrapped if the second process ended, but not because of the driver.
var errOwner = errors.New("the second process was ended")

func (o *ownerProcess) lost() error {
	if o.end.Death == child.DeathByLibrary {
		return fmt.Errorf("the driver ended the second process: %s", o.end.End())
	}
	return fmt.Errorf("%w: %s", errOwner, o.end.End())
}

// interprocess copies from each GPU into memory that another process owns on each other GPU, and verifies.
func (e *engine) interprocess() {
	o := e.startOwner()
	defer func() {
		o.stop()
		<-o.ended
	}()
	first, err := o.next(deadline.Start)
	if err == nil && first.Failed != "" {
		err = errors.New(first.Failed)
	}
	if err != nil {
		e.onEachPair(probe.Unknown, fmt.Sprintf("the second process could not start: %v", err))
		return
	}
	if len(first.Shared) == 0 {
		e.onEachPair(probe.Unsupported, "the driver shares no memory with another process through "+e.d.Names.IPC)
		return
	}
	for index, s := range first.Shared {
		if e.intoShared(o, index, s); e.broken != nil {
			return
		}
	}
}

// onEachPair records the same outcome of the test between processes for every pair.
func (e *engine) onEachPair(outcome probe.Outcome, reason string) {
	e.eachPair(test{name: probe.TestInterprocess, staged: true, run: func(_ *engine, t *probe.Transfer, _, _ *gpu, _ uint64) error {
		t.Outcome, t.Reason = outcome, reason
		return nil
	}})
}

// intoShared copies from every GPU into one memory of the owner.
func (e *engine) intoShared(o *ownerProcess, index int, s shared) {
	j := e.index(s.Address)
	for i, a := range e.gpus {
		if i == j || j < 0 || a.Outcome != probe.OK || a.access(j) != fullAccess || e.broken != nil {
			continue
		}
		t := &probe.Transfer{Test: probe.TestInterprocess, Source: a.Address, Destination: s.Address, Way: e.d.Names.IPC, Outcome: probe.OK}
		if e.skip[transferKey(t)] {
			continue
		}
		e.send(message{Begin: t})
		if f := s.Failed; f != nil {
			setFailure(t, f)
			e.report(t)
			continue
		}
		seed := e.seed(probe.TestInterprocess, i, j, index)
		if err := e.copyShared(o, t, a, index, s, seed); err != nil {
			setError(t, err)
			e.broken = e.usable(err, a)
		}
		e.report(t)
	}
}

// copyShared copies from a GPU into the owner's memory and has the owner verify it.
func (e *engine) copyShared(o *ownerProcess, t *probe.Transfer, a *gpu, index int, s shared, seed uint64) error {
	n := min(s.Size, a.size, sharedBytes)
	if a.kernels == nil {
		n = min(n, hostBytes)
	}
	t.Bytes = int64(n)
	if err := e.d.SetCurrent(a.context); err != nil {
		return err
	}
	p, err := e.d.OpenIPC(gpudriver.IPCHandle{Reserved: [64]byte(s.Handle)})
	if err != nil {
		return err
	}
	if err := e.fill(a, a.out, n, seed); err != nil {
		return err
	}
	seconds, err := e.timed(a, copyTimes, func(_ uint64, stream gpudriver.Stream) error { return e.d.Copy(p, a.out, n, stream) })
	if err != nil {
		return err
	}
	answer, err := o.ask(demand{Index: index, Bytes: n, Seed: seed}, e.order.Patience)
	if err != nil {
		return err
	}
	answer.Test, answer.Source, answer.Destination, answer.Way, answer.Bytes, answer.LastBad = t.Test, t.Source, t.Destination, t.Way, t.Bytes, nil
	*t = *answer
	setRate(t, copyTimes*n, seconds, most(a, e.gpus[e.index(s.Address)]))
	return nil
}

func (e *engine) startOwner() *ownerProcess {
	ctx, stop := context.WithCancel(context.Background())
	var out []string
	for _, g := range e.gpus {
		if g.Outcome != probe.OK {
			out = append(out, g.Address)
		}
	}
	o := &ownerProcess{demands: make(chan any, 1), answers: make(chan ownerMessage, 4), stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		var err error
		o.end, err = child.Run(ctx, child.Spec{
			Task: ownerTask, Args: order{Mode: e.order.Mode, API: e.d.Names.API, Patience: e.order.Patience, Leave: out}, Input: o.demands,
			Receive: func(raw json.RawMessage) {
				var m ownerMessage
				if json.Unmarshal(raw, &m) == nil {
					select {
					case o.answers <- m:
					case <-ctx.Done():
					}
				}
			},
		})
		if err != nil {
			o.end.Why = err.Error()
		}
	}()
	return o
}

func (o *ownerProcess) next(patience time.Duration) (ownerMessage, error) {
	select {
	case m := <-o.answers:
		return m, nil
	case <-o.ended:
		return ownerMessage{}, o.lost()
	case <-time.After(patience):
		return ownerMessage{}, drive.ErrHang
	}
}

func (o *ownerProcess) ask(d demand, patience time.Duration) (*probe.Transfer, error) {
	select {
	case o.demands <- d:
	case <-o.ended:
		return nil, o.lost()
	}
	m, err := o.next(2 * patience)
	if err != nil {
		return nil, err
	}
	if m.Transfer == nil {
		return nil, errors.New("the second process did not answer")
	}
	return m.Transfer, nil
}
