package patch

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/aymanbagabas/go-udiff/lcs"
	"go.yaml.in/yaml/v3"
)

// document is a YAML file. Settings are written into its nodes, and the library writes the entries of containers and pods again that
// have others. Of their lines, those that say the same stay as they are in the text, as do comments and blank lines.
type document struct {
	*file
	roots []*yaml.Node
	// limits are, by node, the line before which it ends, counted from 0.
	limits map[*yaml.Node]int
	// shared are the nodes to which aliases point.
	shared map[*yaml.Node]bool
	// step is by how much a mapping is indented below its key, and isCompact true if a list is not.
	step                   int
	isCompact, isListKnown bool
	// said are the last reasons given in mappings and lists, whys all of them as comments on one line.
	said map[*yaml.Node]string
	whys map[string]bool
	// parts are the entries that are written again or added.
	parts []*part
}

// part is an entry of a container or pod.
type part struct {
	holder *yaml.Node
	name   string
	// reasons stand above it.
	reasons []string
}

// fail notes that the setting is left to a person, because of a node.
func (d *document) fail(n *yaml.Node, note string) func() {
	d.byHand(n.Line-1, note)
	return nil
}

// documentsOf reads the documents of a text.
func documentsOf(text string) (roots []*yaml.Node, err error) {
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var n yaml.Node
		if err := decoder.Decode(&n); errors.Is(err, io.EOF) {
			return roots, nil
		} else if err != nil {
			return nil, &Error{"it is not valid YAML: " + err.Error(), []string{"correct it first"}}
		}
		roots = append(roots, n.Content...)
	}
}

// parseYAML reads the documents of a file.
func parseYAML(f *file) (d *document, err error) {
	d = &document{file: f, limits: map[*yaml.Node]int{}, shared: map[*yaml.Node]bool{}, said: map[*yaml.Node]string{}, whys: map[string]bool{}}
	if d.roots, err = documentsOf(f.Text); err != nil {
		return nil, err
	}
	for _, root := range d.roots {
		d.measure(root, len(f.lines))
	}
	d.step = max(d.step, 2)
	return d, nil
}

// measure notes where nodes end, and how the file is indented. Comments stay in the text.
func (d *document) measure(n *yaml.Node, limit int) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	d.limits[n] = limit
	if n.Kind == yaml.AliasNode {
		d.shared[n.Alias] = true
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

// resolved follows an alias.
func resolved(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
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
		n = merged(resolved(n), name, new(maxMerges))
	}
	return resolved(n)
}

// maxMerges bounds the mappings in which a key is looked for: the same one may be merged in many times.
const maxMerges = 1000

// merged is the value of a mapping, or of the first of those that it merges in.
func merged(m *yaml.Node, name string, left *int) *yaml.Node {
	_, v := own(m, name)
	_, sources := own(m, "<<")
	if *left--; v != nil || sources == nil || *left < 0 {
		return v
	}
	all := []*yaml.Node{sources}
	if sources.Kind == yaml.SequenceNode {
		all = sources.Content
	}
	for _, source := range all {
		if v := merged(resolved(source), name, left); v != nil {
			return v
		}
	}
	return nil
}

// text is the plain value at a path of keys; empty for other nodes.
func text(n *yaml.Node, path ...string) string {
	if n = value(n, path...); n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

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

// merge makes a container say what another says.
func (d *document) merge(holder, by *yaml.Node) {
	if do := d.merging(holder, "", holder, by); do != nil {
		do()
	}
}

// merging is what makes a mapping, in an entry of a container or pod or that itself, say what another says: keys and items are added, plain values
// replaced. It is nil where that must be done by hand.
func (d *document) merging(holder *yaml.Node, entry string, m, by *yaml.Node) func() {
	if holder.Style&yaml.FlowStyle != 0 {
		return d.fail(holder, "it stands in brackets")
	}
	var all []func()
	for i := 0; i+1 < len(by.Content); i += 2 {
		name, added := by.Content[i].Value, by.Content[i+1]
		in := cmp.Or(entry, name)
		key, v := own(m, name)
		isScalar := added.Kind == yaml.ScalarNode
		var do func()
		switch {
		case key == nil && !isScalar && value(m, name) != nil:
			return d.fail(m, name+" is merged in from another part of the file")
		case key == nil:
			do = func() { d.grow(holder, in, m, by.Content[i], added) }
		case v.Kind == yaml.AliasNode || d.shared[v]:
			return d.fail(v, "other parts of the file share "+name)
		case v.Tag == "!!null" && !isScalar:
			do = func() {
				*v = yaml.Node{Kind: added.Kind, Tag: added.Tag}
				d.grow(holder, in, v, added.Content...)
			}
		case v.Kind != added.Kind:
			return d.fail(v, name+" has another form there")
		case isScalar && !stated(v.Value):
			return d.fail(v, "its value refers to a variable")
		case isScalar:
			do = func() { d.exchange(holder, in, m, key, v, added) }
		case added.Kind == yaml.SequenceNode:
			do = func() { d.grow(holder, in, v, added.Content...) }
		default:
			do = d.merging(holder, in, v, added)
		}
		if do == nil {
			return nil
		}
		all = append(all, do)
	}
	return func() {
		for _, do := range all {
			do()
		}
	}
}

// grow adds a key and its value to a mapping, or items to a list, in quotes where the last one is.
func (d *document) grow(holder *yaml.Node, entry string, m *yaml.Node, added ...*yaml.Node) {
	if n := len(m.Content); m.Kind == yaml.SequenceNode && n > 0 && added[0].Kind == yaml.ScalarNode && added[0].Style == 0 {
		added[0].Style = m.Content[n-1].Style & (yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle)
	}
	if m.Style&yaml.FlowStyle != 0 {
		bracketed(added)
	}
	m.Content = append(m.Content, added...)
	d.touch(holder, entry, m, added[0])
	for ; len(added) > 0; added = added[len(added)-1].Content { // The reason counts for what is in it.
		d.said[added[len(added)-1]] = d.want.comment()
	}
}

// bracketed puts nodes into brackets.
func bracketed(all []*yaml.Node) {
	for _, n := range all {
		n.Style |= yaml.FlowStyle
		bracketed(n.Content)
	}
}

// exchange replaces a plain value, in the quotes that it has. It belongs to a key, or is an item itself.
func (d *document) exchange(holder *yaml.Node, entry string, m, key, v, by *yaml.Node) {
	if v.Value == by.Value && v.Tag == by.Tag {
		return
	}
	if by.Tag != "!!str" {
		v.Style = 0
	}
	v.Value, v.Tag = by.Value, by.Tag
	d.touch(holder, entry, m, key)
}

// touch notes that an entry is another one. The reason stands above what is new in a mapping or list, or above the entry, unless it is the last that was given there.
func (d *document) touch(holder *yaml.Node, entry string, m, n *yaml.Node) {
	i := slices.IndexFunc(d.parts, func(p *part) bool { return p.holder == holder && p.name == entry })
	if i < 0 {
		i = len(d.parts)
		d.parts = append(d.parts, &part{holder: holder, name: entry})
	}
	key, _ := own(holder, entry)
	switch comment := d.want.comment(); {
	case comment == "" || m != holder && d.said[m] == comment:
	case key.Line > 0 && (n == nil || n == key || m.Style&yaml.FlowStyle != 0):
		d.parts[i].reasons = appendNew(d.parts[i].reasons, comment)
	default:
		n.HeadComment = "# " + strings.Join(strings.Fields(comment), " ") // On one line, until its margin is known.
		d.whys[n.HeadComment] = true
	}
	d.said[m] = d.want.comment()
	d.changed(max(n.Line, key.Line, holder.Line) - 1)
}

// cut removes an item of a list, or a key with its value, from an entry of a container. The entry goes with the last one.
func (d *document) cut(holder *yaml.Node, entry string, m, n *yaml.Node) {
	size := 1
	if m.Kind == yaml.MappingNode {
		size = 2
	}
	at := slices.Index(m.Content, n)
	if len(m.Content) > size || m.Style&yaml.FlowStyle != 0 {
		m.Content = slices.Delete(m.Content, at, at+size)
		d.said[m] = d.want.comment() // Nothing is left that it could stand above.
		d.touch(holder, entry, m, n)
		return
	}
	key, _ := own(holder, entry)
	d.edits = append(d.edits, d.removal(key.Line-1, d.end(key)-key.Line+1))
	d.changed(n.Line - 1)
	at = slices.Index(holder.Content, key)
	holder.Content = slices.Delete(holder.Content, at, at+2)
}

// finish writes what is new into the text, as few lines as possible. If that says something else, whole entries are written.
func (d *document) finish() error {
	removals := d.edits
	place := func(p *part) int { // Behind one line, what stands in a container comes before what stands in its pod, and what an entry gets before others.
		if key, _ := own(p.holder, p.name); key != nil && key.Line == 0 {
			return 1 - 2*p.holder.Column
		}
		return -2 * p.holder.Column
	}
	slices.SortStableFunc(d.parts, func(a, b *part) int { return place(a) - place(b) })
	for _, isWhole := range []bool{false, true} {
		d.edits = slices.Clone(removals)
		for _, p := range d.parts {
			if key, v := own(p.holder, p.name); key != nil && key.Line > 0 {
				d.rewrite(p, key, v, isWhole)
			} else if key != nil {
				last := p.holder.Content[0]
				for i := 0; i < len(p.holder.Content); i += 2 {
					if k := p.holder.Content[i]; k.Line > 0 {
						last = k
					}
				}
				d.insert(d.end(last), d.written(key, v, last.Column-1))
			}
		}
		text, err := udiff.Apply(d.Text, d.edits)
		if err != nil {
			continue
		}
		if roots, err := documentsOf(text); err == nil && slices.EqualFunc(roots, d.roots, saysSame) {
			return nil
		}
	}
	return &Error{"its values are laid out in a way in which they cannot be changed one by one", []string{"gpudoctor advise --for kubernetes, or --for compose, writes what to add by hand"}}
}

// saysSame reports whether two nodes say the same.
func saysSame(a, b *yaml.Node) bool {
	isSame := a.Kind == b.Kind && a.Value == b.Value && a.Anchor == b.Anchor && (a.Tag == b.Tag || a.Value == "<<")
	return isSame && slices.EqualFunc(a.Content, b.Content, saysSame)
}

// written is an entry, written by the library, below an indentation.
func (d *document) written(key, v *yaml.Node, indent int) (all []string) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(d.step)
	if d.isCompact {
		encoder.CompactSeqIndent()
	}
	if err := encoder.Encode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{key, v}}); err != nil {
		return nil // The check of the text fails.
	}
	for l := range strings.Lines(b.String()) {
		l = strings.TrimRight(strings.Repeat(" ", indent)+strings.TrimSuffix(l, "\n"), " ")
		if t := strings.TrimSpace(l); d.whys[t] {
			all = append(all, d.reason(marginOf(l), t[len("# "):])...)
		} else {
			all = append(all, l)
		}
	}
	return all
}

// rewrite writes an entry again: all of its lines, or those that say something else.
func (d *document) rewrite(p *part, key, v *yaml.Node, isWhole bool) {
	lines, begin, end := d.written(key, v, key.Column-1), key.Line-1, d.end(key)
	if len(lines) == 0 {
		return
	}
	for _, why := range p.reasons {
		d.insert(begin, d.reason(marginOf(d.lines[begin]), why))
	}
	if first := d.lines[begin]; strings.HasPrefix(strings.TrimSpace(first), "- ") { // It is the first of an item.
		lines[0] = first[:min(key.Column-1, len(first))] + strings.TrimSpace(lines[0])
	}
	isWhole = isWhole && !slices.ContainsFunc(d.lines[begin:end], func(l string) bool { return strings.Contains(l, "#") }) // It may be a comment, which would go.
	var old []int
	var before, after []string
	for at := begin; at < end; at++ {
		if t := strings.TrimSpace(d.lines[at]); isWhole || t != "" && t[0] != '#' {
			old, before = append(old, at), append(before, essence(d.lines[at]))
		}
	}
	for _, l := range lines {
		after = append(after, essence(l))
	}
	diffs := lcs.DiffLines(before, after)
	if isWhole {
		diffs = []lcs.Diff{{End: len(old), ReplEnd: len(lines)}}
	}
	for _, diff := range diffs {
		d.replaceLines(old[diff.Start:diff.End], old[max(diff.Start-1, 0)]+1, lines[diff.ReplStart:diff.ReplEnd])
	}
}

// replaceLines writes lines instead of others, or at a line. A comment behind a value stays behind the one in its place.
func (d *document) replaceLines(old []int, at int, lines []string) {
	var gone []int
	for _, line := range old {
		text := d.lines[line]
		i := slices.IndexFunc(lines, func(l string) bool { return label(l) != "" && label(l) == label(text) })
		if i < 0 {
			gone = append(gone, line)
			continue
		}
		by := strings.Join(lines[:i+1], "\n")
		if said, comment, ok := strings.Cut(text, " #"); ok && !strings.ContainsAny(comment, `"'`) {
			by += text[len(strings.TrimRight(said, " ")):]
		}
		d.replace(d.starts[line], d.starts[line]+len(text), by)
		lines, at = lines[i+1:], line+1
	}
	d.insert(at, lines)
	for len(gone) > 0 {
		n := 1
		for n < len(gone) && gone[n] == gone[0]+n {
			n++
		}
		d.edits = append(d.edits, d.removal(gone[0], n))
		gone = gone[n:]
	}
}

// label is the key at which a line begins; empty for an item.
func label(line string) string {
	key, _, ok := strings.Cut(line, ":")
	if t := strings.TrimSpace(key); !ok || t == "-" || strings.HasPrefix(t, "- ") || strings.HasPrefix(t, "#") {
		return ""
	}
	return key
}

// essence is what a line says, without blanks and comments.
func essence(line string) string {
	said, _, _ := strings.Cut(strings.TrimLeft(line, " "), " #")
	return marginOf(line) + strings.Join(strings.Fields(said), "")
}
