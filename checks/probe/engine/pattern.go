package engine

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

// sources are the kernels for each API.
var sources = map[string]string{apiCUDA: ptx, apiHIP: hipSource}

// MinComputeCapability is the oldest that the kernels run on (see kernels.ptx).
const MinComputeCapability = "6.0"

// poison is what a destination holds before a transfer: a word that the
// pattern does not yield for any seed and index in practice, and that is
// neither zero nor all ones, which broken platforms often deliver.
const (
	poison32 uint32 = 0xdeadbeef
	poison   uint64 = uint64(poison32)<<32 | uint64(poison32)
)

// seed is unique to a transfer, so that data of another one, or of an earlier
// attempt, can be told from its own. The numbers are mixed (by the finalizer of
// SplitMix64, Steele and others, OOPSLA 2014), since the pattern steps through
// its words by adding: seeds that lie on such a step would give the same
// words, shifted.
func seed(test, source, destination, attempt int) uint64 {
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

// fillHost writes the pattern of a seed over host memory.
func fillHost(b []byte, seed uint64) {
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], Pattern(seed, uint64(i/8)))
	}
}

// comparison is the result of comparing a buffer with a pattern, in words of 8
// bytes.
type comparison struct {
	bad, first, poison, zero uint64
}

// compareHost compares host memory with the pattern of a seed.
func compareHost(b []byte, seed uint64) comparison {
	c := comparison{first: uint64(len(b) / 8)}
	for i := 0; i+8 <= len(b); i += 8 {
		got := binary.LittleEndian.Uint64(b[i:])
		if got == Pattern(seed, uint64(i/8)) {
			continue
		}
		c.bad++
		c.first = min(c.first, uint64(i/8))
		switch got {
		case poison:
			c.poison++
		case 0:
			c.zero++
		}
	}
	return c
}
