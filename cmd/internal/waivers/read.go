package waivers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/settings"
)

// keys are those of an entry; the first are required.
var keys = []string{"rule", "reason", "expires", "subject", "path", "object", "owner"}

const required = 3

// example is the hint for an entry that lacks something.
const example = `an entry has rule, reason and expires, and may have subject, path, object and owner: {rule: acs-redirect, reason: "fixed in May", expires: 2027-05-31}`

// Load reads a file of waivers, which holds nothing else.
func Load(file string) ([]Waiver, error) {
	raw, err := settings.Read(file)
	if err != nil {
		return nil, err
	}
	root, err := settings.Root(file, raw)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return nil, nil
	}
	var all []Waiver
	for i := 0; i+1 < len(root.Content); i += 2 {
		if key := root.Content[i]; key.Value != settings.WaiversKey || i > 0 {
			return nil, fault(file, key, "a file of waivers has the key "+settings.WaiversKey+" only", "unexpected key %q", key.Value)
		}
		if all, err = Parse(file, root.Content[i+1]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Parse reads the list of waivers in a file.
func Parse(file string, list *yaml.Node) ([]Waiver, error) {
	switch {
	case list == nil || list.Kind == yaml.ScalarNode && list.Tag == "!!null":
		return nil, nil
	case list.Kind != yaml.SequenceNode:
		return nil, fault(file, list, example, "%s is not a list", settings.WaiversKey)
	}
	all := make([]Waiver, 0, len(list.Content))
	for _, entry := range list.Content {
		w, err := parseEntry(file, entry)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(all, func(o Waiver) bool { return o.About() == w.About() }); i >= 0 {
			return nil, fault(file, entry, "remove one of them", "%s is waived twice; the first is %s", w.About(), all[i].Place())
		}
		all = append(all, w)
	}
	return all, nil
}

// parseEntry reads one waiver.
func parseEntry(file string, entry *yaml.Node) (Waiver, error) {
	w := Waiver{File: file, Line: entry.Line}
	if entry.Kind != yaml.MappingNode {
		return w, fault(file, entry, example, "the waiver is not a set of keys and values")
	}
	fields := map[string]*string{"rule": &w.Rule, "reason": &w.Reason, "expires": &w.Expires, "subject": &w.Subject, "path": &w.Path, "object": &w.Object, "owner": &w.Owner}
	for i := 0; i+1 < len(entry.Content); i += 2 {
		name, value := entry.Content[i], entry.Content[i+1]
		field := fields[name.Value]
		switch {
		case field == nil && slices.Contains(keys, name.Value):
			return w, fault(file, name, "remove one of them", "the key %s is given twice", name.Value)
		case field == nil:
			return w, fault(file, name, complaint.Nearest(name.Value, keys, example)[0], "unknown key %q", name.Value)
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null" || strings.TrimSpace(value.Value) == "":
			return w, fault(file, value, example, "%s: not a text", name.Value)
		}
		*field = strings.TrimSpace(value.Value)
		delete(fields, name.Value)
	}
	for _, key := range keys[:required] {
		if fields[key] != nil {
			return w, fault(file, entry, example, "the waiver has no %s", key)
		}
	}
	if _, err := time.Parse(DateForm, w.Expires); err != nil {
		return w, fault(file, entry, "a date is year, month and day: 2027-05-31", "expires: %q is not a date", w.Expires)
	}
	return w, nil
}

// CheckRules refuses waivers of rules that do not exist.
func CheckRules(all []Waiver, ids []string) error {
	for _, w := range all {
		if slices.Contains(ids, w.Rule) {
			continue
		}
		hints := complaint.Nearest(w.Rule, ids, "gpudoctor rules list shows the rules")
		return settings.Fault(w.File, w.Line, fmt.Errorf("the waiver names the unknown rule %q", w.Rule), hints...)
	}
	return nil
}

// fault is a fault of a file, with a hint.
func fault(file string, n *yaml.Node, hint, format string, args ...any) error {
	return settings.Fault(file, n.Line, fmt.Errorf(format, args...), hint)
}
