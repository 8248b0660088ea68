package collective

import (
	"context"
	"maps"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// The limits that a rank may raise, as Arm.Raised names them.
const (
	limitFiles  = "nofile"
	limitLocked = "memlock"
)

// limits are the soft limits that a process gives itself before it loads a library, none of them above the hard one:
// those that an arm raises, and on open files that of a job, as Go raises that of its own processes (os/rlimit.go).
type limits map[string]int64

// limitsOf are the limits of the ranks of an arm; files is 0 where that of a job is not known.
func limitsOf(raised map[string]int64, files int64) limits {
	l := limits{}
	if files > 0 {
		l[limitFiles] = files
	}
	maps.Copy(l, raised)
	return l
}

// raise runs the collectives with single soft limits raised, until they work, and then with all of them.
func (s *session) raise(ctx context.Context, a arm) {
	hard := raisable(s.options.FilesLimit)
	names := slices.Sorted(maps.Keys(hard))
	var sets [][]string
	for _, name := range names {
		sets = append(sets, []string{name})
	}
	if len(names) > 1 {
		sets = append(sets, names)
	}
	for _, set := range sets {
		if ctx.Err() != nil || s.spent() {
			s.report.Untried = append(s.report.Untried, a.name)
			return
		}
		a.raised = map[string]int64{}
		for _, name := range set {
			a.raised[name] = hard[name]
		}
		if s.run(ctx, a).Outcome == probe.OK {
			return
		}
	}
}
