package evidence

import "slices"

// keyBytes is how much of an anchor the automaton looks for: its end, which
// tells more than its beginning ("NET/IB : Got async event"). What it finds is
// compared with the whole anchor afterwards.
const keyBytes = 8

// anchorSet finds all anchors of all kinds and statements in one pass over a
// text: an automaton of Aho and Corasick, spelt out as a table.
type anchorSet struct {
	// class maps a byte to its column: bytes of no key share column 0.
	class   [256]uint8
	columns int
	// next is the state that follows, by state and column.
	next []uint32
	// found are the takers of the keys that end in a state; most have none.
	found [][]uint16
}

// newAnchorSet builds the automaton; anchors[i] are those of taker i.
func newAnchorSet(anchors [][]string) *anchorSet {
	a := &anchorSet{columns: 1}
	var keys []string
	takers := make(map[string][]uint16)
	for i, list := range anchors {
		for _, anchor := range list {
			key := anchor[max(0, len(anchor)-keyBytes):]
			if takers[key] == nil {
				keys = append(keys, key)
			}
			if !slices.Contains(takers[key], uint16(i)) {
				takers[key] = append(takers[key], uint16(i))
			}
			for _, b := range []byte(key) {
				if a.class[b] == 0 {
					a.class[b] = uint8(a.columns)
					a.columns++
				}
			}
		}
	}
	a.state()
	for _, key := range keys {
		at := 0
		for _, b := range []byte(key) {
			cell := at*a.columns + int(a.class[b])
			if a.next[cell] == 0 {
				fresh := uint32(a.state())
				a.next[cell] = fresh
			}
			at = int(a.next[cell])
		}
		a.found[at] = append(a.found[at], takers[key]...)
	}
	a.link()
	return a
}

// state adds a state.
func (a *anchorSet) state() int {
	a.next = append(a.next, make([]uint32, a.columns)...)
	a.found = append(a.found, nil)
	return len(a.found) - 1
}

// link completes the table, level by level: where a state has no way on, that
// of its longest proper suffix is taken.
func (a *anchorSet) link() {
	suffix := make([]uint32, len(a.found))
	queue := make([]uint32, 0, len(a.found))
	for c := range a.columns {
		if s := a.next[c]; s != 0 {
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for _, taker := range a.found[suffix[s]] {
			if !slices.Contains(a.found[s], taker) {
				a.found[s] = append(a.found[s], taker)
			}
		}
		for c := range a.columns {
			cell := int(s)*a.columns + c
			fallback := a.next[int(suffix[s])*a.columns+c]
			if a.next[cell] == 0 {
				a.next[cell] = fallback
				continue
			}
			suffix[a.next[cell]] = fallback
			queue = append(queue, a.next[cell])
		}
	}
	// From here on a state is where its row begins, with a mark if keys end in
	// it: one look-up for each byte.
	for cell, s := range a.next {
		row := s * uint32(a.columns)
		if len(a.found[s]) > 0 {
			row |= endsHere
		}
		a.next[cell] = row
	}
}

// endsHere marks a state in which keys end.
const endsHere = 1 << 31

// in appends the takers whose anchors may be in a line, each once.
func (a *anchorSet) in(line []byte, takers []uint16) []uint16 {
	from := len(takers)
	next, class := a.next, &a.class
	state := uint32(0)
	for _, b := range line {
		state = next[state+uint32(class[b])]
		if state&endsHere != 0 {
			state &^= endsHere
			for _, t := range a.found[state/uint32(a.columns)] {
				if !slices.Contains(takers[from:], t) {
					takers = append(takers, t)
				}
			}
		}
	}
	return takers
}
