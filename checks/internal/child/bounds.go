package child

import (
	"errors"
	"io"
	"time"
)

// Stream is one of the pipes on which a child writes.
type Stream string

// The streams of a child.
const (
	Stdout   Stream = "stdout"
	Stderr   Stream = "stderr"
	Messages Stream = "messages"
)

// bounds say how much of a stream is read, and how fast.
type bounds struct {
	// bytes is how many are read before the child is ended.
	bytes int64
	// burst is read at once, and what comes after it at rate bytes per second. A
	// child that writes faster waits.
	burst int64
	rate  float64
}

// outputBounds bound stdout and stderr, each. Debug settings of a vendor's
// library are loud: AMD_LOG_LEVEL=4 writes a few hundred bytes a call, and the
// probe polls a stream up to 50 000 times a second, which is some 10 MB/s while a
// transfer hangs and some tens of MB in a healthy probe. 256 MiB are 30 s of the
// loudest, and a flood reaches them in 2 s: the rate after the burst is far above
// what logs come at, and reading so much takes about a tenth of a core.
var outputBounds = bounds{bytes: 256 << 20, burst: 32 << 20, rate: 128 << 20}

// messageBounds bound the messages. A full probe of 16 GPUs sends about 6000, of
// 300 to 500 bytes each: 3 MB. Decoding costs more than reading.
var messageBounds = bounds{bytes: 64 << 20, burst: 8 << 20, rate: 32 << 20}

// maxMessages bounds the lines on the message pipe, those that are not messages
// messages.
const maxMessages = 1 << 17

// errFlood is what bounded returns if its limit is exceeded.
var errFlood = errors.New("more than any healthy child writes")

// bounded reads from r within bounds, and returns errFlood past them.
type bounded struct {
	r      io.Reader
	bounds bounds
	read   int64
	// credit is how many bytes may be read without a pause, as of last.
	credit float64
	last   time.Time
	now    func() time.Time
	sleep  func(time.Duration)
}

func newBounded(r io.Reader, b bounds) *bounded {
	return &bounded{r: r, bounds: b, credit: float64(b.burst), now: time.Now, sleep: time.Sleep}
}

// Read reads at most one byte past the bound.
func (b *bounded) Read(p []byte) (int, error) {
	left := b.bounds.bytes - b.read
	if left < 0 {
		return 0, errFlood
	}
	n, err := b.r.Read(p[:min(int64(len(p)), left+1)])
	b.read += int64(n)
	if b.read > b.bounds.bytes {
		return n, errFlood
	}
	b.pay(n)
	return n, err
}

// pay pauses until n bytes were allowed to be read: a token bucket.
func (b *bounded) pay(n int) {
	now := b.now()
	if !b.last.IsZero() {
		b.credit = min(float64(b.bounds.burst), b.credit+now.Sub(b.last).Seconds()*b.bounds.rate)
	}
	b.last = now
	if b.credit -= float64(n); b.credit < 0 {
		b.sleep(time.Duration(-b.credit / b.bounds.rate * float64(time.Second)))
	}
}

// drainInto reads r to its end, or to its bound, and reports whether that was
// passed. Another error loses only the end of the noise.
func drainInto(w io.Writer, r io.Reader, b bounds) (flooded bool) {
	_, err := io.CopyBuffer(w, newBounded(r, b), make([]byte, 64<<10)) // A pipe holds as much (pipe(7)).
	return errors.Is(err, errFlood)
}
