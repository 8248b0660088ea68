// Package settings reads the files that set defaults for flags: .gpudoctor.yaml in the
// current directory, and config.yaml in the user's folder of configuration.
package settings

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

// maxBytes is the size of the largest file that is read: there are some thirty keys, and a
// waiver has some 200 bytes.
const maxBytes = 64 << 10

// Key is a flag that a file may set.
type Key struct {
	Name string
	// Bool is true for a flag without a value, List for one that may be repeated.
	Bool, List bool
	// Own is true where only the user's own file may set it.
	Own bool
}

// Setting is what a file sets for one flag.
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

// Settings are what the files set.
type Settings struct {
	all []Setting
	// Ignored says of files that are not read why.
	Ignored []string
	// Waivers is the list of waivers in the file in the current directory; nil if it has
	// none.
	Waivers *yaml.Node
}

// Of returns what is set for a flag.
func (s Settings) Of(key string) (Setting, bool) {
	i := slices.IndexFunc(s.all, func(one Setting) bool { return one.Key == key })
	if i < 0 {
		return Setting{}, false
	}
	return s.all[i], true
}

// Load reads both files. What the file in the current directory sets counts more.
func Load(keys []Key) (Settings, error) {
	var s Settings
	raw, err := readHere()
	if ignored, ok := errors.AsType[*ignoredError](err); ok {
		s.Ignored = append(s.Ignored, fmt.Sprintf("%s is ignored: %s", Here, ignored.reason))
	} else if err != nil {
		return s, err
	}
	if s.all, s.Waivers, err = parse(Here, raw, keys, false); err != nil {
		return s, err
	}
	own := ownFile()
	raw, err = read(own, 0)
	switch {
	case errors.Is(err, fs.ErrPermission):
		// A container that runs with any user ID often has the HOME of another user.
		s.Ignored = append(s.Ignored, fmt.Sprintf("%s is ignored: permission denied", own))
	case err != nil:
		return s, err
	}
	more, _, err := parse(own, raw, keys, true)
	if err != nil {
		return s, err
	}
	for _, one := range more {
		if _, set := s.Of(one.Key); !set {
			s.all = append(s.all, one)
		}
	}
	return s, nil
}

// ownFile is the user's own file (XDG Base Directory Specification); empty where there is
// no place for one.
func ownFile() string {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // The specification: it is to be ignored.
		home := os.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "gpudoctor", "config.yaml")
}

// ignoredError says why the file in the current directory is not read.
type ignoredError struct{ reason string }

func (e *ignoredError) Error() string { return e.reason }

// readHere reads the file in the current directory, which anybody may have put there: a
// link, or a file that another user wrote or may write to, is not read.
func readHere() ([]byte, error) {
	info, err := os.Lstat(Here)
	switch {
	case err != nil:
		return nil, missing(Here, err)
	case !info.Mode().IsRegular():
		return nil, &ignoredError{"it is not a regular file"}
	case !trusted(info):
		return nil, &ignoredError{"it belongs to another user, or any user may write to it"}
	}
	return read(Here, noFollow)
}

// read reads a file; nil where there is none.
func read(name string, flags int) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.OpenFile(name, os.O_RDONLY|flags|syscall.O_NONBLOCK, 0) // Opening a FIFO does not wait.
	if err != nil {
		return nil, missing(name, err)
	}
	defer f.Close() //nolint:errcheck // It was only read.
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, missing(name, err)
	case !info.Mode().IsRegular():
		return nil, Fault(name, 0, errors.New("not a regular file"))
	case flags != 0 && !trusted(info): // It was exchanged after readHere looked.
		return nil, &ignoredError{"it belongs to another user, or any user may write to it"}
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	switch {
	case err != nil:
		return nil, missing(name, err)
	case len(raw) > maxBytes:
		return nil, Fault(name, 0, fmt.Errorf("larger than %d KiB", maxBytes>>10))
	}
	return raw, nil
}

// Read reads a file that must exist.
func Read(name string) ([]byte, error) {
	raw, err := read(name, 0)
	if err == nil && raw == nil {
		return nil, Fault(name, 0, fs.ErrNotExist)
	}
	return raw, err
}

// missing is nil for a file that does not exist.
func missing(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	return Fault(name, 0, err)
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
		return nil, fault(file, root, []string{"each line is the name of a flag and its value: fail-on: medium"}, "not a list of keys and values")
	}
	return root, nil
}

// fault is a fault at a line.
func fault(file string, n *yaml.Node, hints []string, format string, args ...any) error {
	return Fault(file, n.Line, fmt.Errorf(format, args...), hints...)
}

// parse reads a file's text: what it sets, and its list of waivers.
func parse(file string, raw []byte, keys []Key, own bool) (all []Setting, waivers *yaml.Node, err error) {
	root, err := Root(file, raw)
	if root == nil {
		return nil, nil, err
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, value := root.Content[i], root.Content[i+1]
		at := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name.Value })
		switch {
		case name.Value == WaiversKey && own:
			return nil, nil, fault(file, name, []string{"waivers belong to a repository: write them to " + Here + ", or to a file for --waive"},
				"%s cannot be set in the user's own configuration", WaiversKey)
		case name.Value == WaiversKey && waivers != nil, slices.ContainsFunc(all, func(s Setting) bool { return s.Key == name.Value }):
			return nil, nil, fault(file, name, nil, "the key %s is given twice", name.Value)
		case name.Value == WaiversKey:
			waivers = value
			continue
		case at < 0:
			names := append(lines.Map(keys, func(k Key) string { return k.Name }), WaiversKey)
			return nil, nil, fault(file, name, complaint.Nearest(name.Value, names, "keys are the names of flags: gpudoctor check --help"), "unknown key %q", name.Value)
		case keys[at].Own && !own:
			return nil, nil, fault(file, name, []string{"set it on the command line, or in " + cmp.Or(ownFile(), "your own configuration")},
				"%s cannot be set by a file in the current directory", name.Value)
		}
		values, err := valuesOf(value, keys[at])
		if err != nil {
			return nil, nil, fault(file, value, nil, "%s: %v", name.Value, err)
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
