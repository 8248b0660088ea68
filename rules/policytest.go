package rules

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// PolicyTest is the result of one test of the user's rules.
type PolicyTest struct {
	// Name is its package and rule: "gpudoctor.rules.mine_test.test_fires".
	Name string
	File string
	Line int
	// Failure says why it failed; empty where it passed.
	Failure string
}

// testPrefix begins the name of each rule that is a test.
const testPrefix = "test_"

// TestPolicy runs the Rego tests (*_test.rego) in the user's folder dir against the set, which LoadWith read from it.
// Each test has the bounds of a rule. Tests may call what rules may: not the network, the clock or the environment. The
// error joins one *Problem for each fault of a file.
//
// OPA's package tester does the same; with it, the program also holds WebAssembly and Protocol Buffers, which are 5 MB.
func (s *Set) TestPolicy(ctx context.Context, dir string) ([]PolicyTest, error) {
	files, err := ReadPolicyFolder(dir, func(name string) bool { return strings.HasSuffix(name, "_test.rego") })
	if err != nil {
		return nil, err
	}
	tests, errs := parse(files, false)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	all := maps.Clone(s.modules)
	maps.Copy(all, tests)
	p, err := withinLimits(ctx, s.limits.compile, 0, maxCompileHeap, func(context.Context) (*program, error) { return s.compile(all) })
	if limited, ok := errors.AsType[limitError](err); ok {
		return nil, &Problem{File: dir, Reason: "compiling the tests " + limited.Error()}
	}
	if err != nil {
		return nil, err
	}
	var results []PolicyTest
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		seen := map[string]bool{} // A test may have several definitions.
		for _, rule := range tests[name].Rules {
			test := rule.Head.Name.String()
			if !strings.HasPrefix(test, testPrefix) || seen[test] {
				continue
			}
			seen[test] = true
			result := PolicyTest{Name: packageName(tests[name]) + "." + test, File: name, Line: rule.Location.Row}
			result.Failure = s.runTest(ctx, p, tests[name].Package.Path.Append(ast.StringTerm(test)))
			results = append(results, result)
		}
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
	}
	return results, nil
}

// runTest says why a test fails; it is empty where the test passes.
func (s *Set) runTest(ctx context.Context, p *program, test ast.Ref) string {
	query := ast.NewBody(ast.NewExpr(ast.NewTerm(test)))
	results, err := withinLimits(ctx, s.limits.rule, s.limits.grace, s.limits.heap, func(ctx context.Context) ([]topdown.QueryResult, error) {
		return p.evaluate(ctx, query, nil)
	})
	switch {
	case err != nil:
		return failureOf(err)
	case len(results) == 0:
		return "it does not hold"
	}
	return ""
}

// Own reports whether a rule is the user's.
func (s *Set) Own(id string) bool {
	rule, _ := s.Rule(id)
	return s.own[rule.File]
}
