package lines

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestWrapKeepsUnits checks, at every width, that no line parts a number from its unit and
// that no line is longer than the width if it could be shorter.
func TestWrapKeepsUnits(t *testing.T) {
	const s = "the rate is 25.1 GB/s (40 % of 63.0 GB/s), 64 MiB in 3 ms, at 5.0 x16; 8 x 2 GPUs take 2 seconds"
	whole := []string{"25.1 GB/s", "(40 %", "63.0 GB/s),", "64 MiB", "3 ms,", "5.0 x16;"}
	for width := range 120 {
		broken := Wrap(s, width)
		got := strings.Join(broken, " ")
		expect.Must(t, got == s, "width %d: %q", width, got)
		for _, part := range whole {
			expect.That(t, slices.ContainsFunc(broken, func(l string) bool { return strings.Contains(l, part) }), "width %d parts %q", width, part)
		}
		for _, l := range broken {
			expect.That(t, len(l) <= width || !strings.Contains(l, " ") || slices.Contains(whole, l), "width %d: %q is too long", width, l)
		}
	}
	const said = "5 GB/s, 40 % of 5.0 x16 in 3 s; 8 GPUs, 2 seconds, 1 GBs"
	expect.Equal(t, "5\u00a0GB/s, 40\u00a0% of 5.0\u00a0x16 in 3\u00a0s; 8 GPUs, 2 seconds, 1 GBs", KeepUnits(said), "it")
}
