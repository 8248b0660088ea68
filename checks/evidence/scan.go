package evidence

import (
	"bytes"
	"errors"
	"io"
	"slices"
)

const (
	// chunkBytes is how much of a text is looked at at a time.
	chunkBytes = 1 << 20
	// chunksAhead is how many chunks are scanned before they are needed.
	chunksAhead = 3
)

// chunk is a run of whole lines and what was found in them.
type chunk struct {
	data  []byte
	lines []lineAt
	// takers holds, line by line, those whose anchors the line may hold.
	takers []uint16
}

// lineAt is where a line lies in its chunk.
type lineAt struct {
	from, to int32
	takers   int32 // Where those of this line end; they begin at those of the line before.
	cut      bool  // The line was longer than maxLine.
}

// scanner reads a text in chunks, looks for anchors in them in a goroutine of
// its own, and hands out lines.
type scanner struct {
	chunks <-chan *chunk
	free   chan *chunk
	stop   chan struct{}
	now    *chunk
	at     int // The next line of now.
	number int // The number of the last line handed out or passed over.
	bytes  int64
	err    error
}

// scan begins to read a text.
func (a *anchorSet) scan(r io.Reader) *scanner {
	chunks := make(chan *chunk, chunksAhead)
	s := &scanner{chunks: chunks, free: make(chan *chunk, chunksAhead+2), stop: make(chan struct{})}
	go func() {
		defer close(chunks)
		s.err = a.split(r, s, chunks)
	}()
	return s
}

// split cuts the text into chunks of whole lines.
func (a *anchorSet) split(r io.Reader, s *scanner, chunks chan<- *chunk) error {
	var rest []byte // The beginning of a line that goes on in the next chunk.
	skipping := false
	for {
		var c *chunk
		select {
		case c = <-s.free:
			// Lines that were looked at ahead keep their takers.
			c.data, c.lines, c.takers = c.data[:0], c.lines[:0], make([]uint16, 0, cap(c.takers))
		default:
			c = &chunk{data: make([]byte, 0, chunkBytes+maxLine)}
		}
		c.data = append(c.data, rest...)
		room := c.data[len(c.data) : len(c.data)+chunkBytes-len(rest)]
		n, err := io.ReadFull(r, room)
		c.data = c.data[:len(c.data)+n]
		last := err != nil
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		rest, skipping = a.lines(c, last, skipping)
		select {
		case chunks <- c:
		case <-s.stop:
			return nil
		}
		if last {
			return err
		}
	}
}

// lines finds the lines of a chunk and the anchors in them. It returns what
// belongs to a line that is not whole yet, and whether the rest of a line that
// is too long is to be passed over.
func (a *anchorSet) lines(c *chunk, last, skipping bool) (rest []byte, skip bool) {
	from := 0
	for from < len(c.data) {
		end := bytes.IndexByte(c.data[from:], '\n')
		to := from + end
		cut := false
		switch {
		case end < 0 && skipping:
			return nil, true
		case end >= 0 && skipping: // The end of a line that was too long.
			skipping = false
			from = to + 1
			continue
		case end > maxLine || end < 0 && len(c.data)-from > maxLine:
			skipping = end < 0
			if end < 0 {
				to = len(c.data) - 1
			}
			a.line(c, from, from+maxLine, true)
			from = to + 1
			continue
		case end < 0 && !last:
			return slices.Clone(c.data[from:]), false
		case end < 0:
			to = len(c.data)
		}
		a.line(c, from, to, cut)
		from = to + 1
	}
	return nil, skipping
}

func (a *anchorSet) line(c *chunk, from, to int, cut bool) {
	c.takers = a.in(c.data[from:to], c.takers)
	c.lines = append(c.lines, lineAt{from: int32(from), to: int32(to), takers: int32(len(c.takers)), cut: cut})
}

// fill makes sure that there is a next line.
func (s *scanner) fill() bool {
	for s.now == nil || s.at == len(s.now.lines) {
		if s.now != nil {
			select {
			case s.free <- s.now:
			default:
			}
			s.now = nil
		}
		c, ok := <-s.chunks
		if !ok {
			return false
		}
		s.now, s.at = c, 0
		s.bytes += int64(len(c.data))
	}
	return true
}

// next hands out the next line, with those who may take it.
func (s *scanner) next() (l Line, takers []uint16, ok bool) {
	if !s.fill() {
		return Line{}, nil, false
	}
	place, before := s.now.lines[s.at], int32(0)
	if s.at > 0 {
		before = s.now.lines[s.at-1].takers
	}
	s.at++
	s.number++
	return Line{Text: clean(s.now.data[place.from:place.to]), Number: s.number}, s.now.takers[before:place.takers], true
}

// pass goes over lines that nobody takes.
func (s *scanner) pass() {
	for s.fill() {
		before := int32(0)
		if s.at > 0 {
			before = s.now.lines[s.at-1].takers
		}
		for s.at < len(s.now.lines) {
			if t := s.now.lines[s.at].takers; t != before {
				return
			}
			s.at++
			s.number++
		}
	}
}

// close ends the reading.
func (s *scanner) close() {
	close(s.stop)
	for range s.chunks { // Let the goroutine see it.
	}
}
