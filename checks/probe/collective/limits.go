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

// limits are what a process does with its limits before it loads a library.
type limits struct {
	// Files is the soft limit on open files that a job has: Go raises that of its own
	// processes (os/rlimit.go). 0 leaves it as it is.
	Files int64 `json:"files,omitempty"`
	// Raise names the limits whose soft value becomes the hard one.
	Raise []string `json:"raise,omitempty"`
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

// limitsOf are the limits of the ranks of an arm.
func (s *session) limitsOf(a arm) limits {
	l := limits{Raise: slices.Sorted(maps.Keys(a.raised))}
	if _, raised := a.raised[limitFiles]; !raised {
		l.Files = s.options.FilesLimit
	}
	return l
}
