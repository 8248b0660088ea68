package image

import (
	"fmt"
	"io/fs"
	"maps"
	"path"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/library"
)

type tree struct {
	nodes map[string]node
	// budget bounds the folders that no layer names.
	budget *budget
	// unread are files that matter and whose content was not seen.
	unread []string
}

type node struct {
	*entry
	layer int // The index of the layer that it comes from.
}

func (s *scanner) newTree() *tree { return &tree{nodes: map[string]node{}, budget: s.budget} }

func (t *tree) apply(l *layer, index int) error {
	gone, emptied := map[string]bool{}, map[string]bool{}
	for _, name := range l.removed {
		gone[t.real(name)] = true
	}
	for _, name := range l.emptied {
		emptied[t.real(name)] = true
	}
	for _, e := range l.entries {
		if !e.mode.IsDir() && t.isDir(t.real(e.path)) {
			emptied[t.real(e.path)] = true // It takes the place of the folder.
		}
	}
	t.remove(gone, emptied)
	for i := range l.entries {
		if err := t.put(&l.entries[i], index); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) remove(gone, emptied map[string]bool) {
	if len(gone)+len(emptied) == 0 {
		return
	}
	maps.DeleteFunc(t.nodes, func(name string, _ node) bool {
		is := gone[name]
		for !is && name != "/" {
			name = path.Dir(name)
			is = gone[name] || emptied[name]
		}
		return is
	})
}

func (t *tree) isDir(name string) bool {
	n, ok := t.nodes[name]
	return ok && n.mode.IsDir()
}

// real is a path after the links in its folders are followed; empty if they lead in a circle.
func (t *tree) real(name string) string {
	folder, err := host.Follow(path.Dir(name), func(at string, _ []string) (string, bool, error) {
		n, ok := t.nodes[at]
		if !ok || n.mode&fs.ModeSymlink == 0 {
			return "", false, nil
		}
		return n.target, true, nil
	})
	if err != nil {
		return ""
	}
	return path.Join(folder, path.Base(name))
}

// put adds an entry. Where it lies must be folders: an archive need not name them.
func (t *tree) put(e *entry, index int) error {
	at := t.real(e.path)
	if at == "" || at == "/" {
		return nil
	}
	for dir := path.Dir(at); dir != "/" && !t.isDir(dir); dir = path.Dir(dir) {
		t.nodes[dir] = node{entry: &entry{mode: fs.ModeDir}}
		if err := t.budget.keep(len(dir)); err != nil {
			return err
		}
	}
	if e.hardLink {
		e = t.linked(e)
	}
	t.nodes[at] = node{e, index}
	return nil
}

// linked gives a hard link the content of the file that it names.
func (t *tree) linked(e *entry) *entry {
	target, ok := t.nodes[t.real(e.target)]
	if !ok || !target.mode.IsRegular() || target.hardLink {
		t.unread = append(t.unread, e.path)
		return e
	}
	return target.entry
}

type source struct {
	*host.Memory
	layers []facts.ImageLayer
	tree   *tree
}

// errNotKept is the error of a file of which only the name was looked at.
var errNotKept = fmt.Errorf("its content was not kept: %w", host.ErrNotRecorded)

func (s *source) Layer(name string) *facts.ImageLayer {
	i := s.tree.nodes[name].layer
	if i < 1 || i > len(s.layers) {
		return nil
	}
	return &s.layers[i-1]
}

func (t *tree) source(layers []facts.ImageLayer) *source {
	s := &source{Memory: &host.Memory{}, layers: layers, tree: t}
	for name, n := range t.nodes {
		switch base := path.Base(name); {
		case n.mode.IsDir():
			s.AddDir(name)
		case n.mode&fs.ModeSymlink != 0:
			s.AddLink(name, n.target)
		case n.hardLink: // To a file that was not kept.
		case !n.mode.IsRegular():
			s.AddInfo(name, host.FileInfo{Mode: n.mode})
		default:
			s.AddPart(name, n.content, host.FileInfo{Mode: n.mode, Size: n.size})
			if library.HoldsVersion(base) {
				s.Answer(host.AskLibraryText+name, n.text)
			}
		}
	}
	// An image has no mounts of its own.
	s.AddFile("/proc/self/mountinfo", nil)
	return s
}
