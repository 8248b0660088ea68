package parse

import (
	"bytes"
	"slices"
)

// splitter finds the lines of a text, chunk by chunk. A line ends at a line feed,
// with the carriage returns before it, at a carriage return by itself, and at zero
// bytes: they are where a file was truncated under its writer, and between the
// variables of /proc/PID/environ.
type splitter struct {
	anchors *anchorSet
	// numbered is true if the next line has a number of its own.
	numbered bool
	// first is true until the first chunk was seen, and returns where carriage
	// returns end the lines of this text: that chunk has some and no line feed.
	first, returns bool
	// entities is true if the chunk holds characters as HTML escapes them.
	entities bool
	// skipping is true inside a line whose beginning was handed out.
	skipping bool
	// zero is true if the chunk before ended in a zero byte.
	zero bool
	// cut counts the lines that were longer than MaxLine, cutBytes what was passed
	// over of them.
	cut, cutBytes int64
}

// ends are where the next line feed, carriage return and zero byte are in data;
// len(data) stands for none.
type ends struct {
	data                  []byte
	feed, carriage, zeros int
}

// from finds the first of them from a place on. Each byte is looked at once for
// each of the three.
func (e *ends) from(at int) int {
	next := func(place *int, b byte) {
		if *place >= at {
			return
		}
		if i := bytes.IndexByte(e.data[at:], b); i >= 0 {
			*place = at + i
		} else {
			*place = len(e.data)
		}
	}
	next(&e.feed, '\n')
	next(&e.carriage, '\r')
	next(&e.zeros, 0)
	return min(e.feed, e.carriage, e.zeros)
}

// lines finds the lines of a chunk and the anchors in them. It returns what
// belongs to a line that is not whole yet.
func (s *splitter) lines(c *chunk, last bool) (rest []byte) {
	s.dropZeros(c)
	data := c.data
	s.entities = bytes.IndexByte(data, '&') >= 0 && bytes.IndexByte(data, ';') >= 0
	e := ends{data: data, feed: -1, carriage: -1, zeros: -1}
	if s.first {
		s.first = false
		e.from(0)
		s.returns = e.carriage < len(data) && e.feed == len(data)
	}
	for from := 0; from < len(data); {
		end := e.from(from)
		next, feed := end+1, end == e.feed
		if end == e.carriage {
			next, feed = s.pastReturns(data, end, last)
			if next < 0 { // What comes behind the carriage returns is not known yet.
				if end-from <= MaxLine && len(data)-end <= MaxLine {
					return slices.Clone(data[from:])
				}
				next = len(data)
			}
		}
		switch {
		case end < len(data) || last:
		case s.skipping:
			s.cutBytes += int64(end - from)
			return nil
		case end-from <= MaxLine:
			return slices.Clone(data[from:])
		default: // Its beginning is handed out now.
			s.line(c, from, from+MaxLine, false)
			s.skipping = true
			s.cut++
			s.cutBytes += int64(end - from - MaxLine)
			return nil
		}
		s.segment(c, from, end, feed || end == len(data), end == e.carriage)
		from = next
	}
	return nil
}

// pastReturns goes over carriage returns. Before a line feed, and at the end of
// the text, they end the line; feed is true there. In a text without line feeds
// each one does. next is -1 where the chunk ends in them.
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

// segment takes a line that has ended. An empty one counts where it is all that
// the text has under its number.
func (s *splitter) segment(c *chunk, from, to int, feed, carriage bool) {
	switch {
	case s.skipping:
		s.skipping = false
		s.cutBytes += int64(to - from)
	case to-from > MaxLine:
		s.cut++
		s.cutBytes += int64(to - from - MaxLine)
		s.line(c, from, from+MaxLine, carriage && !feed)
	case to > from || feed && s.numbered:
		s.line(c, from, to, carriage && !feed)
	}
	if feed {
		s.numbered = true
	}
}

// line takes a line, or those that it stands for, and finds those who may take it.
func (s *splitter) line(c *chunk, from, to int, overwritten bool) {
	text := c.data[from:to]
	l := lineAt{from: int32(from), to: int32(to), numbered: s.numbered, overwritten: overwritten}
	s.numbered = false
	if plain(text) && !s.mayBeEscaped(text) {
		s.add(c, l)
		return
	}
	for _, part := range s.unescape(text) {
		l.from = int32(len(c.data))
		c.data = append(c.data, part...)
		l.to = int32(len(c.data))
		s.add(c, l)
		l.numbered = false
	}
}

// add adds a line to a chunk.
func (s *splitter) add(c *chunk, l lineAt) {
	c.takers = s.anchors.takersOf(c.data[l.from:l.to], c.takers)
	l.takers = int32(len(c.takers))
	c.lines = append(c.lines, l)
}

// dropZeros makes one zero byte of several in a row, however many: a log that was
// truncated while its writer kept its place begins with as many as it had bytes.
// Every second byte that is zero, as where UTF-16 was appended to another
// encoding, goes.
func (s *splitter) dropZeros(c *chunk) {
	data := c.data
	to := bytes.IndexByte(data, 0)
	if to < 0 {
		s.zero = false
		return
	}
	zeroAt := func(i int) bool { return i >= 0 && i < len(data) && data[i] == 0 }
	before, beforeThat := to > 0 && zeroAt(to-1) || to == 0 && s.zero, zeroAt(to-2)
	for i := to; i < len(data); i++ {
		b := data[i]
		keep := b != 0 || !before && !beforeThat && (zeroAt(i+1) || !zeroAt(i+2))
		before, beforeThat = b == 0, before
		if keep {
			data[to] = b
			to++
		}
	}
	s.zero = before
	c.data = data[:to]
}
