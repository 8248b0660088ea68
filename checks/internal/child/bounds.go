package child

import "io"

// Stream is one of the pipes on which a child writes.
type Stream string

// The streams of a child.
const (
	Stdout   Stream = "stdout"
	Stderr   Stream = "stderr"
	Messages Stream = "messages"
)

// maxOutputRead bounds how much of stdout and of stderr is read: AMD_LOG_LEVEL=4 writes a few hundred bytes a call, and the
// probe polls a stream up to 50 000 times a second. 256 MiB are 30 s of the loudest.
const maxOutputRead = 256 << 20

// maxMessageBytes bounds the messages: a full probe of 16 GPUs sends 3 MB.
const maxMessageBytes = 64 << 20

const maxMessages = 1 << 17

// bounded reads a number of bytes from r and one more, which shows that there are too many.
func bounded(r io.Reader, most int64) *io.LimitedReader { return &io.LimitedReader{R: r, N: most + 1} }

// drainInto reads r to its end, or to its bound, and reports whether that was passed.
func drainInto(w io.Writer, r io.Reader, most int64) (flooded bool) {
	from := bounded(r, most)
	_, _ = io.CopyBuffer(w, from, make([]byte, 64<<10)) // A pipe holds as much (pipe(7)).
	return from.N == 0
}
