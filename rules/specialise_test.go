package rules

import (
	"errors"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
	"github.com/gpudoctor/gpudoctor/rules/internal/reach"
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
		packages[reach.PackageName(m)] = true
	}
	for _, rule := range whole.everything() {
		lean.builtin = &builtinRules{texts: lean.builtin.texts, fileOf: lean.builtin.fileOf, modules: map[string]*ast.Module{}}
		modules, err := lean.modulesOf([]Rule{rule})
		if err != nil || len(modules) == 0 || len(modules) == len(whole.modules) {
			t.Fatalf("%s: %d of %d modules, %v", rule.ID, len(modules), len(whole.modules), err)
		}
		has := map[string]bool{}
		for _, m := range modules {
			has[reach.PackageName(m)] = true
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
	return s, s.Compile("")
})

// TestSpecialised checks, for the facts of every third case (by day every 24th), whole and with kinds of facts taken away, that rules which
// are compiled for these facts alone say what they say when all of them are compiled; and the same of rules that are
// compiled for the profile, and for facts without those of texts. What rules that are compiled for the facts of each case find is checked by TestLibrary.
func TestSpecialised(t *testing.T) {
	t.Parallel()
	night.NotShort(t, "nothing in it runs side by side")
	whole := compiledSet(t)
	ofProfile, withoutTexts := loaded(t), loaded(t)
	expect.NoError(t, errors.Join(ofProfile.Compile(Training), withoutTexts.Compile(Training, TextSections...)))
	n := len(ofProfile.ready[0].compiler.Modules)
	expect.That(t, n < len(whole.ready[0].modules), "the profile needs %d of %d modules", n, len(whole.ready[0].modules))
	cases := expect.Value(fixtures.Cases(os.DirFS("../fixtures")))(t)
	every, compared, kinds, try := 211, 0, 0, night.Every(8)
	for i, c := range cases {
		if i%3 > 0 || !try() {
			continue
		}
		all := []*facts.Facts{c.Facts}
		document := reread[map[string]any](t, c.Facts)
		for _, kind := range kindsOf(document) {
			if kinds++; kinds%every > 0 {
				continue
			}
			if f := mutations[kinds/every%len(mutations)].of(t, document, kind); f != nil {
				all = append(all, f)
			}
		}
		for i, f := range all {
			want := expect.Value(whole.Evaluate(t.Context(), f, Options{}))(t)
			got := expect.Value([]*Set{loaded(t), ofProfile, withoutTexts}[compared%3].Evaluate(t.Context(), f, Options{}))(t)
			diff := cmp.Diff(reread[any](t, want), reread[any](t, got))
			expect.Must(t, diff == "", "case %s, facts %d, comparison %d (-all rules +some):\n%s", c.Name, i, compared, diff)
			compared++
		}
	}
	t.Logf("%d comparisons", compared)
}

// TestPackageAsValue checks that a package which a rule uses as one value keeps all its
// rules, and that one which it only reads a rule of keeps that rule alone.
func TestPackageAsValue(t *testing.T) {
	t.Parallel()
	for use, want := range map[string]int{"count(other)": 2, "other.one": 1, "data.gpudoctor.lib.other[input.name]": 2} {
		modules := map[string]*ast.Module{}
		for name, text := range map[string]string{
			"t.rego":     "package gpudoctor.rules.t\nimport data.gpudoctor.lib.other\nfindings contains x if x := " + use,
			"other.rego": "package gpudoctor.lib.other\none := 1\ntwo := 2",
		} {
			modules[name] = expect.Value(ast.ParseModuleWithOpts(name, text, ast.ParserOptions{RegoVersion: ast.RegoV1}))(t)
		}
		kept := reach.Specialised(modules, setsOf([]Rule{{ID: "t", File: "t.rego"}}, packagesOf(modules)), reach.Anything)
		expect.Equal(t, want, len(kept["other.rego"].Rules), "%s keeps", use)
	}
}

// TestShapes checks what shapes say of what rules evaluate to. Where "true" is said of
// what never holds, the shapes do not follow so far: "not", patterns, places in arrays.
func TestShapes(t *testing.T) {
	t.Parallel()
	input := expect.Value(ast.InterfaceToValue(map[string]any{
		"gpus": []any{map[string]any{"vendor": "nvidia", "n": 1}, map[string]any{"vendor": "amd"}}, "none": []any{}, "text": "abc",
	}))(t)
	for want, bodies := range map[bool][]string{
		true: {
			`input.gpus[_].vendor == "amd"`, `some g in input.gpus; g.vendor != "intel"`, `not input.missing`, `not input.text`, `count(sets) == 1`,
			`sets.a`, `count(sets.a) == 0`, `count([g | some g in input.gpus; g.vendor == "amd"]) > 0`, `some i; input.gpus[i].n == 1`,
			`by_vendor["amd"]`, `some v in ["intel", "amd"]; by_vendor[v]`, `of("amd")`, `truth(1, false)`, `x := {"a": [y | y := input.missing]}; x`,
			`every g in input.none { g.x }`, `union({input.none, set()}) != set()`, `not "x" in empty`, `other == 2`, `input.gpus[0].n == 1.0`,
			`[a, b] := [1, input.text]; a == b`, `[a, _] := input.none; a`, `object.get(input, "missing", 1) == 1`,
			`input.gpus[i].vendor == "amd"; input.gpus[i].n == 1`, `startswith(input.text, "a")`, `some g in input.gpus; not g.vendor; g.vendor`,
			`"amd" in {g.vendor | some g in input.gpus}`, `some by_vendor in input.gpus; by_vendor.vendor == "amd"`,
			`{"amd", "intel"} & {g.vendor | some g in input.gpus} != set()`, `fixed.a == 1`, `data.gpudoctor.rules.t.by_vendor["amd"]`,
			`data.gpudoctor.rules["t"]["by_vendor"][input.gpus[_].vendor]`, `not by_vendor["intel"]; by_vendor["amd"]`,
			`"nvidia" = input.gpus[_].vendor`, `x := [1, 2]; x[0] == 2`, `input.missing with input.missing as 1`, `x := input.gpus[_].n; not x > 5`,
			`some k, _ in input; k == "gpus"`, `some [a, b] in [[1, 2], [3, 4]]; a == 3`, `walk(input, [path, value]); value == "abc"`,
			`default_one == 1`, `chain == "second"`,
		},
		false: {
			`some g in input.gpus; g.vendor == "intel"`, `input.missing`, `count(input.none) > 0`,
			`count([g | some g in input.gpus; g.vendor == "intel"]) > 0`, `some i, g in input.gpus; i > 7`, `some i; input.gpus[i].n == 2`,
			`by_vendor["intel"]`, `some v in ["intel", "other"]; by_vendor[v]`, `of("intel")`, `x := {"a": input.missing}; x`,
			`every g in input.missing { g.x }`, `some s in empty; s`, `other == 3`, `max(input.none) == 1`, `object.get(input.missing, "a", 1) == 1`,
			`"intel" in {g.vendor | some g in input.gpus}`, `gpus := input.none; some g in gpus; g`, `input.text == input.gpus[_].vendor`, `false`,
			`count({"amd"} & {v | some v in input.none}) == 1`, `fixed.b`, `fixed[input.text]`, `data.gpudoctor.rules.t.by_vendor["intel"]`,
			`x = input.missing`, `"intel" = input.gpus[_].vendor`, `x := input.gpus[_].vendor; x == "intel"`, `x := {1, 2}; some y in x; y == 3`,
			`x := {1, 2}; x[3]`, `input["gpus"][_].n > 5`, `some k, _ in input; k == "nothing"`, `some k, v in {"a": 1, "b": 2}; k == "c"`,
			`some k, v in {"a": 1, "b": 2}; v == 3`, `some [a, b] in [[1, 2], [3, 4]]; a == 9`, `default_one == 5`, `chain == "first"`,
		},
	} {
		for _, body := range bodies {
			expect.Equal(t, want, mayHoldIn(t, body, input), "%s may hold", body)
		}
	}
}

// mayHoldIn reports what shapes say of the body of a rule.
func mayHoldIn(t *testing.T, body string, input ast.Value) bool {
	t.Helper()
	m, err := ast.ParseModuleWithOpts("t.rego", `package gpudoctor.rules.t

by_vendor[g.vendor] contains g if some g in input.gpus

of(v) := g if {
	some g in input.gpus
	g.vendor == v
}

truth(x) := false if x == 1

empty contains x if {
	some x in input.none
}

other := 2

sets.a contains 1 if input.missing

fixed.a := 1

fixed.b := 2 if input.missing

default default_one := 1

default_one := 5 if input.missing

chain := "first" if {
	input.missing
} else := "second" if {
	input.text
} else := "third"

tested if {
	`+body+`
}
`, ast.ParserOptions{RegoVersion: ast.RegoV1})
	expect.Must(t, err == nil, "%s: %v", body, err)
	r := reach.New(map[string]*ast.Module{"t.rego": m}, reach.ValuesOf(input))
	return !r.Rule(reach.Global{Package: "gpudoctor.rules.t", Name: "tested"}).None()
}
