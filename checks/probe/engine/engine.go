// Package engine moves data between GPUs and reports the outcome. It drives the vendor's driver API in a child of this
// binary, which may hang or crash without harm, and it verifies every byte on the GPU that owns it. It judges not the
// speed: what a path should reach follows from the links, which package checks knows.
package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/drive"
)

// Sizes and counts of the probe.
const (
	// copyBytes is one copy of a bandwidth test on a fast path: 1.4 ms at 396 GB/s. Between two copies of a stream lie about 4 µs
	// (H200: 387 GB/s with copies of 64 MiB, 394.5 with 256 MiB, 395.6 with 512 MiB; nvbandwidth says 396.4). The quick probe
	// takes half.
	copyBytes = 512 << 20
	// wakeBytes is the first copy, which wakes the link and measures its rate;
	// a path slower than fastGBps is timed with the same size.
	wakeBytes = 64 << 20
	fastGBps  = 100
	// smBlocks for each multiprocessor and smThreads are the shape of the SM copies.
	smBlocks, smThreads = 4, 512
	// copyTimes is how many copies are timed together, each of its own part of the buffer.
	copyTimes, partAlign = 3, 4096
	// resultBytes is the buffer into which kernels report, flagBytes the one through which they communicate,
	// and guardBytes what must not change on either side of a destination.
	resultBytes, flagBytes, guardBytes = 4096, 4096, 4096
	// checkBytes is what the check of a single GPU moves.
	checkBytes = 64 << 10
	// leastBytes is the minimum that is worth copying on a GPU that is nearly full.
	leastBytes = 1 << 20
	// storeBytes is what the SM tests of the quick probe move.
	storeBytes = 4 << 20
	// hostTimes is the same for copies with host memory, of which three take less than 4 ms (H200, PCIe 5.0 x16).
	hostTimes = 8
	// hostBytes is what is compared on the host if no kernel can run.
	hostBytes = 8 << 20
	// attempts is how often a transfer with wrong data is tried.
	attempts = 3
)

// errClock says that the driver's timer returned an impossible time, and errCorrupt that a GPU's own memory
// holds wrong data.
var (
	errClock   = errors.New("the driver's timer returned no usable time")
	errCorrupt = errors.New("the driver reported success, but the data is wrong")
)

// The stages of a probe, in addition to those named after their test.
const (
	stageDevices  = "devices"
	stageQuery    = "peer access query"
	stageContexts = "contexts"
	stageMemory   = "memory"
	stagePeers    = "peer access"
	stageKernels  = "kernels"
	stageCheck    = probe.StageCheck
	stageCleanup  = "cleanup"
)

// message is what the child sends. In addition to its number, exactly one field is set.
type message struct {
	// Number counts the messages of one child from 1, so that one that was lost, repeated or reordered is noticed.
	Number int `json:"n"`

	Stage    string          `json:"stage,omitempty"`
	Step     *step           `json:"step,omitempty"`
	Library  *drive.Library  `json:"library,omitempty"`
	Device   *probe.Device   `json:"device,omitempty"`
	Peer     *probe.Peer     `json:"peer,omitempty"`
	SMTests  string          `json:"sm_tests,omitempty"`
	Begin    *probe.Transfer `json:"begin,omitempty"`
	Transfer *probe.Transfer `json:"transfer,omitempty"`
	Failure  *drive.Failure  `json:"failure,omitempty"`
	Await    bool            `json:"await,omitempty"`
	Judge    bool            `json:"judge,omitempty"` // Which transfers are slow?
	Ended    *bool           `json:"ended,omitempty"` // True when nothing is left to do.
}

// step is what is being done for one GPU while all are being initialized.
type step struct {
	Name string `json:"name"`
	GPU  string `json:"gpu"`
	Done bool   `json:"done,omitempty"`
}

// order is what the child is asked to do.
type order struct {
	Mode probe.Mode `json:"mode"`
	// API is the only one to try; empty means CUDA, then HIP.
	API string `json:"api,omitempty"`
	// Patience bounds one transfer.
	Patience time.Duration `json:"patience"`
	// Skip are the transfers that an earlier child has already tried, by transferKey.
	Skip []string `json:"skip,omitempty"`
	// Await makes the child wait to learn which GPUs are busy before it touches one.
	Await bool `json:"await,omitempty"`
	// Leave are GPUs that must be left alone.
	Leave []string `json:"leave,omitempty"`
	// Suspects are pairs with wrong data in an earlier child.
	Suspects [][2]string `json:"suspects,omitempty"`
	// Control leaves out all but the control arm for the suspects.
	Control bool `json:"control,omitempty"`
	// Judge makes the child ask, at the end, which transfers are slow and should be timed again.
	Judge bool `json:"judge,omitempty"`
}

// transferKey names a transfer within one probe.
func transferKey(t *probe.Transfer) string { return t.Test + " " + t.Source + " " + t.Destination }

// gpu is a GPU that is ready for transfers.
type gpu struct {
	probe.Device
	drive.Clock // For all work of this GPU alone.

	handle  gpudriver.Device
	context gpudriver.Context
	// out is sent from, in is received into; each holds size bytes. result
	// holds what kernels report, flags what they exchange.
	out, in, result, flags gpudriver.Pointer
	size                   uint64
	peers                  map[int]bool // By index: peer access is on.
	// unasked are errors of querying peer access, by index.
	unasked   map[int]error
	judge     *drive.Judge
	kernels   map[string]gpudriver.Function
	noKernels error // Why there are none.
	noFlags   error // Why kernels of two GPUs cannot talk to each other.
	failed    bool  // A step of making it ready failed.
	sms       uint32
	pinned    []byte // For small answers.
}

// engine drives the transfers, on one thread. Only making the GPUs ready is done in parallel.
type engine struct {
	reporting sync.Mutex // Guards what report keeps.
	retaining sync.Mutex // Lets one context be made after the other: the driver gains nothing by two at once, and the first is ready sooner.
	d         gpudriver.Driver
	order     order
	send      func(message)
	skip      map[string]bool
	again     map[string]bool // All that is to be tried while slow transfers are timed again, else nil.
	gpus      []*gpu
	several   bool        // More than one of them takes part.
	seeds     []uint64    // All that were used, to tell foreign data.
	suspects  [][2]string // Pairs that came out wrong.
	noSM      string      // Why no kernel can be run.
	broken    error       // A context is lost: nothing more can be done here.
	staging   []byte      // Pinned, for the control arm.
	// askBusy waits to learn which GPUs are busy, by address, and with what.
	askBusy func() (map[string]probe.User, error)
	// askSlow waits to learn which transfers to time again, by their keys.
	askSlow func() ([]string, error)
}

func newEngine(o order, send func(message)) *engine {
	return &engine{order: o, send: send, skip: setOf(o.Skip)}
}

func setOf(keys []string) map[string]bool {
	set := make(map[string]bool, len(keys))
	for _, key := range keys {
		set[key] = true
	}
	return set
}

// run does the whole probe. It reports false when a context is lost, so that the rest needs a new process.
func (e *engine) run() (whole bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if f := e.prepare(); f != nil {
		e.send(message{Failure: f})
		return true
	}
	if !e.order.Control {
		parts := plan(e.order.Mode)
		if !e.try(parts) || !e.timeSlow(parts) {
			return false
		}
	}
	if !e.try([]part{controlArm}) {
		return false
	}
	e.stage(stageCleanup)
	e.release()
	return true
}

// try runs parts of the plan, and reports false when a context is lost.
func (e *engine) try(parts []part) bool {
	for _, p := range parts {
		if e.again != nil && !p.rates {
			continue
		}
		e.stage(p.stage)
		p.run(e)
		if e.broken != nil {
			return false
		}
	}
	return true
}

// timeSlow times those transfers again that the parent calls slow, until it names none. The parent waits before it answers:
// other users of the GPUs may be gone by then.
func (e *engine) timeSlow(parts []part) bool {
	defer func() { e.again = nil }()
	for e.order.Judge {
		e.send(message{Judge: true})
		slow, err := e.askSlow()
		if err != nil || len(slow) == 0 { // Without an answer the rates stand.
			break
		}
		if e.again = setOf(slow); !e.try(parts) {
			return false
		}
	}
	return true
}

func (e *engine) leaves(t *probe.Transfer) bool {
	if e.again != nil {
		return !e.again[transferKey(t)]
	}
	return e.skip[transferKey(t)]
}

func (e *engine) stage(name string) { e.send(message{Stage: name}) }

func fail(err error) *drive.Failure { return ofProbe(err, drive.Of(err)) }

// failOnGPU is fail for a call that allocates something on a GPU.
func failOnGPU(err error) *drive.Failure { return ofProbe(err, drive.OnGPU(err)) }

// ofProbe adds the errors of this package.
func ofProbe(err error, f *drive.Failure) *drive.Failure {
	switch {
	case errors.Is(err, errOwner):
		f.Outcome, f.Cause = probe.Unknown, probe.CauseEnded
	case errors.Is(err, errClock):
		f.Outcome, f.Cause = probe.Unknown, probe.CauseClock
	case errors.Is(err, errCorrupt):
		f.Outcome = probe.Corrupt
	}
	return f
}

func (e *engine) prepare() *drive.Failure {
	d, f := drive.Start(e.order.API, func(stage string, l *drive.Library) { e.send(message{Stage: stage, Library: l}) })
	if f != nil {
		return f
	}
	e.d = d
	e.stage(stageDevices)
	if f := e.devices(); f != nil {
		return f
	}
	e.stage(stageQuery)
	e.queryPeers()
	if e.order.Await {
		e.send(message{Await: true})
		busy, err := e.askBusy()
		if err != nil {
			return &drive.Failure{Outcome: probe.Unknown, Reason: err.Error(), Cause: probe.CauseProtocol}
		}
		for _, g := range e.gpus {
			if user, is := busy[g.Address]; is {
				g.Outcome, g.Reason, g.Cause, g.User = probe.Unknown, user.String(), probe.CauseBusy, &user
			}
		}
	}
	for _, g := range e.gpus {
		if slices.Contains(e.order.Leave, g.Address) {
			g.Outcome, g.Reason, g.Cause = probe.Unknown, "left alone", probe.CauseLeftAlone
		}
	}
	e.ready()
	return nil
}

func (e *engine) devices() *drive.Failure {
	handles, err := e.d.Devices()
	if err != nil {
		return fail(err)
	}
	for i, h := range handles {
		g := &gpu{handle: h, peers: map[int]bool{}, unasked: map[int]error{}, Device: probe.Device{Ordinal: i, Outcome: probe.OK}}
		if g.Address, err = e.d.Address(h); err != nil {
			return fail(err)
		}
		if f := e.ambiguous(g.Address); f != nil {
			return f
		}
		g.Name, _ = e.d.Name(h)
		g.ComputeCapability = e.d.Capability(h)
		if n, err := e.d.TotalMemory(h); err == nil {
			g.MemoryBytes = int64(n)
		}
		if n, err := e.d.Multiprocessors(h); err == nil {
			g.sms = uint32(n)
		}
		g.sms = cmp.Or(g.sms, 1)
		e.gpus = append(e.gpus, g)
	}
	return nil
}

// pciAddress is how cuDeviceGetPCIBusId and hipDeviceGetPCIBusId write one, in lower case.
var pciAddress = lazy.New(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)

// ambiguous is the failure of a device whose results could not be told from those of others.
func (e *engine) ambiguous(address string) *drive.Failure {
	reason := fmt.Sprintf("the driver gives %.40q as the PCI address of a GPU", address)
	if pciAddress.MatchString(address) {
		if e.index(address) < 0 {
			return nil
		}
		reason = "the driver gives two GPUs the PCI address " + address
	}
	return &drive.Failure{Outcome: probe.Unknown, Cause: probe.CauseIncompatible, Reason: reason + ", so it is not known which is which"}
}

func (e *engine) queryPeers() {
	for i, a := range e.gpus {
		for j, b := range e.gpus {
			if i == j {
				continue
			}
			p := &probe.Peer{Source: a.Address, Destination: b.Address}
			if can, err := e.d.CanAccessPeer(a.handle, b.handle); err != nil {
				a.unasked[j] = err
			} else if p.Access = &can; can {
				a.peers[j] = false // Possible, not yet on.
			}
			e.send(message{Peer: p})
		}
	}
}

// ready initializes the GPUs: each step for all of them, in parallel, before the next one.
func (e *engine) ready() {
	// The kernels are compiled on the first GPU while the next one's context is made.
	e.several = len(e.alive()) > 1
	e.stage(stageContexts)
	e.forAll(func(g *gpu) error {
		return cmp.Or(
			e.step(g, stageContexts, e.retain),
			e.step(g, stageMemory, e.allocate),
			e.step(g, stageKernels, e.loadKernels),
		)
	})
	e.agreeOnKernels()
	e.stage(stageCheck)
	e.forAll(func(g *gpu) error { return e.step(g, stageCheck, e.selfCheck) })
	e.stage(stagePeers)
	e.forAll(func(g *gpu) error { return e.step(g, stagePeers, e.enablePeers) })
	for _, g := range e.gpus {
		e.send(message{Device: &g.Device})
	}
}

// step tells the parent what is done for which GPU, so that a call that hangs is blamed on the right one.
func (e *engine) step(g *gpu, name string, do func(*gpu) error) error {
	if g.Outcome != probe.OK || g.failed {
		return nil
	}
	e.send(message{Step: &step{Name: name, GPU: g.Address}})
	err := do(g)
	g.failed = err != nil
	e.send(message{Step: &step{Name: name, GPU: g.Address, Done: true}})
	return err
}

// retain makes a GPU's context and makes it current.
func (e *engine) retain(g *gpu) (err error) {
	e.retaining.Lock()
	g.context, err = e.d.Retain(g.handle)
	e.retaining.Unlock()
	if err != nil {
		return err
	}
	if err := e.d.SetCurrent(g.context); err != nil {
		return err
	}
	switch current, err := e.d.Current(); {
	case errors.Is(err, gpudriver.ErrMissing):
		return nil
	case err != nil:
		return err
	case current != g.handle:
		return fmt.Errorf("%w: the driver made device %d current instead of %d", drive.ErrBroken, current, g.handle)
	}
	return nil
}

// forAll runs a step for each GPU, each on a thread of its own, and notes those for which it fails.
func (e *engine) forAll(step func(*gpu) error) {
	var wg sync.WaitGroup
	for _, g := range e.gpus {
		if g.Outcome != probe.OK {
			continue
		}
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if g.context != 0 {
				if err := e.d.SetCurrent(g.context); err != nil {
					g.lose(err)
					return
				}
			}
			if err := step(g); err != nil {
				g.lose(err)
			}
		})
	}
	wg.Wait()
}

func (g *gpu) lose(err error) {
	f := failOnGPU(err)
	g.Outcome, g.Reason, g.Cause, g.ErrorCode, g.ErrorName, g.Call = f.Outcome, f.Reason, f.Cause, f.ErrorCode, f.ErrorName, f.Call
}

// allocate takes a GPU's memory, less on one that is nearly full, its stream and events.
func (e *engine) allocate(g *gpu) error {
	most := uint64(copyTimes * copyBytes)
	switch {
	case e.order.Mode == probe.Quick && !e.several:
		most = checkBytes
	case e.order.Mode == probe.Quick:
		most /= 2
	}
	var err error
	g.out, g.size, err = drive.AllocateMost(e.d, most, leastBytes, partAlign, func(n uint64) uint64 { return 2*(n+guardBytes) + resultBytes })
	if err != nil {
		return err
	}
	g.in = g.out + gpudriver.Pointer(g.size+guardBytes)
	g.result = g.in + gpudriver.Pointer(g.size+guardBytes)
	if g.flags, err = e.d.AllocShared(flagBytes); err != nil {
		// Only kernels that communicate with each other need it.
		g.flags, g.noFlags = g.result+resultBytes/2, err
	}
	if g.pinned, err = e.d.AllocHost(4096); err != nil {
		return err
	}
	if g.Clock, err = drive.NewClock(e.d); err != nil {
		return err
	}
	g.judge = &drive.Judge{
		Driver: e.d, Stream: g.Stream, Scratch: g.result, Wait: func() error { return e.wait(g) }, Blocks: g.sms * smBlocks, Threads: smThreads,
	}
	return nil
}

func (e *engine) enablePeers(g *gpu) error {
	for _, j := range slices.Sorted(maps.Keys(g.peers)) {
		if e.gpus[j].context == 0 {
			continue
		}
		if err := e.d.EnablePeer(e.gpus[j].context); err != nil {
			t := probe.Transfer{Test: probe.TestCopy, Source: g.Address, Destination: e.gpus[j].Address}
			setError(&t, err)
			e.report(&t)
			continue
		}
		g.peers[j] = true
	}
	return nil
}

// loadKernels compiles the kernels for one GPU: those that move data only if there is a peer.
func (e *engine) loadKernels(g *gpu) error {
	err := g.judge.Load()
	if err == nil && e.several {
		err = e.loadPairs(g)
	}
	g.noKernels = err // The GPU still takes part.
	return nil
}

func (e *engine) loadPairs(g *gpu) error {
	m, err := e.d.LoadModule(drive.PairKernels(e.d.Names.API))
	g.kernels = make(map[string]gpudriver.Function)
	for _, name := range []string{"gd_copy", "gd_handshake", "gd_chase", "gd_atomics"} {
		if err == nil {
			g.kernels[name], err = e.d.Function(m, name)
		}
	}
	return err
}

// agreeOnKernels compares on the host for all GPUs if one cannot run kernels.
func (e *engine) agreeOnKernels() {
	for _, g := range e.gpus {
		if g.noKernels != nil {
			e.noSM = fmt.Sprintf("cannot run a kernel on %s: %v", g.Address, g.noKernels)
		}
	}
	if e.noSM == "" {
		return
	}
	e.send(message{SMTests: e.noSM})
	for _, g := range e.gpus {
		if g.kernels = nil; g.judge != nil {
			g.judge.OnHost()
		}
	}
}

// release frees memory; the end of the process frees the rest.
func (e *engine) release() {
	for _, g := range e.gpus {
		if g.context == 0 || e.d.SetCurrent(g.context) != nil {
			continue
		}
		if g.out != 0 {
			_ = e.d.Free(g.out) // The process ends anyway.
		}
	}
}

func (e *engine) on(g *gpu, calls ...func() error) error {
	err := e.d.SetCurrent(g.context)
	for i := 0; err == nil && i < len(calls); i++ {
		err = calls[i]()
	}
	return err
}

func (e *engine) wait(g *gpu) error {
	return e.on(g, func() error { return g.Wait(e.order.Patience, nil) })
}
