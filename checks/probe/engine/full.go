package engine

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/drive"
)

// Sizes and counts of the full probe.
const (
	// bothTimes is how many copies are timed in each direction: the two start some 10 µs apart.
	bothTimes = 16
	// rounds is how often a handshake goes there and back, and shakeBound how long it may take. A round takes 1.3 µs on H200; if
	// a desktop or another job takes turns on a GPU it takes slices of 2 ms, so it is tried again.
	rounds     = 100
	shakeBound = 2 * time.Second
	shakeTries = 2
	// chaseStride and chaseNodes lay out the list of the latency test: 2 MiB,
	// every node in a cache line of its own (128 bytes at most).
	chaseStride = 256
	chaseNodes  = 8192
	// atomicBlocks, atomicThreads and atomicAdds are the shape of the test of atomics.
	atomicBlocks, atomicThreads, atomicAdds = 8, 32, 64
	// stageBytes is one half of the buffer through which staged data goes.
	stageBytes = 8 << 20
	// controls bounds how many pairs the quick probe tries through the host.
	controls = 8
)

// bidirectional has both copy engines write at once.
func (e *engine) bidirectional(t *probe.Transfer, a, b *gpu, seed uint64) error {
	n := min(a.size, b.size)
	if a.kernels == nil || b.kernels == nil {
		n = min(n, copyTimes*hostBytes)
	}
	n = n / copyTimes &^ (partAlign - 1)
	t.Bytes = int64(n)
	type way struct {
		from, to *gpu
		seed     uint64
	}
	back := seed ^ 1<<63 // The other direction's own pattern.
	e.seeds = append(e.seeds, back)
	whole, ways := copyTimes*n, []way{{a, b, seed}, {b, a, back}}
	for _, w := range ways {
		if err := e.lay(w.from, w.to, whole, w.seed); err != nil {
			return err
		}
	}
	for _, w := range ways {
		put := e.engineCopy(w.from, w.to)
		// The copies use the parts of the buffer in turn.
		if err := e.begin(w.from, bothTimes, func(time uint64, s gpudriver.Stream) error { return put(time%copyTimes*n, n, s) }); err != nil {
			return err
		}
	}
	var seconds []float64
	for _, w := range ways {
		took, err := e.end(w.from)
		if err != nil {
			return err
		}
		seconds = append(seconds, took)
	}
	for _, w := range ways {
		if err := e.arrived(t, w.from, w.to, whole, w.seed); err != nil || t.Outcome != probe.OK {
			return err
		}
	}
	sum := 0.0
	for _, took := range seconds {
		if setRate(t, bothTimes*n, took, most(a, b)); t.GBps == nil {
			return nil
		}
		sum += *t.GBps
	}
	t.GBps = &sum
	return nil
}

// lane is one transfer of the test in which all run at once.
type lane struct {
	drive.Clock

	t       *probe.Transfer
	a, b    *gpu
	out, in gpudriver.Pointer
	seed    uint64
}

// allAtOnce has every GPU write to every peer at the same time.
func (e *engine) allAtOnce() {
	lanes, n := e.lanes()
	for _, l := range lanes {
		e.send(message{Begin: l.t})
	}
	if err := e.race(lanes, n); err != nil {
		for _, l := range lanes {
			if l.t.Outcome == probe.OK && l.t.Verified == "" {
				setError(l.t, err)
			}
		}
		e.broken = e.usable(err, e.alive()...)
	}
	for _, l := range lanes {
		e.report(l.t)
	}
}

func (e *engine) alive() []*gpu {
	return slices.DeleteFunc(slices.Clone(e.gpus), func(g *gpu) bool { return g.Outcome != probe.OK })
}

// lanes gives each ordered pair a part of the buffers at either end, and returns its size.
func (e *engine) lanes() ([]*lane, uint64) {
	n := uint64(copyBytes)
	for _, g := range e.alive() {
		n = min(n, g.size)
		if g.kernels == nil {
			n = min(n, hostBytes)
		}
	}
	n = n / uint64(max(1, len(e.gpus))) &^ 4095
	var lanes []*lane
	for i, a := range e.gpus {
		for j, b := range e.gpus {
			t := &probe.Transfer{Test: probe.TestAllAtOnce, Source: a.Address, Destination: b.Address, Outcome: probe.OK, Bytes: int64(n)}
			if i == j || a.Outcome != probe.OK || b.Outcome != probe.OK || a.access(j) != fullAccess || e.skip[transferKey(t)] {
				continue
			}
			lanes = append(lanes, &lane{
				t: t, a: a, b: b, seed: e.seed(probe.TestAllAtOnce, i, j, 0),
				out: a.out + gpudriver.Pointer(uint64(j)*n), in: b.in + gpudriver.Pointer(uint64(i)*n),
			})
		}
	}
	return lanes, n
}

func (e *engine) race(lanes []*lane, n uint64) error {
	for _, l := range lanes {
		if err := e.prepareLane(l, n); err != nil {
			return err
		}
	}
	for _, l := range lanes {
		if err := e.wait(l.a); err != nil {
			return err
		}
	}
	for _, l := range lanes {
		put := func(_ uint64, s gpudriver.Stream) error { return e.d.Copy(l.in, l.out, n, s) }
		if err := e.on(l.a, func() error { return l.Begin(bothTimes, put) }); err != nil {
			return err
		}
	}
	for _, l := range lanes {
		if err := e.on(l.a, func() error { return l.Wait(e.order.Patience, nil) }); err != nil {
			return err
		}
	}
	for _, l := range lanes {
		var seconds float64
		if err := e.on(l.a, func() (err error) { seconds, err = l.Seconds(); return err }); err != nil {
			return err
		}
		if err := e.verify(l.t, areaOf(l.b, l.in, n, l.seed, 0)); err != nil {
			return err
		}
		setRate(l.t, bothTimes*n, seconds, most(l.a, l.b))
	}
	return nil
}

func (e *engine) prepareLane(l *lane, n uint64) error {
	if err := e.fill(l.a, l.out, n, l.seed); err != nil {
		return err
	}
	if err := e.blank(l.b, l.in, n, 0); err != nil {
		return err
	}
	return e.on(l.a, func() (err error) { l.Clock, err = drive.NewClock(e.d); return err })
}

// zeroFlags clears what a GPU's kernels exchange and report.
func (e *engine) zeroFlags(gpus ...*gpu) error {
	for _, g := range gpus {
		if err := e.on(g,
			func() error { return e.d.Set32(g.result, 0, resultBytes/4, g.Stream) },
			func() error { return e.d.Set32(g.flags, 0, flagBytes/8, g.Stream) }, // Where there is no shared memory, they are the second half of the result.
			func() error { return e.wait(g) },
		); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) words(g *gpu, p gpudriver.Pointer, count int) ([]uint64, error) {
	b := g.pinned[:8*count]
	if err := e.on(g, func() error { return e.d.CopyToHost(b, p, g.Stream) }, func() error { return e.wait(g) }); err != nil {
		return nil, err
	}
	words := make([]uint64, count)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return words, nil
}

// handshake lets a kernel on each GPU answer the other's stores. Both kernels
// are bounded, so a store that is never seen ends the test, not the GPU.
func (e *engine) handshake(t *probe.Transfer, a, b *gpu, _ uint64) error {
	if withoutFlags(t, a, b) {
		return nil
	}
	// A longer limit for transfers also applies here; and the kernels end before that of their stream.
	bound := min(max(shakeBound, e.order.Patience/5), e.order.Patience/2)
	var first, second shaken
	apart := time.Duration(0)
	for range shakeTries {
		var err error
		if first, second, apart, err = e.shake(a, b, bound); err != nil {
			return err
		}
		if first.rounds == rounds && second.rounds == rounds {
			setTime(t, first.seconds, rounds)
			return nil
		}
	}
	// A store is lost if nothing was seen for most of the time. If stores were seen up to the end, or one kernel finished
	// before the other started, a process had to wait for a processor.
	switch lost := bound.Seconds() / 2; {
	case apart.Seconds() > lost:
		t.Outcome, t.Cause = probe.Unknown, probe.CauseDeadline
		t.Reason = fmt.Sprintf("the kernels were started %s apart, but must exchange data within %s: this machine is too busy", roughly(apart), bound)
		return nil
	case min(first.silent, second.silent) < lost:
		t.Outcome, t.Cause = probe.Unknown, probe.CauseDeadline
		t.Reason = fmt.Sprintf("only round %d of %d was reached within %s; all stores up to then were seen", first.rounds+1, rounds, bound)
		return nil
	}
	// The first side stores the number of a round before it waits: the one that is behind did not see a store.
	from, to := a, b
	if second.rounds > first.rounds {
		from, to = b, a
	}
	t.Outcome = probe.Hang
	t.Reason = fmt.Sprintf("%s did not see the store of %s in round %d of %d within %s", to.Address, from.Address, first.rounds+1, rounds, bound)
	return nil
}

// withoutFlags notes that kernels of two GPUs cannot communicate.
func withoutFlags(t *probe.Transfer, gpus ...*gpu) bool {
	for _, g := range gpus {
		if g.noFlags != nil {
			t.Outcome, t.Cause = probe.Unknown, probe.CauseUnavailable
			t.Reason = fmt.Sprintf("cannot allocate memory on %s that running kernels can share: %v", g.Address, g.noFlags)
			return true
		}
	}
	return false
}

// shaken is what a kernel reports of a handshake: the rounds done, the time taken,
// and the time since it saw the last store, in seconds.
type shaken struct {
	rounds          uint64
	seconds, silent float64
}

// shake runs one handshake and returns what each side reports, and how far apart the two were started.
func (e *engine) shake(a, b *gpu, bound time.Duration) (first, second shaken, apart time.Duration, err error) {
	if err := e.zeroFlags(a, b); err != nil {
		return first, second, 0, err
	}
	begun := time.Now()
	for _, side := range []struct {
		g, peer *gpu
		first   uint64
	}{{a, b, 1}, {b, a, 0}} {
		if err := e.on(side.g, func() error {
			return e.d.Launch(side.g.kernels["gd_handshake"], 1, 1, side.g.Stream,
				uint64(side.g.flags), uint64(side.peer.flags), rounds, side.first, uint64(bound.Seconds()*e.d.TimerHz(side.g.handle)), uint64(side.g.result))
		}); err != nil {
			return first, second, 0, err
		}
	}
	apart = time.Since(begun)
	for _, g := range []*gpu{a, b} {
		if err := e.wait(g); err != nil {
			return first, second, 0, err
		}
	}
	if first, err = e.shaken(a); err != nil {
		return first, second, 0, err
	}
	second, err = e.shaken(b)
	return first, second, apart, err
}

func (e *engine) shaken(g *gpu) (shaken, error) {
	words, err := e.words(g, g.result, 3)
	if err != nil {
		return shaken{}, err
	}
	hz := e.d.TimerHz(g.handle)
	return shaken{words[0], float64(words[1]) / hz, float64(words[2]) / hz}, nil
}

// latency has a follow pointers through the memory of b.
func (e *engine) latency(t *probe.Transfer, a, b *gpu, _ uint64) error {
	nodes := min(chaseNodes, int(b.size/chaseStride))
	list, err := drive.Pinned(e.d, &b.pinned, uint64(nodes)*chaseStride)
	if err != nil {
		return err
	}
	clear(list)
	for i := range nodes {
		next := uint64(b.in) + uint64((i+1)%nodes*chaseStride)
		binary.LittleEndian.PutUint64(list[i*chaseStride:], next)
	}
	if err := e.on(b,
		func() error { return e.d.CopyToDevice(b.in, list, b.Stream) },
		func() error { return e.wait(b) },
		func() error { return e.zeroFlags(a) },
	); err != nil {
		return err
	}
	chase := func(_ uint64, s gpudriver.Stream) error {
		return e.d.Launch(a.kernels["gd_chase"], 1, 1, s, uint64(b.in), uint64(nodes), uint64(a.result))
	}
	if _, err := e.timed(a, 1, chase); err != nil {
		return err
	}
	seconds, err := e.timed(a, 1, chase)
	if err != nil {
		return err
	}
	last, err := e.words(a, a.result, 1)
	if err != nil {
		return err
	}
	if last[0] != uint64(b.in) { // After a whole round the list leads back to its start.
		t.Outcome, t.Reason = probe.Corrupt, "loads from the peer's memory returned wrong data"
		return nil
	}
	setTime(t, seconds, nodes)
	return nil
}

// atomics has both GPUs add to a counter in the memory of b at once.
func (e *engine) atomics(t *probe.Transfer, a, b *gpu, _ uint64) error {
	if !e.d.NativeAtomics(a.handle, b.handle) {
		t.Outcome, t.Reason = probe.Unsupported, "the driver offers no native atomics for this pair"
		return nil
	}
	if withoutFlags(t, b) {
		return nil
	}
	if err := e.zeroFlags(b); err != nil {
		return err
	}
	for _, g := range []*gpu{a, b} {
		if err := e.on(g, func() error {
			return e.d.Launch(g.kernels["gd_atomics"], atomicBlocks, atomicThreads, g.Stream, uint64(b.flags), atomicAdds)
		}); err != nil {
			return err
		}
	}
	for _, g := range []*gpu{a, b} {
		if err := e.wait(g); err != nil {
			return err
		}
	}
	sum, err := e.words(b, b.flags, 1)
	if err != nil {
		return err
	}
	const want = 2 * atomicBlocks * atomicThreads * atomicAdds
	if sum[0] != want {
		t.Outcome, t.Reason = probe.Corrupt, fmt.Sprintf("%d of %d additions arrived", sum[0], want)
	}
	t.Verified = "gpu"
	return nil
}

// staged is the control arm: the data goes through pinned host memory, half a
// buffer coming in while the other goes out.
func (e *engine) staged(t *probe.Transfer, a, b *gpu, seed uint64) error {
	n := min(a.size, b.size, wakeBytes)
	if a.kernels == nil || b.kernels == nil {
		n = min(n, stageBytes)
	}
	step := min(n, stageBytes) &^ (partAlign - 1) // leastBytes is far above partAlign.
	n = n / step * step
	t.Bytes = int64(n)
	if err := e.on(a,
		func() error { _, err := drive.Pinned(e.d, &e.staging, 2*stageBytes); return err },
		func() error { return e.lay(a, b, n, seed) },
	); err != nil {
		return err
	}
	start := time.Now()
	for i := range n / step {
		half := e.staging[i%2*stageBytes:][:step]
		at := gpudriver.Pointer(i * step)
		if err := e.chunk(a, b, half, at, []gpudriver.Event{b.From, b.To}[i%2], i > 1); err != nil {
			return err
		}
	}
	if err := e.wait(b); err != nil {
		return err
	}
	seconds := time.Since(start).Seconds()
	if err := e.arrived(t, a, b, n, seed); err != nil {
		return err
	}
	setRate(t, n, seconds, math.Inf(1)) // By the host's clock, and no link of the GPUs'.
	return nil
}

// chunk puts one chunk of a staged copy into the two streams. The event tells
// when its half of the buffer is free again; one that was used is waited for.
func (e *engine) chunk(a, b *gpu, half []byte, at gpudriver.Pointer, free gpudriver.Event, used bool) error {
	await := func() error { return nil }
	if used {
		await = func() error { return e.d.Wait(a.Stream, free) }
	}
	if err := e.on(a, await,
		func() error { return e.d.CopyToHost(half, a.out+at, a.Stream) },
		func() error { return e.d.Record(a.From, a.Stream) },
	); err != nil {
		return err
	}
	return e.on(b,
		func() error { return e.d.Wait(b.Stream, a.From) },
		func() error { return e.d.CopyToDevice(b.in+at, half, b.Stream) },
		func() error { return e.d.Record(free, b.Stream) },
	)
}

// control runs the control arm for pairs with wrong data, unless it is run for all.
func (e *engine) control() {
	if e.order.Mode == probe.Full && !e.order.Control {
		return
	}
	done := make(map[[2]string]bool)
	for _, s := range slices.Concat(e.order.Suspects, e.suspects) {
		if done[s] || len(done) == controls || e.broken != nil {
			continue
		}
		done[s] = true
		t := &probe.Transfer{Test: probe.TestStaged, Source: s[0], Destination: s[1], Outcome: probe.OK}
		i, j := e.index(s[0]), e.index(s[1])
		if e.skip[transferKey(t)] || i < 0 || j < 0 || e.gpus[i].Outcome != probe.OK || e.gpus[j].Outcome != probe.OK {
			continue
		}
		e.attempt(t, test{name: probe.TestStaged, run: (*engine).staged}, i, j)
		e.report(t)
	}
}

func (e *engine) index(address string) int {
	return slices.IndexFunc(e.gpus, func(g *gpu) bool { return g.Address == address })
}
