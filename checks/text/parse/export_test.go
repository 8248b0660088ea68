package parse

import "io"

// WithoutSkips makes a reading offer each line to every kind whose anchors it holds.
func (r *Reading) WithoutSkips() {
	anchors := *r.anchors
	anchors.skips = nil
	r.anchors = &anchors
}

// Scan looks for the anchors in a text, and nothing else.
func (r *Reading) Scan(from io.Reader) {
	s := newScanner(r.anchors)
	go s.split(nil, from)
	for s.fill() {
		s.at = len(s.now.lines)
	}
}
