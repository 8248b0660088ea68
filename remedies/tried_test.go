package remedies

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// TestTriedBy holds, for each outcome without and with a setting, what that proves: only a failure without it that
// is gone with it proves it, and only one that stays disproves it.
func TestTriedBy(t *testing.T) {
	rate := 27.6
	all := []probe.Outcome{probe.OK, probe.Slow, probe.Corrupt, probe.Hang, probe.Error, probe.Unsupported, probe.Unknown}
	advised := []Apply{
		{Environment: map[string]string{"NCCL_P2P_DISABLE": "1"}},
		{Unset: []string{"NCCL_B", "NCCL_A"}},
	}
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
			case !before.Failed():
			case after == probe.OK:
				want = Proven
			case after.Failed():
				want = Disproven
			}
			for i, a := range advised {
				p, tried := triedBy(f, a)
				if tried != (want != "") || p.Outcome != want && tried {
					t.Errorf("%s, then %s: got %t, %+v, want %q", before, after, tried, p, want)
				}
				if tried && (p.Before != before || p.After != after || (p.GBps != nil) != (want == Proven && i == 0)) {
					t.Errorf("%s, then %s: got %+v", before, after, p)
				}
			}
			for _, a := range []Apply{{}, {Environment: map[string]string{"NCCL_P2P_DISABLE": "0"}}, {Unset: []string{"NCCL_A"}}, {Environment: map[string]string{"NCCL_P2P_DISABLE": "1"}, Unset: []string{"NCCL_A"}}} {
				if p, tried := triedBy(f, a); tried {
					t.Errorf("%+v was not tried, and has the proof %+v", a, p)
				}
			}
		}
	}
	f := &facts.Facts{Collectives: &probe.Collectives{Library: "nccl", Arms: []probe.Arm{
		{Name: probe.ArmConfigured, Outcome: probe.Hang}, {Name: probe.ArmP2POff, Outcome: probe.OK, Set: map[string]string{"NCCL_P2P_DISABLE": "1"}},
	}}}
	p, _ := triedBy(f, advised[0])
	want := Proof{
		Outcome: Proven, Detail: "collectives of NCCL hang without it, and are correct with it",
		Tried: []string{"NCCL_P2P_DISABLE=1"}, Before: probe.Hang, After: probe.OK,
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
}
