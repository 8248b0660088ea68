package child

import (
	"errors"
	"io"
)

// Stream is one of the pipes on which a child writes.
type Stream string

// The streams of a child.
const (
	Stdout   Stream = "stdout"
	Stderr   Stream = "stderr"
	Messages Stream = "messages"
)

// maxOutputRead bounds how much of stdout and of stderr is read before the child is ended. Debug settings of
// a vendor's library are loud: AMD_LOG_LEVEL=4 writes a few hundred bytes a call, and the
// probe polls a stream up to 50 000 times a second, which is some 10 MB/s while a
// transfer hangs and some tens of MB in a healthy probe. 256 MiB are 30 s of the loudest.
const maxOutputRead = 256 << 20

// maxMessageBytes bounds the messages. A full probe of 16 GPUs sends about 6000, of
// 300 to 500 bytes each: 3 MB.
const maxMessageBytes = 64 << 20

// maxMessages bounds the lines on the message pipe, those that are not messages
// included.
const maxMessages = 1 << 17

// errFlood is what bounded returns if its limit is exceeded.
var errFlood = errors.New("more than any healthy child writes")

// bounded reads a number of bytes from r, and returns errFlood past them.
type bounded struct {
	r    io.Reader
	left int64
}

// Read reads at most one byte past the bound.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errFlood
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return n, errFlood
	}
	return n, err
}

// drainInto reads r to its end, or to its bound, and reports whether that was
// passed. Another error loses only the end of the noise.
func drainInto(w io.Writer, r io.Reader, most int64) (flooded bool) {
	_, err := io.CopyBuffer(w, &bounded{r, most}, make([]byte, 64<<10)) // A pipe holds as much (pipe(7)).
	return errors.Is(err, errFlood)
}
