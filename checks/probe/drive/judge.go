package drive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
)

// ErrBroken is wrapped by the error of a check that did not prove itself.
var ErrBroken = errors.New("the check itself does not work here")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBroken, fmt.Sprintf(format, args...))
}

// Comparison is what was found in a memory, in words of 8 bytes. The order of the fields up
// to Spilled is that in which gd_verify reports them.
type Comparison struct {
	signature uint64 // Shows that each block of the kernel ran.
	compared  uint64
	// read and expected are the sums of what was read and what should have been there,
	// each word xored with its place's step of the pattern: exchanged words show.
	read, expected uint64
	// Bad counts the words that differ, First and Last are the indices of the first and
	// the last of them. Poison and Zero count those that hold the poison or zero, and
	// Spilled the words around the memory that no longer hold the poison.
	Bad, First, Last, Poison, Zero, Spilled uint64
	// Word is the first that differs.
	Word uint64
}

// What was found where other data should be.
const (
	FoundPoison = "poison"
	FoundZeros  = "zeros"
	FoundOther  = "other"
)

// Found says what stands where the data should be, for the most part.
func (c Comparison) Found() string {
	switch {
	case 2*c.Poison > c.Bad:
		return FoundPoison
	case 2*c.Zero > c.Bad:
		return FoundZeros
	}
	return FoundOther
}

const resultWords = 10

func result(b []byte) (c Comparison) {
	for i, field := range []*uint64{&c.signature, &c.compared, &c.read, &c.expected, &c.Bad, &c.First, &c.Last, &c.Poison, &c.Zero, &c.Spilled} {
		*field = word(b, uint64(i))
	}
	return c
}

// Area is memory of a GPU that should hold the sum of the patterns of ranks, the first of
// which has the seed, and around it so many bytes of poison.
type Area struct {
	At                 gpudriver.Pointer
	Bytes, Seed, Ranks uint64
	Guard              uint64
}

func (a Area) words() uint64 { return a.Bytes / 8 }

func (a Area) word(index uint64) uint64 { return Sum(a.Seed, a.Ranks, index) }

func (a Area) address(index uint64) gpudriver.Pointer { return a.At + gpudriver.Pointer(8*index) }

// compare compares host memory, which holds the area with its guards, with what it should hold.
func (a Area) compare(b []byte) Comparison {
	guard, c := a.Guard/8, Comparison{First: a.words()}
	for j := range uint64(len(b)) / 8 {
		got, i := word(b, j), j-guard
		switch inside := i < a.words(); {
		case !inside && got != Poison:
			c.Spilled++
		case !inside || got == a.word(i):
		default:
			if c.Bad == 0 {
				c.First, c.Word = i, got
			}
			c.Bad, c.Last = c.Bad+1, i
			switch got {
			case Poison:
				c.Poison++
			case 0:
				c.Zero++
			}
		}
	}
	return c
}

// CompareHost compares host memory with the pattern of a seed.
func CompareHost(b []byte, seed uint64) Comparison {
	return Area{Bytes: uint64(len(b)), Seed: seed, Ranks: 1}.compare(b)
}

// The pinned memory of a judge: what is read back of the area, the planted word, what a
// kernel's result holds before it runs, and after.
const (
	windowBytes = 4096
	plantAt     = windowBytes
	beforeAt    = plantAt + 8
	afterAt     = beforeAt + 8*resultWords
	pinnedBytes = afterAt + 8*resultWords
	// ScratchBytes is the memory that a judge needs on its GPU.
	ScratchBytes = 8 * resultWords
	// exactWords is up to how many words the host computes the sum of a kernel itself.
	exactWords = 1 << 13
)

// Judge fills memory of one GPU and compares it: by kernels if the GPU has them, otherwise on the host.
//
// It proves each comparison. A wrong word is planted at a random place, and must be found, in
// the same launch as all others; the kernel reports how many words it compared, their sum,
// and a signature that depends on a number nobody could know before; and a random part
// that is read back must agree with what the kernel saw. A judge whose proof fails returns ErrBroken.
//
// All calls are made with the GPU's context current.
type Judge struct {
	Driver gpudriver.Driver
	Stream gpudriver.Stream
	// Scratch is memory of the GPU, of ScratchBytes.
	Scratch gpudriver.Pointer
	// Wait waits for the end of the stream.
	Wait func() error
	// Blocks and Threads are the shape of the kernels' launches.
	Blocks, Threads uint32

	fill, verify gpudriver.Function
	pinned       []byte // See windowBytes.
	whole        []byte // Pinned, where the host compares.
	nonce        uint64
	area         Area
	planted      plant
}

// plant is a wrong word in an area, and the part of it that was read back before, beginning at the word from.
type plant struct {
	index, value uint64
	from, words  uint64
}

// Where is what verifies: "gpu" or "host".
func (j *Judge) Where() string {
	if j.OnGPU() {
		return "gpu"
	}
	return "host"
}

// OnGPU is true if the GPU itself fills and compares.
func (j *Judge) OnGPU() bool { return j.verify != 0 }

// OnHost makes the host compare, even if the GPU could.
func (j *Judge) OnHost() { j.verify = 0 }

// Load compiles the kernels. Without them the host compares.
func (j *Judge) Load() error {
	m, err := j.Driver.LoadModule(source(j.Driver.Names.API, judgePTX, judgeHIP))
	if err != nil {
		return err
	}
	fill, err := j.Driver.Function(m, "gd_fill")
	if err != nil {
		return err
	}
	verify, err := j.Driver.Function(m, "gd_verify")
	if err == nil {
		j.fill, j.verify = fill, verify
	}
	return err
}

// Fill enqueues writing the pattern of a seed over memory. Filled must be called next.
func (j *Judge) Fill(at gpudriver.Pointer, bytes, seed uint64) error {
	j.area = Area{At: at, Bytes: bytes, Seed: seed, Ranks: 1}
	if !j.OnGPU() {
		b, err := Pinned(j.Driver, &j.whole, bytes)
		if err != nil {
			return err
		}
		FillHost(b, seed)
		return j.Driver.CopyToDevice(at, b, j.Stream)
	}
	return j.launch(j.fill, uint64(at), bytes/8, seed)
}

// Filled waits for Fill.
func (j *Judge) Filled() error {
	if err := j.Wait(); err != nil || !j.OnGPU() {
		return err
	}
	_, err := j.signed("wrote", j.area.words())
	return err
}

// Begin enqueues comparing an area. The planted word stays in it. End must be called before the next call of the judge.
func (j *Judge) Begin(a Area) error {
	if _, err := Pinned(j.Driver, &j.pinned, pinnedBytes); err != nil {
		return err
	}
	j.area = a
	words := min(windowBytes/8, a.words())
	from := rand.Uint64N(a.words() - words + 1)
	p := plant{index: from + rand.Uint64N(words), from: from, words: words}
	for p.value == 0 || p.value == Poison || p.value == a.word(p.index) {
		p.value = rand.Uint64()
	}
	j.planted = p
	if !j.OnGPU() {
		b, err := Pinned(j.Driver, &j.whole, a.Bytes+2*a.Guard)
		if err != nil {
			return err
		}
		clear(b)
		return j.Driver.CopyToHost(b, a.At-gpudriver.Pointer(a.Guard), j.Stream)
	}
	if err := j.lookAndPlant(); err != nil {
		return err
	}
	return j.compare()
}

// lookAndPlant reads a part of the area back, and then plants a wrong word in it.
func (j *Judge) lookAndPlant() error {
	p := j.planted
	window := j.pinned[:8*p.words]
	clear(window)
	if err := j.Driver.CopyToHost(window, j.area.address(p.from), j.Stream); err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(j.pinned[plantAt:], p.value)
	return j.Driver.CopyToDevice(j.area.address(p.index), j.pinned[plantAt:plantAt+8], j.Stream)
}

func (j *Judge) compare() error {
	a := j.area
	return j.launch(j.verify, uint64(a.At), a.words(), a.Guard/8, a.Seed, a.Ranks, Poison)
}

// launch enqueues a kernel, with the number for its signature and its result as the last parameters.
func (j *Judge) launch(f gpudriver.Function, params ...uint64) error {
	if _, err := Pinned(j.Driver, &j.pinned, pinnedBytes); err != nil {
		return err
	}
	j.nonce = rand.Uint64()
	before, after := j.pinned[beforeAt:afterAt], j.pinned[afterAt:pinnedBytes]
	clear(before)
	binary.LittleEndian.PutUint64(before[8*5:], math.MaxUint64) // Comparison.First.
	clear(after)
	if err := j.Driver.CopyToDevice(j.Scratch, before, j.Stream); err != nil {
		return err
	}
	if err := j.Driver.Launch(f, j.Blocks, j.Threads, j.Stream, append(params, j.nonce, uint64(j.Scratch))...); err != nil {
		return err
	}
	return j.Driver.CopyToHost(after, j.Scratch, j.Stream)
}

// signed returns what the last kernel reported, if it did its work.
func (j *Judge) signed(did string, words uint64) (Comparison, error) {
	c, signature := result(j.pinned[afterAt:pinnedBytes]), uint64(0)
	for block := range uint64(j.Blocks) {
		signature += PatternWord(j.nonce, block)
	}
	switch {
	case c.signature != signature:
		return c, broken("a kernel did not run although the driver reported success, or its result did not reach the host")
	case c.compared != words:
		return c, broken("a kernel %s %d of %d words", did, c.compared, words)
	}
	return c, nil
}

// End waits for Begin and returns what differs.
func (j *Judge) End() (Comparison, error) {
	if err := j.Wait(); err != nil {
		return Comparison{}, err
	}
	if !j.OnGPU() {
		return j.endOnHost()
	}
	a, p := j.area, j.planted
	c, err := j.signed("compared", a.words()+2*a.Guard/8)
	if err != nil {
		return c, err
	}
	window := j.pinned[:8*p.words]
	seen := Area{Bytes: 8 * p.words, Seed: a.Seed + p.from*step, Ranks: a.Ranks}.compare(window)
	alone := c.Bad == 1 && c.First == p.index && c.Last == p.index && c.Spilled == 0
	switch {
	case c.Bad == 0:
		return c, broken("a wrong word that was planted was not found")
	case !alone, word(window, p.index-p.from) != a.word(p.index):
		return j.again()
	case seen.Bad > 0:
		return c, broken("the GPU found the right data at byte %d, and the host read something else there", 8*(p.from+seen.First))
	case c.read-c.expected != j.stepped(p.value)-j.stepped(a.word(p.index)), a.words() <= exactWords && c.expected != a.sum():
		return c, broken("the sum of what a kernel read is not that of the data")
	}
	return Comparison{}, nil
}

// stepped is a word at the planted place as a kernel adds it to a sum.
func (j *Judge) stepped(word uint64) uint64 { return word ^ (j.area.Seed + j.planted.index*step) }

// sum is what the kernel's sum of an area should be.
func (a Area) sum() (sum uint64) {
	guard := a.Guard / 8
	for j := range a.words() + 2*guard {
		want, i := Poison, j-guard
		if i < a.words() {
			want = a.word(i)
		}
		sum += want ^ (a.Seed + i*step)
	}
	return sum
}

// again takes the planted word out and compares once more: only what the host reads as well counts.
func (j *Judge) again() (Comparison, error) {
	a, p := j.area, j.planted
	copy(j.pinned[plantAt:beforeAt], j.pinned[8*(p.index-p.from):])
	if err := j.Driver.CopyToDevice(a.address(p.index), j.pinned[plantAt:plantAt+8], j.Stream); err != nil {
		return Comparison{}, err
	}
	if err := j.compare(); err != nil {
		return Comparison{}, err
	}
	if err := j.Wait(); err != nil {
		return Comparison{}, err
	}
	c, err := j.signed("compared", a.words()+2*a.Guard/8)
	if err != nil {
		return c, err
	}
	switch {
	case c.Bad+c.Spilled == 0:
		return c, broken("the same memory was compared twice, and only one comparison found wrong words")
	case c.Bad == 0:
		return c, j.spilled()
	}
	if err := j.read(a.address(c.First), 8); err != nil {
		return c, err
	}
	if c.Word = word(j.pinned, 0); c.Word == a.word(c.First) {
		return c, broken("the GPU found wrong data at byte %d, and the host reads the right data there", 8*c.First)
	}
	return c, nil
}

// spilled checks that the host sees that the guards no longer hold the poison.
func (j *Judge) spilled() error {
	a := j.area
	for _, at := range []gpudriver.Pointer{a.At - gpudriver.Pointer(a.Guard), a.At + gpudriver.Pointer(a.Bytes)} {
		for done := uint64(0); done < a.Guard; done += windowBytes {
			n := min(windowBytes, a.Guard-done)
			if err := j.read(at+gpudriver.Pointer(done), n); err != nil {
				return err
			}
			if (Area{}).compare(j.pinned[:n]).Spilled > 0 {
				return nil
			}
		}
	}
	return broken("the GPU found changed data around the buffer, and the host reads none")
}

func (j *Judge) read(at gpudriver.Pointer, n uint64) error {
	clear(j.pinned[:n])
	if err := j.Driver.CopyToHost(j.pinned[:n], at, j.Stream); err != nil {
		return err
	}
	return j.Wait()
}

// endOnHost compares on the host, and then plants a word and reads it back.
func (j *Judge) endOnHost() (Comparison, error) {
	a, p := j.area, j.planted
	all := j.whole[:a.Bytes+2*a.Guard]
	c := a.compare(all)
	binary.LittleEndian.PutUint64(j.pinned[plantAt:], p.value)
	if err := j.Driver.CopyToDevice(a.address(p.index), j.pinned[plantAt:plantAt+8], j.Stream); err != nil {
		return c, err
	}
	if err := j.read(a.address(p.from), 8*p.words); err != nil {
		return c, err
	}
	for i := range p.words {
		want := word(all[a.Guard:], p.from+i)
		if p.from+i == p.index {
			want = p.value
		}
		if word(j.pinned, i) != want {
			return c, broken("a word that the host wrote to the GPU's memory was not what it read back")
		}
	}
	return c, nil
}

func word(b []byte, index uint64) uint64 { return binary.LittleEndian.Uint64(b[8*index:]) }
