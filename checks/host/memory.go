package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// Memory is a machine held in memory: a recording, or one that a test made up. It must not be changed while it is read. A path
// is first looked up as written, then with its symbolic links resolved.
type Memory struct {
	// Missing is why nothing is at a path that was not added. Without it, what was not added does not exist.
	Missing error
	nodes   map[string]*node
	answers map[string]*outcome
	// partial is true for a recording: what it does not hold was not read, and may exist.
	partial bool
}

type node struct {
	// outcomes are those of the operations that were tried on it.
	outcomes [operations]*outcome
	gone     bool
	dir      bool
	// children are the names of the nodes below this one, whether or not the folder was listed.
	children map[string]struct{}
}

type operation int

const (
	stat operation = iota
	read
	link
	list
	operations int = iota
)

// String names the operation as fs.PathError.Op does in every Source.
func (op operation) String() string {
	return [operations]string{"stat", "read", "readlink", "readdir"}[op]
}

// outcome is the result of an operation, or of a question.
type outcome struct {
	// value is a FileInfo (stat), content (read), string (link), []string (list) or json.RawMessage (a question).
	value any
	err   error
}

type content struct {
	data []byte
	more bool // The file goes on.
}

var (
	errIsDir     = errors.New("is a directory")
	errNotDir    = errors.New("not a directory")
	errIrregular = errors.New("not a regular file")
)

func (n *node) set(op operation, value any) { n.outcomes[op] = &outcome{value: value} }

func (n *node) fail(op operation, err error) { n.outcomes[op] = &outcome{err: err} }

func (n *node) err(op operation) error {
	if n.outcomes[op] == nil {
		return nil
	}
	return n.outcomes[op].err
}

func valueOf[T any](n *node, op operation) (value T, ok bool) {
	if n != nil && n.outcomes[op] != nil {
		value, ok = n.outcomes[op].value.(T)
	}
	return value, ok
}

// AddFile adds a file, and the folders above it.
func (m *Memory) AddFile(name string, data []byte) { m.node(name).set(read, content{data: data}) }

// AddPart adds a file of which only the first bytes are held.
func (m *Memory) AddPart(name string, head []byte, info FileInfo) {
	n := m.node(name)
	n.set(read, content{head, int64(len(head)) < info.Size})
	n.set(stat, info)
}

// AddLink adds a symbolic link.
func (m *Memory) AddLink(name, target string) { m.node(name).set(link, target) }

// AddDir adds a folder.
func (m *Memory) AddDir(name string) { m.node(name).dir = true }

// AddError adds a file that cannot be read: err says why.
func (m *Memory) AddError(name string, err error) { m.node(name).fail(read, err) }

// AddInfo adds a file that has attributes but no content, such as a device node.
func (m *Memory) AddInfo(name string, info FileInfo) { m.node(name).set(stat, info) }

// Answer sets the answer to a question.
func (m *Memory) Answer(question string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("answer to %q: %v", question, err)) // The caller's types cannot be encoded: a bug.
	}
	m.setAnswer(question, json.RawMessage(raw), nil)
}

// AnswerError makes a question fail.
func (m *Memory) AnswerError(question string, err error) { m.setAnswer(question, nil, err) }

func (m *Memory) setAnswer(question string, raw json.RawMessage, err error) {
	facts.Put(&m.answers, question, &outcome{raw, err})
}

func absolute(name string) string { return path.Clean("/" + name) }

// node returns the node of a path, and creates it with the folders above it.
func (m *Memory) node(name string) *node {
	if m.nodes == nil {
		m.nodes = map[string]*node{"/": {dir: true}}
	}
	name = absolute(name)
	n := m.nodes[name]
	if n == nil {
		n = &node{}
		m.nodes[name] = n
		parent := m.node(path.Dir(name))
		facts.Put(&parent.children, path.Base(name), struct{}{})
	}
	return n
}

// addGone notes that a path does not exist. The folders above it may not exist either.
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

func (m *Memory) isGone(name string) bool {
	for ; name != "/"; name = path.Dir(name) {
		if n := m.nodes[name]; n != nil && n.gone {
			return true
		}
	}
	return false
}

func (n *node) isDir() bool {
	info, _ := valueOf[FileInfo](n, stat)
	_, listed := valueOf[[]string](n, list)
	return n.dir || len(n.children) > 0 || listed || info.Mode.IsDir()
}

// follow returns the node that a path leads to. Of its last part, a link is followed only if last is true.
func (m *Memory) follow(name string, last bool) (*node, error) {
	at, err := Follow(name, func(next string, rest []string) (string, bool, error) {
		n := m.nodes[next]
		switch {
		case n == nil && m.isGone(path.Join(next, path.Join(rest...))):
			return "", false, errNotExist
		case n == nil:
			return "", false, m.absent(next)
		case n.gone:
			return "", false, errNotExist
		}
		target, isLink := valueOf[string](n, link)
		return target, isLink && (last || len(rest) > 0), nil
	})
	if err != nil {
		return nil, err
	}
	if m.nodes[at] == nil { // The root of an empty machine.
		return nil, m.absent(at)
	}
	return m.nodes[at], nil
}

func (m *Memory) absent(name string) error {
	parent := m.nodes[path.Dir(name)]
	if names, ok := valueOf[[]string](parent, list); ok {
		if _, listed := slices.BinarySearch(names, path.Base(name)); listed {
			return ErrNotRecorded // It exists but was not recorded.
		}
		return errNotExist
	}
	switch {
	case m.partial:
		return ErrNotRecorded
	case parent != nil && parent.err(read) != nil:
		return parent.err(read)
	case m.Missing != nil:
		return m.Missing
	}
	return errNotExist
}

// lookup answers an operation with what is known about the path as written, else about the one that it leads to, else with what
// infer concludes.
func lookup[T any](m *Memory, op operation, name string, infer func(*node) (T, error)) (value T, err error) {
	clean := absolute(name)
	n := m.nodes[clean]
	if n == nil || n.outcomes[op] == nil {
		n, err = m.follow(clean, op != link)
	}
	switch {
	case err != nil:
	case n.outcomes[op] == nil:
		value, err = infer(n)
	default:
		value, _ = valueOf[T](n, op)
		err = n.err(op)
	}
	if err != nil {
		var none T
		return none, &fs.PathError{Op: op.String(), Path: name, Err: err}
	}
	return value, nil
}

// ReadFile returns at most limit bytes of a file.
func (m *Memory) ReadFile(name string, limit int64) ([]byte, error) {
	c, err := lookup(m, read, name, func(n *node) (content, error) {
		info, described := valueOf[FileInfo](n, stat)
		switch {
		case n.isDir():
			return content{}, errIsDir
		case described && !info.Mode.IsRegular():
			return content{}, errIrregular
		}
		return content{}, ErrNotRecorded
	})
	switch size := int64(len(c.data)); {
	case c.more && size < limit:
		return nil, &fs.PathError{Op: read.String(), Path: name, Err: ErrNotRecorded} // More is wanted than was kept.
	case size > limit:
		return c.data[:limit:limit], nil
	}
	return c.data, err
}

// ReadDir returns the names in a folder, sorted.
func (m *Memory) ReadDir(name string) ([]string, error) {
	names, err := lookup(m, list, name, func(n *node) ([]string, error) {
		switch {
		case m.partial:
			return nil, ErrNotRecorded
		case n.err(read) != nil:
			return nil, n.err(read)
		case !n.isDir():
			return nil, errNotDir
		}
		return slices.AppendSeq(make([]string, 0, len(n.children)), maps.Keys(n.children)), nil
	})
	names = slices.Clone(names)
	slices.Sort(names)
	return names, err
}

// ReadLink returns where a symbolic link points.
func (m *Memory) ReadLink(name string) (string, error) {
	return lookup(m, link, name, func(n *node) (string, error) {
		if m.partial {
			return "", ErrNotRecorded
		}
		return "", cmp.Or(n.err(read), fs.ErrInvalid)
	})
}

// Stat describes a file, links followed.
func (m *Memory) Stat(name string) (FileInfo, error) {
	return lookup(m, stat, name, func(n *node) (FileInfo, error) {
		c, _ := valueOf[content](n, read)
		switch {
		case m.partial:
			return FileInfo{}, ErrNotRecorded
		case n.isDir():
			return FileInfo{Mode: fs.ModeDir | 0o555}, nil
		case n.err(read) != nil:
			return FileInfo{}, nil //nolint:nilerr // It is there, though it cannot be read; more is not known.
		}
		return FileInfo{Mode: 0o444, Size: int64(len(c.data))}, nil
	})
}

// Ask answers a question.
func (m *Memory) Ask(_ context.Context, question string, _ Answerer) (json.RawMessage, error) {
	a := m.answers[question]
	if a == nil {
		return nil, fmt.Errorf("%s: %w", question, ErrNotRecorded)
	}
	raw, _ := a.value.(json.RawMessage)
	return raw, a.err
}

// Recorded is true: the program does not run on this machine.
func (m *Memory) Recorded() bool { return true }
