package shell

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// This file replaces references to variables whose value a text states, and recognizes the others.

// State is what is known of a variable.
type State uint8

const (
	// Unset variables are assigned nowhere above: a default applies.
	Unset State = iota
	// Known variables have the value that the file states.
	Known
	// Unknown variables are assigned, and the file does not show what: in a branch or a loop, or by a command.
	Unknown
)

// Lookup returns the value of a variable.
type Lookup func(name string) (value string, state State)

// Or asks another lookup for what a first one does not set.
func (l Lookup) Or(other Lookup) Lookup {
	return func(name string) (string, State) {
		if value, state := l(name); state != Unset {
			return value, state
		}
		return other(name)
	}
}

const (
	// maxNesting bounds how deep defaults are nested ("${A:-${B:-8}}").
	maxNesting = 8
	maxText    = 64 << 10
)

// Refers reports whether a text depends on something that it does not show: a variable or
// a command of a shell, or an expression of a template.
func Refers(text string) bool {
	return strings.Contains(text, "`") || strings.Contains(text, "{{") || strings.Contains(text, "{%") || reference.MatchString(text)
}

// reference is a dollar sign that a shell, Compose or Kubernetes replaces.
var reference = lazy.New(`\$[A-Za-z_0-9@*#?({]`)

// Compose is a text with what Docker Compose replaces in it: defaults, and the two dollar signs that stand for one.
func Compose(text string) string {
	if !strings.Contains(text, "$") {
		return text
	}
	parts := strings.Split(text, "$$")
	for i, part := range parts {
		parts[i] = Expand(part, func(string) (string, State) { return "", Unset })
	}
	return strings.Join(parts, "$")
}

// Expand replaces the references to variables whose value is known, and those that have a
// default for variables that are not set. All others stay.
func Expand(text string, lookup Lookup) string { return expand(text, lookup, 0) }

func expand(text string, lookup Lookup, depth int) string {
	if depth > maxNesting {
		return text
	}
	var b strings.Builder
	for b.Len() <= maxText {
		before, _, found := strings.Cut(text, "$")
		b.WriteString(before)
		if text = text[len(before):]; !found {
			break
		}
		n, value := 1, "$"
		if !strings.HasSuffix(before, `\`) {
			n, value = one(text, lookup, depth)
		}
		b.WriteString(value)
		text = text[n:]
	}
	return b.String() + text
}

// one reads the reference at the beginning of a text: its length, and its value, or itself where that is not known.
func one(text string, lookup Lookup, depth int) (n int, value string) {
	if m := plain.FindString(text); m != "" {
		if value, state := lookup(m[1:]); state == Known {
			return len(m), value
		}
		return len(m), m
	}
	end := closing(text)
	if end < 0 {
		return 1, "$"
	}
	whole := text[:end+1]
	m := braced.FindStringSubmatch(whole)
	if m == nil { // "$(...)", "${A[@]}", "${A#b}" and others.
		return len(whole), whole
	}
	name, operator, word := m[1], m[2], m[3]
	value, state := lookup(name)
	byDefault := strings.HasSuffix(operator, "-") || strings.HasSuffix(operator, "=")
	switch {
	case state == Known && (value != "" || !strings.HasPrefix(operator, ":")) && !strings.HasSuffix(operator, "+"):
		return len(whole), value
	case byDefault && state != Unknown: // Not set, or empty.
		return len(whole), expand(strings.Trim(word, `"'`), lookup, depth+1)
	}
	return len(whole), whole
}

var (
	plain = lazy.New(`^\$[A-Za-z_][A-Za-z0-9_]*`)
	// braced is "${A}", with an operator and its word or without: ":-", "-", ":=", "=", ":?", "?", ":+", "+".
	braced = lazy.New(`^(?s)\$\{([A-Za-z_][A-Za-z0-9_]*|[0-9])(?:(:?[-=?+])(.*))?\}$`)
)

// closing is where the brace or parenthesis that follows the dollar sign of a text is closed; -1 where it is not.
func closing(text string) int {
	if len(text) < 2 || text[1] != '{' && text[1] != '(' {
		return -1
	}
	depth := 0
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '{', '(':
			depth++
		case '}', ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
