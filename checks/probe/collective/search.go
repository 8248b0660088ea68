package collective

import (
	"context"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// maxSearch bounds the runs that look for the variables at fault: with 16 variables, one culprit takes at most 8.
const maxSearch = 8

// search looks for the variables at fault, where the collectives fail with all of them and work
// without any, or are clearly slower with all of them. Each run does no more than shows that.
func (s *session) search(ctx context.Context, a arm) {
	first, cleaned := s.report.Arms[0], *s.armNamed(probe.ArmCleaned)
	todo, shows := shortest(&first)
	if !first.Outcome.Failed() {
		todo, shows = quickest(&first, &cleaned)
	}
	a.todo = todo
	all := cleaned.Unset
	known := map[string]bool{strings.Join(all, " "): true}
	runs := 0
	cures := func(unset []string) (works, tried bool) {
		unset = slices.Sorted(slices.Values(unset))
		key := strings.Join(unset, " ")
		if works, is := known[key]; is {
			return works, true
		}
		if runs == maxSearch || ctx.Err() != nil || s.spent() {
			return false, false
		}
		runs++
		a.unset = unset
		result := s.run(ctx, a)
		known[key] = result.Outcome == probe.OK && shows(&result)
		return known[key], known[key] || result.Outcome.Failed() || result.Outcome == first.Outcome
	}
	if _, found := culprits(all, cures); !found {
		s.report.Untried = append(s.report.Untried, a.name)
	}
}

// culprits returns a set of variables whose removal cures, of which none can be left: found is
// false where not all runs that this takes could be made. Removing all cures. It halves the
// variables (QuickXplain, Junker 2004): a single culprit among n takes at most 2 log2(n) runs.
func culprits(all []string, cures func(unset []string) (works, tried bool)) (set []string, found bool) {
	var find func(removed, rest []string) ([]string, bool)
	find = func(removed, rest []string) ([]string, bool) { // Removing both cures.
		if len(rest) == 1 {
			return rest, true
		}
		halves := [][]string{rest[:len(rest)/2], rest[len(rest)/2:]}
		for _, half := range halves {
			works, tried := cures(slices.Concat(removed, half))
			if !tried {
				return nil, false
			}
			if works {
				return find(removed, half)
			}
		}
		second, ok := find(slices.Concat(removed, halves[0]), halves[1])
		if !ok {
			return nil, false
		}
		first, ok := find(slices.Concat(removed, second), halves[0])
		return slices.Concat(first, second), ok
	}
	if set, found = find(nil, all); !found {
		return nil, false
	}
	works, tried := cures(set) // A set that was never removed by itself proves nothing.
	if !works || !tried {
		return nil, false
	}
	return set, true
}

// shortest is the shortest plan that shows how an arm failed, and whether an arm that was run by it came that far.
func shortest(failed *probe.Arm) (plan, func(*probe.Arm) bool) {
	i := slices.IndexFunc(failed.Operations, func(op probe.Operation) bool { return op.Outcome.Failed() })
	if i < 0 { // It failed in its start or its end.
		return plan{{probe.AllReduce, []int64{8, mib}}}, func(*probe.Arm) bool { return true }
	}
	op := failed.Operations[i]
	todo := plan{{op.Name, []int64{op.Bytes}}}
	if op.Name != probe.AllReduce {
		todo = slices.Insert(todo, 0, plan{{probe.AllReduce, []int64{8}}}...)
	}
	return todo, func(a *probe.Arm) bool {
		return slices.ContainsFunc(a.Operations, func(o probe.Operation) bool {
			return o.Name == op.Name && o.Bytes == op.Bytes && o.Outcome == probe.OK
		})
	}
}

// slower reports whether an arm that works is slower than another one by more than runs differ.
func slower(one, than *probe.Arm) bool {
	limits := data.Thresholds()
	gbps, thanGBps, _, ok := probe.Compared(one, than, limits.CollectiveLeastBytes)
	return ok && thanGBps >= limits.CollectiveFaster*gbps
}

// quickest is the shortest plan that shows that one arm is slower than another one, and whether
// an arm that was run by it is as fast as that.
func quickest(one, than *probe.Arm) (plan, func(*probe.Arm) bool) {
	_, _, bytes, _ := probe.Compared(one, than, data.Thresholds().CollectiveLeastBytes)
	return plan{{probe.AllReduce, []int64{bytes}}}, func(a *probe.Arm) bool {
		_, _, at, ok := probe.Compared(a, than, bytes)
		return ok && at == bytes && !slower(a, than)
	}
}
