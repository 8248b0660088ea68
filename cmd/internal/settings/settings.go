// Package settings reads the file that sets defaults for flags: .gpudoctor.yaml in the current directory.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// Here is the file in the current directory.
const Here = ".gpudoctor.yaml"

// WaiversKey is the key of the list of waivers, which is no flag. Package waivers reads it.
const WaiversKey = "waivers"

// maxBytes is the size of the largest file that is read: there are some thirty keys, and a waiver has some 200 bytes.
const maxBytes = 64 << 10

// Key is a flag that a file may set.
type Key struct {
	Name string
	// Bool is true for a flag without a value, List for one that may be repeated.
	Bool, List bool
}

// Setting is what the file sets for one flag.
type Setting struct {
	// Key is the name of the flag.
	Key    string   `json:"flag"`
	Values []string `json:"values"`
	// File and Line say where it is set.
	File string `json:"file"`
	Line int    `json:"line"`
}

// Place is where the setting is: "FILE:LINE".
func (s Setting) Place() string { return fmt.Sprintf("%s:%d", s.File, s.Line) }

// Fault is a fault of a file, at a line of it unless that is 0.
func Fault(file string, line int, err error, hints ...string) error {
	if line > 0 {
		file = fmt.Sprintf("%s:%d", file, line)
	}
	return complaint.Hinted(fmt.Errorf("%s: %w", file, err), hints...)
}

// Settings are what the file sets.
type Settings struct {
	All []Setting
	// Ignored says why the file is not read; empty if it is.
	Ignored string
	// Waivers is the list of waivers; nil if there is none.
	Waivers *yaml.Node
}

// errForeign is a file that anybody may have put into the current directory.
var errForeign = errors.New("it is not a regular file, or belongs to another user, or any user may write to it")

// Load reads the file in the current directory, unless it is a link, or a file that another user wrote or may write to.
func Load(keys []Key) (s Settings, err error) {
	raw, err := read(Here, syscall.O_NOFOLLOW)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case errors.Is(err, errForeign), errors.Is(err, syscall.ELOOP):
		s.Ignored = fmt.Sprintf("%s is ignored: %v", Here, errForeign)
		return s, nil
	case err != nil:
		return s, err
	}
	s.All, s.Waivers, err = parse(Here, raw, keys)
	return s, err
}

// Read reads a file that the user names.
func Read(name string) ([]byte, error) { return read(name, 0) }

// read opens and reads a file, which must be the user's or root's if it is opened without following links.
func read(name string, flags int) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|flags|syscall.O_NONBLOCK, 0) // Opening a FIFO does not wait.
	if err != nil {
		return nil, Fault(name, 0, complaint.Bare(err))
	}
	defer f.Close() //nolint:errcheck // It was only read.
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, Fault(name, 0, complaint.Bare(err))
	case flags != 0 && !trusted(info):
		return nil, errForeign
	case !info.Mode().IsRegular():
		return nil, Fault(name, 0, errors.New("not a regular file"))
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	switch {
	case err != nil:
		return nil, Fault(name, 0, complaint.Bare(err))
	case len(raw) > maxBytes:
		return nil, Fault(name, 0, fmt.Errorf("larger than %d KiB", maxBytes>>10))
	}
	return raw, nil
}

// trusted reports whether this user or root has written a regular file, and nobody but its owner and its group may write to it.
func trusted(info fs.FileInfo) bool {
	const othersWrite = 0o002
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && info.Mode().Perm()&othersWrite == 0 && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}

// Root is the set of keys and values that a file's text holds; nil if it is empty.
func Root(file string, raw []byte) (*yaml.Node, error) {
	var doc yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil //nolint:nilnil // Nothing is in it, and nothing is wrong with it.
	} else if err != nil {
		return nil, Fault(file, 0, err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, Fault(file, 0, errors.New("more than one YAML document"))
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil //nolint:nilnil // As above.
	}
	if root.Kind != yaml.MappingNode {
		return nil, FaultAt(file, root, []string{"each line is the name of a flag and its value: fail-on: medium"}, "not a list of keys and values")
	}
	return root, nil
}

// FaultAt is a fault at a line.
func FaultAt(file string, n *yaml.Node, hints []string, format string, args ...any) error {
	return Fault(file, n.Line, fmt.Errorf(format, args...), hints...)
}

// parse reads a file's text: what it sets, and its list of waivers.
func parse(file string, raw []byte, keys []Key) (all []Setting, waivers *yaml.Node, err error) {
	root, err := Root(file, raw)
	if root == nil {
		return nil, nil, err
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, value := root.Content[i], root.Content[i+1]
		at := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name.Value })
		switch {
		case name.Value == WaiversKey && waivers != nil, slices.ContainsFunc(all, func(s Setting) bool { return s.Key == name.Value }):
			return nil, nil, FaultAt(file, name, nil, "the key %s is given twice", name.Value)
		case name.Value == WaiversKey:
			waivers = value
			continue
		case at < 0:
			names := append(lines.Map(keys, func(k Key) string { return k.Name }), WaiversKey)
			return nil, nil, FaultAt(file, name, complaint.Nearest(name.Value, names, "keys are the names of flags: gpudoctor check --help"), "unknown key %q", name.Value)
		}
		values, err := valuesOf(value, keys[at])
		if err != nil {
			return nil, nil, FaultAt(file, value, nil, "%s: %v", name.Value, err)
		}
		all = append(all, Setting{Key: name.Value, Values: values, File: file, Line: name.Line})
	}
	return all, waivers, nil
}

// valuesOf reads the value of a key: one, or a list where the flag may be repeated.
func valuesOf(n *yaml.Node, k Key) ([]string, error) {
	nodes := []*yaml.Node{n}
	if k.List && n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	var values []string
	for _, one := range nodes {
		switch {
		case one.Kind != yaml.ScalarNode && k.List:
			return nil, errors.New("not a value or a list of values")
		case one.Kind != yaml.ScalarNode:
			return nil, errors.New("not a single value")
		case k.Bool && one.Tag != "!!bool":
			return nil, fmt.Errorf("%q is neither true nor false", one.Value)
		case one.Value == "" || one.Tag == "!!null":
			return nil, errors.New("the value is empty")
		}
		values = append(values, one.Value)
	}
	if len(values) == 0 {
		return nil, errors.New("the list is empty")
	}
	return values, nil
}
