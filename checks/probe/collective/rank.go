package collective

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/drive"
)

// rankTask is the task of a process that holds one rank, or all of them.
const rankTask = "collective"

// The stages of a rank, beside the names of collectives.
const (
	stageDriver  = "load driver"
	stageLibrary = "load library"
	stageMemory  = "memory"
	stageID      = "ncclGetUniqueId"
	stageInit    = "ncclCommInitRank"
	stageDestroy = "ncclCommDestroy"
	stageEnd     = "end"
)

// stages are the stages in their order; a collective is between stageInit and stageDestroy.
var stages = []string{"", stageDriver, stageLibrary, stageMemory, stageID, stageInit, probe.AllReduce, probe.SendReceive, probe.AllToAll, stageDestroy, stageEnd}

type order struct {
	// API is "cuda" or "hip"; empty means CUDA, and HIP where there is no GPU for it.
	API string `json:"api,omitempty"`
	// Library is the path of the library, or its name.
	Library string `json:"library"`
	// Ranks is the size of the communicator; 0 asks only which GPUs there are, and loads the library.
	Ranks int `json:"ranks"`
	// Mine are the ranks of this process and the ordinals of their GPUs.
	Mine []place `json:"mine"`
	// Bytes is the largest buffer that is needed.
	Bytes int64 `json:"bytes"`
	// Patience bounds one wait for the GPU.
	Patience time.Duration `json:"patience"`
	// Files is the soft limit on open files; 0 leaves it.
	Files int64 `json:"files,omitempty"`
}

type place struct {
	Rank    int `json:"rank"`
	Ordinal int `json:"ordinal"`
	// GPU is the address of the GPU, where the ordinal is not known.
	GPU string `json:"gpu,omitempty"`
}

// command is what the parent tells all ranks to do next. Exactly one field is set.
type command struct {
	// Identify asks rank 0 for the id of the communicator.
	Identify bool `json:"identify,omitempty"`
	// Join gives the id.
	Join []byte `json:"join,omitempty"`
	// Run is a collective.
	Run *task `json:"run,omitempty"`
	// Leave ends the work.
	Leave bool `json:"leave,omitempty"`
}

// task is a collective to run and to verify, and how often to run it again for its time.
type task struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Times int    `json:"times"`
	Seed  uint64 `json:"seed"`
}

// message is what a rank says. Beside its number and rank, exactly one field is set.
type message struct {
	Number int `json:"n"`
	Rank   int `json:"rank"`

	Stage   string         `json:"stage,omitempty"`
	Survey  *survey        `json:"survey,omitempty"`
	Ready   *ready         `json:"ready,omitempty"`
	ID      []byte         `json:"id,omitempty"`
	Joined  bool           `json:"joined,omitempty"`
	Result  *result        `json:"result,omitempty"`
	Failure *drive.Failure `json:"failure,omitempty"`
	Left    bool           `json:"left,omitempty"`
}

// survey is which GPUs the driver offers, and the library.
type survey struct {
	API     string   `json:"api"`
	GPUs    []string `json:"gpus"`
	Path    string   `json:"path"`
	Version string   `json:"version"`
}

type ready struct {
	GPU   string `json:"gpu"`
	Bytes int64  `json:"bytes"` // Of each of its buffers.
}

type result struct {
	// Seconds is the time of one; 0 if the driver's timer gave none.
	Seconds  float64 `json:"seconds"`
	Verified string  `json:"verified"`
	// Unsupported is true if the library lacks it.
	Unsupported bool   `json:"unsupported,omitempty"`
	BadWords    uint64 `json:"bad,omitempty"`
	First       uint64 `json:"first,omitempty"`
	Found       string `json:"found,omitempty"`
}

func init() {
	child.Register(rankTask, func(ctx context.Context, o order, send func(any) error) error {
		return (&process{order: o, tell: drive.Numbered(send, func(m *message, n int) { m.Number = n })}).work(ctx)
	})
}

// process is the child: the driver and the library, and the ranks.
type process struct {
	order   order
	tell    func(message)
	driver  gpudriver.Driver
	devices []gpudriver.Device
	library *gpudriver.NCCL
	version string
}

func (p *process) tellAll(m message) {
	for _, at := range p.order.Mine {
		m.Rank = at.Rank
		p.tell(m)
	}
	if len(p.order.Mine) == 0 {
		p.tell(m)
	}
}

func (p *process) work(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := limitFiles(p.order.Files); err != nil {
		p.tellAll(message{Failure: &drive.Failure{Outcome: probe.Unknown, Cause: probe.CauseShortage, Reason: "set the limit on open files: " + err.Error()}})
		return nil
	}
	p.tellAll(message{Stage: stageDriver})
	if f := p.start(); f != nil {
		p.tellAll(message{Failure: f})
		return nil
	}
	p.tellAll(message{Stage: stageLibrary})
	var err error
	if p.library, err = gpudriver.LoadNCCL(p.order.Library); err == nil {
		p.version, err = p.library.Version()
	}
	if p.order.Ranks == 0 {
		s := &survey{API: p.driver.Names.API, Version: p.version}
		if p.library != nil {
			s.Path = p.library.Path
		}
		for _, d := range p.devices {
			address, _ := p.driver.Address(d)
			s.GPUs = append(s.GPUs, address)
		}
		p.tell(message{Survey: s})
	}
	if err != nil {
		p.tellAll(message{Failure: fail(err)})
		return nil
	}
	if p.order.Ranks == 0 {
		p.tell(message{Left: true})
		return nil
	}
	return p.runRanks(ctx)
}

// start starts a driver, which must offer a GPU.
func (p *process) start() (f *drive.Failure) {
	if p.driver, f = drive.Start(p.order.API, func(string, *drive.Library) {}); f != nil {
		if f.ErrorCode == int(gpudriver.NoDevice) && f.Cause != probe.CauseNoDevice { // Of HIP it says so itself.
			f.Outcome, f.Cause, f.Reason = probe.Unknown, probe.CauseNoDevice, "the driver offers no GPU to this process: "+f.Reason
		}
		return f
	}
	var err error
	if p.devices, err = p.driver.Devices(); err != nil {
		return drive.Of(err)
	}
	if len(p.devices) == 0 {
		return &drive.Failure{Outcome: probe.Unknown, Cause: probe.CauseNoDevice, Reason: "the driver offers no GPU to this process"}
	}
	return nil
}

// fail turns an error into a failure, whose reason does not repeat the call.
func fail(err error) *drive.Failure {
	f := drive.OnGPU(err)
	var said interface{ Said() string }
	if errors.As(err, &said) {
		f.Reason = said.Said()
	}
	return f
}

// runRanks runs each rank on a thread of its own, as the parent tells.
func (p *process) runRanks(ctx context.Context) error {
	var wg sync.WaitGroup
	var inboxes []chan command
	for _, at := range p.order.Mine {
		inbox := make(chan command, 1)
		inboxes = append(inboxes, inbox)
		wg.Go(func() {
			runtime.LockOSThread()
			r := &rank{process: p, place: at}
			r.run(inbox)
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	commands := make(chan command)
	go func() {
		for {
			c, err := child.Receive[command](ctx)
			if err != nil {
				return
			}
			commands <- c
		}
	}()
	for {
		select {
		case c := <-commands:
			for _, inbox := range inboxes {
				inbox <- c
			}
		case <-done:
			return nil
		}
	}
}

// rank is one rank: a GPU, and its place in the communicator.
type rank struct {
	*process
	place
	drive.Clock

	out, in gpudriver.Pointer
	size    int64
	judge   *drive.Judge
	comm    gpudriver.NCCLComm
}

func (r *rank) say(m message) {
	m.Rank = r.Rank
	r.tell(m)
}

// run does what the parent tells until it fails or is to leave. A rank that failed stays: the
// end of its process could end a process of others early.
func (r *rank) run(inbox <-chan command) {
	err := r.prepare()
	for err == nil {
		c := <-inbox
		switch {
		case c.Identify:
			err = r.identify()
		case c.Join != nil:
			err = r.join(c.Join)
		case c.Run != nil:
			err = r.collective(c.Run)
		case c.Leave:
			r.say(message{Stage: stageDestroy})
			if err = r.library.Destroy(r.comm); err == nil {
				r.say(message{Left: true})
				return
			}
		}
	}
	r.say(message{Failure: fail(err)})
	for {
		<-inbox // The parent ends the process.
	}
}

func (r *rank) prepare() error {
	r.say(message{Stage: stageMemory})
	if r.GPU != "" {
		r.Ordinal = slices.IndexFunc(r.devices, func(d gpudriver.Device) bool {
			address, _ := r.driver.Address(d)
			return address == r.GPU
		})
	}
	if r.Ordinal < 0 || r.Ordinal >= len(r.devices) {
		return fmt.Errorf("GPU %d: %w", r.Ordinal, gpudriver.InvalidDevice)
	}
	d, dev := r.driver, r.devices[r.Ordinal]
	address, err := d.Address(dev)
	if err != nil {
		return err
	}
	context, err := d.Retain(dev)
	if err != nil {
		return err
	}
	if err := d.SetCurrent(context); err != nil {
		return err
	}
	if err := r.allocate(); err != nil {
		return err
	}
	if n, err := d.Multiprocessors(dev); err == nil {
		r.judge.Blocks *= uint32(max(n, 1))
	}
	if r.judge.Load() != nil {
		r.size = min(r.size, hostBytes)
	}
	r.say(message{Ready: &ready{GPU: address, Bytes: r.size}})
	return nil
}

// leastBytes is the smallest buffer with which the probe is worth while.
const leastBytes = 64 << 10

const hostBytes = 8 << 20

// allocate takes memory, less on a GPU that is nearly full.
func (r *rank) allocate() error {
	d := r.driver
	out, size, err := drive.AllocateMost(d, uint64(r.order.Bytes), leastBytes, 1, func(n uint64) uint64 { return 2*n + drive.ScratchBytes })
	if err != nil {
		return err
	}
	r.out, r.size, r.in = out, int64(size), out+gpudriver.Pointer(size)
	if r.Clock, err = drive.NewClock(d); err != nil {
		return err
	}
	r.judge = &drive.Judge{Driver: d, Stream: r.Stream, Scratch: r.in + gpudriver.Pointer(r.size), Wait: r.wait, Blocks: blocks, Threads: threads}
	return nil
}

func (r *rank) identify() error {
	if r.Rank != 0 {
		return nil
	}
	r.say(message{Stage: stageID})
	var id gpudriver.NCCLUniqueID
	if err := r.library.GetUniqueID(&id); err != nil {
		return err
	}
	r.say(message{ID: id.Internal[:]})
	return nil
}

func (r *rank) join(raw []byte) error {
	var id gpudriver.NCCLUniqueID
	if len(raw) != len(id.Internal) {
		return fmt.Errorf("%d bytes are no unique id", len(raw))
	}
	copy(id.Internal[:], raw)
	r.say(message{Stage: stageInit})
	if err := r.library.CommInitRank(&r.comm, int32(r.order.Ranks), id, int32(r.Rank)); err != nil {
		return err
	}
	r.say(message{Joined: true})
	return nil
}

// wait waits for the stream, and for an error that the library meets meanwhile.
func (r *rank) wait() error {
	return r.Wait(r.order.Patience, func() error {
		if r.comm == 0 {
			return nil
		}
		return r.library.Async(r.comm)
	})
}

func (r *rank) layout(t *task) (sent, received []drive.Area) {
	n, bytes := r.order.Ranks, uint64(t.Bytes)
	part := func(at gpudriver.Pointer, pattern, ranks int) drive.Area {
		return drive.Area{At: at, Bytes: bytes, Seed: t.Seed + uint64(pattern)*drive.RankStep, Ranks: uint64(ranks)}
	}
	switch t.Name {
	case probe.AllReduce:
		return []drive.Area{part(r.out, r.Rank, 1)}, []drive.Area{part(r.in, 0, n)}
	case probe.SendReceive:
		return []drive.Area{part(r.out, r.Rank, 1)}, []drive.Area{part(r.in, (r.Rank+n-1)%n, 1)}
	}
	bytes /= uint64(n)
	for peer := range n {
		at := gpudriver.Pointer(uint64(peer) * bytes)
		sent = append(sent, part(r.out+at, r.Rank*n+peer, 1))
		received = append(received, part(r.in+at, peer*n+r.Rank, 1))
	}
	return sent, received
}

func (r *rank) enqueue(t *task, sent, received []drive.Area) error {
	if t.Name == probe.AllReduce {
		return r.library.AllReduce(r.comm, r.out, r.in, uint64(t.Bytes/8), r.Stream)
	}
	n := r.order.Ranks
	var sends, receives []gpudriver.NCCLMessage
	for i := range sent {
		to, from := i, i
		if t.Name == probe.SendReceive {
			to, from = (r.Rank+1)%n, (r.Rank+n-1)%n
		}
		sends = append(sends, gpudriver.NCCLMessage{Peer: to, At: sent[i].At, N: sent[i].Bytes / 8})
		receives = append(receives, gpudriver.NCCLMessage{Peer: from, At: received[i].At, N: received[i].Bytes / 8})
	}
	return r.library.Exchange(r.comm, sends, receives, r.Stream)
}

// collective runs a collective once, verified, and then as often as asked for its time, again verified.
func (r *rank) collective(t *task) error {
	r.say(message{Stage: t.Name})
	if t.Bytes <= 0 || t.Bytes > r.size {
		return fmt.Errorf("%d bytes do not fit", t.Bytes)
	}
	sent, received := r.layout(t)
	for _, s := range sent {
		if err := r.judge.Fill(s.At, s.Bytes, s.Seed); err != nil {
			return err
		}
		if err := r.judge.Filled(); err != nil {
			return err
		}
	}
	res := &result{}
	for round, times := range []int{1, t.Times} {
		if times == 0 {
			break
		}
		if err := r.driver.Set32(r.in, drive.Poison32, uint64(t.Bytes/4), r.Stream); err != nil {
			return err
		}
		if err := r.wait(); err != nil {
			return err
		}
		seconds, err := r.timed(times, func() error { return r.enqueue(t, sent, received) })
		if errors.Is(err, gpudriver.ErrMissing) {
			r.say(message{Result: &result{Unsupported: true}})
			return nil
		}
		if err != nil {
			return err
		}
		if round == 0 || seconds > 0 {
			res.Seconds = seconds / float64(times)
		}
		// Wrong data of the first run is kept; the others expect this rank in the second one.
		if res.BadWords > 0 {
			continue
		}
		if err := r.verify(res, received); err != nil {
			return err
		}
	}
	r.say(message{Result: res})
	return nil
}

// timed enqueues work so many times and returns the seconds that it took; 0 without a usable time.
func (r *rank) timed(times int, work func() error) (float64, error) {
	if err := r.Begin(times, func(uint64, gpudriver.Stream) error { return work() }); err != nil {
		return 0, err
	}
	if err := r.wait(); err != nil {
		return 0, err
	}
	seconds, err := r.Seconds()
	if err != nil || !drive.Usable(seconds) {
		return 0, err
	}
	return seconds, nil
}

// The launch of kernels: blocks for each SM, threads in a block.
const (
	blocks  = 8
	threads = 256
)

// verify compares the parts with what they should hold, and notes the first that differs.
func (r *rank) verify(res *result, parts []drive.Area) error {
	res.Verified = r.judge.Where()
	for _, p := range parts {
		if err := r.judge.Begin(p); err != nil {
			return err
		}
		c, err := r.judge.End()
		if err != nil {
			return err
		}
		if c.Bad == 0 {
			continue
		}
		if res.BadWords == 0 {
			res.First, res.Found = uint64(p.At-r.in)/8+c.First, c.Found()
		}
		res.BadWords += c.Bad
	}
	return nil
}
