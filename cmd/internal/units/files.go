package units

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
)

// Takes is what --profile launch takes, for hints.
const Takes = "--profile launch takes pods and their templates, compose files, Dockerfiles, batch scripts, command lines and settings of Slurm"

// errNone is input that describes no job.
var errNone = errors.New("no description of a job was recognized")

// DropBroken removes the jobs that broken documents describe, which are not judged. Facts without any
// description of a job are an error: nothing of them could be judged.
func DropBroken(f *facts.Facts) error {
	f.Launches = slices.DeleteFunc(f.Launches, func(l facts.Launch) bool { return inBroken(f, l) })
	if len(f.Launches) == 0 && !slices.ContainsFunc(f.Unknown, func(u facts.Unknown) bool { return u.Section == report.LaunchesSection }) {
		return noLaunch(f)
	}
	return nil
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
			return complaint.Hinted(fmt.Errorf("%s: %s", t.Name, t.Problem), "correct it: no complete description of a job was found", Takes)
		}
	}
	err := errNone
	if i := slices.IndexFunc(f.Texts, func(t facts.Text) bool { return len(t.Kinds) > 0 }); i >= 0 {
		err = fmt.Errorf("%w: %s was recognized as %s", errNone, f.Texts[i].Name, f.Texts[i].Kinds[0].Kind)
	}
	return complaint.Hinted(err, Takes, "gpudoctor texts lists what is recognized and how to produce it")
}
