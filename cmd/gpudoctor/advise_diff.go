package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/patch"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
	"github.com/gpudoctor/gpudoctor/rules"
)

// diffFlag names the file that advise compares with the plan.
const diffFlag = "diff"

// What --diff takes, for hints.
const takesPatched = "--diff takes pods, what has a template of pods, and compose files; for scripts, gpudoctor advise --for env, --for slurm or --for docker writes what to add"

// patching is the change of the file that --diff names.
type patching struct {
	// name is the file's, and text is what is in it.
	name, text string
	// request is how the file is judged.
	request request
}

// read reads the file.
func (p *patching) read(c *cli.Context) error {
	name := c.String(diffFlag)
	p.name = name
	switch {
	case c.IsSet("for"), c.IsSet(formatFlag.Name):
		return complaint.Hinted(errors.New("--diff, --for and --format exclude each other"), "--diff changes a file that exists: gpudoctor advise --diff "+remedies.Quote(name), "--for writes a new one")
	case name == "":
		return complaint.Hinted(errors.New("--diff needs the name of a file"), takesPatched)
	case name == standardInput:
		return complaint.Hinted(errors.New("--diff does not read standard input, because a patch names its file"), "write it to a file, and name the file")
	}
	raw, err := files.Within(c.Context, deadline.Silence, func() ([]byte, error) {
		info, err := source{}.readable(name)
		switch {
		case err != nil:
			return nil, err
		case info.IsDir():
			return nil, errors.New("is a folder")
		case !info.Mode().IsRegular():
			return nil, errNotFile
		case info.Size() > patch.MaxBytes:
			return nil, patch.ErrLarge
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // It was only read.
		return io.ReadAll(io.LimitReader(f, patch.MaxBytes+1))
	})
	if err != nil {
		return cannotRead("--diff ", name, err, takesPatched)
	}
	p.text = string(raw)
	return nil
}

// write writes what the file lacks of a machine's plan, as a patch, and says why on standard
// error.
func (p *patching) write(c *cli.Context, r request, d *report.Document, needs *plan.Plan) error {
	name, before := p.name, p.text
	p.judge(r, d)
	wants, err := p.wanted(c.Context, needs)
	if err != nil {
		return err
	}
	made, err := patch.Make(c.Context, patch.Request{Name: name, Text: before, Wants: wants, GPUs: len(needs.Ranks), Vendor: needs.Vendor})
	if err != nil {
		if _, hinted := errors.AsType[complaint.Error](err); !hinted {
			err = complaint.Hinted(err, takesPatched)
		}
		return fmt.Errorf("--diff %s: %w", complaint.Quote(name), err)
	}
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	inPatch, at := patch.PathOf(name, folder)
	diff, err := made.Unified(inPatch, before)
	if err != nil {
		return err
	}
	tell := func(format string, args ...any) {
		_, _ = fmt.Fprintln(os.Stderr, "gpudoctor: "+lines.Printable(fmt.Sprintf(format, args...), false)) // It is a remark.
	}
	for _, m := range slices.Concat(made.Changes, made.Notes) {
		tell("%s", m.In(name))
	}
	for _, m := range made.Manual {
		tell("change this by hand, since %s: %s", m.Note, patch.Remark{Line: m.Line, Where: m.Where, What: m.What}.In(name))
	}
	left, err := p.leftOver(c.Context, made.Text)
	if err != nil {
		return err
	}
	for _, f := range left {
		tell("not changed: %s (gpudoctor explain %s)", f.Message, f.Rule)
	}
	switch {
	case diff == "" && len(made.Manual)+len(left) > 0:
		return complaint.Hinted(fmt.Errorf("a patch cannot give %s all that a job on this machine needs", complaint.Quote(name)), "the lines above say what to change by hand")
	case diff == "":
		tell("%s has what a job on this machine needs: nothing to change", name)
		return nil
	}
	if file := c.String("output"); file != "" {
		if err := writeFile(c.Context, file, []byte(diff), stdio.Shared); err != nil {
			return err
		}
		tell("to apply it: patch -p1 -d %s <%s", remedies.Quote(at), remedies.Quote(file))
	} else if err := stdio.WriteText(c.App.Writer, diff); err != nil {
		return err
	} else if at != "." {
		tell("to apply it: patch -p1 -d %s", remedies.Quote(at))
	}
	return verdict(exitFindings)
}

// judge has the file judged for a machine, by the rules of its request.
func (p *patching) judge(r request, machine *report.Document) {
	p.request = r
	p.request.source = source{from: []string{p.name}, judgedFor: machine.Facts()}
	p.request.options = gather.Options{Whole: r.options.Whole}
	p.request.profile = rules.Launch
}

// diagnosis is that of the file with a text; nil where nothing in it is judged.
func (p *patching) diagnosis(ctx context.Context, changed string) (*report.Document, error) {
	r := p.request
	r.source.system = patch.Overlay{Name: p.name, Text: changed}
	d, err := diagnose(ctx, r)
	if errors.Is(err, text.ErrNothing) {
		return nil, nil // It may still hold variables.
	}
	return d, err
}

// wanted is what a file should have: the settings of the machine's plan, and those that cure
// the findings about the file itself.
func (p *patching) wanted(ctx context.Context, needs *plan.Plan) ([]patch.Want, error) {
	wants := lines.Map(needs.Settings, func(s plan.Setting) patch.Want { return patch.Want{Setting: s, Values: s.Was} })
	d, err := p.diagnosis(ctx, p.text)
	if d == nil {
		return wants, err
	}
	known, err := learn(p.request.policy)
	if err != nil {
		return nil, err
	}
	for _, part := range d.Parts() {
		own := plan.New(plan.Input{Facts: part.Facts, Findings: part.Findings, Advice: part.Advice, Remedies: known.remedies.Suiting(part.Facts)})
		for _, s := range own.Settings {
			contrary := slices.ContainsFunc(needs.Settings, func(o plan.Setting) bool { return o.Kind == plan.Variable && o.Name == s.Name && s.Name != "" })
			if w, ok := patch.Cure(s, part.Findings, part.Advice, p.name); ok && !contrary {
				wants = append(wants, w)
			}
		}
	}
	return wants, nil
}

// leftOver are the findings of medium severity or above about the file with its changes.
func (p *patching) leftOver(ctx context.Context, changed string) ([]rules.Finding, error) {
	d, err := p.diagnosis(ctx, changed)
	if d == nil {
		return nil, err
	}
	return grave(d.Findings), nil
}

// grave are the findings of medium severity or above.
func grave(findings []rules.Finding) []rules.Finding {
	return lines.Filter(findings, func(f rules.Finding) bool { return f.Severity.Rank() <= rules.Medium.Rank() })
}
