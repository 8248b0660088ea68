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
// Documents that are broken are not judged. Input that describes no job is an error: nothing of it could be judged.
func ofJob(g gathered, target *facts.Facts) gathered {
	if g.err != nil {
		return g
	}
	g.facts.Launches = slices.DeleteFunc(g.facts.Launches, func(l facts.Launch) bool { return inBroken(g.facts, l) })
	if len(g.facts.Launches) == 0 && !slices.ContainsFunc(g.facts.Unknown, func(u facts.Unknown) bool { return u.Section == report.LaunchesSection }) {
		return gathered{err: noLaunch(g.facts)}
	}
	if target != nil {
		g.facts, g.textsOnly = forTarget(g.facts, target), false
	}
	return g
}

// inBroken reports whether a job is described in a document that is broken.
func inBroken(f *facts.Facts, l facts.Launch) bool {
	return slices.ContainsFunc(f.Texts, func(t facts.Text) bool {
		return t.Name == l.Source && t.Unread == facts.UnreadBroken && l.Line >= t.Document
	})
}

// noLaunch says what is broken, or what was recognized instead.
func noLaunch(f *facts.Facts) error {
	for _, t := range f.Texts {
		if t.Unread == facts.UnreadBroken {
			return complaint.Hinted(fmt.Errorf("%s: %s", t.Name, t.Problem), "correct it: no complete description of a job was found", takesLaunches)
		}
	}
	err := errNoLaunch
	for _, t := range f.Texts {
		if len(t.Kinds) > 0 {
			err = fmt.Errorf("%w: %s was recognized as %s", errNoLaunch, t.Name, t.Kinds[0].Kind)
			break
		}
	}
	return complaint.Hinted(err, takesLaunches, takesKinds)
}
