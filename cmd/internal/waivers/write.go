package waivers

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/cmd/internal/settings"
)

// Add returns the text of a file with one more waiver, and the line of it. All else in the
// text stays as it is, if the list is written in lines of its own; otherwise the text is laid
// out again.
func Add(file string, text []byte, w Waiver) (added []byte, line int, err error) {
	root, err := settings.Root(file, text)
	if err != nil {
		return nil, 0, err
	}
	list, next := listIn(root)
	before, err := Parse(file, list)
	if err != nil {
		return nil, 0, err
	}
	if i := slices.IndexFunc(before, func(o Waiver) bool { return o.Rule == w.Rule && o.Subject == w.Subject }); i >= 0 {
		return nil, 0, &settings.Error{File: file, Line: before[i].Line, Reason: w.About() + " is already waived", Hints: []string{"change or remove this waiver"}}
	}
	for _, write := range []func() ([]byte, error){
		func() ([]byte, error) { return insert(text, list, next, w) },
		func() ([]byte, error) { return encode(root, w) },
	} {
		added, err := write()
		if err != nil {
			continue
		}
		if line := lineOf(file, added, root, before, w); line > 0 {
			return added, line, nil
		}
	}
	return nil, 0, &settings.Error{File: file, Reason: "the waiver cannot be added to this file", Hints: []string{"add it by hand: " + example}}
}

// listIn is the list of waivers among keys and values, and the key behind it.
func listIn(root *yaml.Node) (list, next *yaml.Node) {
	if root == nil {
		return nil, nil
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != settings.WaiversKey {
			continue
		}
		if i+2 < len(root.Content) {
			next = root.Content[i+2]
		}
		return root.Content[i+1], next
	}
	return nil, nil
}

// errForm means that the list is not written such that lines can be put behind it.
var errForm = errors.New("the list is not written in lines of its own")

// insert puts the lines of a waiver behind the others, or a new list at the end of the text.
func insert(text []byte, list, next *yaml.Node, w Waiver) ([]byte, error) {
	lines := strings.SplitAfter(string(text), "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	} else {
		lines[last] += "\n"
	}
	entry, err := w.lines()
	if err != nil {
		return nil, err
	}
	indent, at := 2, len(lines)
	switch {
	case list == nil:
		entry = append([]string{settings.WaiversKey + ":"}, indented(entry, indent)...)
	case list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0:
		return nil, errForm
	default:
		entry = indented(entry, list.Column-1)
	}
	if next != nil {
		at = next.Line - 1
		for at > 0 && (strings.TrimSpace(lines[at-1]) == "" || strings.HasPrefix(lines[at-1], "#")) {
			at-- // Comments before the next key belong to it.
		}
	}
	return []byte(strings.Join(lines[:at], "") + strings.Join(entry, "\n") + "\n" + strings.Join(lines[at:], "")), nil
}

// indented puts blanks before lines.
func indented(lines []string, n int) []string {
	all := make([]string, len(lines))
	for i, l := range lines {
		all[i] = strings.Repeat(" ", n) + l
	}
	return all
}

// lines are the waiver as an entry of a list.
func (w Waiver) lines() ([]string, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := e.Encode([]*yaml.Node{w.node()})
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"), err
}

// node is the waiver as a set of keys and values.
func (w Waiver) node() *yaml.Node {
	set := &yaml.Node{Kind: yaml.MappingNode}
	add := func(key, value, tag string) {
		if value != "" {
			set.Content = append(set.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value})
		}
	}
	add("rule", w.Rule, "!!str")
	add("subject", w.Subject, "!!str")
	add("path", w.Path, "!!str")
	add("object", w.Object, "!!str")
	add("reason", w.Reason, "!!str")
	add("expires", w.Expires, "!!timestamp")
	add("owner", w.Owner, "!!str")
	return set
}

// encode lays out the text again, with one more waiver.
func encode(root *yaml.Node, w Waiver) ([]byte, error) {
	list, _ := listIn(root)
	if list == nil {
		return nil, errForm
	}
	if list.Kind != yaml.SequenceNode { // It is empty.
		*list = yaml.Node{Kind: yaml.SequenceNode}
	}
	if len(list.Content) == 0 {
		list.Style = 0
	}
	list.Content = append(list.Content, w.node())
	defer func() { list.Content = list.Content[:len(list.Content)-1] }()
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, fmt.Errorf("encode YAML: %w", err)
	}
	return b.Bytes(), nil
}

// lineOf is the line of a waiver in a text that holds it, the waivers before it, and all other
// keys with their values; 0 if the text does not.
func lineOf(file string, text []byte, before *yaml.Node, waivers []Waiver, w Waiver) int {
	root, err := settings.Root(file, text)
	if err != nil || root == nil || !slices.Equal(others(root), others(before)) {
		return 0
	}
	list, _ := listIn(root)
	after, err := Parse(file, list)
	if err != nil || len(after) != len(waivers)+1 {
		return 0
	}
	for i, have := range after {
		want := w
		if i < len(waivers) {
			want = waivers[i]
		}
		line := have.Line
		have.File, have.Line, want.File, want.Line = "", 0, "", 0
		if have != want {
			return 0
		}
		if i == len(waivers) {
			return line
		}
	}
	return 0
}

// others are the keys and values apart from the waivers, as text.
func others(root *yaml.Node) []string {
	if root == nil {
		return nil
	}
	var all []string
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == settings.WaiversKey {
			continue
		}
		raw, err := yaml.Marshal(plainCopy(root.Content[i+1]))
		if err != nil {
			raw = []byte(err.Error())
		}
		all = append(all, root.Content[i].Value+": "+string(raw))
	}
	return all
}

// plainCopy is a value without its comments and its layout.
func plainCopy(n *yaml.Node) *yaml.Node {
	c := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Anchor: n.Anchor, Alias: n.Alias}
	for _, child := range n.Content {
		c.Content = append(c.Content, plainCopy(child))
	}
	return c
}
