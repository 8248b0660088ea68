package remedies

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// triedBy says what collectives did with the variables that a remedy sets or removes: whether that
// cures where they fail without, makes them faster where they work, or breaks them; nil where they say nothing of it.
func triedBy(f *facts.Facts, a Apply) *Proof {
	first, arm := armOf(f, a)
	if arm == nil {
		return toldOf(f, a)
	}
	library := strings.ToUpper(f.Collectives.Library)
	switch {
	case first.Outcome.Failed() && arm.Outcome.Correct():
		detail := fmt.Sprintf("collectives of %s %s without it, and are correct with it", library, failing[first.Outcome])
		if rate := largest(arm); rate != nil {
			detail += fmt.Sprintf(": all-reduce at %.1f GB/s", *rate)
		}
		return &Proof{Proven, detail}
	case first.Outcome.Failed() && arm.Outcome.Failed() && arm.Name != probe.ArmWithout: // One of two culprits removed cures nothing.
		return &Proof{Disproven, fmt.Sprintf("collectives of %s %s with it as well", library, failing[arm.Outcome])}
	case first.Outcome.Correct() && arm.Outcome.Failed():
		return &Proof{Disproven, fmt.Sprintf("collectives of %s are correct as the environment is configured, and %s with it", library, failing[arm.Outcome])}
	case first.Outcome.Correct() && arm.Outcome.Correct():
		if before, after, differ := rates(f, first, arm); differ && after >= before {
			return &Proof{Proven, fmt.Sprintf("all-reduce of %s at %s instead of %s GB/s with it", library, inDigits(after), inDigits(before))}
		}
	}
	return nil
}

// toldOf says that runs with the variables that a remedy sets, and no others, all failed, as the texts tell.
func toldOf(f *facts.Facts, a Apply) (proof *Proof) {
	if len(a.Environment) == 0 || len(a.Unset) > 0 {
		return nil
	}
	for _, r := range f.Runs {
		if !maps.EqualFunc(r.Variables, a.Environment, sameValue) {
			continue
		}
		how := map[string]string{"failed": "fails", "hung": "hangs"}[r.Outcome]
		if how == "" {
			return nil
		}
		proof = cmp.Or(proof, &Proof{Disproven, fmt.Sprintf("a run %s with it as well (%s:%d)", how, r.Source, r.Line)})
	}
	return proof
}

// armOf is the first arm, and one that did exactly what a remedy does: of several, one that works.
func armOf(f *facts.Facts, a Apply) (first, arm *probe.Arm) {
	if f.Collectives == nil || len(f.Collectives.Arms) == 0 || len(a.Environment)+len(a.Unset) == 0 {
		return nil, nil
	}
	all := f.Collectives.Arms
	unset := slices.Sorted(slices.Values(a.Unset))
	for i := range all[1:] {
		one := &all[1+i]
		if !maps.Equal(chosen(one), a.Environment) || !slices.Equal(slices.Sorted(slices.Values(one.Unset)), unset) {
			continue
		}
		if arm == nil || !arm.Outcome.Correct() && one.Outcome.Correct() {
			arm = one
		}
	}
	return &all[0], arm
}

// rates are the bus bandwidths of an all-reduce in two arms that work, and whether they differ by
// more than runs of one thing do. Of GPUs that others use they say nothing.
func rates(f *facts.Facts, one, other *probe.Arm) (first, second float64, differ bool) {
	limits := data.Thresholds()
	first, second, _, ok := probe.Compared(one, other, limits.CollectiveLeastBytes)
	if !ok || !one.Outcome.Correct() || !other.Outcome.Correct() || inUse(f) {
		return first, second, false
	}
	return first, second, max(first, second) >= limits.CollectiveFaster*min(first, second)
}

func inUse(f *facts.Facts) bool {
	return f.GPUs != nil && slices.ContainsFunc(f.GPUs.Devices, func(d facts.GPU) bool {
		return len(d.Processes) > 0 && slices.Contains(f.Collectives.GPUs, d.Address)
	})
}

// costOf is what a setting costs, as collectives that work without it and with it measured: those of an arm that makes
// it, or, where it is in force, of one that removes it. It is empty if that is not known, or it costs nothing.
func costOf(f *facts.Facts, set map[string]string) string {
	if len(set) == 0 {
		return ""
	}
	without, with := armOf(f, Apply{Environment: set})
	if with == nil {
		if with, without = armOf(f, Apply{Unset: slices.Sorted(maps.Keys(set))}); without == nil || !areSet(f, set) {
			return ""
		}
	}
	before, after, differ := rates(f, without, with)
	if !differ || after > before {
		return ""
	}
	return fmt.Sprintf("measured here: all-reduce at %s instead of %s GB/s (%.0f %% less)", inDigits(after), inDigits(before), 100*(1-after/before))
}

// areSet reports whether the collectives were run with these settings as the environment is.
func areSet(f *facts.Facts, set map[string]string) bool {
	for name, value := range set {
		if f.Env == nil || !slices.ContainsFunc(f.Env.Variables, func(v facts.Variable) bool {
			return v.Effective && v.Name == name && sameValue(v.Value, value)
		}) {
			return false
		}
	}
	return true
}

// inDigits writes a rate with the digits that matter.
func inDigits(gbps float64) string {
	if gbps >= 100 {
		return fmt.Sprintf("%.0f", gbps)
	}
	return fmt.Sprintf("%.1f", gbps)
}

// failing says what collectives with an outcome do.
var failing = map[probe.Outcome]string{probe.Corrupt: "deliver wrong data", probe.Hang: "hang", probe.Error: "fail"}

// largest is the bus bandwidth of the largest all-reduce that was timed.
func largest(a *probe.Arm) *float64 {
	var rate *float64
	bytes := int64(0)
	for i := range a.Operations {
		if op := &a.Operations[i]; op.Name == probe.AllReduce && op.BusGBps != nil && op.Bytes > bytes {
			rate, bytes = op.BusGBps, op.Bytes
		}
	}
	return rate
}

// chosen are the variables that an arm sets for its own sake: with the choice of algorithms removed,
// NCCL_NVLS_ENABLE=0 only keeps what that choice may have kept off.
func chosen(a *probe.Arm) map[string]string {
	rest := maps.Clone(a.Set)
	if slices.Contains(a.Unset, "NCCL_ALGO") && rest["NCCL_NVLS_ENABLE"] == "0" {
		delete(rest, "NCCL_NVLS_ENABLE")
	}
	return rest
}
