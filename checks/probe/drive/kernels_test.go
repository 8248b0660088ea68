package drive

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestPattern checks that the pattern never repeats within a buffer, nor between transfers at one offset.
func TestPattern(t *testing.T) {
	seen := make(map[uint64]bool)
	for _, s := range []uint64{Seed(0, 0, 1, 0), Seed(0, 1, 0, 0), Seed(0, 0, 1, 1), Seed(1, 0, 1, 0), Seed(5, 15, 14, 2)} {
		for i := range uint64(1 << 14) {
			w := PatternWord(s, i)
			expect.Must(t, !seen[w] && w != Poison && w != 0, "word %#x of seed %#x at %d is not unique", w, s, i)
			seen[w] = true
		}
	}
}

func TestCompareHost(t *testing.T) {
	b := make([]byte, 64)
	FillHost(b, 7)
	copy(b[16:24], make([]byte, 8))
	for i, x := range []byte{0xef, 0xbe, 0xad, 0xde, 0xef, 0xbe, 0xad, 0xde} {
		b[40+i] = x
	}
	expect.Equal(t, Comparison{Bad: 2, First: 2, Last: 5, Poison: 1, Zero: 1}, CompareHost(b, 7), "CompareHost")
}

// TestSum checks that a sum differs from the pattern of each rank, from the sum without any
// one rank, and from the sum with a rank twice.
func TestSum(t *testing.T) {
	const seed, ranks = 7, 8
	for i := range uint64(1 << 10) {
		sum := Sum(seed, ranks, i)
		for r := range uint64(ranks) {
			own := PatternWord(seed+r*RankStep, i)
			expect.Must(t, sum != own && sum-own != sum && sum+own != sum, "index %d: rank %d does not show in the sum", i, r)
			for j := range uint64(1 << 6) {
				expect.Must(t, r <= 0 || PatternWord(seed, j) != own, "word %d of rank %d is word %d of rank 0", i, r, j)
			}
		}
	}
}
