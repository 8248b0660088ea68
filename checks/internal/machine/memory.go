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

// Memory is a machine that is held in memory: a recording, or one that a test
// made up. The zero value is an empty machine. It must not be changed while
// it is read.
type Memory struct {
	// entries holds files, links and folders by absolute path.
	entries map[string]*entry
	answers map[string]answer
}

type entry struct {
	data  []byte
	link  string
	mode  fs.FileMode
	size  int64
	err   error
	names []string // Of a folder, in no order.
}

type answer struct {
	raw json.RawMessage
	err error
}

// AddFile puts a file in place, and the folders above it.
func (m *Memory) AddFile(name string, data []byte) {
	m.add(name, &entry{data: data, size: int64(len(data)), mode: 0o444})
}

// AddLink puts a symbolic link in place.
func (m *Memory) AddLink(name, target string) {
	m.add(name, &entry{link: target, mode: fs.ModeSymlink | 0o777})
}

// AddDir puts a folder in place.
func (m *Memory) AddDir(name string) {
	name = path.Clean(name)
	if e := m.entries[name]; e == nil || !e.mode.IsDir() {
		m.add(name, &entry{mode: fs.ModeDir | 0o555})
	}
}

// AddError makes a file exist that cannot be read: err says why.
func (m *Memory) AddError(name string, err error) {
	m.add(name, &entry{err: err})
}

// AddInfo puts a file in place that can be described but holds nothing, such
// as a device node.
func (m *Memory) AddInfo(name string, info FileInfo) {
	m.add(name, &entry{mode: info.Mode, size: info.Size})
}

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

func (m *Memory) add(name string, e *entry) {
	name = path.Clean(name)
	if m.entries == nil {
		m.entries = map[string]*entry{"/": {mode: fs.ModeDir | 0o555}}
	}
	if old := m.entries[name]; old != nil {
		e.names = old.names
	}
	m.entries[name] = e
	for name != "/" {
		dir, base := path.Dir(name), path.Base(name)
		d := m.entries[dir]
		if d == nil {
			d = &entry{mode: fs.ModeDir | 0o555}
			m.entries[dir] = d
		}
		if slices.Contains(d.names, base) {
			return
		}
		d.names = append(d.names, base)
		name = dir
	}
}

// resolve follows symbolic links in all of name, or in all but its last part.
func (m *Memory) resolve(op, name string, last bool) (*entry, error) {
	fail := func(err error) (*entry, error) { return nil, &fs.PathError{Op: op, Path: name, Err: err} }
	rest := strings.Split(strings.Trim(path.Clean("/"+name), "/"), "/")
	at, e := "/", m.entries["/"]
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			e = m.entries[at]
			continue
		}
		next := path.Join(at, part)
		e = m.entries[next]
		if e == nil {
			if d := m.entries[at]; d != nil && d.err != nil {
				return fail(d.err)
			}
			return fail(fs.ErrNotExist)
		}
		if e.link == "" || (!last && len(rest) == 0) {
			at = next
			continue
		}
		if links++; links > 40 {
			return fail(errors.New("too many symbolic links"))
		}
		if path.IsAbs(e.link) {
			at = "/"
		}
		rest = append(strings.Split(strings.Trim(e.link, "/"), "/"), rest...)
	}
	if e == nil {
		return fail(fs.ErrNotExist)
	}
	return e, nil
}

// ReadFile returns at most limit bytes of a file.
func (m *Memory) ReadFile(name string, limit int64) ([]byte, error) {
	e, err := m.resolve("open", name, true)
	switch {
	case err != nil:
		return nil, err
	case e.err != nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: e.err}
	case e.mode.IsDir():
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	return e.data[:min(int64(len(e.data)), limit)], nil
}

// ReadDir returns the names in a folder, sorted.
func (m *Memory) ReadDir(name string) ([]string, error) {
	e, err := m.resolve("open", name, true)
	switch {
	case err != nil:
		return nil, err
	case e.err != nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: e.err}
	case !e.mode.IsDir():
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a directory")}
	}
	return slices.Sorted(slices.Values(e.names)), nil
}

// ReadLink returns where a symbolic link points.
func (m *Memory) ReadLink(name string) (string, error) {
	e, err := m.resolve("readlink", name, false)
	switch {
	case err != nil:
		return "", err
	case e.err != nil:
		return "", &fs.PathError{Op: "readlink", Path: name, Err: e.err}
	case e.link == "":
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	return e.link, nil
}

// Stat describes a file, links followed.
func (m *Memory) Stat(name string) (FileInfo, error) {
	e, err := m.resolve("stat", name, true)
	if err != nil {
		return FileInfo{}, err
	}
	return FileInfo{Mode: e.mode, Size: e.size}, nil
}

// Ask answers a question.
func (m *Memory) Ask(_ context.Context, question string) (json.RawMessage, error) {
	a, ok := m.answers[question]
	if !ok {
		return nil, fmt.Errorf("%s: %w", question, ErrNotRecorded)
	}
	return a.raw, a.err
}

// Recorded is true: this machine is not the one that runs the program.
func (m *Memory) Recorded() bool { return true }
