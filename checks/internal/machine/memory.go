package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Memory is a machine held in memory: a recording, or one that a test
// made up. The zero value is an empty machine. It must not be changed while
// it is read.
//
// A path is first looked up as written, then with its symbolic links
// resolved, so that a recording can hold a file under the name by which it
// was read, or under its real path.
type Memory struct {
	// nodes holds what is known about each absolute path, and of the folders
	// above it.
	nodes   map[string]*node
	answers map[string]answer
	// partial is true for a recording: what it does not hold was not
	// read, and may exist.
	partial bool
}

// node is what is known about one path: the outcome of each operation that was
// tried on it.
type node struct {
	read outcome[[]byte]
	more bool // The file goes on after read.value.
	list outcome[[]string]
	link outcome[string]
	stat outcome[FileInfo]
	// gone is true when this path does not exist.
	gone bool
	// dir is true for what was added as a folder.
	dir bool
	// children are the names of the nodes below this one, whether or not the
	// folder was listed.
	children map[string]struct{}
}

// outcome is the result of an operation, if it was tried.
type outcome[T any] struct {
	known bool
	value T
	err   error
}

func got[T any](v T, err error) outcome[T] { return outcome[T]{known: true, value: v, err: err} }

// answer is the answer to a question.
type answer struct {
	raw json.RawMessage
	err error
}

// The operations, as fs.PathError.Op names them in every Source.
const (
	opRead = "read"
	opList = "readdir"
	opLink = "readlink"
	opStat = "stat"
)

var (
	errIsDir     = errors.New("is a directory")
	errNotDir    = errors.New("not a directory")
	errIrregular = errors.New("not a regular file")
)

// AddFile adds a file, and the folders above it.
func (m *Memory) AddFile(name string, data []byte) { m.node(name).read = got(data, nil) }

// AddPart adds a file of which only the first bytes are held.
func (m *Memory) AddPart(name string, head []byte, info FileInfo) {
	n := m.node(name)
	n.read, n.more, n.stat = got(head, nil), int64(len(head)) < info.Size, got(info, nil)
}

// AddLink adds a symbolic link.
func (m *Memory) AddLink(name, target string) { m.node(name).link = got(target, nil) }

// AddDir adds a folder.
func (m *Memory) AddDir(name string) { m.node(name).dir = true }

// AddError adds a file that cannot be read: err says why.
func (m *Memory) AddError(name string, err error) { m.node(name).read = got[[]byte](nil, err) }

// AddInfo adds a file that has attributes but no content, such
// as a device node.
func (m *Memory) AddInfo(name string, info FileInfo) { m.node(name).stat = got(info, nil) }

// Answer sets the answer to a question.
func (m *Memory) Answer(question string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("answer to %q: %v", question, err)) // The caller's types cannot be encoded: a bug.
	}
	m.setAnswer(question, answer{raw: raw})
}

// AnswerError makes a question fail.
func (m *Memory) AnswerError(question string, err error) {
	m.setAnswer(question, answer{err: err})
}

func (m *Memory) setAnswer(question string, a answer) {
	if m.answers == nil {
		m.answers = make(map[string]answer)
	}
	m.answers[question] = a
}

// absolute cleans a path; a relative one starts at the root.
func absolute(name string) string {
	if strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	return path.Clean("/" + name)
}

// node returns the node of a path. If necessary it creates it, with the
// folders above it.
func (m *Memory) node(name string) *node {
	if m.nodes == nil {
		m.nodes = map[string]*node{"/": {dir: true}}
	}
	name = absolute(name)
	n := m.nodes[name]
	if n != nil {
		return n
	}
	n = &node{}
	m.nodes[name] = n
	for name != "/" {
		dir, base := path.Dir(name), path.Base(name)
		parent := m.nodes[dir]
		known := parent != nil
		if !known {
			parent = &node{}
			m.nodes[dir] = parent
		}
		if parent.children == nil {
			parent.children = make(map[string]struct{})
		}
		parent.children[base] = struct{}{}
		if known {
			break
		}
		name = dir
	}
	return n
}

// addGone notes that a path does not exist. The folders above it may not
// exist either.
func (m *Memory) addGone(name string) {
	if m.nodes[name] == nil {
		m.node("/")
		m.nodes[name] = &node{}
	}
	m.nodes[name].gone = true
	if parent := m.nodes[path.Dir(name)]; parent != nil {
		delete(parent.children, path.Base(name))
	}
}

// isGone reports whether a path, or one above it, does not exist.
func (m *Memory) isGone(name string) bool {
	for ; name != "/"; name = path.Dir(name) {
		if n := m.nodes[name]; n != nil && n.gone {
			return true
		}
	}
	return false
}

// isDir reports whether a node is known to be a folder.
func (n *node) isDir() bool {
	return n.dir || len(n.children) > 0 || (n.list.known && n.list.err == nil) || (n.stat.known && n.stat.value.Mode.IsDir())
}

// isLink reports whether a node is known to be a symbolic link.
func (n *node) isLink() bool { return n.link.known && n.link.err == nil }

// follow returns the node that a path leads to after the symbolic links in it
// are resolved: all of them, or all except one in its last part.
func (m *Memory) follow(name string, last bool) (*node, error) {
	at, err := Follow(name, func(next string, rest []string) (string, bool, error) {
		n := m.nodes[next]
		switch {
		case n == nil && m.isGone(path.Join(next, path.Join(rest...))):
			return "", false, errNotExist
		case n == nil:
			return "", false, m.absent(path.Dir(next), path.Base(next))
		case n.gone:
			return "", false, errNotExist
		}
		return n.link.value, n.isLink() && (last || len(rest) > 0), nil
	})
	if err != nil {
		return nil, err
	}
	n := m.nodes[at]
	if n == nil {
		return nil, m.absent(path.Dir(at), path.Base(at))
	}
	return n, nil
}

// absent returns why there is no node for a name in a folder.
func (m *Memory) absent(dir, base string) error {
	parent := m.nodes[dir]
	if parent == nil {
		parent = &node{}
	}
	if parent.list.known && parent.list.err == nil {
		if _, listed := slices.BinarySearch(parent.list.value, base); listed {
			return ErrNotRecorded // It was there, and nobody looked at it.
		}
		return errNotExist
	}
	if m.partial {
		return ErrNotRecorded
	}
	if parent.read.known && parent.read.err != nil {
		return parent.read.err
	}
	return errNotExist
}

// lookup answers an operation on a path: with the outcome that pick takes
// from the node of the path as it is written, else from the node that it
// leads to. If neither knows it, infer returns what follows from that node.
func lookup[T any](m *Memory, op, name string, last bool, pick func(*node) outcome[T], infer func(*node) (T, error)) (T, error) {
	var zero T
	clean := absolute(name)
	answer := func(v T, err error) (T, error) {
		if err != nil {
			return zero, &fs.PathError{Op: op, Path: name, Err: err}
		}
		return v, nil
	}
	if n := m.nodes[clean]; n != nil {
		if o := pick(n); o.known {
			return answer(o.value, o.err)
		}
	}
	n, err := m.follow(clean, last)
	if err != nil {
		return answer(zero, err)
	}
	if o := pick(n); o.known {
		return answer(o.value, o.err)
	}
	return answer(infer(n))
}

// ReadFile returns at most limit bytes of a file.
func (m *Memory) ReadFile(name string, limit int64) ([]byte, error) {
	pick := func(n *node) outcome[[]byte] {
		o := n.read
		switch size := int64(len(o.value)); {
		case !o.known || o.err != nil:
		case size > limit:
			o.value = o.value[:limit:limit]
		case n.more && size < limit:
			return got[[]byte](nil, ErrNotRecorded) // More is wanted than was kept.
		}
		return o
	}
	return lookup(m, opRead, name, true, pick, func(n *node) ([]byte, error) {
		switch {
		case n.isDir():
			return nil, errIsDir
		case n.stat.known && n.stat.err == nil && !n.stat.value.Mode.IsRegular():
			return nil, errIrregular
		}
		return nil, ErrNotRecorded
	})
}

// ReadDir returns the names in a folder, sorted.
func (m *Memory) ReadDir(name string) ([]string, error) {
	pick := func(n *node) outcome[[]string] {
		o := n.list
		o.value = slices.Clone(o.value)
		return o
	}
	return lookup(m, opList, name, true, pick, func(n *node) ([]string, error) {
		switch {
		case m.partial:
			return nil, ErrNotRecorded
		case n.read.known && n.read.err != nil:
			return nil, n.read.err
		case !n.isDir():
			return nil, errNotDir
		}
		names := make([]string, 0, len(n.children))
		for child := range n.children {
			names = append(names, child)
		}
		slices.Sort(names)
		return names, nil
	})
}

// ReadLink returns where a symbolic link points.
func (m *Memory) ReadLink(name string) (string, error) {
	pick := func(n *node) outcome[string] { return n.link }
	return lookup(m, opLink, name, false, pick, func(n *node) (string, error) {
		switch {
		case m.partial:
			return "", ErrNotRecorded
		case n.read.known && n.read.err != nil:
			return "", n.read.err
		}
		return "", fs.ErrInvalid
	})
}

// Stat describes a file, links followed.
func (m *Memory) Stat(name string) (FileInfo, error) {
	pick := func(n *node) outcome[FileInfo] { return n.stat }
	return lookup(m, opStat, name, true, pick, func(n *node) (FileInfo, error) {
		switch {
		case m.partial:
			return FileInfo{}, ErrNotRecorded
		case n.isDir():
			return FileInfo{Mode: fs.ModeDir | 0o555}, nil
		case n.read.known && n.read.err != nil:
			return FileInfo{}, nil //nolint:nilerr // It is there, though it cannot be read; more is not known.
		}
		return FileInfo{Mode: 0o444, Size: int64(len(n.read.value))}, nil
	})
}

// Ask answers a question.
func (m *Memory) Ask(_ context.Context, question string, _ Answerer) (json.RawMessage, error) {
	a, ok := m.answers[question]
	if !ok {
		return nil, fmt.Errorf("%s: %w", question, ErrNotRecorded)
	}
	return a.raw, a.err
}

// Recorded is true: the program does not run on this machine.
func (m *Memory) Recorded() bool { return true }
