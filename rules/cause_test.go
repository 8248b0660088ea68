package rules

import (
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/message"
)

// pendingRows are rows that state a cause which nothing names yet, by their file.
var pendingRows = map[string][]string{
	"network.yaml": {"openmpi-unreachable", "openmpi-tcp-connect-failed", "ucx-unreachable", "ip-fragmentation-needed"},
	"nvidia.yaml":  {"nvml-library-missing", "cuda-multicast-out-of-memory", "cuda-too-many-peers", "cuda-no-kernel-image", "torch-arch-unsupported"},
	"pytorch.yaml": {"torch-name-unresolved"},
}

// TestCausesAreNamed holds that each example of a row that states a cause, given alone as
// a log, has a finding of a rule that says more than that a job failed; and where the row
// has a verdict that nothing stands in the way of, one of that rule.
func TestCausesAreNamed(t *testing.T) {
	t.Parallel()
	set := compiledSet(t)
	pending := map[string]bool{}
	for _, ids := range pendingRows {
		for _, id := range ids {
			pending[id] = true
		}
	}
	for _, row := range message.Statements() {
		if row.Role != "cause" {
			continue
		}
		unnamed := ""
		for _, example := range row.Examples {
			verdict, err := set.Evaluate(t.Context(), factsOfLine(t, example), Options{})
			if err != nil {
				t.Fatal(err)
			}
			named := slices.ContainsFunc(verdict.Findings, func(f Finding) bool {
				rule, ok := set.Rule(f.Rule)
				return ok && !rule.LastResort && (row.Verdict == nil || len(row.Verdict.When) > 0 || f.Rule == row.Verdict.Rule)
			})
			if !named {
				unnamed = example
			}
		}
		switch {
		case unnamed != "" && !pending[row.ID]:
			t.Errorf("%s states a cause, and %q has no finding that names one", row.ID, unnamed)
		case unnamed == "" && pending[row.ID]:
			t.Errorf("%s is named, and is no longer pending", row.ID)
		}
	}
}
