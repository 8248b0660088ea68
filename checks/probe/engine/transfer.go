package engine

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/drive"
)

type part struct {
	stage string
	run   func(*engine)
	// rates is true when it measures rates of single paths, which can be timed again.
	rates bool
}

// plan is what a mode does, in order, before the control arm.
func plan(m probe.Mode) []part {
	pairs := func(name string, x test, do run) part {
		x.name, x.run = name, do
		return part{stage: name, rates: true, run: func(e *engine) { e.eachPair(x) }}
	}
	parts := []part{
		pairs(probe.TestCopy, test{}, copies(false, false)),
		pairs(probe.TestStore, test{kernels: true}, copies(true, false)),
		pairs(probe.TestLoad, test{kernels: true, reads: true}, copies(true, true)),
	}
	if m == probe.Full {
		parts = append(parts,
			pairs(probe.TestCopyRead, test{reads: true}, copies(false, true)),
			pairs(probe.TestBidirectional, test{both: true, once: true}, (*engine).bidirectional),
			part{stage: probe.TestAllAtOnce, run: (*engine).allAtOnce},
			pairs(probe.TestHandshake, test{kernels: true, both: true, once: true}, (*engine).handshake),
			pairs(probe.TestLatency, test{kernels: true}, (*engine).latency),
			pairs(probe.TestAtomics, test{kernels: true}, (*engine).atomics),
			pairs(probe.TestStaged, test{staged: true}, (*engine).staged),
			part{stage: probe.TestInterprocess, run: (*engine).interprocess},
			part{stage: probe.TestHostToDevice, run: (*engine).hostCopies, rates: true},
		)
	}
	return parts
}

// controlArm is worth its time if a pair had wrong data.
var controlArm = part{stage: probe.TestStaged, run: (*engine).control}

// setError notes an error of the driver, or a hang, as the outcome of a transfer.
func setError(t *probe.Transfer, err error) { setFailure(t, failOnGPU(err)) }

func setFailure(t *probe.Transfer, f *drive.Failure) {
	t.Outcome, t.Reason, t.Cause, t.ErrorCode, t.ErrorName, t.Call = f.Outcome, f.Reason, f.Cause, f.ErrorCode, f.ErrorName, f.Call
	t.GBps, t.Microseconds = nil, nil
}

func (e *engine) report(t *probe.Transfer) {
	e.reporting.Lock()
	defer e.reporting.Unlock()
	if t.Outcome.Failed() {
		e.suspects = append(e.suspects, [2]string{t.Source, t.Destination})
	}
	e.send(message{Transfer: t})
}

type test struct {
	name string
	// kernels is true when it needs the probe's kernels, both when it needs peer access in both directions, once when each
	// unordered pair is tried once, and reads when the destination drives.
	kernels, both, once, reads bool
	// staged is true when it needs no peer access at all.
	staged bool
	run    run
}

// run tries one transfer from a to b and notes in t what it finds. Its error is the driver's, or drive.ErrHang.
type run = func(e *engine, t *probe.Transfer, a, b *gpu, seed uint64) error

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

func whyNot(gpus ...*gpu) string {
	for _, g := range gpus {
		if g.Outcome != probe.OK {
			return g.Address + ": " + g.Reason
		}
	}
	return ""
}

// attempt runs one test on one pair, again if it comes out wrong or at a rate that cannot be, and finds out after an error
// whether the contexts can still be used.
func (e *engine) attempt(t *probe.Transfer, x test, i, j int) {
	e.send(message{Begin: t})
	a, b := e.gpus[i], e.gpus[j]
	wrong, odd, made := 0, 0, 0
	for n := range attempts {
		s := e.seed(x.name, i, j, n)
		one := probe.Transfer{Test: t.Test, Source: t.Source, Destination: t.Destination, Outcome: probe.OK}
		if err := x.run(e, &one, a, b, s); err != nil {
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

// seed returns the seed of an attempt and remembers it. The order of reports numbers the tests.
func (e *engine) seed(test string, i, j, attempt int) uint64 {
	s := drive.Seed(slices.Index(reportOrder, test), i, j, attempt)
	e.seeds = append(e.seeds, s)
	return s
}

// usable returns nil when both contexts still work. A stream that does not end is not waited for again.
func (e *engine) usable(err error, gpus ...*gpu) error {
	if errors.Is(err, drive.ErrHang) {
		return err
	}
	for _, g := range gpus {
		if e.d.SetCurrent(g.context) != nil || e.d.Set32(g.flags, 0, 1, g.Stream) != nil || e.wait(g) != nil {
			return err
		}
	}
	return nil
}

func (e *engine) fill(g *gpu, p gpudriver.Pointer, n, seed uint64) error {
	if err := e.beginFill(g, p, n, seed); err != nil {
		return err
	}
	return e.filled(g)
}

func (e *engine) beginFill(g *gpu, p gpudriver.Pointer, n, seed uint64) error {
	return e.on(g, func() error { return g.judge.Fill(p, n, seed) })
}

func (e *engine) filled(g *gpu) error { return e.trusted(g, g.judge.Filled()) }

// trusted passes on an error of a GPU's judge. What one that does not work said before counts for nothing.
func (e *engine) trusted(g *gpu, err error) error {
	if errors.Is(err, drive.ErrBroken) && g.Outcome == probe.OK {
		g.lose(err)
		e.send(message{Device: &g.Device})
	}
	return err
}

// blank poisons n bytes at p and as many on either side as guard says, and waits for the GPU's stream.
func (e *engine) blank(g *gpu, p gpudriver.Pointer, n, guard uint64) error {
	return e.on(g,
		func() error { return e.d.Set32(p-gpudriver.Pointer(guard), drive.Poison32, (n+2*guard)/4, g.Stream) },
		func() error { return e.wait(g) },
	)
}

// area is memory of a GPU that should hold a pattern.
type area struct {
	*gpu
	drive.Area
}

// areaOf is an area that holds the pattern of one seed, with poison around it.
func areaOf(g *gpu, p gpudriver.Pointer, n, seed, guard uint64) area {
	return area{g, drive.Area{At: p, Bytes: n, Seed: seed, Ranks: 1, Guard: guard}}
}

// verify has the owners compare areas, all at the same time, and notes in the transfer what is wrong in the
// first that is not as it should be. The first area is the destination, one more the source.
func (e *engine) verify(t *probe.Transfer, areas ...area) error {
	for _, a := range areas {
		if err := e.on(a.gpu, func() error { return a.judge.Begin(a.Area) }); err != nil {
			return err
		}
	}
	for i, a := range areas {
		c, err := a.judge.End()
		if err := e.trusted(a.gpu, err); err != nil {
			return err
		}
		t.Verified = a.judge.Where()
		switch {
		case c.Bad+c.Spilled == 0 || t.Outcome != probe.OK:
		case i == 0:
			noteWrong(t, a.Bytes, c, e.found(c))
		default:
			noteWrong(t, a.Bytes, c, foundSource)
		}
	}
	return nil
}

func noteWrong(t *probe.Transfer, n uint64, c drive.Comparison, found string) {
	t.Outcome, t.Cause, t.GBps, t.Found = probe.Corrupt, "", nil, found
	t.BadBytes = int64(8 * max(c.Bad, c.Spilled))
	if c.Bad == 0 {
		t.Reason = fmt.Sprintf("the driver reported success, but %d bytes %s", t.BadBytes, foundWords[found])
		return
	}
	first, last := int64(8*c.First), int64(8*c.Last+7)
	t.FirstBad, t.LastBad = &first, &last
	which := fmt.Sprintf("%d of %d bytes are wrong, between %d and %d", t.BadBytes, n, first, last)
	switch {
	case t.BadBytes == int64(n):
		which = fmt.Sprintf("all %d bytes are wrong", n)
	case t.BadBytes == last-first+1:
		which = fmt.Sprintf("the bytes %d to %d of %d are wrong", first, last, n)
	}
	t.Reason = fmt.Sprintf("the driver reported success, but %s: %s", which, foundWords[found])
}

// What was found instead of the data.
const (
	foundForeign = "foreign"
	foundSource  = "source"
	foundOverrun = "overrun"
)

var foundWords = map[string]string{
	drive.FoundPoison: "the destination still holds its previous data",
	drive.FoundZeros:  "the destination holds zeros",
	foundForeign:      "the destination holds data of another transfer",
	drive.FoundOther:  "the destination holds other data",
	foundSource:       "the copy changed its source",
	foundOverrun:      "beside the destination were changed",
}

// found says what stands where the pattern should be.
func (e *engine) found(c drive.Comparison) string {
	found := c.Found()
	switch {
	case c.Bad == 0:
		return foundOverrun
	case found == drive.FoundOther && slices.ContainsFunc(e.seeds, func(s uint64) bool { return drive.PatternWord(s, c.First) == c.Word }):
		return foundForeign
	}
	return found
}

// selfCheck has a GPU write a pattern that the host reads, and compare one that the host wrote.
func (e *engine) selfCheck(g *gpu) error {
	if g.MemoryBytes < int64(2*g.size) {
		return fmt.Errorf("%w: the driver gives the size of a memory of which it allocated %d bytes as %d", drive.ErrBroken, 2*g.size, g.MemoryBytes)
	}
	out := drive.Seed(len(reportOrder), g.Ordinal, g.Ordinal, 0)
	in := out ^ 1<<63
	if err := g.judge.Fill(g.out, checkBytes, out); err != nil {
		return err
	}
	if err := g.judge.Filled(); err != nil {
		return err
	}
	b, err := drive.Pinned(e.d, &g.pinned, checkBytes)
	if err != nil {
		return err
	}
	clear(b)
	if err := e.d.CopyToHost(b, g.out, g.Stream); err != nil {
		return err
	}
	if err := e.wait(g); err != nil {
		return err
	}
	if c := drive.CompareHost(b, out); c.Bad > 0 {
		return fmt.Errorf("%w: of %d bytes of the GPU's memory, the host read %d wrong ones", errCorrupt, checkBytes, 8*c.Bad)
	}
	if err := e.blank(g, g.in, checkBytes, guardBytes); err != nil {
		return err
	}
	drive.FillHost(b, in)
	if err := e.d.CopyToDevice(g.in, b, g.Stream); err != nil {
		return err
	}
	if err := g.judge.Begin(areaOf(g, g.in, checkBytes, in, guardBytes).Area); err != nil {
		return err
	}
	switch c, err := g.judge.End(); {
	case err != nil:
		return err
	case c.Bad > 0:
		return fmt.Errorf("%w: of %d bytes that the host wrote to the GPU's memory, %d are wrong", errCorrupt, checkBytes, 8*c.Bad)
	case c.Spilled > 0:
		return fmt.Errorf("%w: %d bytes of the GPU's memory do not hold what they were set to", errCorrupt, 8*c.Spilled)
	}
	return nil
}

// begin puts a transfer into the GPU's stream so many times, between two events. put is told which time it is.
func (e *engine) begin(g *gpu, times int, put func(time uint64, s gpudriver.Stream) error) error {
	return e.on(g, func() error { return g.Begin(times, put) })
}

// end waits for what begin began and returns the seconds that it took, which may be no time at all.
func (e *engine) end(g *gpu) (float64, error) {
	if err := e.wait(g); err != nil {
		return 0, err
	}
	return g.Seconds()
}

// timed does both and returns the seconds of all the times together.
func (e *engine) timed(g *gpu, times int, put func(time uint64, s gpudriver.Stream) error) (float64, error) {
	if err := e.begin(g, times, put); err != nil {
		return 0, err
	}
	return e.end(g)
}

// rate is bytes in seconds as 10^9 bytes per second; 0 if the time is impossible.
func rate(bytes uint64, seconds float64) float64 {
	if !drive.Usable(seconds) {
		return 0
	}
	return drive.RoundTo(float64(bytes)/seconds/1e9, 100)
}

// setRate notes the rate at which the bytes of a transfer arrived. Where the driver's timer gave no time, or one in which no
// link carries as much, what the transfer reached is not known, and it is not said to be good.
func setRate(t *probe.Transfer, bytes uint64, seconds, most float64) {
	if t.Outcome != probe.OK {
		return
	}
	switch r := rate(bytes, seconds); {
	case !drive.Usable(seconds):
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
	if us := drive.RoundTo(seconds*1e6/float64(rounds), 1000); drive.Usable(seconds) && us > 0 && !math.IsInf(us, 1) {
		t.Microseconds = &us
		return
	}
	t.Outcome, t.Cause = probe.Unknown, probe.CauseClock
	t.Reason = fmt.Sprintf("the data is correct, but the timer measured %g ms for %d rounds, so the latency is not known", seconds*1e3, rounds)
}

// lay fills n bytes of a's out buffer, poisons as many of b's in buffer and those around them, and waits.
func (e *engine) lay(a, b *gpu, n, seed uint64) error {
	return e.layAt(a, b, a.out, b.in, n, seed, guardBytes)
}

// layAt does it at other places.
func (e *engine) layAt(a, b *gpu, out, in gpudriver.Pointer, n, seed, guard uint64) error {
	if err := e.beginFill(a, out, n, seed); err != nil {
		return err
	}
	if err := e.blank(b, in, n, guard); err != nil {
		return err
	}
	return e.filled(a)
}

// arrived verifies what lay laid: that it arrived, nothing beside it changed, and the source is still the same.
func (e *engine) arrived(t *probe.Transfer, a, b *gpu, n, seed uint64) error {
	return e.verify(t, areaOf(b, b.in, n, seed, guardBytes), areaOf(a, a.out, n, seed, 0))
}

// move moves data from a to b, has the owner verify every byte, and notes the rate. The first copy wakes the link and tells
// how much is worth timing. What is timed are copies of different parts of the buffer, into memory that was poisoned before:
// a copy that did not happen cannot hide behind one that did.
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
	if err := e.arrived(t, a, b, n, seed); err != nil || t.Outcome != probe.OK || untimed {
		return err
	}
	if rate(n, seconds) > fastGBps {
		n = limit
		t.Bytes = int64(n)
	}
	// Where the host compares, it compares the beginning of each part: the rate of
	// a fast path shows only in large copies.
	parts, compared, guard := uint64(1), copyTimes*n, uint64(guardBytes)
	if driver.kernels == nil && n > hostBytes {
		parts, compared, guard = copyTimes, hostBytes, 0 // The copy goes on behind what is compared.
	}
	again := e.another(seed)
	for i := range parts {
		at := gpudriver.Pointer(i * n)
		if err := e.layAt(a, b, a.out+at, b.in+at, compared, again+i, guard); err != nil {
			return err
		}
	}
	seconds, err = e.timed(driver, copyTimes, func(time uint64, s gpudriver.Stream) error { return put(time*n, n, s) })
	if err != nil {
		return err
	}
	for i := range parts {
		at := gpudriver.Pointer(i * n)
		if err := e.verify(t, areaOf(b, b.in+at, compared, again+i, guard), areaOf(a, a.out+at, compared, again+i, 0)); err != nil || t.Outcome != probe.OK {
			return err
		}
	}
	setRate(t, copyTimes*n, seconds, most(a, b))
	return nil
}

// another is a second seed of one attempt; it and the next ones, one for each part, are remembered.
func (e *engine) another(seed uint64) uint64 {
	s := seed ^ 1<<62
	for i := range uint64(copyTimes) {
		e.seeds = append(e.seeds, s+i)
	}
	return s
}

// copies has the copy engine or the SMs of one GPU copy: those of the source, or of the destination if it reads.
func copies(bySM, reads bool) run {
	return func(e *engine, t *probe.Transfer, a, b *gpu, seed uint64) error {
		driver, put := a, e.engineCopy(a, b)
		if reads {
			driver = b
		}
		if bySM {
			put = func(at, n uint64, s gpudriver.Stream) error {
				return e.d.Launch(driver.kernels["gd_copy"], driver.sms*smBlocks, smThreads, s, uint64(b.in)+at, uint64(a.out)+at, n/16)
			}
		}
		return e.move(t, driver, a, b, seed, put)
	}
}

// engineCopy copies a part of a's out buffer to the same part of b's in buffer.
func (e *engine) engineCopy(a, b *gpu) func(at, n uint64, s gpudriver.Stream) error {
	return func(at, n uint64, s gpudriver.Stream) error {
		return e.d.Copy(b.in+gpudriver.Pointer(at), a.out+gpudriver.Pointer(at), n, s)
	}
}
