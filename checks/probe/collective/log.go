package collective

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Bounds of the library's log of one process. With INFO it is some tens of kB.
const (
	maxHead = 512 << 10
	maxTail = 64 << 10
	maxLog  = 64 << 20
)

// capture reads a library's log from a pipe.
type capture struct {
	theirs *os.File

	ours    *os.File
	done    chan struct{}
	mu      sync.Mutex
	head    []byte
	tail    []byte
	read    int64
	flooded chan struct{} // Closed when more came than any healthy library writes.
}

func newCapture() (*capture, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &capture{ours: r, theirs: w, done: make(chan struct{}), flooded: make(chan struct{})}
	go c.drain()
	return c, nil
}

func (c *capture) drain() {
	defer close(c.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := c.ours.Read(buf)
		c.keep(buf[:n])
		if c.read > maxLog {
			close(c.flooded)
			_, _ = io.Copy(io.Discard, c.ours) // Its writer is being ended; what it wrote is lost.
			return
		}
		if err != nil {
			return
		}
	}
}

func (c *capture) keep(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read += int64(len(b))
	n := min(len(b), maxHead-len(c.head))
	c.head = append(c.head, b[:n]...)
	c.tail = append(c.tail, b[n:]...)
	c.tail = c.tail[max(0, len(c.tail)-maxTail):]
}

// end reads what is left and closes the pipe. A process that left the group may still hold it.
func (c *capture) end() {
	_ = c.theirs.Close() // Nothing is written here.
	if err := c.ours.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		_ = c.ours.Close()
	}
	<-c.done
	_ = c.ours.Close() // It was only read.
}

// text is what was kept, as text, without a part of a line where something is missing.
func (c *capture) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := c.tail
	if c.read > int64(len(c.head)+len(c.tail)) {
		_, tail, _ = bytes.Cut(tail, []byte("\n"))
	}
	return strings.ToValidUTF8(string(c.head)+string(tail), "?")
}
