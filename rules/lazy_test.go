package rules

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/fixtures/golden"
)

// TestGoldenIndex holds that index.zip says what the files of the built-in rules say.
// Run make update after a change of a rule's metadata or imports.
func TestGoldenIndex(t *testing.T) {
	made, err := json.Marshal(indexOf(wholeSet(t)))
	if err != nil {
		t.Fatal(err)
	}
	golden.Archive(t, "index.zip", map[string][]byte{indexFile: made})
}

// wholeSet are the built-in rules, all of them parsed.
func wholeSet(tb testing.TB) *Set {
	tb.Helper()
	files, err := regoFiles(embedded)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := load(files, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// TestParsesWhatIsNeeded holds that each rule, asked alone, gets all that it
// imports and less than everything.
func TestParsesWhatIsNeeded(t *testing.T) {
	t.Parallel()
	x, err := readIndex()
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range x.Rules {
		l := &lazyModules{index: x, modules: map[string]*ast.Module{}}
		modules, err := l.modulesOf([]Rule{rule}, "")
		if err != nil {
			t.Fatal(err)
		}
		if n := len(modules); n == 0 || n > len(x.Files)/3 {
			t.Errorf("%s needs %d of %d files", rule.ID, n, len(x.Files))
		}
		for file := range modules {
			for _, other := range x.Files[file] {
				if modules[other] == nil {
					t.Errorf("%s needs %s, which imports %s, which is missing", rule.ID, file, other)
				}
			}
		}
		again, err := l.modulesOf([]Rule{rule}, "")
		if err != nil || len(again) != len(modules) || slices.ContainsFunc(x.Files[rule.File], func(f string) bool { return again[f] != modules[f] }) {
			t.Errorf("%s: %d modules, then %d others: %v", rule.ID, len(modules), len(again), err)
		}
	}
}
