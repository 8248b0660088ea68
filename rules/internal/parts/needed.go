package parts

import (
	"bytes"
	"errors"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/gpudoctor/gpudoctor/rules/internal/reach"
)

// Needed are the definitions that some rules need on facts that lack some of x.Lacks, by
// file: their places among the file's definitions, in order. A rule of which no definition
// can apply keeps one if another names it, so that the name still means something.
func (x *Index) Needed(roots []reach.Global, lacks func(string) bool) map[string][]int {
	x.once.Do(x.locate)
	s := selection{Index: x, lacking: make([]bool, len(x.Lacks)), seen: make([]bool, len(x.Names)), parts: map[string]map[int]bool{}}
	for i, lack := range x.Lacks {
		s.lacking[i] = lacks(lack)
	}
	for _, root := range roots {
		if name, ok := x.byName[fullName(root.Package, root.Name)]; ok {
			s.name(name)
		}
	}
	for len(s.queue) > 0 {
		next := s.queue[0]
		s.queue = s.queue[1:]
		s.choose(x.at[next])
	}
	all := make(map[string][]int, len(s.parts))
	for file, chosen := range s.parts {
		all[file] = slices.Sorted(maps.Keys(chosen))
	}
	return all
}

// locate finds the definitions of each name.
func (x *Index) locate() {
	x.byName = make(map[string]int, len(x.Names))
	for i, name := range x.Names {
		x.byName[name] = i
	}
	x.at = make([][]place, len(x.Names))
	for _, file := range slices.Sorted(maps.Keys(x.Files)) {
		for n, d := range x.Files[file].Definitions {
			x.at[d.name()] = append(x.at[d.name()], place{file, n})
		}
	}
}

// selection is what Needed has found so far.
type selection struct {
	*Index
	lacking []bool // By position in Lacks.
	seen    []bool // By name.
	queue   []int  // Names.
	parts   map[string]map[int]bool
}

// name notes that a rule is referred to.
func (s *selection) name(name int) {
	if !s.seen[name] {
		s.seen[name] = true
		s.queue = append(s.queue, name)
	}
}

// choose takes those of a rule's definitions that may apply; and one that adds under a
// key that is not written out if there is one, because without it the rule would be
// another kind of object.
func (s *selection) choose(definitions []place) {
	taken, byVariable, spare := 0, false, -1
	for i, at := range definitions {
		d := s.definition(at)
		if !slices.ContainsFunc(d.needs(), func(lack int) bool { return s.lacking[lack] }) {
			s.take(at)
			taken++
			byVariable = byVariable || d.byVariable()
		} else if spare < 0 || d.byVariable() && !s.definition(definitions[spare]).byVariable() {
			spare = i
		}
	}
	if spare >= 0 && (taken == 0 || s.definition(definitions[spare]).byVariable() && !byVariable) {
		s.take(definitions[spare])
	}
}

func (s *selection) definition(at place) Definition { return s.Files[at.file].Definitions[at.n] }

func (s *selection) take(at place) {
	if s.parts[at.file] == nil {
		s.parts[at.file] = map[int]bool{}
	}
	s.parts[at.file][at.n] = true
	for _, name := range s.definition(at).refersTo() {
		s.name(name)
	}
}

// ErrOtherText says that a file is not the one that its index was made from.
var ErrOtherText = errors.New("it was changed after its index was made")

// Text is the text of a file with these definitions alone, in order, each on its line.
func (f File) Text(text []byte, definitions []int) ([]byte, error) {
	if crc32.ChecksumIEEE(text) != f.Sum {
		return nil, ErrOtherText
	}
	out, end := make([]byte, 0, len(text)), 0
	add := func(from, to int) {
		for range bytes.Count(text[end:from], []byte{'\n'}) {
			out = append(out, '\n')
		}
		out, end = append(out, text[from:to]...), to
	}
	add(f.Head, f.Definitions[0].offset())
	for _, n := range definitions {
		last := len(text)
		if n+1 < len(f.Definitions) {
			last = f.Definitions[n+1].offset()
		}
		add(f.Definitions[n].offset(), last)
	}
	return out, nil
}
