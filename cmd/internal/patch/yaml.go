package patch

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// document is a YAML file. What a setting changes in its nodes is changed in the text at their places: lines are added behind an entry,
// items behind an opening bracket, a plain value that stands on one line is replaced, and lines of an entry are removed. All else stays as it is.
type document struct {
	*file
	roots []*yaml.Node
	// from is the line of the container that is changed.
	from int
	// limits are, by node, the line before which it ends, counted from 0.
	limits map[*yaml.Node]int
	// shared are the nodes to which aliases point.
	shared map[*yaml.Node]bool
	// step is by how much a mapping is indented below its key, and isCompact true if a list is not.
	step                   int
	isCompact, isListKnown bool
	// said are the last reasons given in mappings and lists.
	said map[*yaml.Node]string
	// additions are what mappings and lists of the text get.
	additions []*addition
}

// addition is new entries of a mapping or new items of a list.
type addition struct {
	to *yaml.Node
	// line is the one before which they go, counted from 0, and comma what stands behind them in brackets.
	line  int
	comma string
	nodes []*yaml.Node
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
	d = &document{file: f, limits: map[*yaml.Node]int{}, shared: map[*yaml.Node]bool{}, said: map[*yaml.Node]string{}}
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

// merge makes a mapping say what another says.
func (d *document) merge(m, by *yaml.Node) {
	if do := d.merging(m, by); do != nil {
		do()
	}
}

// merging is what makes a mapping say what another says: keys and items are added, plain values replaced. It is nil where that must be
// done by hand.
func (d *document) merging(m, by *yaml.Node) func() {
	var all []func()
	for i := 0; i+1 < len(by.Content); i += 2 {
		name, added := by.Content[i].Value, by.Content[i+1]
		key, v := own(m, name)
		isScalar := added.Kind == yaml.ScalarNode
		var do func()
		switch {
		case key == nil && !isScalar && value(m, name) != nil:
			return d.fail(m, name+" is merged in from another part of the file")
		case key == nil:
			do = func() { d.grow(m, by.Content[i], added) }
		case v.Kind == yaml.AliasNode || d.shared[v]:
			return d.fail(v, "other parts of the file share "+name)
		case v.Tag == "!!null" && v.Value == "" && !isScalar:
			do = func() { d.fill(key, v, added) }
		case v.Kind != added.Kind:
			return d.fail(v, name+" has another form there")
		case isScalar && !stated(v.Value):
			return d.fail(v, "its value refers to a variable")
		case isScalar && !d.isOnOneLine(v):
			return d.fail(v, "its value has another form there")
		case isScalar:
			do = func() { d.exchange(m, v, added) }
		case added.Kind == yaml.SequenceNode:
			do = func() { d.grow(v, added.Content...) }
		default:
			do = d.merging(v, added)
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

// fill gives a key without a value a mapping or a list.
func (d *document) fill(key, v, added *yaml.Node) {
	*v = yaml.Node{Kind: added.Kind, Tag: added.Tag, Line: key.Line, Column: key.Column + d.step}
	if d.isCompact && added.Kind == yaml.SequenceNode {
		v.Column = key.Column
	}
	d.grow(v, added.Content...)
}

// grow adds a key and its value to a mapping, or items to a list.
func (d *document) grow(m *yaml.Node, added ...*yaml.Node) {
	at, isFlow := len(m.Content), m.Style&yaml.FlowStyle != 0
	switch {
	case isFlow:
		bracketed(added, m.Line)
		d.explain(m.Line - 1)
	case d.said[m] != d.want.comment():
		added[0].HeadComment = d.want.comment() // Until its margin is known.
	}
	if m.Column > 0 {
		a := d.addition(m)
		if isFlow {
			at = len(a.nodes)
		}
		a.nodes = append(a.nodes, added...)
	}
	m.Content = slices.Insert(m.Content, at, added...)
	d.changed(max(m.Line, d.from) - 1)
	d.said[m] = d.want.comment()
	for ; len(added) > 0; added = added[len(added)-1].Content { // The reason counts for what is in it.
		d.said[added[len(added)-1]] = d.want.comment()
	}
}

// bracketed puts new nodes into brackets that are on a line.
func bracketed(all []*yaml.Node, line int) {
	for _, n := range all {
		n.Style, n.Line = n.Style|yaml.FlowStyle, line
		bracketed(n.Content, line)
	}
}

// addition is what a mapping or list of the text gets.
func (d *document) addition(m *yaml.Node) *addition {
	if i := slices.IndexFunc(d.additions, func(a *addition) bool { return a.to == m }); i >= 0 {
		return d.additions[i]
	}
	a := &addition{to: m, line: m.Line}
	if n := len(m.Content); n > 0 {
		a.comma = ", "
		if m.Kind == yaml.MappingNode {
			n--
		}
		a.line = d.end(m.Content[n-1])
	}
	d.additions = append(d.additions, a)
	return a
}

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

// isOnOneLine reports whether a value can be replaced.
func (d *document) isOnOneLine(v *yaml.Node) bool { return v.Column == 0 || d.written(v) != "" }

// exchange replaces a plain value of a mapping or list, in the quotes that it has.
func (d *document) exchange(m, v, by *yaml.Node) {
	if v.Value == by.Value && v.Tag == by.Tag {
		return
	}
	from, to := 0, 0
	if v.Column > 0 {
		from, to = d.at(v), d.at(v)+len(d.written(v))
	}
	if by.Tag != "!!str" {
		v.Style = 0
	}
	v.Value, v.Tag = by.Value, by.Tag
	if to > 0 {
		d.replace(from, to, inBrackets(yaml.SequenceNode, v))
		if d.said[m] != d.want.comment() {
			d.explain(v.Line - 1)
		}
	}
	d.said[m] = d.want.comment()
	d.changed(max(v.Line, d.from) - 1)
}

// cut removes an item of a list, or a key with its value, from an entry of a container. The entry goes with the last one.
func (d *document) cut(holder *yaml.Node, entry string, m, n *yaml.Node) {
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
		d.fail(n, "it stands in brackets")
		return
	case strings.TrimSpace(before) != "":
		d.fail(n, "something else stands in front of it")
		return
	}
	d.edits = append(d.edits, d.removal(from.Line-1, d.end(from)-from.Line+1))
	d.changed(n.Line - 1)
	at := slices.Index(m.Content, from)
	m.Content = slices.Delete(m.Content, at, at+size)
}

// finish writes what is new into the text, and checks that it then says what its nodes say.
func (d *document) finish() error {
	slices.SortStableFunc(d.additions, func(a, b *addition) int { // Behind one line, what stands deeper comes first, and items before keys.
		return cmp.Or(b.to.Column-a.to.Column, int(a.to.Kind)-int(b.to.Kind))
	})
	for _, a := range d.additions {
		if a.to.Style&yaml.FlowStyle == 0 {
			d.insert(a.line, d.block(&yaml.Node{Kind: a.to.Kind, Content: a.nodes}, strings.Repeat(" ", a.to.Column-1)))
		} else {
			at := d.at(a.to) + 1
			d.replace(at, at, inBrackets(a.to.Kind, a.nodes...)+a.comma)
		}
	}
	d.writeReasons()
	if text, err := udiff.Apply(d.Text, slices.Clone(d.edits)); err == nil {
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

// block is a mapping or list as lines behind a margin, with the reasons as comments.
func (d *document) block(n *yaml.Node, margin string) (all []string) {
	for i := 0; i < len(n.Content); i++ {
		key := n.Content[i]
		all = append(all, d.reason(margin, key.HeadComment)...)
		key.HeadComment = ""
		switch isItem := n.Kind == yaml.SequenceNode; {
		case isItem && key.Kind == yaml.MappingNode && key.Style == 0:
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
	if v.Kind == yaml.ScalarNode || v.Style != 0 || len(v.Content) == 0 {
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
