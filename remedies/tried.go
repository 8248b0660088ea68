package remedies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// triedBy says what collectives did with the variables that a remedy sets or removes, where they
// fail without.
func triedBy(f *facts.Facts, a Apply) (p Proof, tried bool) {
	if f == nil || f.Collectives == nil || len(f.Collectives.Arms) == 0 || len(a.Environment)+len(a.Unset) == 0 {
		return p, false
	}
	c := f.Collectives
	first := &c.Arms[0]
	if !first.Outcome.Failed() {
		return p, false
	}
	for i := range c.Arms[1:] {
		arm := &c.Arms[1+i]
		if !maps.Equal(arm.Set, a.Environment) || !slices.Equal(slices.Sorted(slices.Values(arm.Unset)), slices.Sorted(slices.Values(a.Unset))) {
			continue
		}
		p = Proof{Tried: settings(arm), Before: first.Outcome, After: arm.Outcome}
		library := strings.ToUpper(c.Library)
		switch {
		case arm.Outcome == probe.OK:
			p.Outcome = Proven
			p.Detail = fmt.Sprintf("collectives of %s %s without it, and are correct with it", library, failing[first.Outcome])
			if p.GBps = largest(arm); p.GBps != nil {
				p.Detail += fmt.Sprintf(": all-reduce at %.1f GB/s", *p.GBps)
			}
		case arm.Outcome.Failed():
			p.Outcome = Disproven
			p.Detail = fmt.Sprintf("collectives of %s %s with it as well", library, failing[arm.Outcome])
		default:
			return p, false
		}
		return p, true
	}
	return p, false
}

// failing says what collectives with an outcome do.
var failing = map[probe.Outcome]string{probe.Corrupt: "deliver wrong data", probe.Hang: "hang", probe.Error: "fail"}

// settings are those of an arm, as a shell would make them.
func settings(a *probe.Arm) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(a.Set)) {
		all = append(all, name+"="+a.Set[name])
	}
	for _, name := range a.Unset {
		all = append(all, "unset "+name)
	}
	return all
}

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
