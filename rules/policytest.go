package rules

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

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

// Coverage says how much of a file of the user's the tests ran.
type Coverage struct {
	File    string
	Percent float64
	// NotRun are the lines that no test ran.
	NotRun []int
}

// testPrefix begins the name of each rule that is a test.
const testPrefix = "test_"

// TestPolicy runs the Rego tests (*_test.rego) in the user's folder dir against the set,
// which LoadWith read from it, and says how much of the folder's rules they ran. Each test
// has the bounds of a rule. Tests may call what rules may: not the network, the clock or
// the environment. The error joins one *Problem for each fault of a file.
//
// OPA's packages tester and cover do the same; with them, the program also holds
// WebAssembly and Protocol Buffers, which are 5 MB.
func (s *Set) TestPolicy(ctx context.Context, dir string) ([]PolicyTest, []Coverage, error) {
	files, err := ReadPolicyFolder(dir, func(name string) bool { return strings.HasSuffix(name, "_test.rego") })
	if err != nil {
		return nil, nil, err
	}
	tests, errs := parse(files, false)
	if len(errs) > 0 {
		return nil, nil, errors.Join(errs...)
	}
	all := maps.Clone(s.modules)
	maps.Copy(all, tests)
	p, err := withinLimits(ctx, s.limits.compile, 0, maxCompileHeap, func(context.Context) (*program, error) { return s.compile(all) })
	if limited, ok := errors.AsType[*limitError](err); ok {
		return nil, nil, &Problem{File: dir, Reason: "compiling the tests " + limited.Error()}
	}
	if err != nil {
		return nil, nil, err
	}
	own := map[string]*ast.Module{}
	for name, m := range s.modules {
		if s.own[name] {
			own[name] = m
		}
	}
	ran := &lineTracer{files: own, lines: map[string]map[int]bool{}}
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
			result.Failure = s.runTest(ctx, p, tests[name].Package.Path.Append(ast.StringTerm(test)), ran)
			results = append(results, result)
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, context.Cause(ctx)
		}
	}
	return results, ran.coverage(), nil
}

// runTest says why a test fails; it is empty where the test passes.
func (s *Set) runTest(ctx context.Context, p *program, test ast.Ref, ran *lineTracer) string {
	query := p.prepare(ast.NewBody(ast.NewExpr(ast.NewTerm(test))))
	results, err := withinLimits(ctx, s.limits.rule, s.limits.grace, s.limits.heap, func(ctx context.Context) ([]topdown.QueryResult, error) {
		return p.evaluate(ctx, query, nil, ran, &stackGuard{Context: ctx})
	})
	switch {
	case err != nil:
		return failureOf(err)
	case len(results) == 0:
		return "it does not hold"
	}
	return ""
}

// lineTracer notes the lines of the user's files that an evaluation ran.
type lineTracer struct {
	tracer
	files map[string]*ast.Module
	mu    sync.Mutex // Guards lines: a test that was stopped may still run.
	lines map[string]map[int]bool
}

// TraceEvent notes an expression that was evaluated and a definition that held.
func (t *lineTracer) TraceEvent(e topdown.Event) {
	var at *ast.Location
	switch node := e.Node.(type) {
	case *ast.Expr:
		if e.Op == topdown.EvalOp {
			at = node.Location
		}
	case *ast.Rule:
		if e.Op == topdown.ExitOp {
			at = node.Head.Location
		}
	}
	if at == nil || t.files[at.File] == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lines[at.File] == nil {
		t.lines[at.File] = map[int]bool{}
	}
	t.lines[at.File][at.Row] = true
}

// coverage compares the lines that ran with those that have an expression or the head of a
// definition.
func (t *lineTracer) coverage() []Coverage {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []Coverage
	for _, file := range slices.Sorted(maps.Keys(t.files)) {
		lines := map[int]bool{}
		for _, rule := range t.files[file].Rules {
			ast.WalkRules(rule, func(r *ast.Rule) bool {
				lines[r.Head.Location.Row] = true
				return false
			})
			ast.WalkExprs(rule, func(e *ast.Expr) bool {
				if e.Location != nil && len(e.Location.Text) > 0 { // The parser makes "true" where there is no body.
					lines[e.Location.Row] = true
				}
				return false
			})
		}
		c := Coverage{File: file, Percent: 100}
		for line := range lines {
			if !t.lines[file][line] {
				c.NotRun = append(c.NotRun, line)
			}
		}
		slices.Sort(c.NotRun)
		if len(lines) > 0 {
			c.Percent = 100 * float64(len(lines)-len(c.NotRun)) / float64(len(lines))
		}
		all = append(all, c)
	}
	return all
}

// Source is the text of a rule's file.
func (s *Set) Source(rule Rule) ([]byte, error) {
	if !s.own[rule.File] {
		return fs.ReadFile(Files, rule.File)
	}
	return os.ReadFile(rule.File)
}

// Own reports whether a rule is the user's.
func (s *Set) Own(id string) bool {
	rule, _ := s.Rule(id)
	return s.own[rule.File]
}
