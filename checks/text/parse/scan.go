package parse

import (
	"errors"
	"io"
	"sync"
)

const (
	// ChunkBytes is how much of a text is looked at at a time.
	ChunkBytes = 1 << 20
	// chunksAhead is how many chunks are scanned before they are needed.
	chunksAhead = 3
)

// chunk is a run of whole lines and what was found in them.
type chunk struct {
	data  []byte
	bytes int64 // How much of it is new: a line that went on is in two chunks.
	lines []lineAt
	// takers holds, line by line, those that anchorSet.takersOf found.
	takers []uint16
	// joins are the lines that some may be the first piece of, in the order of these.
	joins []join
}

// lineAt is where a line lies in its chunk.
type lineAt struct {
	from, to int32
	takers   int32 // Where those of this line end; they begin at those of the line before.
	// joins is how many of the chunk's joins begin with this line.
	joins uint8
	// broken is true if a screen of a usual width may have broken the line.
	broken bool
	// numbered is true if the line has a number of its own. One behind a
	// carriage return has that of the line in which it stands.
	numbered bool
	// overwritten is true if a carriage return ended the line and another one
	// took its place on the screen, as those of progress bars do.
	overwritten bool
}

// scanner reads a text in chunks, looks for anchors in them in a goroutine of
// its own, and hands out lines.
type scanner struct {
	anchors *anchorSet
	chunks  <-chan *chunk
	stop    chan struct{}
	now     *chunk
	at      int // The next line of now.
	joins   int // The next join of now.
	number  int // The number of the last line handed out or passed over.
	bytes   int64
	// cut counts the lines that were longer than MaxLine, and cutBytes what was
	// passed over of them. They hold once the chunks have ended.
	cut, cutBytes int64
	err           error
}

// scan begins to read a text.
func (a *anchorSet) scan(r io.Reader) *scanner {
	chunks := make(chan *chunk, chunksAhead)
	s := &scanner{anchors: a, chunks: chunks, stop: make(chan struct{})}
	go func() {
		defer close(chunks)
		s.err = a.split(r, s, chunks)
	}()
	return s
}

// split cuts the text into chunks of whole lines.
func (a *anchorSet) split(r io.Reader, s *scanner, chunks chan<- *chunk) error {
	var rest []byte // The beginning of a line that goes on in the next chunk.
	sp := splitter{anchors: a, numbered: true, first: true}
	defer func() { s.cut, s.cutBytes = sp.cut, sp.cutBytes }()
	for {
		c := spareChunks.Get().(*chunk)
		// Lines that were looked at ahead keep their takers.
		c.data, c.lines, c.takers, c.joins = c.data[:0], c.lines[:0], make([]uint16, 0, cap(c.takers)), nil
		c.data = append(c.data, rest...)
		room := c.data[len(c.data) : len(c.data)+ChunkBytes-len(rest)]
		n, err := readFull(r, room)
		c.data = c.data[:len(c.data)+n]
		c.bytes = int64(n)
		last, whole := err != nil, sp.first
		if errors.Is(err, io.EOF) {
			err = nil
		}
		rest = sp.lines(c, last)
		if whole && last { // Longer texts were not copied from a screen.
			a.unwrap(c)
			a.realign(c)
		}
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

// readFull fills a buffer. Unlike io.ReadFull it tells the end of the text from
// the end of a compressed stream that was cut off.
func readFull(r io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		var read int
		read, err = r.Read(buffer[n:])
		n += read
	}
	return n, err
}

// fill makes sure that there is a next line.
func (s *scanner) fill() bool {
	for s.now == nil || s.at == len(s.now.lines) {
		if s.now != nil {
			spareChunks.Put(s.now)
			s.now = nil
		}
		c, ok := <-s.chunks
		if !ok {
			return false
		}
		s.now, s.at, s.joins = c, 0, 0
		s.bytes += c.bytes
	}
	return true
}

// next hands out the next line, with those who may take it. overwritten lines
// were not left on the screen.
func (s *scanner) next() (l Line, overwritten, ok bool) {
	if !s.fill() {
		return Line{}, false, false
	}
	place, before := s.now.lines[s.at], s.takersBefore()
	s.at++
	if place.numbered {
		s.number++
	}
	l = Line{Number: s.number, index: s.at, takers: s.now.takers[before:place.takers:place.takers]}
	text := string(s.now.data[place.from:place.to])
	l.of(text)
	if place.broken {
		l.piece = text
	}
	if n := int(place.joins); n > 0 {
		l.joins = s.now.joins[s.joins : s.joins+n]
		s.joins += n
	}
	return l, place.overwritten, true
}

// pass goes over lines that nobody takes.
func (s *scanner) pass() {
	for s.fill() {
		before := s.takersBefore()
		for s.at < len(s.now.lines) {
			l := &s.now.lines[s.at]
			if l.takers != before || l.joins > 0 {
				return
			}
			if l.numbered {
				s.number++
			}
			s.at++
		}
	}
}

// takersBefore is where the takers of the next line begin.
func (s *scanner) takersBefore() int32 {
	if s.at == 0 {
		return 0
	}
	return s.now.lines[s.at-1].takers
}

// close ends the reading.
func (s *scanner) close() {
	close(s.stop)
	for c := range s.chunks { // Until the goroutine has seen it.
		spareChunks.Put(c)
	}
	if s.now != nil {
		spareChunks.Put(s.now)
	}
}

// spareChunks are those of texts before: a ticket may hold thousands of small ones.
var spareChunks = sync.Pool{New: func() any { return &chunk{data: make([]byte, 0, ChunkBytes+MaxLine)} }}
