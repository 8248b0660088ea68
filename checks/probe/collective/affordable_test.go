package collective

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestAffordable checks for every pace of a smaller size, from a fast path to a broken one, that the next size takes at
// most mostSeconds if the time grows with the size; that it is the one asked for unless even its two runs would take
// longer; and that a path a hundredth as fast as one PCIe lane is still measured with 32 MiB.
func TestAffordable(t *testing.T) {
	for _, smaller := range []int64{0, 8, 64 * kib, mib, 64 * mib} {
		for _, asked := range []int64{8, 64 * kib, mib, 32 * mib, 64 * mib, 1024 * mib} {
			if asked <= smaller {
				continue
			}
			for seconds := 1e-6; seconds < 100; seconds *= 1.3 {
				bytes, n := affordable(asked, smaller, seconds)
				if bytes == smaller && n == 0 && smaller > 0 && asked > mib {
					all := 2 * seconds * 2
					expect.Must(t, all > mostSeconds, "nothing after %d in %g s, though the double takes %g s", smaller, seconds, all)
					continue
				}
				expect.Must(t, bytes <= asked && bytes > smaller && n >= 1 && n <= times(bytes), "%d bytes after %d in %g s: %d bytes %d times", asked, smaller, seconds, bytes, n)
				if smaller == 0 || asked <= mib {
					expect.Must(t, bytes == asked && n == times(asked), "%d bytes after %d in %g s: %d bytes %d times", asked, smaller, seconds, bytes, n)
					continue
				}
				once := seconds * float64(bytes) / float64(smaller)
				all := once * float64(n+1)
				expect.Must(t, all <= mostSeconds, "%d bytes after %d in %g s: %d bytes %d times take %g s", asked, smaller, seconds, bytes, n, all)
				twice := 4 * once
				expect.Must(t, bytes >= asked || twice > mostSeconds, "%d bytes after %d in %g s: only %d bytes, though the double takes %g s", asked, smaller, seconds, bytes, twice)
			}
		}
	}
	bytes, _ := affordable(64*mib, mib, float64(mib)/0.1e9)
	expect.That(t, bytes >= 32*mib, "at 0.1 GB/s only %d bytes are measured", bytes)
}
