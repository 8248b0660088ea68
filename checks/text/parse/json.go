package parse

import (
	"cmp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// The bounds of a JSON document among the lines of a text.
const (
	maxJSONLines = 200000
	maxJSONBytes = 32 << 20
)

// jsonQuotes follows the strings of a document.
type jsonQuotes struct{ inside, escaped bool }

// outside takes the next byte, and reports whether it belongs to no string.
func (q *jsonQuotes) outside(c byte) bool {
	switch {
	case q.escaped:
		q.escaped = false
	case q.inside && c == '\\':
		q.escaped = true
	case c == '"':
		q.inside = !q.inside
	default:
		return !q.inside
	}
	return false
}

// IsJSON reports whether a line may be one of a JSON document.
func IsJSON(line string) bool { return jsonLine.MatchString(line) }

var jsonLine = lazy.New(`^\s*(?:[{}\[\]",:0-9-]|(?:true|false|null|NaN)\b|$)`)

// JSONDocument takes the lines of a JSON object, to the one in which its last brace closes, and returns it. An opening
// brace that stood in a line before is put back, and a line that is not of JSON cuts the end off.
func JSONDocument(in *Lines) string {
	var text strings.Builder
	var quotes jsonQuotes
	depth, opened := 0, false
	if first, _ := in.Peek(); strings.IndexAny(strings.TrimSpace(first.Text), "{[") != 0 {
		text.WriteByte('{')
		depth, opened = 1, true
	}
	for n := 0; n < maxJSONLines && text.Len() < maxJSONBytes; n++ {
		l, ok := in.Peek()
		if !ok || !quotes.inside && !IsJSON(l.Text) {
			break
		}
		in.Next()
		for i, c := range []byte(l.Text) {
			switch {
			case !quotes.outside(c):
			case c == '{' || c == '[':
				depth++
				opened = true
			case c == '}' || c == ']':
				depth--
			}
			if opened && depth <= 0 {
				text.WriteString(l.Text[:i+1])
				return text.String()
			}
		}
		text.WriteString(l.Text)
		text.WriteByte('\n')
	}
	return text.String()
}

// JSONClosed makes a document of one whose end was cut off: it ends after the
// last value that is whole, and what is open there is closed.
func JSONClosed(text string) string {
	var open, whole []byte
	var quotes jsonQuotes
	at := 0
	for i := range len(text) {
		c := text[i]
		switch {
		case !quotes.outside(c):
		case c == '{' || c == '[':
			if len(open) >= maxJSONDepth {
				return text
			}
			open = append(open, c)
			at, whole = i+1, append(whole[:0], open...)
		case c == '}' || c == ']':
			open = open[:max(0, len(open)-1)]
			at, whole = i+1, append(whole[:0], open...)
		case c == ',':
			at, whole = i, append(whole[:0], open...)
		}
	}
	var b strings.Builder
	b.WriteString(text[:at])
	for _, c := range slices.Backward(whole) {
		b.WriteByte(c + 2) // '[' and ']', '{' and '}' lie two apart.
	}
	return b.String()
}

// maxJSONDepth bounds how deep a document is followed.
const maxJSONDepth = 200

// JSONNodes reads a JSON document for the lines of its parts. JSON is
// YAML, but for tabs. What is no document gives nothing.
func JSONNodes(text string) *yaml.Node {
	var n yaml.Node
	if yaml.Unmarshal([]byte(strings.ReplaceAll(text, "\t", " ")), &n) != nil || len(n.Content) == 0 {
		return nil
	}
	return n.Content[0]
}

// YAMLBelow follows keys into a document, as Go's JSON reads them: their case does not matter.
func YAMLBelow(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		var next *yaml.Node
		if n = YAMLResolve(n); n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if strings.EqualFold(n.Content[i].Value, key) {
				next = n.Content[i+1]
			}
		}
		n = next
	}
	return YAMLResolve(n)
}

// YAMLItems are the entries of a list.
func YAMLItems(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// YAMLResolve follows an alias.
func YAMLResolve(n *yaml.Node) *yaml.Node {
	for range 8 {
		if n == nil || n.Kind != yaml.AliasNode {
			return n
		}
		n = n.Alias
	}
	return nil
}

// maxMerged bounds the entries that "<<" merges into one mapping: the same anchor may be merged many times.
const maxMerged = 10000

// YAMLMapping returns the entries of a mapping, those that "<<" merges in among them.
func YAMLMapping(n *yaml.Node) map[string]*yaml.Node {
	if n = YAMLResolve(n); n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	return yamlMerged(n, 0, new(maxMerged))
}

// yamlMerged returns the entries of a mapping, or of those in a list, of which the first one counts.
func yamlMerged(n *yaml.Node, depth int, left *int) map[string]*yaml.Node {
	n = YAMLResolve(n)
	if n == nil || depth > 4 || depth > 0 && *left < len(n.Content) {
		return nil
	}
	if depth > 0 {
		*left -= len(n.Content)/2 + 1
	}
	m := make(map[string]*yaml.Node, len(n.Content)/2)
	for i, c := range n.Content {
		key := "<<"
		if n.Kind == yaml.MappingNode {
			key = n.Content[i-i%2].Value
		}
		switch {
		case n.Kind == yaml.MappingNode && i%2 == 0:
		case key != "<<":
			m[key] = YAMLResolve(c)
		default:
			for name, value := range yamlMerged(c, depth+1, left) {
				m[name] = cmp.Or(m[name], value)
			}
		}
	}
	return m
}

// YAMLText is a plain value; empty if n is not one.
func YAMLText(n *yaml.Node) string {
	if n = YAMLResolve(n); n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}
