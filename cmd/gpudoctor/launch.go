package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/facts"
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
	if len(g.facts.Launches) == 0 && !slices.ContainsFunc(g.facts.Unknown, func(u facts.Unknown) bool { return u.Section == launchesSection }) {
		return gathered{err: hinted(noLaunch(g.facts), takesLaunches, takesKinds)}
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

// launchesSection is the section of the facts that holds descriptions of jobs.
const launchesSection = "launches"

// noLaunch says what was recognized instead.
func noLaunch(f *facts.Facts) error {
	for _, t := range f.Texts {
		if len(t.Kinds) > 0 {
			return fmt.Errorf("%w: %s was recognized as %s", errNoLaunch, t.Name, t.Kinds[0].Kind)
		}
	}
	return errNoLaunch
}

// judgeFiles makes the verdict that of files: what they do not say of a machine is no gap,
// and a file that was not understood is one.
func judgeFiles(d *report.Document, f *facts.Facts, strict bool) {
	v := &d.Verdict
	if v.ExitCode == exitError {
		return // Nothing was recognized.
	}
	v.Reasons = slices.DeleteFunc(v.Reasons, func(r report.Reason) bool {
		return !slices.Contains([]report.ReasonCode{report.ReasonFinding, report.ReasonWaived, report.ReasonCut}, r.Code)
	})
	for _, gap := range unreadFiles(f) {
		v.Reasons = append(v.Reasons, report.Reason{Code: report.ReasonCut, Text: gap})
	}
	for _, s := range d.Skipped {
		v.Reasons = append(v.Reasons, report.Reason{Code: report.ReasonRule, Text: s.Rule + " (" + cmp.Or(append(s.Missing, "")...) + ")"})
	}
	v.Missing = []string{}
	for _, r := range v.Reasons {
		if r.Code != report.ReasonFinding && r.Code != report.ReasonWaived {
			v.Missing = append(v.Missing, r.Text)
		}
	}
	switch {
	case v.State == report.Findings:
	case len(v.Missing) > 0:
		v.State = report.Inconclusive
	default:
		v.State = report.Healthy
	}
	switch {
	case v.ExitCode == exitFindings:
	case strict && len(v.Missing) > 0:
		v.ExitCode, v.Reason = exitUnproven, "--strict is set, and these were not examined: "+join(v.Missing)
	case v.ExitCode == exitOK:
	case len(d.Findings) > 0:
		v.ExitCode, v.Reason = exitOK, cmp.Or(map[bool]string{true: "--fail-on none"}[d.FailOn == report.Never], "no finding at or above "+string(d.FailOn))
	default:
		v.ExitCode, v.Reason = exitOK, "no finding"
	}
}

// unreadFiles says which files describe no job that was understood, and which are templates.
func unreadFiles(f *facts.Facts) []string {
	var all []string
	for _, t := range f.Texts {
		switch {
		case t.Problem != "" || t.More > 1:
		case len(t.Kinds) == 0:
			all = append(all, t.Name+" (not recognized)")
		case !slices.ContainsFunc(f.Launches, func(l facts.Launch) bool { return l.Source == t.Name }) && !isTemplate(f, t.Name):
			all = append(all, t.Name+" (recognized as "+t.Kinds[0].Kind+", which describes no job)")
		}
	}
	for _, u := range f.Unknown {
		if u.Section == launchesSection {
			all = append(all, u.Reason)
		}
	}
	return all
}

func isTemplate(f *facts.Facts, name string) bool {
	return slices.ContainsFunc(f.Unknown, func(u facts.Unknown) bool { return u.Section == launchesSection && u.Fact == "["+name+"]" })
}

// readMachine reads which machine the files of a job are for.
func (r *request) readMachine(c *cli.Context) error {
	switch {
	case len(r.source.from) == 0:
		return hinted(errFiles, takesLaunches)
	case c.IsSet(driverFlag.Name):
		return hinted(errors.New("--driver is for images"), "gpudoctor image IMAGE, or --profile image")
	}
	if r.source.target = c.String(targetFlag.Name); r.source.target == "" {
		return nil
	}
	return source{from: []string{r.source.target}}.check(c.Context)
}
