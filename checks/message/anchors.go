package message

import (
	"bytes"
	"slices"
	"strings"
)

// keyBytes is how much of an anchor the automaton looks for: its end, which tells more than its beginning
// ("NET/IB : Got async event"). What stands before it is compared where it is found.
const keyBytes = 8

// AnchorSet finds all anchors of all owners in one pass over a
// text: an automaton of Aho and Corasick, spelt out as a table.
type AnchorSet struct {
	// class maps a byte to its column: bytes of no key share column 0.
	class   [256]uint8
	columns int
	// next is the state that follows, by state and column.
	next []uint32
	// ending are the anchors whose keys end in a state; most states have none.
	ending [][]anchor
	// anchors are those of each owner.
	anchors [][]string
}

// anchor is an anchor of an owner whose key was found.
type anchor struct {
	owner uint16
	// before is what stands before the key.
	before string
}

// NewAnchorSet builds the automaton; anchors[i] are those of owner i.
func NewAnchorSet(anchors [][]string) *AnchorSet {
	s := &AnchorSet{columns: 1, anchors: anchors}
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
				if s.class[b] == 0 {
					s.class[b] = uint8(s.columns)
					s.columns++
				}
			}
		}
	}
	s.state()
	for _, key := range keys {
		at := 0
		for _, b := range []byte(key) {
			cell := at*s.columns + int(s.class[b])
			if s.next[cell] == 0 {
				fresh := uint32(s.state())
				s.next[cell] = fresh
			}
			at = int(s.next[cell])
		}
		s.ending[at] = append(s.ending[at], ending[key]...)
	}
	s.link()
	return s
}

// state adds a state.
func (s *AnchorSet) state() int {
	s.next = append(s.next, make([]uint32, s.columns)...)
	s.ending = append(s.ending, nil)
	return len(s.ending) - 1
}

// link completes the table, level by level: where a state has no way on, that of its longest proper suffix is taken.
func (s *AnchorSet) link() {
	suffix := make([]uint32, len(s.ending))
	queue := make([]uint32, 0, len(s.ending))
	for c := range s.columns {
		if state := s.next[c]; state != 0 {
			queue = append(queue, state)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		for _, shorter := range s.ending[suffix[state]] {
			if !slices.Contains(s.ending[state], shorter) {
				s.ending[state] = append(s.ending[state], shorter)
			}
		}
		for c := range s.columns {
			cell := int(state)*s.columns + c
			fallback := s.next[int(suffix[state])*s.columns+c]
			if s.next[cell] == 0 {
				s.next[cell] = fallback
				continue
			}
			suffix[s.next[cell]] = fallback
			queue = append(queue, s.next[cell])
		}
	}
	// From here on a state is where its row begins, with a mark if keys end in it: one look-up for each byte.
	for cell, state := range s.next {
		row := state * uint32(s.columns)
		if len(s.ending[state]) > 0 {
			row |= endsHere
		}
		s.next[cell] = row
	}
}

// endsHere marks a state in which keys end.
const endsHere = 1 << 31

// In appends, in their order, the owners of the anchors that a text holds: each once.
func (s *AnchorSet) In(text []byte, owners []uint16) []uint16 {
	from := len(owners)
	next, class := s.next, &s.class
	state := uint32(0)
	for i, b := range text {
		state = next[state+uint32(class[b])]
		if state&endsHere == 0 {
			continue
		}
		state &^= endsHere
		for _, found := range s.ending[state/uint32(s.columns)] {
			if !slices.Contains(owners[from:], found.owner) && (found.before == "" || bytes.HasSuffix(text[:i+1-keyBytes], []byte(found.before))) {
				owners = append(owners, found.owner)
			}
		}
	}
	slices.Sort(owners[from:])
	return owners
}

// Holding keeps of the owners those that have an anchor in a text.
func (s *AnchorSet) Holding(text string, owners []uint16) []uint16 {
	holds := func(anchor string) bool { return strings.Contains(text, anchor) }
	return slices.DeleteFunc(owners, func(o uint16) bool { return !slices.ContainsFunc(s.anchors[o], holds) })
}
