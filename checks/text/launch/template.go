package launch

import (
	"cmp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
)

// template is a description in YAML that is not filled in (Helm, Jinja): what stands in it
// may be YAML, and its expressions stand for shell.
type template struct {
	// depth is how many branches and loops are open, and veiled are the lines in them.
	depth  int
	veiled map[int]bool
	// rest is the first line that may be filled in with anything.
	rest string
}

func newTemplate() *template { return &template{veiled: map[int]bool{}} }

// isTemplated reports whether a text has an expression or a statement of a template.
func isTemplated(text string) bool {
	return strings.Contains(text, "{{") || strings.Contains(text, "{%")
}

var (
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
	if !strings.Contains(text, "{") || !yamlTemplate.MatchString(text) {
		t.veiled[number] = t.depth > 0
		if !isTemplated(text) {
			return text
		}
		m := templateValue.FindStringSubmatch(text)
		if m == nil || strings.ContainsRune(`"'[#`, rune(m[2][0])) {
			return text
		}
		return m[1] + "'" + strings.ReplaceAll(m[2], "'", "''") + "'"
	}
	switch {
	case templateEnds.MatchString(text):
		t.depth = max(t.depth-1, 0)
	case templateBegins.MatchString(text):
		t.depth++
	case !templateSilent.MatchString(text):
		t.rest = cmp.Or(t.rest, strings.TrimSpace(text))
	}
	return ""
}

// fill makes expressions of the values in branches and loops: whether they hold is not known. In what Docker
// Compose reads, it replaces what that does.
func (t *template) fill(n *yaml.Node, compose bool, depth int) {
	for i, child := range n.Content {
		if child.Kind != yaml.ScalarNode && depth < maxDepth {
			t.fill(child, compose, depth+1)
		}
		isKey := n.Kind == yaml.MappingNode && i%2 == 0
		if child.Kind == yaml.ScalarNode && !isKey && t.veiled[child.Line] && !shell.Refers(child.Value) {
			name, value, ok := assignment(child.Value)
			if ok {
				child.Value = name + "={{" + value + "}}"
			} else {
				child.Value = "{{" + child.Value + "}}"
			}
		}
		if child.Kind == yaml.ScalarNode && compose {
			child.Value = shell.Compose(child.Value)
		}
	}
}
