package launch

import (
	"cmp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/launch/values"
)

// template is a description in YAML that is not filled in (Helm, Jinja): what stands in it
// may be YAML, and its expressions stand for values.
type template struct {
	// depth is how many branches and loops are open, and veiled are the lines in them.
	depth  int
	veiled map[int]bool
	// rest is the first line that may be filled in with anything.
	rest string
}

func newTemplate() *template { return &template{veiled: map[int]bool{}} }

var (
	templated = lazy.New(`\{\{|\{%`)
	// templateBegins and templateEnds are lines that begin or end a branch or a loop.
	templateBegins = lazy.New(`^\s*\{[{%]-?\s*(?:if|range|with|for|block|define)\b`)
	templateEnds   = lazy.New(`^\s*\{[{%]-?\s*end(?:if|for|with)?\b`)
	// templateSilent are lines that are filled in with nothing: "else", comments, assignments.
	templateSilent = lazy.New(`^\s*(?:\{[{%]-?\s*(?:else|elif|elsif|/\*|set\b|import\b|from\b|\$\w+\s*:?=)|\{#)`)
	// templateValue is a key or an entry of a list with a value that has expressions in it.
	templateValue = lazy.New(`^(\s*(?:- )*(?:[\w."'/-]+: +|- +)?)([^\s].*)$`)
)

// line is a line as YAML, by its number in the description. Lines of the template's own are
// empty, and its expressions are quoted.
func (t *template) line(text string, number int) string {
	if !templated.MatchString(text) && !strings.HasPrefix(strings.TrimSpace(text), "{#") {
		t.veiled[number] = t.depth > 0
		return text
	}
	switch {
	case templateEnds.MatchString(text):
		t.depth = max(t.depth-1, 0)
		return ""
	case templateBegins.MatchString(text):
		t.depth++
		return ""
	case templateSilent.MatchString(text):
		return ""
	case yamlTemplate.MatchString(text):
		t.rest = cmp.Or(t.rest, strings.TrimSpace(text))
		return ""
	}
	t.veiled[number] = t.depth > 0
	m := templateValue.FindStringSubmatch(text)
	if m == nil || m[2][0] == '"' || m[2][0] == '\'' || m[2][0] == '[' || m[2][0] == '#' {
		return text
	}
	return m[1] + "'" + strings.ReplaceAll(m[2], "'", "''") + "'"
}

// veil makes expressions of the values in branches and loops: whether they hold is not known.
func (t *template) veil(n *yaml.Node, depth int) {
	if n == nil || depth > maxDepth {
		return
	}
	for i, child := range n.Content {
		isKey := n.Kind == yaml.MappingNode && i%2 == 0
		if child.Kind != yaml.ScalarNode {
			t.veil(child, depth+1)
		} else if !isKey && t.veiled[child.Line] && !values.Refers(child.Value) {
			name, value, ok := assignment(child.Value)
			if ok {
				name += "="
			} else {
				name, value = "", child.Value
			}
			child.Value = name + "{{" + value + "}}"
		}
	}
}

// composed replaces what Docker Compose does in the values of a description.
func composed(n *yaml.Node, depth int) {
	if n == nil || depth > maxDepth {
		return
	}
	if n.Kind == yaml.ScalarNode {
		n.Value = values.Compose(n.Value)
	}
	for _, child := range n.Content {
		composed(child, depth+1)
	}
}
