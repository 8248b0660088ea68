package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestPolicyTestsAreBounded checks that a test of a policy that does not end, or that takes
// all memory, fails with the limit, and that the tests after it are run.
func TestPolicyTestsAreBounded(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.rego": ruleText("a", high, "findings contains {} if false\n"),
		"a_test.rego": `package gpudoctor.rules.a_test

test_a_endless if {
	numbers.range(1, 3000) = list
	count([1 | some i in list; some j in list; i == -j]) == 1
}

test_b_memory if count({[i, j, k] | some i in numbers.range(1, 1000); some j in numbers.range(1, 1000); some k in numbers.range(1, 1000)}) == 1

test_c_error if 1 / 0 == 1

test_d_passes if data.gpudoctor.rules.a.findings == set()
`,
	} {
		expect.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	s := expect.Value(LoadWith(dir))(t)
	s.limits.rule, s.limits.heap = 300*time.Millisecond, 256<<20 // More than can be allocated in that time.
	tests := expect.Value(s.TestPolicy(t.Context(), dir))(t)
	want := []string{"took longer than", "", "divide by zero", ""}
	expect.Must(t, len(tests) == len(want), "got %+v", tests)
	for i, test := range tests {
		passes := i == len(tests)-1
		expect.That(t, passes == (test.Failure == "") && strings.Contains(test.Failure, want[i]), "%s: %q, want %q", test.Name, test.Failure, want[i])
	}
	expect.That(t, strings.Contains(tests[1].Failure, "needed more than") || strings.Contains(tests[1].Failure, "took longer than"), "%s: %q", tests[1].Name, tests[1].Failure)
}
