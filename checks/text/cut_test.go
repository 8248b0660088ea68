package text_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestOverwrittenLine checks that what a program says is heard where a progress bar took its place on the screen.
func TestOverwrittenLine(t *testing.T) {
	said := strings.TrimSuffix(known, "\n")
	for _, text := range []string{
		"first\n" + said + "\r" + progress + "\nlast\n",
		"first\n" + strings.Repeat(progress, 2000) + said + "\r" + strings.Repeat(progress, 2000) + "\nlast\n",
	} {
		f := texttest.Parse("a.log", text)
		expect.That(t, f.Logs != nil && len(f.Logs.Messages) == 1 && f.Logs.Messages[0].Line == 2, "got %+v", f.Logs)
	}
}

// TestCutLines checks, for lines around the bound and in all forms of their ends, that
// a line of which a part was not read is reported, with how much, and no other.
func TestCutLines(t *testing.T) {
	for _, over := range []int{-1, 0, 1, 1000, parse.ChunkBytes, 2*parse.ChunkBytes + 7} {
		for _, end := range []string{"\n", "\r\n", "\r", ""} {
			for _, count := range []int{1, 3} {
				if end == "" && count > 1 {
					continue
				}
				text := strings.Repeat(strings.Repeat("x", parse.MaxLine+over)+end, count) + strings.Repeat(known, min(len(end), 1))
				got := texttest.Parse("a.log", text).Texts[0]
				want := ""
				if over > 0 {
					want = fmt.Sprintf("%d of its lines are longer than 64 KiB: %s of them were not read", count, parse.Size(int64(count*over)))
				}
				expect.That(t, got.Problem == want && (got.Unread == facts.UnreadLines) == (over > 0), "%d bytes more, end %q, %d times: %q, want %q", over, end, count, got.Problem, want)
				expect.That(t, got.Bytes == int64(len(text)), "%d bytes more, end %q: %d bytes, want %d", over, end, got.Bytes, len(text))
			}
		}
	}
}
