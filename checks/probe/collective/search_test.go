package collective

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestCulprits checks, for up to 16 variables and by enumeration of one or two that break, alone or
// only together, that a set is found whose removal cures and of which none can be left, in few runs.
func TestCulprits(t *testing.T) {
	t.Parallel()
	for n := 2; n <= 16; n++ {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("NCCL_%02d", i))
		}
		for i := range n {
			for j := i; j < n; j++ {
				for _, together := range []bool{false, true} {
					one, other := all[i], all[j]
					works := func(unset []string) bool {
						a, b := slices.Contains(unset, one), slices.Contains(unset, other)
						return together && (a || b) || a && b
					}
					runs, known := 0, map[string]bool{}
					set, found := culprits(all, func(unset []string) (bool, bool) {
						key := strings.Join(slices.Sorted(slices.Values(unset)), " ")
						if !known[key] && len(unset) < n {
							known[key] = true
							runs++
						}
						return works(unset), true
					})
					expect.Must(t, found && works(set), "of %d, %s and %s (together %t): %q, %t", n, one, other, together, set, found)
					for k := range set {
						expect.That(t, !works(slices.Delete(slices.Clone(set), k, k+1)), "of %d, %s and %s (together %t): %q is not minimal", n, one, other, together, set)
					}
					expect.That(t, i != j && !together || runs <= maxSearch, "of %d, %s: %d runs", n, one, runs)
				}
			}
		}
	}
}

// TestCulpritsUnknown checks, for each run that cannot be made, that nothing is named which was not tried.
func TestCulpritsUnknown(t *testing.T) {
	t.Parallel()
	all := []string{"NCCL_A", "NCCL_B", "NCCL_C", "NCCL_D"}
	for stop := range 10 {
		runs := 0
		set, found := culprits(all, func(unset []string) (bool, bool) {
			runs++
			return runs <= stop && slices.Contains(unset, "NCCL_B") && slices.Contains(unset, "NCCL_D"), runs <= stop
		})
		expect.That(t, found == (runs <= stop) && found == slices.Equal(set, []string{"NCCL_B", "NCCL_D"}), "after %d runs: %q, %t", stop, set, found)
	}
	set, found := culprits(all, func([]string) (bool, bool) { return false, true })
	expect.That(t, !found, "nothing but all together cures, which was not run by itself: %q", set)
}

// TestSearch checks, with the simulated library, that each culprit among several variables is found, one
// that a file sets as well, and that no other run says that it works.
func TestSearch(t *testing.T) {
	t.Parallel()
	names := []string{"NCCL_BUFFSIZE", "NCCL_CROSS_NIC", "NCCL_IB_HCA", "NCCL_NTHREADS"}
	env := []string{"NCCL_DEBUG=WARN", "NCCL_HOME=/opt/nccl"}
	env = append(env, expect.Map(names, func(name string) string { return name + "=1" })...)
	breaks := map[string][]string{}
	for _, name := range names {
		breaks[name] = []string{name}
	}
	breaks["NCCL_BUFFSIZE+NCCL_NTHREADS"] = []string{"NCCL_BUFFSIZE"} // Removing either cures.
	breaks["NCCL_CROSS_NIC,NCCL_NTHREADS"] = []string{"NCCL_CROSS_NIC", "NCCL_NTHREADS"}
	for _, order := range expect.SomeRows(3, slices.Sorted(maps.Keys(breaks))) {
		want := breaks[order]
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			r := simulated{mode: probe.Quick, gpus: 2, arms: []string{probe.ArmCleaned, probe.ArmWithout}, env: append(slices.Clone(env), "GPUDOCTOR_SIM_NCCL_BREAKS="+order)}.run(t)
			if r.Outcome != probe.Error || len(r.Arms) < 3 || !slices.Equal(r.Arms[1].Unset, names) || r.Arms[1].Outcome != probe.OK {
				t.Fatalf("%s, %q, without %q", r.Reason, summary(r), r.Arms[1].Unset)
			}
			best := r.Arms[1].Unset
			for _, a := range r.Arms[2:] {
				expect.Equal(t, probe.ArmWithout, a.Name, "arm")
				if a.Outcome == probe.OK && len(a.Unset) < len(best) {
					best = a.Unset
				}
			}
			expect.NoDiff(t, want, best, "best")
			expect.Len(t, 0, r.Untried, "untried")
		})
	}
}

// TestShortest checks that the short plan runs what failed, and that a run that did not come so far shows nothing.
func TestShortest(t *testing.T) {
	t.Parallel()
	for _, name := range []string{probe.AllReduce, probe.SendReceive, probe.AllToAll} {
		for _, outcome := range []probe.Outcome{probe.Corrupt, probe.Hang, probe.Error} {
			failed := probe.Arm{Operations: []probe.Operation{{Name: probe.AllReduce, Bytes: 8, Outcome: probe.OK}, {Name: name, Bytes: 64 * mib, Outcome: outcome}}}
			todo, shows := shortest(&failed)
			last := todo[len(todo)-1]
			expect.That(t, last.name == name && slices.Equal(last.bytes, []int64{64 * mib}) && todo[0].name == probe.AllReduce, "%s %s: %+v", name, outcome, todo)
			expect.That(t, !shows(&probe.Arm{Outcome: probe.OK, Operations: failed.Operations[:1]}), "%s %s: a run without it shows that it works", name, outcome)
		}
	}
}

// TestLimits checks that the ranks run with the limit on open files of a job.
func TestLimits(t *testing.T) {
	t.Parallel()
	for needs, want := range map[int64]probe.Outcome{256: probe.OK, 257: probe.Error} {
		r := simulated{mode: probe.Quick, gpus: 2, files: 256, arms: []string{probe.ArmConfigured}, env: []string{fmt.Sprintf("GPUDOCTOR_SIM_NCCL_FILES=%d", needs)}}.run(t)
		expect.Equal(t, want, r.Outcome, "256 files, %d needed: %q", needs, summary(r))
	}
}

// TestAffordable checks for every pace of a smaller size, from a fast path to a broken one, that the next size takes at
// most mostSeconds if the time grows with the size; that it is the one asked for unless even its two runs would take
// longer; and that a path a hundredth as fast as one PCIe lane is still measured with 32 MiB.
func TestAffordable(t *testing.T) {
	for _, smaller := range []int64{0, 8, 64 * kib, mib, 64 * mib} {
		for _, asked := range []int64{8, 64 * kib, mib, 32 * mib, 64 * mib, 1024 * mib} {
			if asked <= smaller {
				continue
			}
			for seconds := 1e-6; seconds < 100; seconds *= 1.3 {
				bytes, n := affordable(asked, smaller, seconds)
				if bytes == smaller && n == 0 && smaller > 0 && asked > mib {
					all := 2 * seconds * 2
					expect.Must(t, all > mostSeconds, "nothing after %d in %g s, though the double takes %g s", smaller, seconds, all)
					continue
				}
				expect.Must(t, bytes <= asked && bytes > smaller && n >= 1 && n <= times(bytes), "%d bytes after %d in %g s: %d bytes %d times", asked, smaller, seconds, bytes, n)
				if smaller == 0 || asked <= mib {
					expect.Must(t, bytes == asked && n == times(asked), "%d bytes after %d in %g s: %d bytes %d times", asked, smaller, seconds, bytes, n)
					continue
				}
				once := seconds * float64(bytes) / float64(smaller)
				all := once * float64(n+1)
				expect.Must(t, all <= mostSeconds, "%d bytes after %d in %g s: %d bytes %d times take %g s", asked, smaller, seconds, bytes, n, all)
				twice := 4 * once
				expect.Must(t, bytes >= asked || twice > mostSeconds, "%d bytes after %d in %g s: only %d bytes, though the double takes %g s", asked, smaller, seconds, bytes, twice)
			}
		}
	}
	bytes, _ := affordable(64*mib, mib, float64(mib)/0.1e9)
	expect.That(t, bytes >= 32*mib, "at 0.1 GB/s only %d bytes are measured", bytes)
}
