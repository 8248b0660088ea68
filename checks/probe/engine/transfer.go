package engine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/kernels"
)

// part is one part of a probe.
type part struct {
	stage string
	run   func(*engine)
	// rates is true when it measures rates of single paths, which can be timed again.
	rates bool
}

// plan is what a mode does, in order, before the control arm.
func plan(m probe.Mode) []part {
	pairs := func(name string, x test, bind func(*engine) run) part {
		return part{stage: name, rates: true, run: func(e *engine) {
			x.name, x.run = name, bind(e)
			e.eachPair(x)
		}}
	}
	parts := []part{
		pairs(probe.TestCopy, test{}, func(e *engine) run { return e.copyWrite }),
		{stage: probe.TestCopy, run: (*engine).timeAgain},
		pairs(probe.TestStore, test{kernels: true}, func(e *engine) run { return e.smStore }),
		pairs(probe.TestLoad, test{kernels: true, reads: true}, func(e *engine) run { return e.smLoad }),
	}
	if m == probe.Full {
		parts = append(parts,
			pairs(probe.TestCopyRead, test{reads: true}, func(e *engine) run { return e.copyRead }),
			pairs(probe.TestBidirectional, test{both: true, once: true}, func(e *engine) run { return e.bidirectional }),
			part{stage: probe.TestAllAtOnce, run: (*engine).allAtOnce},
			pairs(probe.TestHandshake, test{kernels: true, both: true, once: true}, func(e *engine) run { return e.handshake }),
			pairs(probe.TestLatency, test{kernels: true}, func(e *engine) run { return e.latency }),
			pairs(probe.TestAtomics, test{kernels: true}, func(e *engine) run { return e.atomics }),
			pairs(probe.TestStaged, test{staged: true}, func(e *engine) run { return e.staged }),
			part{stage: probe.TestInterprocess, run: (*engine).interprocess},
			part{stage: probe.TestHostToDevice, run: (*engine).hostCopies, rates: true},
		)
	}
	return parts
}

// controlArm is worth its time if a pair had wrong data.
var controlArm = part{stage: probe.TestStaged, run: (*engine).control}

// setError notes an error of the driver, or a hang, as the outcome of a transfer.
func setError(t *probe.Transfer, err error) {
	setFailure(t, failOnGPU(err))
}

// setFailure notes a failure as the outcome of a transfer.
func setFailure(t *probe.Transfer, f *failure) {
	t.Outcome, t.Reason, t.Cause, t.ErrorCode, t.ErrorName, t.Call = f.Outcome, f.Reason, f.Cause, f.ErrorCode, f.ErrorName, f.Call
	t.GBps, t.Microseconds = nil, nil
}

func (e *engine) report(t *probe.Transfer) {
	e.reporting.Lock()
	defer e.reporting.Unlock()
	switch {
	case t.Outcome.Failed():
		e.suspects = append(e.suspects, [2]string{t.Source, t.Destination})
	case t.Outcome == probe.OK && t.Test == probe.TestCopy && t.GBps != nil:
		e.copies = append(e.copies, *t)
	}
	e.send(message{Transfer: t})
}

// test is one test of pairs.
type test struct {
	name string
	// kernels is true when it needs the probe's kernels, both when it needs
	// peer access in both directions, once when each unordered pair is tried
	// once. reads is true when the destination drives.
	kernels, both, once, reads bool
	// staged is true when it needs no peer access at all.
	staged bool
	run    run
}

// run tries one transfer from a to b and notes in t what it finds. Its error
// comes from the driver, or is errHang.
type run = func(t *probe.Transfer, a, b *gpu, seed uint64) error

// eachPair runs a test for every pair.
func (e *engine) eachPair(x test) {
	if x.kernels && e.noSM != "" {
		return // Said once for all.
	}
	for i, a := range e.gpus {
		for j, b := range e.gpus {
			if i == j || e.broken != nil || (x.once && i > j) {
				continue
			}
			t := &probe.Transfer{Test: x.name, Source: a.Address, Destination: b.Address, Outcome: probe.OK}
			if e.leaves(t) {
				continue
			}
			ab, ba := a.access(j), b.access(i)
			if x.reads {
				ab, ba = ba, ab
			}
			switch {
			case a.Outcome != probe.OK || b.Outcome != probe.OK:
				t.Outcome, t.Reason, t.Cause = probe.Unknown, whyNot(a, b), probe.CauseDevice
			case x.staged:
				e.attempt(t, x, i, j)
			case a.unasked[j] != nil || x.both && b.unasked[i] != nil:
				setError(t, cmp.Or(a.unasked[j], b.unasked[i]))
			case ab == noAccess || (x.both && ba == noAccess):
				t.Outcome, t.Reason, t.Cause = probe.Unsupported, "the driver offers no peer access for this pair", probe.CauseNoAccess
			case ab == refusedAccess || (x.both && ba == refusedAccess):
				continue // It was reported when switching it on failed.
			default:
				e.attempt(t, x, i, j)
			}
			e.report(t)
		}
	}
}

// access is what a GPU may do with another's memory.
type access int

const (
	noAccess      access = iota // The driver offers none.
	refusedAccess               // It was offered, and could not be switched on.
	fullAccess
)

func (g *gpu) access(peer int) access {
	on, offered := g.peers[peer]
	switch {
	case on:
		return fullAccess
	case offered:
		return refusedAccess
	}
	return noAccess
}

// whyNot says why one of two GPUs does not take part.
func whyNot(gpus ...*gpu) string {
	for _, g := range gpus {
		if g.Outcome != probe.OK {
			return g.Address + ": " + g.Reason
		}
	}
	return ""
}

// attempt runs one test on one pair, again if it comes out wrong or at a rate
// that cannot be, and finds out after an error whether the contexts can still be
// used.
func (e *engine) attempt(t *probe.Transfer, x test, i, j int) {
	e.send(message{Begin: t})
	a, b := e.gpus[i], e.gpus[j]
	wrong, odd, made := 0, 0, 0
	for n := range attempts {
		s := e.seed(x.name, i, j, n)
		one := probe.Transfer{Test: t.Test, Source: t.Source, Destination: t.Destination, Outcome: probe.OK}
		if err := x.run(&one, a, b, s); err != nil {
			setError(&one, err)
			*t = one
			e.broken = e.usable(err, a, b)
			return
		}
		made++
		switch {
		case one.Outcome == probe.Corrupt:
			wrong++
		case one.Outcome == probe.Unknown && (one.Cause == probe.CauseImplausible || one.Cause == probe.CauseClock):
			odd++
		}
		// Wrong data outweighs all, and a rate that can be one that cannot.
		if n == 0 || one.Outcome == probe.Corrupt || wrong == 0 && t.Outcome == probe.Unknown {
			*t = one
		}
		if wrong == 0 && odd <= n {
			break
		}
	}
	if made > 1 {
		t.Attempts, t.Repeats = made, max(wrong, odd)
		if t.Outcome == probe.OK {
			t.Repeats = made - odd
		}
	}
	if wrong > 0 && wrong < made {
		t.Reason = fmt.Sprintf("%s (%d of %d attempts)", t.Reason, wrong, made)
	}
}

// seed returns the seed of an attempt and remembers it. The place in the order
// of reports numbers the tests.
func (e *engine) seed(test string, i, j, attempt int) uint64 {
	s := kernels.Seed(slices.Index(reportOrder, test), i, j, attempt)
	e.seeds = append(e.seeds, s)
	return s
}

// usable returns nil when both contexts still work after an error. A stream
// that does not end is not waited for again.
func (e *engine) usable(err error, gpus ...*gpu) error {
	if errors.Is(err, errHang) {
		return err
	}
	for _, g := range gpus {
		if e.d.SetCurrent(g.context) != nil || e.d.Set32(g.flags, 0, 1, g.streams[0]) != nil || e.wait(g, g.streams[0]) != nil {
			return err
		}
	}
	return nil
}

// fill puts writing the pattern over n bytes at p into the GPU's stream.
func (e *engine) fill(g *gpu, p gpudriver.Pointer, n, seed uint64) error {
	if err := e.d.SetCurrent(g.context); err != nil {
		return err
	}
	if g.kernels == nil {
		b, err := e.hostBuffer(g, n)
		if err != nil {
			return err
		}
		kernels.FillHost(b, seed)
		return e.d.CopyToDevice(p, b, g.streams[0])
	}
	return e.d.Launch(g.kernels["gd_fill"], g.sms*smBlocks, smThreads, g.streams[0], uint64(p), n/8, seed)
}

// hostBuffer returns at least n bytes of the GPU's pinned memory.
func (e *engine) hostBuffer(g *gpu, n uint64) ([]byte, error) {
	if uint64(len(g.pinned)) < n {
		b, err := e.d.AllocHost(n)
		if err != nil {
			return nil, err
		}
		g.pinned = b
	}
	return g.pinned[:n], nil
}

// blank poisons n bytes at p and waits for the GPU's stream.
func (e *engine) blank(g *gpu, p gpudriver.Pointer, n uint64) error {
	if err := e.d.SetCurrent(g.context); err != nil {
		return err
	}
	if err := e.d.Set32(p, kernels.Poison32, n/4, g.streams[0]); err != nil {
		return err
	}
	return e.wait(g, g.streams[0])
}

// verify has the owner compare n bytes at p with the pattern, and notes in
// the transfer what it finds.
func (e *engine) verify(t *probe.Transfer, g *gpu, p gpudriver.Pointer, n, seed uint64) error {
	if err := e.d.SetCurrent(g.context); err != nil {
		return err
	}
	var c kernels.Comparison
	if g.kernels == nil {
		b, err := e.hostBuffer(g, n)
		if err != nil {
			return err
		}
		clear(b)
		if err := e.d.CopyToHost(b, p, g.streams[0]); err != nil {
			return err
		}
		if err := e.wait(g, g.streams[0]); err != nil {
			return err
		}
		t.Verified, c = "host", kernels.CompareHost(b, seed)
	} else {
		words := []uint64{0, n / 8, 0, 0}
		b := g.pinned[:32]
		for i, w := range words {
			binary.LittleEndian.PutUint64(b[8*i:], w)
		}
		if err := e.d.CopyToDevice(g.result, b, g.streams[0]); err != nil {
			return err
		}
		if err := e.d.Launch(g.kernels["gd_verify"], g.sms*smBlocks, smThreads, g.streams[0], uint64(p), n/8, seed, kernels.Poison, uint64(g.result)); err != nil {
			return err
		}
		answer, err := e.words(g, g.result, len(words))
		if err != nil {
			return err
		}
		t.Verified, c = "gpu", kernels.Comparison{Bad: answer[0], First: answer[1], Poison: answer[2], Zero: answer[3]}
	}
	if c.Bad == 0 {
		return nil
	}
	t.Outcome, t.Cause, t.BadBytes, t.GBps = probe.Corrupt, "", int64(8*c.Bad), nil
	first := int64(8 * c.First)
	t.FirstBad = &first
	t.Found = e.found(g, p, c)
	t.Reason = fmt.Sprintf("the driver reported success, but %d of %d bytes are wrong, from offset %d on: %s",
		t.BadBytes, n, first, foundWords[t.Found])
	return nil
}

var foundWords = map[string]string{
	"poison":  "the destination still holds its previous data",
	"zeros":   "the destination holds zeros",
	"foreign": "the destination holds data of another transfer",
	"other":   "the destination holds other data",
}

// found says what stands where the pattern should be.
func (e *engine) found(g *gpu, p gpudriver.Pointer, c kernels.Comparison) string {
	switch {
	case 2*c.Poison > c.Bad:
		return "poison"
	case 2*c.Zero > c.Bad:
		return "zeros"
	}
	got, err := e.words(g, p+gpudriver.Pointer(8*c.First), 1)
	if err != nil {
		return "other"
	}
	for _, s := range e.seeds {
		if kernels.Pattern(s, c.First) == got[0] {
			return "foreign"
		}
	}
	return "other"
}

// begin puts a transfer into the GPU's stream so many times, between two
// events that take the time. put is told which time it is.
func (e *engine) begin(g *gpu, times int, put func(time uint64, s gpudriver.Stream) error) error {
	if err := e.d.SetCurrent(g.context); err != nil {
		return err
	}
	if err := e.d.Record(g.from, g.streams[0]); err != nil {
		return err
	}
	for n := range times {
		if err := put(uint64(n), g.streams[0]); err != nil {
			return err
		}
	}
	return e.d.Record(g.to, g.streams[0])
}

// end waits for what begin began and returns the seconds that it took. They may
// be no time at all: see rate.
func (e *engine) end(g *gpu) (float64, error) {
	if err := e.wait(g, g.streams[0]); err != nil {
		return 0, err
	}
	return e.d.Seconds(g.from, g.to)
}

// timed does both and returns the seconds of all the times together.
func (e *engine) timed(g *gpu, times int, put func(time uint64, s gpudriver.Stream) error) (float64, error) {
	if err := e.begin(g, times, put); err != nil {
		return 0, err
	}
	return e.end(g)
}

// usableTime reports whether a driver's timer gave a time that can be one.
func usableTime(seconds float64) bool {
	return seconds > 0 && !math.IsInf(seconds, 1) // NaN is not above 0.
}

// rate is bytes in seconds as 10^9 bytes per second; 0 if the time is impossible.
func rate(bytes uint64, seconds float64) float64 {
	if !usableTime(seconds) {
		return 0
	}
	return roundTo(float64(bytes)/seconds/1e9, 100)
}

// setRate notes the rate at which the bytes of a transfer arrived. Where the
// driver's timer gave no time, or one in which no link of these GPUs carries as
// much, what the transfer reached is not known, and it is not said to be good.
func setRate(t *probe.Transfer, bytes uint64, seconds, most float64) {
	if t.Outcome != probe.OK {
		return
	}
	switch r := rate(bytes, seconds); {
	case !usableTime(seconds):
		t.Outcome, t.Cause, t.GBps = probe.Unknown, probe.CauseClock, nil
		t.Reason = fmt.Sprintf("every byte arrived, but the driver's timer measured %g ms, so the rate is not known", seconds*1e3)
	case rate(bytes, seconds+timerSeconds) > most:
		t.Outcome, t.Cause, t.GBps = probe.Unknown, probe.CauseImplausible, nil
		t.Reason = fmt.Sprintf("every byte arrived, but at %.0f GB/s by the driver's timer, more than the %.0f GB/s that its links can carry", r, most)
	default:
		t.GBps = &r
	}
}

// setTime notes the time of one of several rounds.
func setTime(t *probe.Transfer, seconds float64, rounds int) {
	if t.Outcome != probe.OK {
		return
	}
	if us := roundTo(seconds*1e6/float64(rounds), 1000); usableTime(seconds) && us > 0 && !math.IsInf(us, 1) {
		t.Microseconds = &us
		return
	}
	t.Outcome, t.Cause = probe.Unknown, probe.CauseClock
	t.Reason = fmt.Sprintf("the data is correct, but the timer measured %g ms for %d rounds, so the latency is not known", seconds*1e3, rounds)
}

// roundTo rounds to 1/parts: the clock tells no more.
func roundTo(v, parts float64) float64 { return math.Round(v*parts) / parts }

// lay fills n bytes of a's out buffer, poisons as many of b's in buffer and
// waits for both.
func (e *engine) lay(a, b *gpu, n, seed uint64) error { return e.layAt(a, b, a.out, b.in, n, seed) }

// layAt does it at other places.
func (e *engine) layAt(a, b *gpu, out, in gpudriver.Pointer, n, seed uint64) error {
	if err := e.fill(a, out, n, seed); err != nil {
		return err
	}
	if err := e.blank(b, in, n); err != nil {
		return err
	}
	return e.wait(a, a.streams[0])
}

// move moves data from a to b, driven by one of the two, has the owner verify
// every byte, and notes the rate. The first copy wakes the link and tells how
// much is worth timing. What is timed are copies of different parts of the
// buffer, into memory that was poisoned before, so that a copy that did not
// happen cannot hide behind one that did.
func (e *engine) move(t *probe.Transfer, driver, a, b *gpu, seed uint64, put func(at, n uint64, s gpudriver.Stream) error) error {
	limit := min(a.size, b.size) / copyTimes &^ (partAlign - 1) // One copy of several.
	n := min(limit, wakeBytes)
	if driver.kernels == nil {
		n = min(n, hostBytes)
	}
	untimed := e.order.Mode == probe.Quick && (t.Test == probe.TestStore || t.Test == probe.TestLoad)
	if untimed {
		n = min(limit, storeBytes)
	}
	t.Bytes = int64(n)
	if err := e.lay(a, b, n, seed); err != nil {
		return err
	}
	seconds, err := e.timed(driver, 1, func(_ uint64, s gpudriver.Stream) error { return put(0, n, s) })
	if err != nil {
		return err
	}
	if err := e.verify(t, b, b.in, n, seed); err != nil || t.Outcome != probe.OK || untimed {
		return err
	}
	if rate(n, seconds) > fastGBps {
		n = limit
		t.Bytes = int64(n)
	}
	// Where the host compares, it compares the beginning of each part: the rate of
	// a fast path shows only in large copies.
	parts, compared := uint64(1), copyTimes*n
	if driver.kernels == nil && n > hostBytes {
		parts, compared = copyTimes, hostBytes
	}
	again := e.another(seed)
	for i := range parts {
		at := gpudriver.Pointer(i * n)
		if err := e.layAt(a, b, a.out+at, b.in+at, compared, again+i); err != nil {
			return err
		}
	}
	seconds, err = e.timed(driver, copyTimes, func(time uint64, s gpudriver.Stream) error { return put(time*n, n, s) })
	if err != nil {
		return err
	}
	for i := range parts {
		if err := e.verify(t, b, b.in+gpudriver.Pointer(i*n), compared, again+i); err != nil || t.Outcome != probe.OK {
			return err
		}
	}
	setRate(t, copyTimes*n, seconds, most(a, b))
	return nil
}

// another is a second seed of one attempt; it and the next ones, one for each
// part, are remembered.
func (e *engine) another(seed uint64) uint64 {
	s := seed ^ 1<<62
	for i := range uint64(copyTimes) {
		e.seeds = append(e.seeds, s+i)
	}
	return s
}

// timeAgain times those copies once more that were slower than others by more
// than straggler: a single dip is no property of the path. The parent keeps the
// better rate.
func (e *engine) timeAgain() {
	const straggler = 0.9 // Pairs of one fabric differ by less than 1 % (8 x H200: 395 to 396 GB/s).
	best := 0.0
	for _, t := range e.copies {
		best = max(best, *t.GBps)
	}
	for _, t := range slices.Clone(e.copies) { // To report one adds to them.
		if *t.GBps >= straggler*best || e.broken != nil {
			continue
		}
		i, j := e.index(t.Source), e.index(t.Destination)
		again := probe.Transfer{Test: t.Test, Source: t.Source, Destination: t.Destination, Outcome: probe.OK}
		e.attempt(&again, test{name: probe.TestCopy, run: e.copyWrite}, i, j)
		e.report(&again)
	}
}

// copyWrite has the copy engine of a write to b.
func (e *engine) copyWrite(t *probe.Transfer, a, b *gpu, seed uint64) error {
	return e.move(t, a, a, b, seed, e.engineCopy(a, b))
}

// copyRead has the copy engine of b read from a.
func (e *engine) copyRead(t *probe.Transfer, a, b *gpu, seed uint64) error {
	return e.move(t, b, a, b, seed, e.engineCopy(a, b))
}

// engineCopy copies a part of a's out buffer to the same part of b's in buffer.
func (e *engine) engineCopy(a, b *gpu) func(at, n uint64, s gpudriver.Stream) error {
	return func(at, n uint64, s gpudriver.Stream) error {
		return e.d.Copy(b.in+gpudriver.Pointer(at), a.out+gpudriver.Pointer(at), n, s)
	}
}

// smStore has the SMs of a store to b.
func (e *engine) smStore(t *probe.Transfer, a, b *gpu, seed uint64) error {
	return e.smCopy(t, a, a, b, seed)
}

// smLoad has the SMs of b load from a.
func (e *engine) smLoad(t *probe.Transfer, a, b *gpu, seed uint64) error {
	return e.smCopy(t, b, a, b, seed)
}

func (e *engine) smCopy(t *probe.Transfer, driver, a, b *gpu, seed uint64) error {
	return e.move(t, driver, a, b, seed, func(at, n uint64, s gpudriver.Stream) error {
		return e.d.Launch(driver.kernels["gd_copy"], driver.sms*smBlocks, smThreads, s, uint64(b.in)+at, uint64(a.out)+at, n/16)
	})
}
