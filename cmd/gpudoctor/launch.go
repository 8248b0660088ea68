package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/rules"
)

// What --profile launch takes, for hints.
const takesLaunches = "--profile launch takes pods and their templates, compose files, Dockerfiles, batch scripts, command lines and settings of Slurm and enroot"

// errFiles is a profile that judges files, of which none was given.
var errFiles = errors.New("--profile launch needs files: --from FILE")

// errNoLaunch is input that describes no job.
var errNoLaunch = errors.New("no description of a job was recognized")

// ofJob is what was read with the target's facts, where files of a job are judged. Input
// that describes none is an error: nothing of it could be judged.
func (r request) ofJob(ctx context.Context, g gathered) gathered {
	if r.profile != rules.Launch || g.err != nil {
		return g
	}
	if len(g.facts.Launches) == 0 && !slices.ContainsFunc(g.facts.Unknown, func(u facts.Unknown) bool { return u.Section == report.LaunchesSection }) {
		return gathered{err: complaint.Hinted(noLaunch(g.facts), takesLaunches, takesKinds)}
	}
	if r.source.target == "" {
		return g
	}
	target, err := r.source.openTarget(ctx, r.options)
	if err != nil {
		return gathered{err: err}
	}
	g.facts, g.textsOnly = forTarget(g.facts, target), false
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

// readMachine reads which machine the files of a job are for.
func (r *request) readMachine(c *cli.Context) error {
	switch {
	case len(r.source.from) == 0:
		return complaint.Hinted(errFiles, takesLaunches)
	case c.IsSet(driverFlag.Name):
		return complaint.Hinted(errors.New("--driver is for images"), "gpudoctor image IMAGE, or --profile image")
	}
	if r.source.target = c.String(targetFlag.Name); r.source.target == "" {
		return nil
	}
	return source{from: []string{r.source.target}}.check(c.Context)
}
