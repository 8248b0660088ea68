package rules

import (
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// compiledSet is the built-in rules, compiled for whatever facts come. The memory of tests that run beside it is not
// taken for that of its rules.
func compiledSet(tb testing.TB) *Set {
	tb.Helper()
	return expect.Value(compiledOnce())(tb)
}

// loaded are the built-in rules, compiled for no facts yet.
func loaded(tb testing.TB) *Set {
	tb.Helper()
	return expect.Value(Load())(tb)
}

// wholeSet are the built-in rules, all of them parsed.
func wholeSet(tb testing.TB) *Set {
	tb.Helper()
	return expect.Value(load(expect.Value(regoFiles(Files))(tb), nil))(tb)
}

// TestBuiltin checks that what is read of the built-in rules before they are parsed is what they say, and that
// each rule gets all packages that it refers to.
func TestBuiltin(t *testing.T) {
	t.Parallel()
	whole, lean := wholeSet(t), loaded(t)
	expect.NoDiff(t, whole.rules, lean.rules, "it")
	expect.NoDiff(t, whole.conditions, lean.conditions, "conditions")
	packages := map[string]bool{}
	for _, m := range whole.modules {
		packages[packageName(m)] = true
	}
	for _, rule := range whole.everything() {
		lean.builtin = &builtinRules{texts: lean.builtin.texts, fileOf: lean.builtin.fileOf, modules: map[string]*ast.Module{}}
		modules, err := lean.modulesOf([]Rule{rule})
		expect.Must(t, err == nil && len(modules) != 0 && len(modules) != len(whole.modules), "%s: %d of %d modules, %v", rule.ID, len(modules), len(whole.modules), err)
		has := map[string]bool{}
		for _, m := range modules {
			has[packageName(m)] = true
		}
		for file, m := range modules {
			ast.WalkRefs(m, func(ref ast.Ref) bool {
				words := strings.Split(ref.String(), ".")
				name := strings.Join(words[min(1, len(words)):min(4, len(words))], ".")
				expect.That(t, words[0] != "data" || !packages[name] || has[name], "%s: %s refers to %s, which is not parsed", rule.ID, file, ref)
				return false
			})
		}
	}
}

var compiledOnce = sync.OnceValues(func() (*Set, error) {
	s, err := Load()
	if err != nil {
		return nil, err
	}
	s.limits.heap = math.MaxUint64 / 2
	return s, s.keep(s.everything())
})

// TestUncheckedStages checks that the compiler would put no statement of a built-in rule in another order.
func TestUncheckedStages(t *testing.T) {
	t.Parallel()
	whole := wholeSet(t)
	compiled := func(skipped []ast.StageID) map[string]*ast.Module {
		c := ast.NewCompiler().WithCapabilities(capabilities()).WithSkipStages(skipped...)
		c.Compile(whole.modules)
		expect.That(t, !c.Failed(), "%v", c.Errors)
		return c.Modules
	}
	ordered := slices.DeleteFunc(slices.Clone(uncheckedStages), func(s ast.StageID) bool { return s == ast.StageCheckSafetyRuleBodies })
	as := compiled(uncheckedStages)
	for file, m := range compiled(ordered) {
		for i, rule := range m.Rules {
			expect.Equal(t, rule.String(), as[file].Rules[i].String(), "%s: the order of statements", rule.Location)
		}
	}
}

// TestTextsOnly checks, on the facts of all cases without what texts say, that a rule which judges only texts
// finds nothing: it is not even asked.
func TestTextsOnly(t *testing.T) {
	t.Parallel()
	set := compiledSet(t)
	of := slices.DeleteFunc(slices.Clone(set.rules), func(r Rule) bool { return !r.TextsOnly })
	compiled := expect.Value(set.programs(of))(t)
	for _, c := range expect.Value(fixtures.Cases(os.DirFS("../fixtures")))(t) {
		f := *c.Facts
		f.Benchmarks, f.Comparisons, f.Launches, f.Logs, f.Runs, f.Software, f.Texts = nil, nil, nil, nil, nil, nil, nil
		said := expect.Value(set.ask(t.Context(), set.newBudget(Options{}), compiled, expect.Value(valueOf(&f))(t), of))(t)
		for _, r := range of {
			a := said[r.ID]
			expect.That(t, len(a.sets["findings"]) == 0 && a.failure == "", "%s: %s: %v %s", c.Name, r.ID, a.sets["findings"], a.failure)
		}
	}
}
