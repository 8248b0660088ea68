package parse

import (
	"slices"
	"strings"
)

// keyBytes is how much of an anchor the automaton looks for: its end, which
// tells more than its beginning ("NET/IB : Got async event"). Where it finds a
// key, it compares what stands before it with the rest of the anchor.
const keyBytes = 8

// anchorSet finds all anchors of all kinds and statements in one pass over a
// text: an automaton of Aho and Corasick, spelt out as a table.
type anchorSet struct {
	// class maps a byte to its column: bytes of no key share column 0.
	class   [256]uint8
	columns int
	// next is the state that follows, by state and column.
	next []uint32
	// ending are the anchors whose keys end in a state; most states have none.
	ending [][]anchor
	// anchors are those of each taker, and prefilters the Prefilter of each kind; other
	// takers have none.
	anchors    [][]string
	prefilters []func(line []byte) Relevance
}

// anchor is an anchor of a taker whose key was found.
type anchor struct {
	taker uint16
	// before is what stands before the key.
	before string
}

// newAnchorSet builds the automaton; anchors[i] are those of taker i.
func newAnchorSet(anchors [][]string) *anchorSet {
	a := &anchorSet{columns: 1, anchors: anchors}
	var keys []string
	ending := make(map[string][]anchor)
	for i, list := range anchors {
		for _, text := range list {
			split := max(0, len(text)-keyBytes)
			key, found := text[split:], anchor{uint16(i), text[:split]}
			if ending[key] == nil {
				keys = append(keys, key)
			}
			if !slices.Contains(ending[key], found) {
				ending[key] = append(ending[key], found)
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
		a.ending[at] = append(a.ending[at], ending[key]...)
	}
	a.link()
	return a
}

// state adds a state.
func (a *anchorSet) state() int {
	a.next = append(a.next, make([]uint32, a.columns)...)
	a.ending = append(a.ending, nil)
	return len(a.ending) - 1
}

// link completes the table, level by level: where a state has no way on, that
// of its longest proper suffix is taken.
func (a *anchorSet) link() {
	suffix := make([]uint32, len(a.ending))
	queue := make([]uint32, 0, len(a.ending))
	for c := range a.columns {
		if s := a.next[c]; s != 0 {
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for _, shorter := range a.ending[suffix[s]] {
			if !slices.Contains(a.ending[s], shorter) {
				a.ending[s] = append(a.ending[s], shorter)
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
		if len(a.ending[s]) > 0 {
			row |= endsHere
		}
		a.next[cell] = row
	}
}

// endsHere marks a state in which keys end.
const endsHere = 1 << 31

// unproven marks a taker of which only the key of an anchor was found so far. It
// keeps the place of the taker: takers stand in the order of their first keys.
const unproven = 1 << 15

// takersOf appends those to which a line is relevant. counted is true if the line
// is only counted, by the one that it appends.
func (a *anchorSet) takersOf(line []byte, plain bool, takers []uint16) (all []uint16, counted bool) {
	from := len(takers)
	takers = a.in(line, plain, takers)
	if !plain {
		return takers, false
	}
	kept := takers[:from]
	for _, t := range takers[from:] {
		relevance := Relevant
		if int(t) < len(a.prefilters) && a.prefilters[t] != nil {
			relevance = a.prefilters[t](line)
		}
		if relevance != Irrelevant {
			kept, counted = append(kept, t), relevance == Counted
		}
	}
	return kept, counted && len(kept) == from+1
}

// in appends the takers that have an anchor in a line, each once. Of a line that is
// not plain it appends those of which a key is found: see holding.
func (a *anchorSet) in(line []byte, plain bool, takers []uint16) []uint16 {
	from := len(takers)
	next, class := a.next, &a.class
	state, open := uint32(0), false
	for i, b := range line {
		state = next[state+uint32(class[b])]
		if state&endsHere == 0 {
			continue
		}
		state &^= endsHere
		for _, found := range a.ending[state/uint32(a.columns)] {
			proven := found.before == "" || !plain || endsWith(line[:i+1-keyBytes], found.before)
			takers = add(takers, from, found.taker, proven)
			open = open || !proven
		}
	}
	if open {
		kept := slices.DeleteFunc(takers[from:], func(t uint16) bool { return t&unproven != 0 })
		takers = takers[:from+len(kept)]
	}
	return takers
}

// holding keeps of the takers those that have an anchor in a line.
func (a *anchorSet) holding(line string, takers []uint16) []uint16 {
	holds := func(anchor string) bool { return strings.Contains(line, anchor) }
	return slices.DeleteFunc(takers, func(t uint16) bool { return !slices.ContainsFunc(a.anchors[t], holds) })
}

// endsWith is strings.HasSuffix for bytes and a string.
func endsWith(b []byte, end string) bool {
	return len(b) >= len(end) && string(b[len(b)-len(end):]) == end
}

// add adds a taker to those that begin at a place, unless it is there, and notes
// that it is proven.
func add(takers []uint16, from int, taker uint16, proven bool) []uint16 {
	for i, t := range takers[from:] {
		if t&^unproven == taker {
			if proven {
				takers[from+i] = taker
			}
			return takers
		}
	}
	if !proven {
		taker |= unproven
	}
	return append(takers, taker)
}
