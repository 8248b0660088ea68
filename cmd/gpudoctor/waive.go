package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/cmd/internal/compare"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/settings"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
)

// waiveName is the name of the command; its flags follow.
const (
	waiveName   = "waive"
	ruleFlag    = "rule"
	subjectFlag = "subject"
	pathFlag    = "path"
	objectFlag  = "object"
	reasonFlag  = "reason"
	expiresFlag = "expires"
	ownerFlag   = "owner"
	intoFlag    = "into"
)

func waiveCommand() *cli.Command {
	return &cli.Command{
		Name:      waiveName,
		Usage:     "accept a finding until a date",
		ArgsUsage: "[REPORT]",
		Description: `Adds a waiver to a file. check lists the findings that a waiver is for as waived,
and they do not count for its exit code. REPORT is a JSON report (check -o
FILE.json): the finding must be in it, and its subject is taken from it.

gpudoctor waive report.json --rule shm-too-small --reason "fixed in May" --expires 2027-05-31`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: ruleFlag, Usage: "`ID`: the rule of the finding"},
			&cli.StringFlag{Name: subjectFlag, Usage: "`PATTERN`: the subject; * stands for any characters (default that in REPORT, or all)"},
			&cli.StringFlag{Name: pathFlag, Usage: "`PATTERN`: the file of a job (default that in REPORT, or all)"},
			&cli.StringFlag{Name: objectFlag, Usage: "`PATTERN`: the pod, service or stage in it: Job/train/* (default that in REPORT, or all)"},
			&cli.StringFlag{Name: reasonFlag, Usage: "`TEXT`: why it is accepted"},
			&cli.StringFlag{Name: expiresFlag, Usage: "`DATE`: the last day of the waiver (YYYY-MM-DD, UTC)"},
			&cli.StringFlag{Name: ownerFlag, Usage: "`NAME`: who accepts it"},
			&cli.StringFlag{Name: intoFlag, Value: settings.Here, Usage: "`FILE`: the file to add it to"},
			policyFlag,
		},
		Action: waive,
	}
}

func waive(c *cli.Context) error {
	w, err := readWaiver(c)
	if err != nil {
		return err
	}
	known, err := learnFor(c)
	if err != nil {
		return err
	}
	if ids := known.ruleIDs(); !slices.Contains(ids, w.Rule) {
		return complaint.UnknownName("rule", w.Rule, ids, "gpudoctor rules list shows the rules")
	}
	if c.Args().Present() {
		if w, err = waiverIn(c.Context, c.Args().First(), w); err != nil {
			return err
		}
	}
	file := c.String(intoFlag)
	if err := writable("--"+intoFlag, file); err != nil {
		return err
	}
	line, err := addWaiver(c.Context, file, w)
	if err != nil {
		return err
	}
	said := fmt.Sprintf("gpudoctor: %s:%d waives %s until %s\n", lines.Printable(file, false), line, lines.Printable(w.About(), false), w.Expires)
	return stdio.WriteText(c.App.Writer, said)
}

// readWaiver reads the flags.
func readWaiver(c *cli.Context) (waivers.Waiver, error) {
	var w waivers.Waiver
	if c.Args().Len() > 1 {
		return w, complaint.Hinted(fmt.Errorf("waive takes one report, got %d", c.Args().Len()), "gpudoctor waive --help shows an example")
	}
	for _, f := range []struct {
		name  string
		value *string
		must  bool
	}{
		{ruleFlag, &w.Rule, true},
		{reasonFlag, &w.Reason, true},
		{expiresFlag, &w.Expires, true},
		{subjectFlag, &w.Subject, false},
		{pathFlag, &w.Path, false},
		{objectFlag, &w.Object, false},
		{ownerFlag, &w.Owner, false},
	} {
		*f.value = strings.TrimSpace(c.String(f.name))
		if f.must && *f.value == "" {
			return w, complaint.Hinted(fmt.Errorf("waive needs --%s", f.name), "a waiver has a rule, a reason and a date: gpudoctor waive --help shows an example")
		}
	}
	if err := waivers.CheckDate(w.Expires); err != nil {
		return w, complaint.Hinted(fmt.Errorf("--%s: %w", expiresFlag, err), "a date is year, month and day: 2027-05-31")
	}
	if today := waivers.Today(); w.Expires < today {
		return w, complaint.Hinted(fmt.Errorf("--%s %s is in the past", expiresFlag, w.Expires), "today is "+today+" (UTC)")
	}
	return w, nil
}

// addWaiver adds a waiver to a file, which need not exist, and returns its line.
func addWaiver(ctx context.Context, file string, w waivers.Waiver) (int, error) {
	text, err := files.Within(ctx, deadline.Silence, func() ([]byte, error) { return settings.Read(file) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	added, line, err := waivers.Add(file, text, w)
	if err != nil {
		return 0, err
	}
	return line, writeFile(ctx, file, added, stdio.Shared)
}

// waiverIn is a waiver with the subject, and the place, of the finding in a report that it is to be for.
func waiverIn(ctx context.Context, name string, w waivers.Waiver) (waivers.Waiver, error) {
	const writesOne = "gpudoctor check -o FILE.json writes a report"
	if name == standardInput {
		return w, complaint.Hinted(errors.New("waive does not read standard input"), "write the report to a file, and name the file")
	}
	data, form, err := readSide(ctx, name)
	if h, ok := errors.AsType[complaint.Error](err); ok {
		return w, complaint.Hinted(h.Err, writesOne) // Its hints are for diff.
	}
	if err != nil || form != compare.FormReport {
		return w, complaint.Hinted(cmp.Or(err, fmt.Errorf("%s is not a JSON report", complaint.Quote(name))), writesOne)
	}
	d, err := compare.ReadReport(name, data)
	if err != nil {
		return w, complaint.Hinted(err, writesOne)
	}
	all := func(w waivers.Waiver) []waivers.Waiver {
		found := w.For(d.Findings)
		if d.Redacted == report.RedactedNames {
			found = waivers.WithoutStandIns(found)
		}
		return found
	}
	found := all(w)
	switch {
	case len(found) == 1 && w.Subject == "":
		return found[0], nil
	case len(found) > 0 && w.Subject != "":
		return w, nil
	}
	said := fmt.Sprintf("%s has %d findings of %s", complaint.Quote(name), len(found), w.Rule)
	hint := "--" + subjectFlag
	if len(found) == 0 {
		said = fmt.Sprintf("%s has no finding of %s", complaint.Quote(name), w.About())
		w.Subject, w.Path, w.Object = "", "", ""
		if found = all(w); len(found) == 0 {
			return w, complaint.Hinted(errors.New(said), "leave the report out to waive what it does not hold")
		}
	}
	var subjects []string
	for _, f := range found {
		if q := complaint.Quote(f.Subject); !slices.Contains(subjects, q) {
			subjects = append(subjects, q)
		}
		if f.Path != "" {
			hint = "--" + pathFlag + " and --" + objectFlag + ", or --" + subjectFlag
		}
	}
	return w, complaint.Hinted(errors.New(said), fmt.Sprintf("name one, or * for all: %s %s", hint, strings.Join(subjects, ", ")))
}

// readWaivers reads the waivers that are in force for a command: those of the file in the
// current directory, and of the file that --waive names.
func readWaivers(ctx context.Context, set *applied, file string) ([]waivers.Waiver, error) {
	all, err := waivers.Parse(settings.Here, set.waivers)
	if err != nil || file == "" {
		return all, err
	}
	more, err := files.Within(ctx, deadline.Silence, func() ([]waivers.Waiver, error) { return waivers.Load(file) })
	if err != nil {
		return nil, hintMissing(err)
	}
	return append(all, more...), nil
}

// hintMissing adds a hint to the error of a file that does not exist.
func hintMissing(err error) error {
	if fault, ok := errors.AsType[complaint.Error](err); ok && len(fault.Hints) == 0 {
		return complaint.Hinted(err, "--"+waiveFlag.Name+" takes a file as gpudoctor "+waiveName+" writes it")
	}
	return err
}
