package patch

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

const (
	// maxDepth bounds how deep a document is followed.
	maxDepth = 60
	// maxSpan bounds a line that is changed, and maxQuoted a value in quotes on it.
	maxSpan   = 64 << 10
	maxQuoted = 4 << 10
)

// document is a YAML file with the lines on which its parts stand.
type document struct {
	*file
	roots []*yaml.Node
	// limits are, by node, the line before which it ends, counted from 0.
	limits map[*yaml.Node]int
	// step is by how much a mapping is indented below its key, and listStep a list.
	step, listStep int
	// referred are the nodes to which aliases point.
	referred map[*yaml.Node]bool
	// place is the key of the container that is changed.
	place string
}

// fail notes that the setting is left to a person, because of a node.
func (d *document) fail(n *yaml.Node, note string) bool {
	d.byHand(n.Line-1, note)
	return false
}

// invalid is the error of a file that does not parse.
func invalid(detail string) error {
	return &Error{"it is not valid YAML: " + detail, []string{"correct it first"}}
}

// parseYAML reads the documents of a file.
func parseYAML(f *file) (*document, error) {
	for i, l := range f.lines {
		if strings.ContainsAny(l.text, "\r\u0085\u2028\u2029") {
			return nil, invalid("line " + strconv.Itoa(i+1) + " has a line end of another kind")
		}
	}
	d := &document{file: f, limits: map[*yaml.Node]int{}, listStep: -1, referred: map[*yaml.Node]bool{}}
	for decoder := yaml.NewDecoder(strings.NewReader(f.body())); ; {
		var n yaml.Node
		if err := decoder.Decode(&n); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, invalid(err.Error())
		}
		d.roots = append(d.roots, n.Content...)
	}
	for _, root := range d.roots {
		d.measure(root, len(f.lines))
	}
	if d.step = cmp.Or(d.step, 2); d.listStep < 0 {
		d.listStep = 2
	}
	return d, nil
}

// measure notes where the parts of a node end, and how the file is indented.
func (d *document) measure(n *yaml.Node, limit int) {
	if n.Kind == yaml.AliasNode {
		d.referred[n.Alias] = true
	}
	size := 1
	if n.Kind == yaml.MappingNode {
		size = 2
	}
	for i, c := range n.Content {
		d.limits[c] = limit
		if next := i - i%size + size; next < len(n.Content) {
			d.limits[c] = n.Content[next].Line - 1
		}
		if i%size == 1 && len(c.Content) > 0 && c.Style&yaml.FlowStyle == 0 {
			by := c.Content[0].Column - n.Content[i-1].Column
			switch dash, ok := d.dash(c.Content[0]); {
			case c.Kind == yaml.MappingNode && d.step == 0 && c.Content[0].Line > n.Content[i-1].Line:
				d.step = max(by, 0)
			case c.Kind == yaml.SequenceNode && d.listStep < 0 && ok:
				d.listStep = max(dash-n.Content[i-1].Column+1, 0)
			}
		}
		d.measure(c, d.limits[c])
	}
}

// before is what stands before a node on its line.
func (d *document) before(n *yaml.Node) string {
	if n.Line < 1 || n.Line > len(d.lines) {
		return ""
	}
	text, column := d.lines[n.Line-1].text, 1
	for i := range text {
		if column == n.Column {
			return text[:i]
		}
		column++
	}
	return text
}

// isFirst reports whether nothing stands before a node on its line.
func (d *document) isFirst(n *yaml.Node) bool { return strings.Trim(d.before(n), " ") == "" }

// dash is the column of the dash before an item, counted from 0.
func (d *document) dash(item *yaml.Node) (int, bool) {
	before := strings.TrimRight(d.before(item), " ")
	return len(before) - 1, strings.HasSuffix(before, "-") && strings.Trim(before, " -") == ""
}

// end is the line after the last one of a key's value or an item, which stands at an
// indentation. Comments that are indented more belong to it, as lines of a text do.
func (d *document) end(n *yaml.Node, indent int) int {
	end := n.Line
	for at := n.Line; at < d.limits[n]; at++ {
		text := d.lines[at].text
		if strings.HasPrefix(text, "---") || strings.HasPrefix(text, "...") { // The document ends.
			break
		}
		if t := strings.TrimSpace(text); t != "" && (t[0] != '#' || len(marginOf(text)) > indent) {
			end = at + 1
		}
	}
	return end
}

// block writes a value over several lines, indented.
func (d *document) block(n *yaml.Node, indent int) (all []string) {
	margin := strings.Repeat(" ", indent)
	switch n.Kind {
	case yaml.SequenceNode:
		for _, item := range n.Content {
			lines := d.block(item, indent+2)
			all = append(append(all, margin+"- "+lines[0][indent+2:]), lines[1:]...)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, v := margin+n.Content[i].Value+":", n.Content[i+1]
			switch v.Kind {
			case yaml.SequenceNode:
				all = append(append(all, key), d.block(v, indent+d.listStep)...)
			case yaml.MappingNode:
				all = append(append(all, key), d.block(v, indent+d.step)...)
			default:
				all = append(all, key+" "+d.block(v, 0)[0])
			}
		}
	default:
		if n.Style&yaml.DoubleQuotedStyle != 0 {
			return []string{margin + strconv.Quote(n.Value)}
		}
		return []string{margin + n.Value}
	}
	return all
}

// put proposes lines, below the reason. That of a line that is changed stands above it.
func (d *document) put(at, del int, margin string, ins []string) bool {
	place := d.place
	if del > 0 {
		place = strconv.Itoa(d.origin(at))
	}
	d.propose(place, at, margin, &splice{at: at, del: del, ins: ins})
	return true
}

// putBlock proposes to add a value that is given in brackets, without the first lines of it.
func (d *document) putBlock(at, indent int, text string, without int) bool {
	var n yaml.Node
	var ins []string
	if err := yaml.Unmarshal([]byte(text), &n); err == nil && len(n.Content) > 0 {
		ins = d.block(n.Content[0], indent)
	}
	if len(ins) <= without {
		d.byHand(at-1, "its value has another form there")
		return false
	}
	return d.put(at, 0, marginOf(ins[without]), ins[without:])
}

// own is the own key and value of a mapping, the last one of the name; nil where it has none.
func own(m *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; m != nil && m.Kind == yaml.MappingNode && i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name && m.Content[i].Tag != "!!merge" {
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

// set makes a mapping have a value at a path of keys, whatever it has of it: a scalar is
// replaced, items are added to a list. The value is YAML on one line. It reports whether that could be done.
func (d *document) set(m *yaml.Node, by string, path ...string) bool {
	d.place = path[0]
	var read yaml.Node
	if yaml.Unmarshal([]byte(by), &read) != nil || len(read.Content) == 0 {
		return d.fail(m, "its value cannot be written there")
	}
	for i, name := range path {
		if m.Kind != yaml.MappingNode {
			return d.fail(m, path[max(i-1, 0)]+" is no mapping there")
		}
		nested := by
		for _, name := range slices.Backward(path[i+1:]) {
			nested = "{" + name + ": " + nested + "}"
		}
		key, v := own(m, name)
		isLast, isScalar := i == len(path)-1, !strings.HasPrefix(nested, "{") && !strings.HasPrefix(nested, "[")
		switch {
		case key == nil && !isScalar && value(m, name) != nil:
			return d.fail(m, name+" is merged in from another part of the file")
		case key == nil:
			return d.add(m, name+": "+nested)
		case v.Kind == yaml.AliasNode:
			return d.fail(v, name+" is an alias of another part of the file")
		case v.Anchor != "" && d.referred[v]:
			return d.fail(v, name+" is also used by other parts of the file")
		case v.Kind == yaml.ScalarNode && v.Tag == "!!null" && !isScalar:
			return d.fill(m, key, v, nested)
		case isLast && strings.HasPrefix(by, "["):
			return d.extend(key, v, by[1:len(by)-1])
		case isLast && v.Kind == yaml.ScalarNode:
			return d.replace(v, by)
		case isLast:
			return d.fail(v, name+" has another form there")
		}
		m = v
	}
	return true
}

// add adds a key with its value to a mapping.
func (d *document) add(m *yaml.Node, entry string) bool {
	if m.Style&yaml.FlowStyle != 0 {
		return d.inFlow(m, entry)
	}
	if len(m.Content) == 0 {
		return d.fail(m, "it is empty there")
	}
	first, last := m.Content[0], m.Content[len(m.Content)-2]
	indent := first.Column - 1
	if last != first && !d.isFirst(last) {
		return d.fail(last, "its keys do not begin lines of their own")
	}
	return d.putBlock(d.end(last, indent), indent, "{"+entry+"}", 0)
}

// fill gives a key without a value one.
func (d *document) fill(m, key, v *yaml.Node, by string) bool {
	indent := key.Column - 1
	if m.Style&yaml.FlowStyle != 0 || v.Value != "" || d.end(key, indent) != key.Line {
		return d.fail(key, key.Value+" has no value there")
	}
	return d.putBlock(key.Line, indent, "{"+key.Value+": "+by+"}", 1)
}

// extend adds an item to a list, in quotes where the last one is.
func (d *document) extend(key, v *yaml.Node, item string) bool {
	if v.Kind != yaml.SequenceNode {
		return d.fail(v, key.Value+" is no list there")
	}
	last := v
	if len(v.Content) > 0 {
		last = v.Content[len(v.Content)-1]
	}
	if !strings.HasPrefix(item, "{") && !strings.HasPrefix(item, `"`) && last.Kind == yaml.ScalarNode {
		item = quotedAs(last, strconv.Quote(item), item)
	}
	if v.Style&yaml.FlowStyle != 0 {
		return d.inFlow(v, item)
	}
	dash, ok := d.dash(last)
	if !ok {
		return d.fail(last, "its items do not begin lines of their own")
	}
	return d.putBlock(d.end(last, dash), dash, "["+item+"]", 0)
}

// quotedAs is a text in the quotes that a scalar has, else as it is otherwise.
func quotedAs(n *yaml.Node, quoted, otherwise string) string {
	plain, err := strconv.Unquote(quoted)
	switch {
	case err == nil && n.Style&yaml.SingleQuotedStyle != 0 && !strings.Contains(plain, "'"):
		return "'" + plain + "'"
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return quoted
	}
	return otherwise
}

// inFlow adds to a mapping or list that stands in brackets on one line.
func (d *document) inFlow(n *yaml.Node, added string) bool {
	from, to, ok := d.span(n)
	if !ok {
		return d.fail(n, "it stands in brackets over several lines")
	}
	old := d.lines[n.Line-1].text
	inside := strings.TrimRight(old[from:to-1], " ")
	blank := old[from+len(inside) : to-1]
	switch {
	case len(n.Content) == 0:
		blank = ""
	case strings.HasSuffix(inside, ","):
		inside += " "
	default:
		inside += ", "
	}
	return d.put(n.Line-1, 1, marginOf(old), []string{old[:from] + inside + added + blank + old[to-1:]})
}

// span are the bytes of a line where a value begins and ends that stands on one line.
func (d *document) span(n *yaml.Node) (from, to int, ok bool) {
	from = len(d.before(n))
	at := from
	if n.Anchor != "" {
		at += len("&" + n.Anchor + " ")
	}
	if n.Line > len(d.lines) || at >= len(d.lines[n.Line-1].text) || len(d.lines[n.Line-1].text) > maxSpan {
		return 0, 0, false
	}
	text := d.lines[n.Line-1].text
	switch {
	case n.Kind == yaml.AliasNode:
		return from, at + len("*"+n.Value), true
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		for to := at + 2; to <= min(len(text), at+maxQuoted); to++ {
			var read string
			if text[to-1] == text[at] && yaml.Unmarshal([]byte(text[at:to]), &read) == nil && read == n.Value {
				return from, to, true
			}
		}
		return 0, 0, false
	case n.Kind == yaml.ScalarNode:
		return from, at + len(n.Value), n.Style == 0 && strings.HasPrefix(text[at:], n.Value)
	case len(n.Content) == 0:
		at++
	default:
		last := n.Content[len(n.Content)-1]
		if _, at, ok = d.span(last); !ok || last.Line != n.Line {
			return 0, 0, false
		}
	}
	rest := strings.TrimLeft(text[at:], " ,")
	isClosed := strings.HasPrefix(rest, map[yaml.Kind]string{yaml.MappingNode: "}", yaml.SequenceNode: "]"}[n.Kind])
	return from, len(text) - len(rest) + 1, isClosed && n.Style&yaml.FlowStyle != 0
}

// replace replaces a scalar, in the same quotes.
func (d *document) replace(n *yaml.Node, by string) bool {
	from, to, ok := d.span(n)
	if !ok || n.Anchor != "" || to == from {
		return d.fail(n, "its value has another form there")
	}
	if n.Style&yaml.SingleQuotedStyle != 0 {
		by = quotedAs(n, by, by)
	}
	old := d.lines[n.Line-1].text
	return d.put(n.Line-1, 1, marginOf(old), []string{old[:from] + by + old[to:]})
}

// cut removes an item of a list, or a key with its value, that stands on lines of its
// own. The key above it goes with the last one.
func (d *document) cut(n *yaml.Node, above, holder *yaml.Node) bool {
	size, indent, ok := 2, n.Column-1, d.isFirst(n)
	if holder.Kind == yaml.SequenceNode {
		size = 1
		if indent, ok = d.dash(n); ok {
			ok = n.Kind != yaml.AliasNode && strings.Trim(d.lines[n.Line-1].text[:indent], " ") == ""
		}
	}
	if _, v := own(holder, n.Value); !ok || holder.Style&yaml.FlowStyle != 0 || n.Anchor != "" || size == 2 && v.Anchor != "" {
		return d.fail(n, "it does not stand on a line of its own")
	}
	begin, end := n.Line-1, d.end(n, indent)
	if len(holder.Content) == size {
		if above == nil || holder.Anchor != "" || !d.isFirst(above) {
			return d.fail(n, "nothing would be left of what holds it")
		}
		begin, end = above.Line-1, d.end(above, above.Column-1)
	}
	d.remove(begin, end-begin)
	return true
}
