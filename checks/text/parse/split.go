package parse

import (
	"bufio"
	"bytes"
	"io"
)

// splitter finds the lines of a text. A line ends at a line feed, with the carriage
// returns before it, at a carriage return by itself, and at zero bytes: they are where
// a file was truncated under its writer, and between the variables of /proc/PID/environ.
type splitter struct {
	// returns is true if carriage returns end the lines of this text: its beginning has some and no line feed.
	returns bool
	// numbered is true if the line that was found has a number of its own, fresh if the next one
	// will, and overwritten if a carriage return ended the line.
	numbered, fresh, overwritten bool
	// skipping is true inside a line whose beginning was handed out.
	skipping bool
	// cut counts the lines that were longer than MaxLine, cutBytes what was passed over of them.
	cut, cutBytes int64
}

// newSplitter returns a splitter for a text that begins so.
func newSplitter(begin []byte) *splitter {
	return &splitter{fresh: true, returns: bytes.IndexByte(begin, '\r') >= 0 && bytes.IndexByte(begin, '\n') < 0}
}

// scanner hands out the lines of a text.
func (s *splitter) scanner(r io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 16<<10), 4*MaxLine) // next looks ahead no farther than 2*MaxLine.
	lines.Split(s.next)
	return lines
}

// next finds the next line (bufio.SplitFunc).
func (s *splitter) next(data []byte, last bool) (advance int, line []byte, err error) {
	for {
		n, line := s.lineIn(data[advance:], last)
		if advance += n; n == 0 || line != nil {
			return advance, line, nil
		}
	}
}

// lineIn is the line at the front of a text, and how long it is with its end: 0 if that is not in sight. Of one
// that is longer than MaxLine it is the beginning, and of what is no line of its own it is nil: of the rest of such a line, and
// of an empty one, unless it is all that the text has under its number.
func (s *splitter) lineIn(data []byte, last bool) (size int, line []byte) {
	end := lineEnd(data)
	if end == len(data) && (!last || end == 0) {
		switch {
		case s.skipping:
			s.cutBytes += int64(end)
			return end, nil
		case end > MaxLine:
			s.numbered, s.fresh, s.overwritten, s.skipping = s.fresh, false, false, true
			s.cut++
			return MaxLine, data[:MaxLine]
		}
		return 0, nil
	}
	size, feed, carriage := min(end+1, len(data)), end == len(data) || data[end] == '\n', end < len(data) && data[end] == '\r'
	if carriage {
		if size, feed = s.pastReturns(data, end, last); size < 0 { // What comes behind the carriage returns is not known yet.
			if end <= MaxLine && len(data)-end <= MaxLine {
				return 0, nil
			}
			size = len(data)
		}
	}
	switch {
	case s.skipping:
		s.skipping, s.fresh = false, feed
		s.cutBytes += int64(end)
		return size, nil
	case end == 0 && (!feed || !s.fresh):
		s.fresh = s.fresh || feed
		return size, nil
	case end > MaxLine:
		s.cut++
		s.cutBytes += int64(end - MaxLine)
	}
	s.numbered, s.fresh, s.overwritten = s.fresh, feed, carriage && !feed
	return size, data[:min(end, MaxLine)]
}

// lineEnd is where the first byte is that may end a line; len(data) if there is none.
func lineEnd(data []byte) int {
	for size := 512; ; size *= 8 { // Usually close by: of the three, most texts have line feeds alone.
		end := min(size, len(data))
		for _, b := range []byte{'\n', '\r', 0} {
			if i := bytes.IndexByte(data[:end], b); i >= 0 {
				end = i
			}
		}
		if end < size || end == len(data) {
			return end
		}
	}
}

// pastReturns goes over carriage returns. Before a line feed, and at the end of the text, they end the line; feed is
// true there. In a text without line feeds each one does. next is -1 where the data ends in them.
func (s *splitter) pastReturns(data []byte, at int, last bool) (next int, feed bool) {
	if s.returns {
		return at + 1, true
	}
	next = len(data) - len(bytes.TrimLeft(data[at:], "\r"))
	switch {
	case next < len(data) && data[next] == '\n':
		return next + 1, true
	case next < len(data):
		return next, false
	case last:
		return next, true
	}
	return -1, false
}

// withoutZeros makes one zero byte of several in a row, of which a log that was truncated under its writer has as many
// as it had bytes. Every second byte that is zero, as where UTF-16 was appended to another encoding, goes.
type withoutZeros struct {
	from io.Reader
	// zero is true if what was read last ended in a zero byte.
	zero bool
	// bytes is how much was read, and sent how much of that before the present chunk.
	bytes, sent int64
}

func (z *withoutZeros) Read(p []byte) (n int, err error) {
	for {
		n, err = z.from.Read(p)
		z.bytes += int64(n)
		if kept := z.drop(p[:n]); kept > 0 || n == 0 || err != nil {
			return kept, err
		}
	}
}

// drop moves what is kept to the front, and returns how much that is.
func (z *withoutZeros) drop(data []byte) int {
	to := bytes.IndexByte(data, 0)
	if to < 0 {
		z.zero = z.zero && len(data) == 0
		return len(data)
	}
	zeroAt := func(i int) bool { return i >= 0 && i < len(data) && data[i] == 0 }
	before, beforeThat := to > 0 && zeroAt(to-1) || to == 0 && z.zero, zeroAt(to-2)
	for i := to; i < len(data); i++ {
		b := data[i]
		keep := b != 0 || !before && !beforeThat && (zeroAt(i+1) || !zeroAt(i+2))
		before, beforeThat = b == 0, before
		if keep {
			data[to] = b
			to++
		}
	}
	z.zero = before
	return to
}
