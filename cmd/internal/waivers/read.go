package waivers

import (
	"fmt"
	"maps"
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
	if root == nil {
		return nil, err
	}
	var list *yaml.Node
	for i, node := range root.Content {
		if i%2 == 0 && (node.Value != settings.WaiversKey || i > 0) {
			return nil, settings.FaultAt(file, node, []string{"a file of waivers has the key " + settings.WaiversKey + " only"}, "unexpected key %q", node.Value)
		}
		list = node
	}
	return Parse(file, list)
}

// Parse reads the list of waivers in a file.
func Parse(file string, list *yaml.Node) ([]Waiver, error) {
	switch {
	case list == nil || list.Kind == yaml.ScalarNode && list.Tag == "!!null":
		return nil, nil
	case list.Kind != yaml.SequenceNode:
		return nil, settings.FaultAt(file, list, []string{example}, "%s is not a list", settings.WaiversKey)
	}
	all := make([]Waiver, 0, len(list.Content))
	for _, entry := range list.Content {
		w, err := parseEntry(file, entry)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(all, func(o Waiver) bool { return o.About() == w.About() }); i >= 0 {
			return nil, settings.FaultAt(file, entry, []string{"remove one of them"}, "%s is waived twice; the first is %s", w.About(), all[i].Place())
		}
		all = append(all, w)
	}
	return all, nil
}

// parseEntry reads one waiver.
func parseEntry(file string, entry *yaml.Node) (w Waiver, err error) {
	fields := map[string]string{}
	if err := entry.Decode(&fields); err != nil {
		return w, settings.FaultAt(file, entry, []string{example}, "the waiver is not a set of keys and texts: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(keys, name) {
			return w, settings.FaultAt(file, entry, complaint.Nearest(name, keys, example)[:1], "unknown key %q", name)
		}
		fields[name] = strings.TrimSpace(fields[name])
	}
	for _, key := range keys[:required] {
		if fields[key] == "" {
			return w, settings.FaultAt(file, entry, []string{example}, "the waiver has no %s", key)
		}
	}
	if _, err := time.Parse(DateForm, fields["expires"]); err != nil {
		return w, settings.FaultAt(file, entry, []string{"a date is year, month and day: 2027-05-31"}, "expires: %q is not a date", fields["expires"])
	}
	return Waiver{
		Rule: fields["rule"], Reason: fields["reason"], Expires: fields["expires"], Subject: fields["subject"], Path: fields["path"], Object: fields["object"],
		Owner: fields["owner"], File: file, Line: entry.Line,
	}, nil
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
