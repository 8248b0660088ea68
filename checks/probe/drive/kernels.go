package drive

import (
	_ "embed"
	"encoding/binary"
	"math/rand/v2"
)

// The sources of the kernels: PTX, which the driver compiles, and HIP C++ for hiprtc.
var (
	//go:embed judge.ptx
	judgePTX string
	//go:embed judge.hip
	judgeHIP string
	//go:embed pairs.ptx
	pairsPTX string
	//go:embed pairs.hip
	pairsHIP string
)

// PairKernels is the source of the kernels that move data between two GPUs, for an API: "cuda" or "hip".
func PairKernels(api string) string { return source(api, pairsPTX, pairsHIP) }

func source(api, ptx, hip string) string {
	if api == "hip" {
		return hip
	}
	return ptx
}

// Poison is what a destination holds before a transfer: a word that the pattern does not yield in practice, and that is
// neither zero nor all ones, which broken platforms often deliver.
const (
	Poison32 uint32 = 0xdeadbeef
	Poison   uint64 = uint64(Poison32)<<32 | uint64(Poison32)
)

// Seed is unique to a transfer, so that data of another one, or of an earlier process, can be told from its own. The numbers
// are mixed (by the finalizer of SplitMix64, Steele and others, OOPSLA 2014): the pattern steps through its words by adding,
// and seeds that lie on such a step would give the same words, shifted.
func Seed(test, source, destination, attempt int) uint64 {
	x := 1 + uint64(attempt) + 1<<8*uint64(destination) + 1<<20*uint64(source) + 1<<32*uint64(test)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return process + (x ^ x>>31)
}

// process is a part of all seeds that no other process has.
var process = rand.Uint64()

// step is between the states of two words of a pattern (the constant of SplitMix64).
const step uint64 = 0x9e3779b97f4a7c15

// PatternWord is the word at an index of a buffer: the same as gd_fill of judge.ptx.
func PatternWord(seed, index uint64) uint64 {
	x := seed + index*step
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	return x
}

// RankStep is by how much the seeds of the ranks of a collective differ, rank by rank. It is
// odd and no small multiple of the step between words, so that no rank's words are
// another's, shifted (the constant of L64X128, Steele and Vigna, OOPSLA 2021).
const RankStep uint64 = 0xd1b54a32d192ed03

// Sum is the word at an index of the sum of the patterns of so many ranks: what gd_verify compares with.
func Sum(seed, ranks, index uint64) uint64 {
	sum := uint64(0)
	for r := range ranks {
		sum += PatternWord(seed+r*RankStep, index)
	}
	return sum
}

// FillHost writes the pattern of a seed over host memory.
func FillHost(b []byte, seed uint64) {
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], PatternWord(seed, uint64(i/8)))
	}
}
