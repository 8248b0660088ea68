package lines

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies"
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

// TestSpans checks which pieces of a sentence are code.
func TestSpans(t *testing.T) {
	for s, want := range map[string][]string{
		"":                    nil,
		"Reboot the machine.": nil,
		"Set NCCL_IB_GID_INDEX to it; NCCL_DEBUG=INFO shows it.":                       {"NCCL_IB_GID_INDEX", "NCCL_DEBUG=INFO"},
		"/dev/shm is 64 MiB (df -h /dev/shm).":                                         {"/dev/shm", "/dev/shm"},
		"the loss is 5 GB/s, NCCL and CUDA say so, and/or 2/3":                         nil,
		"Remove amdgpu.pcie_p2p=0, set pci=realloc, because x = 3; --device=/dev/kfd.": {"amdgpu.pcie_p2p=0", "pci=realloc", "--device=/dev/kfd"},
		`unset "NCCL_P2P_DISABLE"`:                                                     {"NCCL_P2P_DISABLE"},
	} {
		code := Filter(Spans(s), func(span Span) bool { return span.Code })
		got := Map(code, func(span Span) string { return span.Text })
		expect.That(t, slices.Equal(got, want), "%q: got %q, want %q", s, got, want)
	}
}

// TestSpansJoined checks that the pieces of each sentence of all remedies are the sentence, and that none
// begins or ends with the punctuation around code.
func TestSpansJoined(t *testing.T) {
	code := 0
	for _, r := range expect.Value(remedies.Load())(t).Remedies() {
		for _, s := range append([]string{r.Description, r.Cost, r.Caution, r.Undo, r.Verify}, r.Apply.Steps...) {
			s, joined := remedies.Unfilled(s), ""
			for _, span := range Spans(s) {
				joined += span.Text
				if span.Code {
					code++
					expect.That(t, strings.Trim(span.Text, " ,;:.") == span.Text, "%q in %q", span.Text, s)
				}
			}
			expect.That(t, joined == s, "got %q of %q", joined, s)
		}
	}
	expect.That(t, code >= 50, "%d pieces of code", code)
}

func FuzzSpans(f *testing.F) {
	f.Add(`Run python -c "a b" | grep /dev/shm (or $(nc -l)).`)
	f.Fuzz(func(t *testing.T, s string) {
		expect.Equal(t, s, strings.Join(Map(Spans(s), func(span Span) string { return span.Text }), ""), "its pieces")
	})
}
