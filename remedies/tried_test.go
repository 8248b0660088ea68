package remedies

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestTriedBy checks, for each outcome without and with a setting, what that proves: only a failure without it that
// is gone with it proves it, and only one that stays, or comes with it, disproves it.
func TestTriedBy(t *testing.T) {
	rate := 27.6
	all := []probe.Outcome{probe.OK, probe.Slow, probe.Corrupt, probe.Hang, probe.Error, probe.Unsupported, probe.Unknown}
	advised := []Apply{{Environment: map[string]string{"NCCL_P2P_DISABLE": "1"}}, {Unset: []string{"NCCL_B", "NCCL_A"}}}
	for _, before := range all {
		for _, after := range all {
			f := &facts.Facts{Collectives: &probe.Collectives{Library: "nccl", Arms: []probe.Arm{
				{Name: probe.ArmConfigured, Outcome: before},
				{Name: probe.ArmCleaned, Outcome: after, Unset: []string{"NCCL_A", "NCCL_B"}},
				{Name: probe.ArmP2POff, Outcome: after, Set: map[string]string{"NCCL_P2P_DISABLE": "1"}, Operations: []probe.Operation{
					{Name: probe.AllReduce, Bytes: 8}, {Name: probe.AllReduce, Bytes: 1 << 20, BusGBps: &rate}, {Name: probe.AllToAll, Bytes: 1 << 21, BusGBps: new(float64)},
				}},
			}}}
			want := ""
			switch {
			case before.Failed() && after.Correct():
				want = Proven
			case after.Failed() && (before.Failed() || before.Correct()):
				want = Disproven
			}
			for i, a := range advised {
				p := triedBy(f, a)
				expect.That(t, (p != nil) == (want != "") && p.outcome() == want, "%s, then %s: got %+v, want %q", before, after, p, want)
				expect.That(t, (p != nil && strings.HasSuffix(p.Detail, ": all-reduce at 27.6 GB/s")) == (want == Proven && i == 0), "%s, then %s: got %+v", before, after, p)
			}
			for _, a := range []Apply{{}, {Environment: map[string]string{"NCCL_P2P_DISABLE": "0"}}, {Unset: []string{"NCCL_A"}}, {Environment: map[string]string{"NCCL_P2P_DISABLE": "1"}, Unset: []string{"NCCL_A"}}} {
				p := triedBy(f, a)
				expect.That(t, p == nil, "%+v was not tried, and has the proof %+v", a, p)
			}
		}
	}
	f := &facts.Facts{Collectives: &probe.Collectives{Library: "nccl", Arms: []probe.Arm{
		{Name: probe.ArmConfigured, Outcome: probe.Hang}, {Name: probe.ArmP2POff, Outcome: probe.OK, Set: map[string]string{"NCCL_P2P_DISABLE": "1"}},
	}}}
	p := triedBy(f, advised[0])
	expect.NoDiff(t, &Proof{Outcome: Proven, Detail: "collectives of NCCL hang without it, and are correct with it"}, p, "it")
}

// TestToldOf checks that a run disproves a remedy if it failed with just what that sets, however many others worked.
func TestToldOf(t *testing.T) {
	for _, outcome := range []string{"ok", "failed", "hung", "unknown"} {
		for settings, same := range map[string]bool{"1": true, "01": true, "0": false, "": false} {
			told := facts.Run{Outcome: outcome, Variables: map[string]string{"NCCL_P2P_DISABLE": settings}, Source: "issue.md", Line: 3}
			for _, more := range []map[string]string{{}, {"NCCL_ALGO": "Ring"}} {
				maps.Copy(told.Variables, more)
				p := triedBy(&facts.Facts{Runs: []facts.Run{{Outcome: "failed"}, told, told}}, Apply{Environment: map[string]string{"NCCL_P2P_DISABLE": "1"}})
				want := same && len(more) == 0 && (outcome == "failed" || outcome == "hung")
				expect.That(t, (p.outcome() == Disproven) == want && (p != nil) == want, "%+v: got %+v", told, p)
				worked := facts.Run{Outcome: "ok", Variables: told.Variables}
				p = triedBy(&facts.Facts{Runs: []facts.Run{told, worked}}, Apply{Environment: map[string]string{"NCCL_P2P_DISABLE": "1"}})
				expect.That(t, p == nil, "%+v, and once it worked: got %+v", told, p)
			}
		}
	}
}

// timed is an arm that works, with an all-reduce at a rate.
func timed(name string, set map[string]string, unset []string, bytes int64, gbps float64) probe.Arm {
	return probe.Arm{Name: name, Outcome: probe.OK, Set: set, Unset: unset, Operations: []probe.Operation{
		{Name: probe.AllReduce, Bytes: 8, Outcome: probe.OK}, {Name: probe.AllReduce, Bytes: bytes, Outcome: probe.OK, BusGBps: &gbps},
	}}
}

// TestRates checks, for rates around the bound and each circumstance under which they say nothing, that a faster
// all-reduce proves what removes a setting, that a slower one is the cost of what makes it, and that
// neither follows from a difference within what runs of one thing vary by.
func TestRates(t *testing.T) {
	const usual, large = 100.0, 64 << 20
	p2p := map[string]string{"NCCL_P2P_DISABLE": "1"}
	for _, rate := range []float64{5, 50, 79, 81, 100, 124, 126, 400} {
		for _, c := range []struct {
			name       string
			bytes      int64
			used, says bool
		}{{"large", large, false, true}, {"small", 1 << 20, false, false}, {"in use", large, true, false}} {
			f := &facts.Facts{Collectives: &probe.Collectives{Library: "nccl", GPUs: []string{"a"}, Arms: []probe.Arm{
				timed(probe.ArmConfigured, nil, nil, c.bytes, usual),
				timed(probe.ArmCleaned, nil, []string{"NCCL_A", "NCCL_B"}, c.bytes, rate),
				timed(probe.ArmWithout, nil, []string{"NCCL_B"}, c.bytes, rate),
				timed(probe.ArmP2POff, p2p, nil, c.bytes, rate),
			}}, GPUs: &facts.GPUFacts{Devices: []facts.GPU{{Address: "a"}}}}
			if c.used {
				f.GPUs.Devices[0].Processes = []facts.GPUProcess{{PID: 7}}
			}
			faster, slower := c.says && rate > 125, c.says && rate < 80
			p := triedBy(f, Apply{Unset: []string{"NCCL_B"}})
			expect.That(t, (p != nil) == faster && (p == nil || p.Outcome == Proven && strings.HasSuffix(p.Detail, " instead of 100 GB/s with it")), "%s, %v GB/s: %+v", c.name, rate, p)
			p = triedBy(f, Apply{Unset: []string{"NCCL_A"}})
			expect.That(t, p == nil, "%s, %v GB/s: the innocent NCCL_A is proven", c.name, rate)
			cost := costOf(f, p2p)
			expect.That(t, (cost != "") == slower && (!slower || strings.HasSuffix(cost, fmt.Sprintf(" instead of 100 GB/s (%.0f %% less)", 100-rate))), "%s, %v GB/s: the cost of NCCL_P2P_DISABLE is %+v", c.name, rate, cost)
			// In force, it costs what is gained without it.
			f.Env = &facts.EnvFacts{Variables: []facts.Variable{{Name: "NCCL_B", Value: "1", Effective: true}}}
			cost = costOf(f, map[string]string{"NCCL_B": "1"})
			expect.That(t, (cost != "") == faster && (!faster || strings.HasPrefix(cost, "measured here: all-reduce at 100 instead of ")), "%s, %v GB/s: the cost of NCCL_B=1 in force is %+v", c.name, rate, cost)
			cost = costOf(f, map[string]string{"NCCL_B": "2"})
			expect.That(t, cost == "", "%s, %v GB/s: NCCL_B=2 was never tried, and costs %+v", c.name, rate, cost)
		}
	}
}

// TestProvenByItself checks, for each culprit among three variables that findings of any severity name,
// that its removal is advised by itself, proven and first for the failure, and that no innocent
// variable's is called proven or is part of it.
func TestProvenByItself(t *testing.T) {
	set := builtin(t)
	names := []string{"NCCL_A", "NCCL_B", "NCCL_C"}
	about := func(rule, name string, severity rules.Severity) rules.Finding {
		f := variable(name, severity)
		f.Rule, f.Confidence = rule, rules.Confirmed
		return f
	}
	for _, culprit := range names {
		for _, severity := range []rules.Severity{rules.High, rules.Medium, rules.Low, rules.Info} {
			findings := []rules.Finding{about("collective-failed", culprit, rules.High)}
			f := &facts.Facts{Collectives: &probe.Collectives{Library: "nccl", Arms: []probe.Arm{
				{Name: probe.ArmConfigured, Outcome: probe.Error}, {Name: probe.ArmCleaned, Outcome: probe.OK, Unset: names},
			}}, Env: &facts.EnvFacts{}}
			for _, name := range names {
				findings = append(findings, about("env-misconfig", name, severity))
				f.Env.Variables = append(f.Env.Variables, facts.Variable{Name: name, Value: "1", Source: "environment", Effective: true})
				arm := probe.Arm{Name: probe.ArmWithout, Outcome: probe.Error, Unset: []string{name}}
				if name == culprit {
					arm.Outcome = probe.OK
				}
				f.Collectives.Arms = append(f.Collectives.Arms, arm)
			}
			all := set.Rank(findings, Situation{Facts: f}).Advice
			removed := map[string]bool{}
			for i, a := range all {
				proven := a.Proof != nil && a.Proof.Outcome == Proven
				expect.That(t, proven == (i == 0) && proven == (len(a.Apply.Unset) == 1 && a.Apply.Unset[0] == culprit) && !a.disproven(), "%s, %s: advice %d removes %q with the proof %+v", culprit, severity, i, a.Apply.Unset, a.Proof)
				for _, name := range a.Apply.Unset {
					removed[name] = true
				}
			}
			expect.Len(t, len(names), removed, "%s, %s: advice removes", culprit, severity)
		}
	}
}
