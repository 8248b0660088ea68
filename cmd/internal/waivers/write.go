package waivers

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/cmd/internal/settings"
)

// Add returns the text of a file with one more waiver, and the line of it. All else in the
// text stays as it is. A list that is empty or written in one line is left to its author.
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
		return nil, 0, settings.Fault(file, before[i].Line, errors.New(w.About()+" is already waived"), "change or remove this waiver")
	}
	entry := w.entry()
	added = insert(text, list, next, entry)
	if root, err = settings.Root(file, added); err == nil && isAdded(text, added, entry) {
		list, _ = listIn(root)
		after, err := Parse(file, list)
		if err == nil {
			return added, after[len(after)-1].Line, nil
		}
	}
	return nil, 0, settings.Fault(file, 0, errors.New("the waiver cannot be added to this file"), "add it by hand, to a list with one waiver a line: "+example)
}

// isAdded reports whether a text has the keys and values of another, and an entry at the end of its waivers.
func isAdded(before, after []byte, entry *yaml.Node) bool {
	want, got := map[string]any{}, map[string]any{}
	var added any
	err := errors.Join(yaml.Unmarshal(before, &want), yaml.Unmarshal(after, &got), entry.Decode(&added))
	list, _ := want[settings.WaiversKey].([]any)
	want[settings.WaiversKey] = append(list, added)
	return err == nil && reflect.DeepEqual(want, got)
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

// insert puts the lines of a waiver behind the others, or a new list at the end of the text.
func insert(text []byte, list, next, waiver *yaml.Node) []byte {
	lines := strings.SplitAfter(string(text), "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	} else {
		lines[last] += "\n"
	}
	indent, at := 2, len(lines)
	if list != nil && list.Kind == yaml.SequenceNode {
		indent = list.Column - 1
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	_ = e.Encode([]*yaml.Node{waiver}) // What cannot be written is not read back.
	entry := ""
	for l := range strings.Lines(b.String()) {
		entry += strings.Repeat(" ", indent) + l
	}
	if list == nil {
		entry = settings.WaiversKey + ":\n" + entry
	}
	if next != nil {
		at = next.Line - 1
		for at > 0 && (strings.TrimSpace(lines[at-1]) == "" || strings.HasPrefix(lines[at-1], "#")) {
			at-- // Comments before the next key belong to it.
		}
	}
	return []byte(strings.Join(lines[:at], "") + entry + strings.Join(lines[at:], ""))
}

// entry is the waiver as an entry of a list.
func (w Waiver) entry() *yaml.Node {
	entry := yaml.Node{Kind: yaml.MappingNode}
	for _, f := range [][2]string{
		{"rule", w.Rule}, {"subject", w.Subject}, {"path", w.Path}, {"object", w.Object}, {"reason", w.Reason}, {"expires", w.Expires}, {"owner", w.Owner},
	} {
		tag := "!!str"
		if f[0] == "expires" {
			tag = "!!timestamp"
		}
		if f[1] != "" {
			entry.Content = append(entry.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: f[0]}, &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: f[1]})
		}
	}
	return &entry
}
