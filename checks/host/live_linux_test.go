package host

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestLiveFIFO checks that a FIFO without a writer blocks nobody.
func TestLiveFIFO(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	expect.NoError(t, unix.Mkfifo(fifo, 0o600))
	l := newLive()
	start := time.Now()
	_, read := l.ReadFile(fifo, 10)
	_, list := l.ReadDir(fifo)
	expect.That(t, errors.Is(read, errIrregular) && list != nil && time.Since(start) <= fileDeadline/2, "got %v and %v after %s", read, list, time.Since(start))
}

func TestOpenFiles(t *testing.T) {
	const head = "Limit                     Soft Limit           Hard Limit           Units\n"
	for _, tt := range []struct {
		text string
		want Limit
		ok   bool
	}{
		{head + "Max open files            1024                 524288               files\n", Limit{1024, 524288}, true},
		{head + "Max open files            unlimited            unlimited            files\n", Limit{-1, -1}, true},
		{head + "Max open files            many                 1                    files\n", Limit{}, false},
		{head + "Max open files\n", Limit{}, false},
		{head, Limit{}, false},
	} {
		got, ok := openFiles([]byte(tt.text))
		expect.That(t, got == tt.want && ok == tt.ok, "%q: got %v, %t; want %v, %t", tt.text, got, ok, tt.want, tt.ok)
	}
}
