package rules

import (
	"os"
	"strings"
	"testing"
)

func TestZT(t *testing.T) {
	l := library{rules: os.DirFS("."), fixtures: os.DirFS("../fixtures")}
	files, err := regoFiles(l.rules)
	if err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if strings.HasPrefix(name, "testdata/") {
			delete(files, name)
		}
	}
	set, err := load(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	set.checked = true
	if err := set.Compile(); err != nil {
		t.Fatal(err)
	}
	for _, rule := range set.rules {
		for _, err := range lint(rule.File, set.modules[rule.File]) {
			t.Error(err)
		}
		for _, f := range append(missingFaults(rule.File, set.modules[rule.File]), l.ruleFaults(rule, set.modules[rule.File])...) {
			t.Error(f)
		}
	}
	for _, f := range l.testFaults(t, set) {
		t.Error(f)
	}
}
