package patch

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
)

// document is a YAML file. What a setting changes in its nodes is changed in the text at their places: lines are added behind an entry,
// items behind an opening bracket, a plain value that stands on one line is replaced, and lines of an entry are removed. All else stays as it is.
type document struct {
	*file
	roots []*yaml.Node
	// containers are the containers and services in it.
	containers []*container
	// limits are, by node, the line before which it ends, counted from 0.
	limits map[*yaml.Node]int
	// shared are the nodes to which aliases point.
	shared map[*yaml.Node]bool
	// step is by how much a mapping is indented below its key, and isCompact true if a list is not.
	step                   int
	isCompact, isListKnown bool
}

// fail notes that the setting is left to a person, because of a node.
func (d *document) fail(n *yaml.Node, note string) bool {
	d.edits = nil
	d.byHand(n.Line-1, note)
	_ = d.parse() // It was read before. Nodes that were changed are as in the text again.
	return false
}

// documentsOf reads the documents of a text.
func documentsOf(text string) (roots []*yaml.Node, err error) {
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var n yaml.Node
		if err := decoder.Decode(&n); errors.Is(err, io.EOF) {
			return roots, nil
		} else if err != nil {
			return nil, complaint.Hinted(fmt.Errorf("it is not valid YAML: %w", err), "correct it first")
		}
		roots = append(roots, n.Content...)
	}
}

// parse reads the documents of the text.
func (d *document) parse() (err error) {
	*d = document{file: d.file, limits: map[*yaml.Node]int{}, shared: map[*yaml.Node]bool{}}
	if d.roots, err = documentsOf(d.Text); err != nil {
		return err
	}
	for _, root := range d.roots {
		d.measure(root, len(d.lines))
		d.find(root, 0)
	}
	d.step = max(d.step, 2)
	return nil
}

// measure notes where nodes end, and how the file is indented. Comments stay in the text.
func (d *document) measure(n *yaml.Node, limit int) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	d.limits[n] = limit
	switch {
	case n.Kind == yaml.AliasNode:
		d.shared[n.Alias] = true
	case n.Kind == yaml.SequenceNode && n.Anchor != "": // It begins at its anchor, so that the column of its items is not known.
		d.shared[n] = true
	}
	size := 1
	if n.Kind == yaml.MappingNode {
		size = 2
	}
	for i, c := range n.Content {
		below := limit
		if next := i - i%size + size; next < len(n.Content) {
			below = n.Content[next].Line - 1
		}
		if i%size == 1 {
			d.indented(n.Content[i-1], c)
		}
		d.measure(c, below)
	}
}

// indented notes how the first value of a kind is indented below its key.
func (d *document) indented(key, value *yaml.Node) {
	if key.Tag == "!!merge" {
		key.Tag = "" // The library would write it.
	}
	switch {
	case len(value.Content) == 0 || value.Style&yaml.FlowStyle != 0 || value.Line == key.Line:
	case value.Kind == yaml.MappingNode && d.step == 0:
		d.step = value.Column - key.Column
	case value.Kind == yaml.SequenceNode && !d.isListKnown:
		d.isListKnown, d.isCompact = true, value.Column == key.Column
	}
}

// end is the line behind the last one of an entry. Comments that are indented more belong to it, as lines of a text do.
func (d *document) end(key *yaml.Node) int {
	end := key.Line
	for at := key.Line; at < d.limits[key]; at++ {
		text := d.lines[at]
		if strings.HasPrefix(text, "---") || strings.HasPrefix(text, "...") { // The document ends.
			break
		}
		if t := strings.TrimSpace(text); t != "" && (t[0] != '#' || len(marginOf(text)) >= key.Column) {
			end = at + 1
		}
	}
	return end
}

// own is the own key and value of a mapping, the last one of the name; nil where it has none.
func own(m *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; m != nil && m.Kind == yaml.MappingNode && i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			key, value = m.Content[i], m.Content[i+1]
		}
	}
	return key, value
}

// value is the value at a path of keys, where the mappings have it or merge it in; nil for none.
func value(n *yaml.Node, path ...string) *yaml.Node {
	for _, name := range path {
		n = parse.YAMLMapping(n)[name]
	}
	return parse.YAMLResolve(n)
}

// text is the plain value at a path of keys; empty for other nodes.
func text(n *yaml.Node, path ...string) string { return parse.YAMLText(value(n, path...)) }

// items are those of a list.
func items(n *yaml.Node, path ...string) []*yaml.Node {
	if n = value(n, path...); n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// fresh reads a value that is new. The library puts quotes where they are needed.
func fresh(text string) *yaml.Node {
	var n yaml.Node
	if yaml.Unmarshal([]byte(text), &n) != nil || len(n.Content) == 0 {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	}
	unplaced(n.Content)
	return n.Content[0]
}

// unplaced makes nodes ones without a place and a form.
func unplaced(all []*yaml.Node) {
	for _, n := range all {
		*n = yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Content: n.Content}
		unplaced(n.Content)
	}
}

// merge has a mapping say what another says: keys and items are added, plain values replaced. It reports false where that must be
// done by hand.
func (d *document) merge(m, by *yaml.Node) bool {
	var lacking []*yaml.Node
	for i := 0; i+1 < len(by.Content); i += 2 {
		name, added := by.Content[i].Value, by.Content[i+1]
		key, v := own(m, name)
		switch isScalar := added.Kind == yaml.ScalarNode; {
		case key == nil && !isScalar && value(m, name) != nil:
			return d.fail(m, name+" is merged in from another part of the file")
		case key == nil:
			lacking = append(lacking, by.Content[i], added)
		case v.Kind == yaml.AliasNode || d.shared[v]:
			return d.fail(v, "other parts of the file share "+name)
		case v.Kind != added.Kind:
			return d.fail(v, name+" is empty, or has another form there")
		case isScalar:
			if !d.exchange(v, added) {
				return false
			}
		case added.Kind == yaml.SequenceNode:
			d.grow(v, added.Content...)
		default:
			if !d.merge(v, added) {
				return false
			}
		}
	}
	d.grow(m, lacking...)
	return true
}

// grow adds keys and values to a mapping, or items to a list.
func (d *document) grow(m *yaml.Node, added ...*yaml.Node) {
	if len(added) == 0 {
		return
	}
	if m.Style&yaml.FlowStyle != 0 {
		text, at := inBrackets(m.Kind, added...), d.at(m)+1
		if len(m.Content) > 0 {
			text += ", "
		}
		d.replace(at, at, text)
		d.explain(m.Line - 1)
		m.Content = slices.Concat(added, m.Content)
		return
	}
	last := m.Content[len(m.Content)-1]
	margin := strings.Repeat(" ", m.Column-1)
	if m.Kind == yaml.MappingNode {
		last = m.Content[len(m.Content)-2]
		margin = strings.Repeat(" ", last.Column-1)
	}
	at := d.end(last)
	d.insert(at, append(d.comment(at, margin), d.block(&yaml.Node{Kind: m.Kind, Content: added}, margin)...))
	m.Content = append(m.Content, added...)
}

// explain has the reason of the setting written above a line, counted from 0.
func (d *document) explain(at int) { d.insert(at, d.comment(at, marginOf(d.lines[at]))) }

// at is the byte at which a node begins.
func (d *document) at(n *yaml.Node) int {
	line := []rune(d.lines[n.Line-1])
	return d.starts[n.Line-1] + len(string(line[:min(n.Column-1, len(line))]))
}

// quotation is a value in quotes on one line.
var quotation = lazy.New(`^(?:"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\n]|'')*')`)

// written is a plain value as the text has it; empty if it stands on several lines or has a tag or an anchor.
func (d *document) written(v *yaml.Node) string {
	text := d.Text[d.at(v):]
	if v.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		return quotation.FindString(text)
	}
	if v.Style == 0 && strings.HasPrefix(text, v.Value) {
		return v.Value
	}
	return ""
}

// exchange replaces a plain value, in the quotes that it has.
func (d *document) exchange(v, by *yaml.Node) bool {
	old := d.written(v)
	switch {
	case v.Value == by.Value && v.Tag == by.Tag:
		return true
	case !stated(v.Value):
		return d.fail(v, "its value refers to a variable")
	case old == "":
		return d.fail(v, "its value has another form there")
	case by.Tag != "!!str":
		v.Style = 0
	}
	at := d.at(v)
	v.Value, v.Tag = by.Value, by.Tag
	d.replace(at, at+len(old), inBrackets(yaml.SequenceNode, v))
	d.explain(v.Line - 1)
	return true
}

// cut removes an item of a list, or a key with its value, from an entry of a container. The entry goes with the last one.
func (d *document) cut(holder *yaml.Node, entry string, m, n *yaml.Node) bool {
	size := 1
	if m.Kind == yaml.MappingNode {
		size = 2
	}
	from := n
	if len(m.Content) == size {
		from, _ = own(holder, entry)
		m, size = holder, 2
	}
	before := d.Text[d.starts[from.Line-1]:d.at(from)]
	if size == 1 {
		before = strings.Replace(before, "-", "", 1)
	}
	switch {
	case m.Style&yaml.FlowStyle != 0:
		return d.fail(n, "it stands in brackets")
	case strings.TrimSpace(before) != "":
		return d.fail(n, "something else stands in front of it")
	}
	d.replace(d.starts[from.Line-1], d.starts[d.end(from)], "")
	at := slices.Index(m.Content, from)
	m.Content = slices.Delete(m.Content, at, at+size)
	return true
}

// finish makes the edits of a setting in a container, and checks that the text then says what its nodes say.
func (d *document) finish(c *container) {
	if len(d.edits) == 0 {
		return
	}
	roots := d.roots
	isRight := func() bool { return d.parse() == nil && slices.EqualFunc(d.roots, roots, saysSame) }
	at := max(d.lineOf(d.edits[0].from), c.from-1)
	if !d.apply(at, isRight) {
		_ = d.parse() // It was read before.
	}
}

// saysSame reports whether two nodes say the same.
func saysSame(a, b *yaml.Node) bool {
	isSame := a.Kind == b.Kind && a.Value == b.Value && a.Anchor == b.Anchor && (a.Tag == b.Tag || a.Value == "<<")
	return isSame && slices.EqualFunc(a.Content, b.Content, saysSame)
}

// block is a mapping or list as lines behind a margin.
func (d *document) block(n *yaml.Node, margin string) (all []string) {
	for i := 0; i < len(n.Content); i++ {
		key := n.Content[i]
		switch isItem := n.Kind == yaml.SequenceNode; {
		case isItem && key.Kind == yaml.MappingNode:
			item := d.block(key, margin+"  ")
			all = append(append(all, margin+"- "+strings.TrimLeft(item[0], " ")), item[1:]...)
		case isItem:
			all = append(all, encoded(margin, yaml.SequenceNode, key)...)
		default:
			i++
			all = append(all, d.pair(key, n.Content[i], margin)...)
		}
	}
	return all
}

// pair is a key with its value as lines behind a margin.
func (d *document) pair(key, v *yaml.Node, margin string) []string {
	if len(v.Content) == 0 {
		return encoded(margin, yaml.MappingNode, key, v)
	}
	below := margin + strings.Repeat(" ", d.step)
	if d.isCompact && v.Kind == yaml.SequenceNode {
		below = margin
	}
	return append([]string{margin + key.Value + ":"}, d.block(v, below)...)
}

// encoded is a mapping or list as the library writes it, behind a margin.
func encoded(margin string, kind yaml.Kind, nodes ...*yaml.Node) (all []string) {
	raw, err := yaml.Marshal(&yaml.Node{Kind: kind, Content: nodes})
	if err != nil {
		return nil // The check of the text fails.
	}
	for l := range strings.Lines(string(raw)) {
		all = append(all, margin+strings.TrimSuffix(l, "\n"))
	}
	return all
}

// inBrackets is a mapping or list as it stands in brackets, without these.
func inBrackets(kind yaml.Kind, nodes ...*yaml.Node) string {
	raw, err := yaml.Marshal(&yaml.Node{Kind: kind, Style: yaml.FlowStyle, Content: nodes})
	if err != nil || len(raw) < len("[]\n") {
		return "" // The check of the text fails.
	}
	return string(raw[1 : len(raw)-len("]\n")])
}
