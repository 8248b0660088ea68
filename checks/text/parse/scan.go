package parse

import "io"

const (
	// ChunkBytes is how much of a text is looked at at a time.
	ChunkBytes = 1 << 20
	// chunksAhead is how many chunks are scanned before they are needed.
	chunksAhead = 3
)

// chunk is a run of whole lines and what was found in them.
type chunk struct {
	data  []byte
	bytes int64 // How much of the text was read for it.
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

// scanner reads a text in chunks, looks for anchors in them in a goroutine of its own, and hands out lines.
type scanner struct {
	anchors *anchorSet
	// personal is true of a text that a person may have written.
	personal bool
	chunks   chan *chunk
	stop     chan struct{}
	now      *chunk
	at       int // The next line of now.
	joins    int // The next join of now.
	number   int // The number of the last line handed out or passed over.
	bytes    int64
	// cut counts the lines that were longer than MaxLine, and cutBytes what was
	// passed over of them. They hold once the chunks have ended.
	cut, cutBytes int64
	err           error
}

// newScanner returns the scanner of a text that split reads.
func newScanner(a *anchorSet, personal bool) *scanner {
	return &scanner{anchors: a, personal: personal, chunks: make(chan *chunk, chunksAhead), stop: make(chan struct{})}
}

// split cuts the text into chunks of whole lines and finds who may take each line, in a goroutine of its own. The text
// begins with begin.
func (s *scanner) split(begin []byte, r io.Reader) {
	defer close(s.chunks)
	in := &withoutZeros{from: r}
	sp := newSplitter(begin)
	c, lines := new(chunk), sp.scanner(in)
	one := make([][]byte, 1)
	for lines.Scan() {
		if len(c.data) >= ChunkBytes {
			if !s.send(c, in) {
				return
			}
			c = &chunk{data: make([]byte, 0, cap(c.data)), lines: make([]lineAt, 0, cap(c.lines)), takers: make([]uint16, 0, cap(c.takers))}
		}
		l, parts := lineAt{numbered: sp.numbered, overwritten: sp.overwritten}, one
		if one[0] = lines.Bytes(); !plain(one[0]) || mayBeEscaped(one[0]) {
			parts = unescape(one[0])
		}
		for _, part := range parts {
			l.from = int32(len(c.data))
			c.data = append(c.data, part...)
			l.to = int32(len(c.data))
			c.takers = s.anchors.takersOf(part, s.personal, c.takers)
			l.takers = int32(len(c.takers))
			c.lines = append(c.lines, l)
			l.numbered = false
		}
	}
	if in.bytes <= ChunkBytes { // Longer texts were not copied from a screen.
		s.anchors.unwrap(c)
	}
	s.err, s.cut, s.cutBytes = lines.Err(), sp.cut, sp.cutBytes
	s.send(c, in)
}

// send hands a chunk over; it is false if nobody reads on.
func (s *scanner) send(c *chunk, in *withoutZeros) bool {
	c.bytes, in.sent = in.bytes-in.sent, in.bytes
	select {
	case s.chunks <- c:
		return true
	case <-s.stop:
		return false
	}
}

// fill makes sure that there is a next line.
func (s *scanner) fill() bool {
	for s.now == nil || s.at == len(s.now.lines) {
		c, ok := <-s.chunks
		if !ok {
			return false
		}
		s.now, s.at, s.joins = c, 0, 0
		s.bytes += c.bytes
	}
	return true
}

// next hands out the next line, with those who may take it. overwritten lines were not left on the screen.
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
	for range s.chunks { // Until the goroutine has seen it.
	}
}
