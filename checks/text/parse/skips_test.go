package parse_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// parseWithoutSkips is Parse, with each line offered to every kind whose anchors it holds.
func parseWithoutSkips(name, content string) *facts.Facts {
	r := text.NewReading()
	r.WithoutSkips()
	texttest.Text(r, name, content)
	return r.Finish()
}

// sameWithoutSkips checks that a text tells the same without skips.
func sameWithoutSkips(t *testing.T, name, text string) {
	t.Helper()
	expect.NoDiff(t, texttest.Indented(t, parseWithoutSkips(name, text)), texttest.Indented(t, texttest.Parse(name, text)), "%s: with skips", name)
}

// TestSkips checks that the texts of the repository tell the same without skips.
func TestSkips(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	for name, text := range texttest.EveryText(t) {
		sameWithoutSkips(t, name, text)
	}
}

// FuzzSkips checks the same of any text.
func FuzzSkips(f *testing.F) {
	expect.NotShort(f, "it enumerates, and a few texts show what runs side by side")
	const largest = 8 << 10 // Larger ones are as slow to change as they are to read.
	for _, text := range texttest.EveryText(f) {
		f.Add(text[:min(len(text), largest)])
	}
	f.Add("copy cuda:0 -> cuda:1 ok\nGPU 0 to GPU 1 copied: mismatch\ngpu0=>gpu1 memcpy correct, GPU 0 TO device 1 transfer wrong data")
	f.Add("nccl  2.18\n[conda] nccl\t2.1\n[\n  {\"HostConfig\": {\n}}\n]")
	f.Fuzz(func(t *testing.T, text string) { sameWithoutSkips(t, "x", text) })
}
