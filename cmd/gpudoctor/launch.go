package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
)

// What --profile launch takes, for hints.
const takesLaunches = "--profile launch takes pods and their templates, compose files, Dockerfiles, batch scripts, command lines and settings of Slurm and enroot"

// errNoLaunch is input that describes no job.
var errNoLaunch = errors.New("no description of a job was recognized")

// ofJob is what was read of the files of a job, with the facts of its target, if there is one.
// Input that describes no job is an error: nothing of it could be judged.
func ofJob(g gathered, target *facts.Facts) gathered {
	if g.err != nil {
		return g
	}
	if len(g.facts.Launches) == 0 && !slices.ContainsFunc(g.facts.Unknown, func(u facts.Unknown) bool { return u.Section == report.LaunchesSection }) {
		return gathered{err: complaint.Hinted(noLaunch(g.facts), takesLaunches, takesKinds)}
	}
	if target != nil {
		g.facts, g.textsOnly = forTarget(g.facts, target), false
	}
	return g
}

// noLaunch says what was recognized instead.
func noLaunch(f *facts.Facts) error {
	for _, t := range f.Texts {
		if len(t.Kinds) > 0 {
			return fmt.Errorf("%w: %s was recognized as %s", errNoLaunch, t.Name, t.Kinds[0].Kind)
		}
	}
	return errNoLaunch
}
