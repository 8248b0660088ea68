package rules

import (
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestWeigh checks that of the candidates of a finding those come first of which nothing
// was shown to be in order, whatever was examined, and that cause and remedies follow.
func TestWeigh(t *testing.T) {
	set := loaded(t)
	causes := []string{"shm-too-small", "ipc-namespace", "process-limits"}
	for _, c := range []struct {
		what    string
		verdict Result
		found   []Finding
		order   []string
	}{
		{what: "nothing is known", order: causes},
		{what: "the first was examined", verdict: Result{Passed: []string{"shm-too-small"}}, order: []string{"ipc-namespace", "process-limits", "shm-too-small"}},
		{what: "the second does not apply", verdict: Result{NotApplicable: map[string]string{"ipc-namespace": "there is one rank"}}, order: []string{"shm-too-small", "process-limits", "ipc-namespace"}},
		{what: "the second judges texts, and none was given", verdict: Result{NotApplicable: map[string]string{"ipc-namespace": noTexts}}, order: causes},
		{what: "all were examined", verdict: Result{Passed: causes}, order: causes},
		// A rule that found something has not found nothing, whatever else it says.
		{what: "the first has a finding", verdict: Result{Passed: []string{"shm-too-small"}}, found: []Finding{{Rule: "shm-too-small"}}, order: causes},
	} {
		own, _ := set.Rule("failure-area")
		f := own.finding()
		for _, cause := range causes {
			f.Candidates = append(f.Candidates, Candidate{Cause: cause, For: "a reason"})
		}
		set.weigh(&f, &c.verdict, c.found)
		var order []string
		for _, o := range f.Candidates {
			order = append(order, o.Cause)
			expect.That(t, o.Title != "" && o.Shows != "" && o.For == "a reason", "%s: candidate %+v lacks something", c.what, o)
		}
		expect.That(t, slices.Equal(order, c.order) && f.Cause == c.order[0], "%s: order %v, cause %s, want %v", c.what, order, f.Cause, c.order)
		first, _ := set.Rule(c.order[0])
		expect.That(t, len(f.Remedies) >= 2 && slices.Equal(f.Remedies[:firstRemedies], first.Remedies[:firstRemedies]), "%s: remedies %v, want those of %s first", c.what, f.Remedies, first.ID)
	}
}

// TestWeighOwnRemedies checks that a finding which names its remedies keeps them, that one
// without candidates stays as it is, and that no more are listed than help.
func TestWeighOwnRemedies(t *testing.T) {
	set := loaded(t)
	f := Finding{Rule: "failure-area", Cause: "other", Remedies: []string{"reboot"}}
	set.weigh(&f, &Result{}, nil)
	expect.That(t, f.Cause == "other", "cause %s without candidates", f.Cause)
	for _, cause := range []string{"oom", "firewall", "no-such-cause", "wrong-nic", "gpu-fault"} {
		f.Candidates = append(f.Candidates, Candidate{Cause: cause, For: "a reason"})
	}
	set.weigh(&f, &Result{}, nil)
	expect.That(t, f.Cause == "oom" && slices.Equal(f.Remedies, []string{"reboot"}), "cause %s, remedies %v", f.Cause, f.Remedies)
	expect.That(t, len(f.Candidates) == maxCandidates && f.Candidates[2].Cause == "wrong-nic", "candidates %+v", f.Candidates)
}

// TestCausesAreNamed checks that each example of a row that states a cause, given alone as a log, has a finding of a rule
// that says more than that a job failed. Of rows that are a finding by themselves, TestFindingsOfRows checks it. By day
// that is every 32nd row, and one of each program.
func TestCausesAreNamed(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "nothing in it runs side by side")
	set := compiledSet(t)
	tried, try := 0, expect.EachNth(8)
	for _, row := range message.Statements() {
		if row.Role != "cause" || row.Finding != nil && len(row.Finding.When) == 0 || !try(row.Program) {
			continue
		}
		for _, example := range row.Examples {
			tried++
			verdict := expect.Value(set.Evaluate(t.Context(), factsOfLine(t, row.ID, example), Options{}))(t)
			named := slices.ContainsFunc(verdict.Findings, func(f Finding) bool {
				rule, ok := set.Rule(f.Rule)
				return ok && !rule.LastResort
			})
			expect.That(t, named, "%s states a cause, and %q has no finding that names one", row.ID, example)
		}
	}
	expect.That(t, tried != 0, "no such row has an example")
}
