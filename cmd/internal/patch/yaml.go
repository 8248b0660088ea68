package patch

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// maxDepth bounds how deep a document is followed.
const maxDepth = 60

// width is that of comments, in columns.
const width = 100

// document is a YAML file with the lines on which its parts stand.
type document struct {
	*file
	roots []*yaml.Node
	// limits are, by key or item, the line before which it ends, counted from 0.
	limits map[*yaml.Node]int
	// step is by how much a mapping is indented below its key, and listStep a list.
	step, listStep int
	// referred are the nodes to which aliases point.
	referred map[*yaml.Node]bool
}

// errUnsafe is why an edit is left to a person.
type errUnsafe struct {
	at   int
	note string
}

func (e errUnsafe) Error() string { return e.note }

// unsafeAt is the error of an edit of a node.
func unsafeAt(n *yaml.Node, note string) error { return errUnsafe{n.Line - 1, note} }

// parseYAML reads the documents of a file.
func parseYAML(f *file) (*document, error) {
	for i, l := range f.lines {
		if strings.ContainsAny(l.text, "\r\u0085\u2028\u2029") {
			return nil, SyntaxError{"line " + strconv.Itoa(i+1) + " has a line end of another kind"}
		}
	}
	d := &document{file: f, limits: map[*yaml.Node]int{}, step: 2, listStep: 2, referred: map[*yaml.Node]bool{}}
	decoder := yaml.NewDecoder(strings.NewReader(f.body()))
	for len(d.roots) < maxLines {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, SyntaxError{err.Error()}
		}
		if len(n.Content) == 1 {
			d.roots = append(d.roots, n.Content[0])
		}
	}
	stepped, listed := false, false
	for i, root := range d.roots {
		limit := len(f.lines)
		if i+1 < len(d.roots) {
			limit = min(limit, d.roots[i+1].Line-1)
		}
		for at := max(root.Line-1, 0) + 1; at < limit; at++ {
			if t := f.lines[at].text; strings.HasPrefix(t, "---") || strings.HasPrefix(t, "...") {
				limit = at
			}
		}
		d.bound(root, limit, 0, &stepped, &listed)
	}
	return d, nil
}

// bound notes where the parts of a node end, and how the file is indented.
func (d *document) bound(n *yaml.Node, limit, depth int, stepped, listed *bool) {
	if n == nil || depth > maxDepth {
		return
	}
	switch n.Kind {
	case yaml.AliasNode:
		d.referred[n.Alias] = true
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value, end := n.Content[i], n.Content[i+1], limit
			if i+2 < len(n.Content) {
				end = n.Content[i+2].Line - 1
			}
			d.limits[key] = end
			if first := firstOf(value); first != nil && n.Style&yaml.FlowStyle == 0 && value.Style&yaml.FlowStyle == 0 && first.Line > key.Line {
				switch by := first.Column - key.Column; {
				case value.Kind == yaml.MappingNode && by > 0 && !*stepped:
					d.step, *stepped = by, true
				case value.Kind == yaml.SequenceNode && !*listed:
					if dash, ok := d.dash(first); ok {
						d.listStep, *listed = max(dash-(key.Column-1), 0), true
					}
				}
			}
			d.bound(value, end, depth+1, stepped, listed)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			end := limit
			if i+1 < len(n.Content) {
				end = n.Content[i+1].Line - 1
			}
			d.limits[item] = end
			d.bound(item, end, depth+1, stepped, listed)
		}
	default: // A scalar ends where it stands.
	}
}

// firstOf is the first part of a node.
func firstOf(n *yaml.Node) *yaml.Node {
	if len(n.Content) == 0 {
		return nil
	}
	return n.Content[0]
}

// dash is the column of the dash before an item, counted from 0.
func (d *document) dash(item *yaml.Node) (int, bool) {
	if item.Kind == yaml.MappingNode && item.Style&yaml.FlowStyle == 0 && len(item.Content) > 0 {
		if item.Line != item.Content[0].Line {
			return 0, false // An anchor, or a dash alone.
		}
		item = item.Content[0]
	}
	at, ok := d.offset(item.Line, item.Column)
	if !ok {
		return 0, false
	}
	before := strings.TrimRight(d.lines[item.Line-1].text[:at], " ")
	if !strings.HasSuffix(before, "-") || strings.Trim(before, " -") != "" {
		return 0, false
	}
	return len(before) - 1, true
}

// offset is the byte of a line at which a column begins.
func (d *document) offset(number, column int) (int, bool) {
	if number < 1 || number > len(d.lines) {
		return 0, false
	}
	text, at := d.lines[number-1].text, 0
	for range column - 1 {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at, at < len(text)
}

// end is the line after the last one of a key's value or an item, which stands at an
// indentation. Comments that are indented more belong to it, as lines of a text do.
func (d *document) end(n *yaml.Node, indent int) int {
	end := n.Line
	for at := n.Line; at < d.limits[n]; at++ {
		text := d.lines[at].text
		rest := strings.TrimLeft(text, " ")
		if rest != "" && strings.TrimSpace(rest) != "" && (rest[0] != '#' || len(text)-len(rest) > indent) {
			end = at + 1
		}
	}
	return end
}

// tree is what is added: a scalar as YAML has it, a mapping or a list.
type tree struct {
	scalar string
	keys   []string
	values []*tree
	items  []*tree
}

func scalar(s string) *tree { return &tree{scalar: s} }

func list(items ...*tree) *tree { return &tree{items: items} }

// mapping is a mapping of keys and values in turn.
func mapping(pairs ...any) *tree {
	t := new(tree)
	for i := 0; i+1 < len(pairs); i += 2 {
		t.keys, t.values = append(t.keys, pairs[i].(string)), append(t.values, pairs[i+1].(*tree))
	}
	return t
}

// block writes a key with a value, indented.
func (d *document) block(indent int, key string, t *tree) []string {
	margin := strings.Repeat(" ", indent)
	switch {
	case len(t.items) > 0:
		all := []string{margin + key + ":"}
		for _, item := range t.items {
			all = append(all, d.item(indent+d.listStep, item)...)
		}
		return all
	case len(t.keys) > 0:
		all := []string{margin + key + ":"}
		for i, k := range t.keys {
			all = append(all, d.block(indent+d.step, k, t.values[i])...)
		}
		return all
	}
	return []string{strings.TrimRight(margin+key+": "+t.scalar, " ")}
}

// item writes an item of a list, whose dash is indented.
func (d *document) item(indent int, t *tree) []string {
	margin := strings.Repeat(" ", indent)
	if len(t.keys) == 0 {
		return []string{margin + "- " + t.flow()}
	}
	var all []string
	for i, k := range t.keys {
		all = append(all, d.block(indent+2, k, t.values[i])...)
	}
	all[0] = margin + "- " + all[0][indent+2:]
	return all
}

// flow writes a value on one line.
func (t *tree) flow() string {
	var parts []string
	switch {
	case len(t.items) > 0:
		for _, item := range t.items {
			parts = append(parts, item.flow())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case len(t.keys) > 0:
		return "{" + t.pairs() + "}"
	}
	return t.scalar
}

// pairs writes the keys of a mapping on one line.
func (t *tree) pairs() string {
	var parts []string
	for i, k := range t.keys {
		parts = append(parts, strings.TrimRight(k+": "+t.values[i].flow(), " "))
	}
	return strings.Join(parts, ", ")
}

// quoted is a string for YAML.
func quoted(s string) string { return strconv.Quote(s) }

// edit is one change of a document, on behalf of a want.
type edit struct {
	*document
	want *Want
	// where is the container, place the key in it that is changed.
	where, place string
}

// comment is the reason as comments, indented.
func (e *edit) comment(indent int) []string {
	var all []string
	margin := strings.Repeat(" ", indent)
	for _, l := range lines.Paragraphs(e.want.comment(), max(width-indent-2, 40)) {
		all = append(all, margin+"# "+lines.Printable(l, false))
	}
	return all
}

// put proposes lines, below the reason unless that stands there for the lines before.
func (e *edit) put(at, del, indent int, ins []string) {
	place := e.where + "\x00" + e.place
	if e.said[place] != e.want.comment() || del > 0 {
		ins = append(e.comment(indent), ins...)
	}
	if e.splice(&splice{at: at, del: del, ins: ins, change: e.want.remark(e.where)}) {
		e.said[place] = e.want.comment()
	}
}

// entry is the own key and value of a mapping; nil where it has none. merged is true where
// the key comes from another mapping.
func entry(m *yaml.Node, name string) (key, value *yaml.Node, merged bool) {
	for i := 0; m != nil && m.Kind == yaml.MappingNode && i+1 < len(m.Content); i += 2 {
		switch {
		case m.Content[i].Value == name && m.Content[i].Tag != "!!merge":
			key, value = m.Content[i], m.Content[i+1] // The last one counts.
		case m.Content[i].Value == "<<":
			merged = merged || mergedHas(m.Content[i+1], name, 0)
		}
	}
	return key, value, merged && key == nil
}

// mergedHas reports whether what "<<" merges in has a key.
func mergedHas(n *yaml.Node, name string, depth int) bool {
	n = parse.YAMLResolve(n)
	if n == nil || depth > 4 {
		return false
	}
	if n.Kind == yaml.SequenceNode {
		return slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return mergedHas(c, name, depth+1) })
	}
	key, _, merged := entry(n, name)
	return key != nil || merged
}

// value is the value of a key, where the mapping has it or merges it in; nil for none.
func value(m *yaml.Node, names ...string) *yaml.Node {
	n := parse.YAMLResolve(m)
	for _, name := range names {
		n = below(n, name, 0)
	}
	return n
}

func below(m *yaml.Node, name string, depth int) *yaml.Node {
	m = parse.YAMLResolve(m)
	if m == nil || depth > 4 {
		return nil
	}
	if m.Kind == yaml.SequenceNode && depth > 0 {
		for _, c := range m.Content {
			if n := below(c, name, depth+1); n != nil {
				return n
			}
		}
		return nil
	}
	if _, v, _ := entry(m, name); v != nil {
		return parse.YAMLResolve(v)
	}
	for i := 0; m.Kind == yaml.MappingNode && i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == "<<" {
			if n := below(m.Content[i+1], name, depth+1); n != nil {
				return n
			}
		}
	}
	return nil
}

// text is a plain value; empty for other nodes.
func text(n *yaml.Node) string {
	if n = parse.YAMLResolve(n); n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// items are those of a list.
func items(n *yaml.Node) []*yaml.Node {
	if n = parse.YAMLResolve(n); n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// set makes a mapping have a value at a path of keys, whatever it has of it: a scalar is
// replaced, items are added to a list.
func (e *edit) set(m *yaml.Node, t *tree, path ...string) error {
	e.place = path[0]
	for i, name := range path {
		if m.Kind != yaml.MappingNode {
			return unsafeAt(m, path[max(i-1, 0)]+" is no mapping there")
		}
		key, v, merged := entry(m, name)
		rest := path[i+1:]
		switch {
		case merged && (len(rest) > 0 || t.scalar == ""):
			return unsafeAt(m, name+" is merged in from another part of the file")
		case key == nil:
			return e.add(m, name, nested(rest, t))
		case v.Kind == yaml.AliasNode:
			return unsafeAt(v, name+" is an alias of another part of the file")
		case v.Anchor != "" && e.referred[v]:
			return unsafeAt(v, name+" is also used by other parts of the file")
		case v.Kind == yaml.ScalarNode && v.Tag == "!!null" && (len(rest) > 0 || t.scalar == ""):
			return e.fill(m, key, v, nested(rest, t))
		case len(rest) == 0 && len(t.items) > 0:
			return e.extend(key, v, t)
		case len(rest) == 0 && v.Kind == yaml.ScalarNode:
			return e.replace(v, t.scalar)
		case len(rest) == 0:
			return unsafeAt(v, name+" has another form there")
		}
		m = v
	}
	return nil
}

// nested is a value below keys.
func nested(path []string, t *tree) *tree {
	for _, name := range slices.Backward(path) {
		t = mapping(name, t)
	}
	return t
}

// add adds a key to a mapping.
func (e *edit) add(m *yaml.Node, name string, t *tree) error {
	if m.Style&yaml.FlowStyle != 0 {
		return e.inFlow(m, strings.TrimRight(name+": "+t.flow(), " "))
	}
	if len(m.Content) == 0 {
		return unsafeAt(m, "it is empty there")
	}
	first, last := m.Content[0], m.Content[len(m.Content)-2]
	indent := first.Column - 1
	if !e.alone(last, indent) && last != first {
		return unsafeAt(last, "its keys do not begin lines of their own")
	}
	e.put(e.end(last, indent), 0, indent, e.block(indent, name, t))
	return nil
}

// alone reports whether a key begins its line, at an indentation of spaces.
func (d *document) alone(key *yaml.Node, indent int) bool {
	at, ok := d.offset(key.Line, key.Column)
	return ok && at == indent && strings.Trim(d.lines[key.Line-1].text[:at], " ") == ""
}

// fill gives a key without a value one.
func (e *edit) fill(m, key, v *yaml.Node, t *tree) error {
	if m.Style&yaml.FlowStyle != 0 || v.Value != "" || e.end(key, key.Column-1) != key.Line {
		return unsafeAt(key, key.Value+" has no value there")
	}
	indent := key.Column - 1
	ins := e.block(indent, key.Value, t)[1:]
	if len(ins) == 0 {
		return unsafeAt(key, key.Value+" has no value there")
	}
	margin := ins[0][:len(ins[0])-len(strings.TrimLeft(ins[0], " "))]
	e.put(key.Line, 0, len(margin), ins)
	return nil
}

// extend adds items to a list.
func (e *edit) extend(key, v *yaml.Node, t *tree) error {
	if v.Kind == yaml.SequenceNode && len(v.Content) > 0 { // In quotes where the others are.
		for i, item := range t.items {
			if plain := item.scalar; plain != "" && plain[0] != '"' {
				switch last := v.Content[len(v.Content)-1]; {
				case last.Style&yaml.DoubleQuotedStyle != 0:
					t.items[i] = scalar(quoted(plain))
				case last.Style&yaml.SingleQuotedStyle != 0 && !strings.Contains(plain, "'"):
					t.items[i] = scalar("'" + plain + "'")
				}
			}
		}
	}
	switch {
	case v.Kind != yaml.SequenceNode:
		return unsafeAt(v, key.Value+" is no list there")
	case v.Style&yaml.FlowStyle != 0:
		var parts []string
		for _, item := range t.items {
			parts = append(parts, item.flow())
		}
		return e.inFlow(v, strings.Join(parts, ", "))
	}
	last := v.Content[len(v.Content)-1]
	dash, ok := e.dash(last)
	if !ok {
		return unsafeAt(last, "its items do not begin lines of their own")
	}
	var ins []string
	for _, item := range t.items {
		ins = append(ins, e.item(dash, item)...)
	}
	e.put(e.end(last, dash), 0, dash, ins)
	return nil
}

// inFlow adds to a mapping or list that stands in brackets on one line.
func (e *edit) inFlow(n *yaml.Node, added string) error {
	from, to, ok := e.brackets(n)
	if !ok {
		return unsafeAt(n, "it stands in brackets over several lines")
	}
	old := e.lines[n.Line-1].text
	inside := strings.TrimRight(old[from+1:to], " ")
	blank := old[from+1+len(inside) : to]
	switch {
	case strings.TrimSpace(inside) == "":
		inside, blank = "", ""
	case strings.HasSuffix(inside, ","):
		inside += " "
	default:
		inside += ", "
	}
	e.put(n.Line-1, 1, len(old)-len(strings.TrimLeft(old, " ")), []string{old[:from+1] + inside + added + blank + old[to:]})
	return nil
}

// brackets are the bytes of a line where a mapping or list in brackets begins and ends.
func (d *document) brackets(n *yaml.Node) (from, to int, ok bool) {
	from, ok = d.offset(n.Line, n.Column)
	if !ok {
		return 0, 0, false
	}
	text := d.lines[n.Line-1].text
	if n.Anchor != "" {
		from += max(strings.IndexAny(text[from:], "{["), 0)
	}
	if !strings.ContainsRune("{[", rune(text[from])) {
		return 0, 0, false
	}
	depth := 0
	for i := from; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'':
			if i > 0 && !strings.ContainsRune(" {[,:", rune(text[i-1])) {
				continue // Within a plain word.
			}
			end := closing(text, i)
			if end < 0 {
				return 0, 0, false
			}
			i = end
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return from, i, true
			}
		case '#':
			if text[i-1] == ' ' {
				return 0, 0, false
			}
		}
	}
	return 0, 0, false
}

// closing is where the quoted string ends that begins at a byte; -1 where it does not.
func closing(text string, at int) int {
	for i := at + 1; i < len(text); i++ {
		switch {
		case text[at] == '"' && text[i] == '\\':
			i++
		case text[i] != text[at]:
		case text[at] == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
		default:
			return i
		}
	}
	return -1
}

// replace replaces a scalar, in the same quotes.
func (e *edit) replace(n *yaml.Node, by string) error {
	from, to, ok := e.scalarAt(n)
	if !ok {
		return unsafeAt(n, "its value has another form there")
	}
	old := e.lines[n.Line-1].text
	if plain, err := strconv.Unquote(by); err == nil && n.Style&yaml.SingleQuotedStyle != 0 && !strings.Contains(plain, "'") {
		by = "'" + plain + "'"
	}
	e.put(n.Line-1, 1, len(old)-len(strings.TrimLeft(old, " ")), []string{old[:from] + by + old[to:]})
	return nil
}

// scalarAt are the bytes of a line where a scalar begins and ends.
func (d *document) scalarAt(n *yaml.Node) (from, to int, ok bool) {
	from, ok = d.offset(n.Line, n.Column)
	if !ok || n.Anchor != "" || n.Kind != yaml.ScalarNode {
		return 0, 0, false
	}
	text := d.lines[n.Line-1].text
	switch {
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		if text[from] != '"' && text[from] != '\'' {
			return 0, 0, false
		}
		end := closing(text, from)
		return from, end + 1, end > 0
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0 || n.Value == "":
		return 0, 0, false
	}
	to = from + len(n.Value)
	if !strings.HasPrefix(text[from:], n.Value) || strings.Trim(text[to:], " ") != "" && !strings.ContainsRune(" ,}]", rune(text[to])) {
		return 0, 0, false
	}
	return from, to, true
}

// remove removes an item of a list, or a key with its value, that stands on lines of its
// own. The key above it goes with the last one.
func (e *edit) remove(n *yaml.Node, indent int, above, holder *yaml.Node) error {
	begin, end := n.Line-1, e.end(n, indent)
	first := e.lines[begin].text
	if strings.TrimLeft(first[:min(indent, len(first))], " ") != "" {
		return errUnsafe{begin, "it does not stand on a line of its own"}
	}
	single := holder.Kind == yaml.SequenceNode && len(holder.Content) == 1 || holder.Kind == yaml.MappingNode && len(holder.Content) == 2
	if single {
		if above == nil || holder.Anchor != "" || !e.alone(above, above.Column-1) {
			return errUnsafe{begin, "nothing would be left of what holds it"}
		}
		begin, end = above.Line-1, e.end(above, above.Column-1)
	}
	e.splice(e.removal(begin, end-begin, e.want, e.where))
	return nil
}
