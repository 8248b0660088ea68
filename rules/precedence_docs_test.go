package rules

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

const precedenceIntro = `# Which finding is told, and which goes under another

The metadata of rules declares it (docs/rules.md, "explains" and "first_of"), and package rules applies it. This page is made from it by TestGoldenPrecedence.

## Causes and consequences

An arrow leads from a rule to those whose findings are its consequences: such a finding stands under its cause, if both concern the same GPU or one of them the whole
host. Words on an arrow are the kinds of findings that alone count, of the cause and of the consequence.

` + "```mermaid\nflowchart LR\n"

// TestGoldenPrecedence draws the precedence of the built-in rules.
func TestGoldenPrecedence(t *testing.T) {
	var b strings.Builder
	b.WriteString(precedenceIntro)
	set := wholeSet(t)
	for _, rule := range set.rules {
		for _, e := range rule.explanations() {
			arrow := "-->"
			_, own, _ := strings.Cut(e.cause, "/")
			_, other, _ := strings.Cut(e.effect, "/")
			if own != "" || other != "" {
				arrow = fmt.Sprintf(`-- "%s" -->`, strings.Trim(own+" > "+other, " >"))
				if own != "" && other == "" {
					arrow = fmt.Sprintf(`-- "%s > all" -->`, own)
				}
			}
			fmt.Fprintf(&b, "  %s %s %s\n", ruleOf(e.cause), arrow, ruleOf(e.effect))
		}
	}
	b.WriteString("```\n\n## The first that holds\n\nOf these kinds of a rule's findings only those of the first that holds are told. A rule may have several such lists.\n\n| rule | kinds, the first that holds first |\n| --- | --- |\n")
	for _, rule := range set.rules {
		for _, list := range rule.firstOf() {
			if len(list) == 0 {
				continue
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", rule.ID, "`"+strings.Join(list, "`, `")+"`")
		}
	}
	b.WriteString("\n## Last resorts\n\nThese say only that something failed, and go under whatever names a cause: ")
	listed := func(is func(Rule) bool) string {
		var ids []string
		for _, rule := range set.rules {
			if is(rule) {
				ids = append(ids, "`"+rule.ID+"`")
			}
		}
		slices.Sort(ids)
		return strings.Join(ids, ", ") + ".\n"
	}
	b.WriteString(listed(func(r Rule) bool { return r.LastResort || r.Unexplained }))
	b.WriteString("\n## Failures with a log\n\nThese report a failure in which the probe's own library wrote a log, and go under a finding that quotes a cause from it: ")
	b.WriteString(listed(func(r Rule) bool { return r.OwnLog }))
	expect.Golden(t, filepath.Join("..", "docs", "precedence.md"), []byte(b.String()))
}

// TestKindsExist checks that every kind of finding which first_of and explains name is one
// that the rule has: in its own file, in a library, or in the verdict of a row.
func TestKindsExist(t *testing.T) {
	t.Parallel()
	set := wholeSet(t)
	written := map[string]map[string]bool{} // The texts in each file, and in libraries under "".
	for file, m := range set.modules {
		if strings.HasPrefix(file, "lib/") {
			file = ""
		}
		if written[file] == nil {
			written[file] = map[string]bool{}
		}
		ast.WalkTerms(m, func(term *ast.Term) bool {
			if text, ok := term.Value.(ast.String); ok {
				written[file][string(text)] = true
			}
			return false
		})
	}
	told := map[string]bool{}
	for _, v := range message.Templates() {
		told[v.Rule+"/"+v.ID] = true
	}
	for _, s := range data.Experiments().Switches {
		told["control-experiment/"+s.Causes[0]] = true
	}
	named := 0
	exists := func(key string) {
		rule, kind, narrowed := strings.Cut(key, "/")
		if !narrowed {
			return
		}
		named++
		of, ok := set.Rule(rule)
		expect.That(t, ok && (told[key] || written[of.File][kind] || written[""][kind]), "%s has no findings with the id %s", rule, kind)
	}
	for _, rule := range set.rules {
		for _, e := range rule.explanations() {
			exists(e.cause)
			exists(e.effect)
		}
		for _, kind := range slices.Concat(rule.firstOf()...) {
			exists(rule.ID + "/" + kind)
		}
	}
	expect.AtLeast(t, 20, named, "kinds are named")
}
