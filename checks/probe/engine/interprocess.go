package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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

// wayVMM shares memory through a file descriptor. NCCL uses it if the driver has it (NCCL_CUMEM_ENABLE), otherwise the
// driver's IPC handles: "cudaIpc", "hipIpc".
const wayVMM = "cuMem"

// shared is memory of the owner that another process may open.
type shared struct {
	Address string `json:"address"` // Of the GPU.
	Way     string `json:"way"`
	Size    uint64 `json:"size"`
	// Handle is cudaIpc's. The file descriptors of cuMem come over the socket, in the order of the list.
	Handle []byte `json:"handle,omitempty"`
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
	socket := child.File(0)
	defer socket.Close() //nolint:errcheck // The process ends anyway.
	var list []shared
	var at []gpudriver.Pointer
	for _, g := range e.alive() {
		for _, way := range []string{wayVMM, e.d.Names.IPC} {
			s, p, fd, err := e.share(g, way)
			if err == nil {
				err = e.blank(g, p, s.Size, 0)
			}
			switch {
			case errors.Is(err, errors.ErrUnsupported), errors.Is(err, gpudriver.NotSupported), errors.Is(err, gpudriver.ErrMissing):
				continue // A way that the driver does not offer is not on the list.
			case err != nil:
				s.Failed = failOnGPU(err)
				list, at = append(list, s), append(at, 0)
				continue
			}
			if fd >= 0 {
				if err := sendFile(socket, fd); err != nil {
					continue
				}
			}
			list, at = append(list, s), append(at, p)
		}
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
		if err = e.verify(t, areaOf(g, at[d.Index], d.Bytes, d.Seed, 0)); err == nil {
			err = e.blank(g, at[d.Index], d.Bytes, 0)
		}
		if err != nil {
			setError(t, err)
		}
		send(ownerMessage{Transfer: t})
	}
}

// share allocates memory of a GPU that another process can open through one mechanism.
func (e *engine) share(g *gpu, way string) (s shared, p gpudriver.Pointer, fd int, err error) {
	s = shared{Address: g.Address, Way: way, Size: min(sharedBytes, g.size)}
	if err := e.d.SetCurrent(g.context); err != nil {
		return s, 0, -1, err
	}
	if way != wayVMM {
		// The in buffer is a part of one allocation, whose start a handle refers to: the out buffer.
		h, err := e.d.IPCHandle(g.out)
		s.Handle = h.Reserved[:]
		return s, g.out, -1, err
	}
	cuda, is := e.d.Vendor.(*gpudriver.CUDA) // RCCL shares memory through hipIpc, unless it is configured otherwise.
	if !is || !cuda.CanExport(g.handle) {
		return s, 0, -1, errors.ErrUnsupported
	}
	p, s.Size, fd, err = cuda.Exportable(g.handle, s.Size)
	return s, p, fd, err
}

type ownerProcess struct {
	demands chan any
	answers chan ownerMessage
	socket  *os.File
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
	o, err := e.startOwner()
	if err != nil {
		e.onEachPair(probe.Unknown, err.Error())
		return
	}
	defer o.close()
	first, err := o.next(deadline.Start)
	if err == nil && first.Failed != "" {
		err = errors.New(first.Failed)
	}
	if err != nil {
		e.onEachPair(probe.Unknown, fmt.Sprintf("the second process could not start: %v", err))
		return
	}
	if len(first.Shared) == 0 {
		e.onEachPair(probe.Unsupported, "the driver shares memory with another process neither through "+wayVMM+" nor through "+e.d.Names.IPC)
		return
	}
	for index, s := range first.Shared {
		fd := -1
		if s.Way == wayVMM && s.Failed == nil {
			if fd, err = receiveFile(o.socket); err != nil {
				e.onEachPair(probe.Unknown, err.Error())
				return
			}
		}
		e.intoShared(o, index, s, fd)
		if fd >= 0 {
			closeFile(fd)
		}
		if e.broken != nil {
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
func (e *engine) intoShared(o *ownerProcess, index int, s shared, fd int) {
	j := e.index(s.Address)
	for i, a := range e.gpus {
		if i == j || j < 0 || a.Outcome != probe.OK || a.access(j) != fullAccess || e.broken != nil {
			continue
		}
		t := &probe.Transfer{Test: probe.TestInterprocess, Source: a.Address, Destination: s.Address, Way: s.Way, Outcome: probe.OK}
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
		if err := e.copyShared(o, t, a, index, s, fd, seed); err != nil {
			setError(t, err)
			e.broken = e.usable(err, a)
		}
		e.report(t)
	}
}

// copyShared copies from a GPU into the owner's memory and has the owner verify it.
func (e *engine) copyShared(o *ownerProcess, t *probe.Transfer, a *gpu, index int, s shared, fd int, seed uint64) error {
	n := min(s.Size, a.size, sharedBytes)
	if a.kernels == nil {
		n = min(n, hostBytes)
	}
	t.Bytes = int64(n)
	if err := e.d.SetCurrent(a.context); err != nil {
		return err
	}
	var p gpudriver.Pointer
	var err error
	if cuda, is := e.d.Vendor.(*gpudriver.CUDA); is && s.Way == wayVMM {
		p, err = cuda.Import(fd, s.Size, a.handle)
	} else {
		p, err = e.d.OpenIPC(gpudriver.IPCHandle{Reserved: [64]byte(s.Handle)})
	}
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

func (e *engine) startOwner() (*ownerProcess, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	var out []string
	for _, g := range e.gpus {
		if g.Outcome != probe.OK {
			out = append(out, g.Address)
		}
	}
	o := &ownerProcess{demands: make(chan any, 1), answers: make(chan ownerMessage, 4), socket: ours, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		defer theirs.Close() //nolint:errcheck // The child has a copy of its own.
		var err error
		o.end, err = child.Run(ctx, child.Spec{
			Task: ownerTask, Args: order{Mode: e.order.Mode, API: e.d.Names.API, Patience: e.order.Patience, Leave: out}, Files: []*os.File{theirs}, Input: o.demands,
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
	return o, nil
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

func (o *ownerProcess) close() {
	o.stop()
	<-o.ended
	_ = o.socket.Close() // Nothing is left to come.
}
