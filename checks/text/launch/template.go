package launch

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
)

// This file reads descriptions in YAML that are not filled in (Helm, Jinja): expressions stand for values.

func isTemplated(text string) bool {
	return strings.Contains(text, "{{") || strings.Contains(text, "{%")
}

// yamlTemplate is a line of the template's own: "{{- if .Values.shm }}". What stands behind it may not be there.
var yamlTemplate = lazy.New(`^\s*\{[{%#]`)

// templateValue is a key or an entry of a list with a value that has expressions in it.
var templateValue = lazy.New(`^(\s*(?:- )*(?:[\w."'/-]+: +|- +)?)([^\s].*)$`)

// quotedExpressions is a line with its expressions in quotes, as YAML has texts.
func quotedExpressions(text string) string {
	m := templateValue.FindStringSubmatch(text)
	if m == nil || !isTemplated(text) || strings.ContainsRune(`"'[#`, rune(m[2][0])) {
		return text
	}
	return m[1] + "'" + strings.ReplaceAll(m[2], "'", "''") + "'"
}

// replaceAsCompose replaces in all values what Docker Compose does.
func replaceAsCompose(n *yaml.Node, depth int) {
	for _, child := range n.Content {
		if child.Kind == yaml.ScalarNode {
			child.Value = shell.Compose(child.Value)
		} else if depth < maxDepth {
			replaceAsCompose(child, depth+1)
		}
	}
}
