package image

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/library"
)

// tree is the file system of an image: what its layers leave of each other.
type tree struct {
	root *node
	seed maphash.Seed
	// unread are files that matter and whose content was not seen.
	unread []string
	// others are the files of all layers that were not kept.
	others []map[uint64]struct{}
}

// node is a file, a link or a folder of the tree.
type node struct {
	entry    *entry // nil for a folder that no layer names.
	layer    int    // The index of the layer that it comes from.
	children map[string]*node
}

func newTree(seed maphash.Seed) *tree { return &tree{root: &node{}, seed: seed} }

// apply puts a layer over those below it.
func (t *tree) apply(l *layer, index int) {
	for _, folder := range l.emptied {
		if n := t.find(folder); n != nil {
			n.children = nil
		}
	}
	for _, name := range l.removed {
		t.remove(name)
	}
	t.replace(l)
	for i := range l.entries {
		t.put(&l.entries[i], index)
	}
}

// replace removes what files that do not matter take the place of.
func (t *tree) replace(l *layer) {
	if len(l.others) == 0 {
		return
	}
	t.others = append(t.others, l.others)
	var gone []string
	t.walk(func(name string, n *node) {
		if n.entry == nil || n.entry.mode.IsDir() {
			return
		}
		if _, ok := l.others[maphash.String(t.seed, name)]; ok {
			gone = append(gone, name)
		}
	})
	for _, name := range gone {
		t.remove(name)
	}
}

// find returns the node of a path; the links in its folders are followed.
func (t *tree) find(name string) *node {
	folder, ok := t.folder(path.Dir(name))
	if !ok {
		return nil
	}
	return t.at(path.Join(folder, path.Base(name)))
}

// folder returns the path that a folder has after the links in it are followed.
func (t *tree) folder(name string) (string, bool) {
	at, err := host.Follow(name, func(at string, _ []string) (string, bool, error) {
		n := t.at(at)
		if n == nil || n.entry == nil || n.entry.mode&fs.ModeSymlink == 0 {
			return "", false, nil
		}
		return n.entry.target, true, nil
	})
	return at, err == nil
}

// at returns the node of a path without links.
func (t *tree) at(name string) *node {
	n := t.root
	for part := range strings.SplitSeq(strings.Trim(name, "/"), "/") {
		if part == "" {
			continue
		}
		if n = n.children[part]; n == nil {
			return nil
		}
	}
	return n
}

func (t *tree) remove(name string) {
	if folder, ok := t.folder(path.Dir(name)); ok {
		if parent := t.at(folder); parent != nil {
			delete(parent.children, path.Base(name))
		}
	}
}

// put adds an entry. A folder keeps what is in it; everything else takes the place of
// what was there.
func (t *tree) put(e *entry, index int) {
	folder, ok := t.folder(path.Dir(e.path))
	if !ok || e.path == "/" {
		return // Links that lead in a circle: nothing can be found there.
	}
	parent := t.root
	for part := range strings.SplitSeq(strings.Trim(folder, "/"), "/") {
		if part != "" {
			parent = parent.child(part)
		}
	}
	n := parent.child(path.Base(e.path))
	if !e.mode.IsDir() {
		n.children = nil
	}
	n.entry, n.layer = e, index
	if e.hardLink {
		t.link(n)
	}
}

// link gives a hard link the content of the file that it names.
func (t *tree) link(n *node) {
	target := t.find(n.entry.target)
	if target == nil || target.entry == nil || target == n || !target.entry.mode.IsRegular() {
		t.unread = append(t.unread, n.entry.path)
		return
	}
	linked := *target.entry
	linked.path = n.entry.path
	n.entry = &linked
}

// child returns the node of a name in a folder, and makes it if necessary. What was no
// folder becomes one.
func (n *node) child(name string) *node {
	if n.entry != nil && !n.entry.mode.IsDir() {
		n.entry = nil
	}
	if n.children == nil {
		n.children = make(map[string]*node)
	}
	c := n.children[name]
	if c == nil {
		c = &node{}
		n.children[name] = c
	}
	return c
}

// walk visits all nodes but the root, in order of their paths.
func (t *tree) walk(visit func(name string, n *node)) {
	var down func(at string, n *node)
	down = func(at string, n *node) {
		for _, name := range slices.Sorted(maps.Keys(n.children)) {
			child, full := n.children[name], path.Join(at, name)
			visit(full, child)
			down(full, child)
		}
	}
	down("/", t.root)
}

// source is an image as checks read it.
type source struct {
	*host.Memory
	layers []host.Layer
	origin map[string]int
	tree   *tree
}

// ReadFile returns at most limit bytes of a file.
func (s *source) ReadFile(name string, limit int64) ([]byte, error) {
	b, err := s.Memory.ReadFile(name, limit)
	return b, s.notKept(name, err)
}

// Stat describes a file, links followed.
func (s *source) Stat(name string) (host.FileInfo, error) {
	info, err := s.Memory.Stat(name)
	return info, s.notKept(name, err)
}

// notKept tells a file of which nothing was kept from one that does not exist.
func (s *source) notKept(name string, err error) error {
	inPath, ok := errors.AsType[*fs.PathError](err)
	if !ok || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	folder, _ := s.tree.folder(path.Dir(path.Clean(name))) // A circle has no files.
	hash := maphash.String(s.tree.seed, path.Join(folder, path.Base(name)))
	for _, others := range s.tree.others {
		if _, is := others[hash]; is {
			return &fs.PathError{Op: inPath.Op, Path: name, Err: errNotKept}
		}
	}
	return err
}

// errNotKept is the error of a file of which only the name was looked at.
var errNotKept = fmt.Errorf("its content was not kept: %w", host.ErrNotRecorded)

// Layer returns the layer that a path comes from.
func (s *source) Layer(name string) (host.Layer, bool) {
	i, ok := s.origin[name]
	if !ok || i < 1 || i > len(s.layers) {
		return host.Layer{}, false
	}
	return s.layers[i-1], true
}

// source returns the tree as checks read it.
func (t *tree) source(layers []host.Layer) *source {
	s := &source{Memory: &host.Memory{}, layers: layers, origin: make(map[string]int), tree: t}
	t.walk(func(name string, n *node) {
		e := n.entry
		switch {
		case e == nil || e.mode.IsDir():
			s.AddDir(name)
		case e.mode&fs.ModeSymlink != 0:
			s.AddLink(name, e.target)
		case e.hardLink: // To a file that was not kept.
		case !e.mode.IsRegular():
			s.AddInfo(name, host.FileInfo{Mode: e.mode})
		default:
			s.AddPart(name, e.content, host.FileInfo{Mode: e.mode, Size: e.size})
			if library.HoldsVersion(path.Base(name)) {
				s.Answer(host.AskLibraryText+name, e.text)
			}
			if library.NamesFolders(path.Base(name)) {
				s.Answer(host.AskLoaderPaths+name, e.paths)
			}
		}
		if n.layer > 0 {
			s.origin[name] = n.layer
		}
	})
	// An image has no mounts of its own.
	s.AddFile("/proc/self/mountinfo", nil)
	return s
}
