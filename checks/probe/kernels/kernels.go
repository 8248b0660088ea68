// Package kernels holds the kernels that the probes run on GPUs, and the pattern that they
// write and compare.
package kernels

import (
	_ "embed"
	"encoding/binary"
)

// ptx and hipSource hold the probe's kernels, compiled by the driver, or by hiprtc,
// when they are loaded.
//
//go:embed kernels.ptx
var ptx string

//go:embed kernels.hip
var hipSource string

// sumPTX and sumHIP hold gd_verify_sum.
//
//go:embed sum.ptx
var sumPTX string

//go:embed sum.hip
var sumHIP string

// Source is the source of the kernels for an API: PTX for "cuda", HIP C++ for "hip".
func Source(api string) string {
	if api == "hip" {
		return hipSource
	}
	return ptx
}

// SumSource is the source of gd_verify_sum for an API.
func SumSource(api string) string {
	if api == "hip" {
		return sumHIP
	}
	return sumPTX
}

// MinComputeCapability is the oldest that the kernels run on (see kernels.ptx).
const MinComputeCapability = "6.0"

// Poison is what a destination holds before a transfer: a word that the
// pattern does not yield for any seed and index in practice, and that is
// neither zero nor all ones, which broken platforms often deliver.
const (
	Poison32 uint32 = 0xdeadbeef
	Poison   uint64 = uint64(Poison32)<<32 | uint64(Poison32)
)

// Seed is unique to a transfer, so that data of another one, or of an earlier
// attempt, can be told from its own. The numbers are mixed (by the finalizer of
// SplitMix64, Steele and others, OOPSLA 2014), since the pattern steps through
// its words by adding: seeds that lie on such a step would give the same
// words, shifted.
func Seed(test, source, destination, attempt int) uint64 {
	x := 1 + uint64(attempt) + 1<<8*uint64(destination) + 1<<20*uint64(source) + 1<<32*uint64(test)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Pattern is the word at an index of the buffer that a seed fills: the same
// as gd_fill of kernels.ptx.
func Pattern(seed, index uint64) uint64 {
	x := seed + index*0x9e3779b97f4a7c15
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	return x
}

// RankStep is by how much the seeds of the ranks of a collective differ, rank by rank. It is
// odd and no small multiple of the step between words, so that no rank's words are
// another's, shifted (the constant of L64X128, Steele and Vigna, OOPSLA 2021).
const RankStep uint64 = 0xd1b54a32d192ed03

// Sum is the word at an index of the sum, modulo 2^64, of the patterns of so many ranks: the
// same as gd_verify_sum compares with.
func Sum(seed, ranks, index uint64) uint64 {
	sum := uint64(0)
	for r := range ranks {
		sum += Pattern(seed+r*RankStep, index)
	}
	return sum
}

// FillHost writes the pattern of a seed over host memory.
func FillHost(b []byte, seed uint64) {
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], Pattern(seed, uint64(i/8)))
	}
}

// Comparison is the result of comparing a buffer with a pattern, in words of 8
// bytes.
type Comparison struct {
	Bad, First, Poison, Zero uint64
}

// CompareHost compares host memory with the pattern of a seed.
func CompareHost(b []byte, seed uint64) Comparison { return CompareSum(b, seed, 1) }

// CompareSum compares host memory with the sum of the patterns of ranks.
func CompareSum(b []byte, seed, ranks uint64) Comparison {
	c := Comparison{First: uint64(len(b) / 8)}
	for i := 0; i+8 <= len(b); i += 8 {
		got := binary.LittleEndian.Uint64(b[i:])
		if got == Sum(seed, ranks, uint64(i/8)) {
			continue
		}
		c.Bad++
		c.First = min(c.First, uint64(i/8))
		switch got {
		case Poison:
			c.Poison++
		case 0:
			c.Zero++
		}
	}
	return c
}
