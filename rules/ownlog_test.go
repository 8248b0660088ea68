package rules

import (
	"context"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// ownMessage is what a line of a rank says.
func ownMessage(t *testing.T, arm, line string) facts.Message {
	t.Helper()
	row, fields, ok := message.Of(line)
	expect.Must(t, ok, "the catalogue does not know %q", line)
	return facts.Message{ID: row.ID, Program: row.Program, Role: row.Role, Text: line, Fields: fields, Place: row.PlaceOf(line), Rank: new(0), Source: probe.LogSource + arm, Count: 1, Ranks: 1}
}

// ranWith are collectives whose first arm has an outcome, and in which one arm said something.
func ranWith(first, other probe.Outcome, speaker int, said ...facts.Message) *probe.Collectives {
	c := &probe.Collectives{Outcome: first, Reason: "x", Library: "nccl", GPUs: []string{"0000:06:00.0", "0000:07:00.0"}, Arms: []probe.Arm{
		{Name: probe.ArmConfigured, Outcome: first, Reason: "x", Ranks: []probe.Rank{}}, {Name: probe.ArmP2POff, Outcome: other, Reason: "x", Ranks: []probe.Rank{}},
	}}
	c.Arms[speaker].Messages = said
	return c
}

// TestOwnMessages checks, for each outcome of two arms and each that says something, that rules read it only from the
// first, where that failed, behind what a job's log says.
func TestOwnMessages(t *testing.T) {
	t.Parallel()
	all := []probe.Outcome{probe.OK, probe.Slow, probe.Corrupt, probe.Hang, probe.Error, probe.Unsupported, probe.Unknown}
	m := facts.Message{ID: "nccl-shm-no-space"}
	for _, first := range all {
		for _, other := range all {
			for speaker := range 2 {
				for _, logs := range []*facts.LogFacts{nil, {}, {Messages: []facts.Message{{ID: "a"}}}} {
					before := 0
					if logs != nil {
						before = len(logs.Messages)
					}
					got := withOwnLog(logs, ranWith(first, other, speaker, m))
					if counts := speaker == 0 && first.Failed(); !counts && got != logs {
						t.Errorf("first %s, other %s, arm %d speaks: %+v", first, other, speaker, got)
					} else if counts && (len(got.Messages) != before+1 || got.Messages[before].ID != m.ID || got.Messages[before].Order != before || logs != nil && len(logs.Messages) != before) {
						t.Errorf("first %s, other %s: %+v after %+v", first, other, got, logs)
					}
				}
			}
		}
	}
	expect.That(t, withOwnLog(nil, nil) == nil && withOwnLog(nil, &probe.Collectives{}) == nil, "what was not run says something")
}

// TestOwnLogCauses checks that what the probe's library says of a failure is judged as in a job's log, that the
// failure is its consequence, and that a message without a cause explains nothing.
func TestOwnLogCauses(t *testing.T) {
	t.Parallel()
	set := compiledSet(t)
	judge := func(c *probe.Collectives) []Finding {
		f := &facts.Facts{GPUs: &facts.GPUFacts{Devices: []facts.GPU{{Address: "0000:06:00.0", Vendor: "nvidia"}, {Address: "0000:07:00.0", Vendor: "nvidia"}}}, Collectives: c}
		v := expect.Value(set.Evaluate(context.Background(), f, Options{}))(t)
		for _, s := range v.Skipped {
			expect.That(t, !s.Fault, "%s: %+v", s.Rule, s.Missing)
		}
		return v.Findings
	}
	has := func(list []Finding, rule string) bool {
		return slices.ContainsFunc(list, func(f Finding) bool { return f.Rule == rule })
	}
	for _, tt := range []struct{ line, rule string }{
		{"misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-AbC123 to 9637892 bytes, error: No space left on device (28)", "shm-too-small"},
		{"NCCL WARN Bootstrap : no socket interface found", "wrong-nic"},
		{"misc/widget.cc:12 NCCL WARN The widget is at odds with itself", ""},
	} {
		for _, outcome := range []probe.Outcome{probe.Error, probe.Hang, probe.Corrupt} {
			found := judge(ranWith(outcome, probe.OK, 0, ownMessage(t, probe.ArmConfigured, tt.line)))
			first := found[0]
			if tt.rule == "" {
				expect.That(t, first.Rule == "collective-failed" && !has(found, "job-failed"), "%q, %s: found %+v", tt.line, outcome, found)
				continue
			}
			expect.That(t, first.Rule == tt.rule && has(first.Explains, "collective-failed") && !has(found, "collective-failed") && !has(first.Explains, "job-failed"), "%q, %s: found %+v", tt.line, outcome, found)
			e := first.Evidence[0]
			expect.That(t, e.Source == "probe, arm as-configured" && e.Value == tt.line, "%q, %s: evidence %+v", tt.line, outcome, e)
		}
		found := judge(ranWith(probe.OK, probe.Error, 1, ownMessage(t, probe.ArmP2POff, tt.line)))
		expect.That(t, tt.rule == "" || !has(found, tt.rule), "%q of another arm: found %+v", tt.line, found)
		expect.Len(t, 0, judge(ranWith(probe.OK, probe.OK, 0, ownMessage(t, probe.ArmConfigured, tt.line))), "%q, and everything works: found", tt.line)
	}
}
