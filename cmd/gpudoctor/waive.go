package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/cmd/internal/compare"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/outfile"
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
	policy, err := readPolicy(c)
	if err != nil {
		return err
	}
	known, err := learn(policy)
	if err != nil {
		return err
	}
	if ids := known.ruleIDs(); !slices.Contains(ids, w.Rule) {
		return complaint.UnknownName("rule", w.Rule, ids, "gpudoctor rules list shows the rules")
	}
	if c.Args().Present() {
		if w.Subject, err = subjectIn(c.Context, c.Args().First(), w); err != nil {
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
	return stdio.Write(c.App.Writer, func(out io.Writer) error {
		_, err := fmt.Fprintf(out, "gpudoctor: %s:%d waives %s until %s\n", lines.Printable(file, false), line, lines.Printable(w.About(), false), w.Expires)
		return err
	})
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
		return 0, inFile(err)
	}
	added, line, err := waivers.Add(file, text, w)
	if err != nil {
		return 0, inFile(err)
	}
	return line, writeFile(ctx, file, added, outfile.Shared)
}

// subjectIn is the subject of the finding in a report that a waiver is to be for.
func subjectIn(ctx context.Context, name string, w waivers.Waiver) (string, error) {
	const writesOne = "gpudoctor check -o FILE.json writes a report"
	if name == standardInput {
		return "", complaint.Hinted(errors.New("waive does not read standard input"), "write the report to a file, and name the file")
	}
	data, form, err := readSide(ctx, name)
	if h, ok := errors.AsType[complaint.Error](err); ok {
		return "", complaint.Hinted(h.Err, writesOne) // Its hints are for diff.
	}
	if err != nil || form != compare.FormReport {
		return "", complaint.Hinted(cmp.Or(err, fmt.Errorf("%s is not a JSON report", complaint.Quote(name))), writesOne)
	}
	d, err := compare.ReadReport(name, data)
	if err != nil {
		return "", complaint.Hinted(err, writesOne)
	}
	subjects := waivers.Subjects(d.Findings, w.Rule)
	if d.Redacted == report.RedactedNames {
		subjects = waivers.WithoutStandIns(subjects)
	}
	switch {
	case w.Subject != "" && slices.ContainsFunc(subjects, func(s string) bool { return waivers.Matches(w.Subject, s) }):
		return w.Subject, nil
	case len(subjects) == 0:
		return "", complaint.Hinted(fmt.Errorf("%s has no finding of %s", complaint.Quote(name), w.Rule), "leave the report out to waive what it does not hold")
	case w.Subject != "" || len(subjects) > 1:
		said := fmt.Sprintf("%s has %d findings of %s", complaint.Quote(name), len(subjects), w.Rule)
		if w.Subject != "" {
			said = fmt.Sprintf("%s has no finding of %s with the subject %s", complaint.Quote(name), w.Rule, complaint.Quote(w.Subject))
		}
		return "", complaint.Hinted(errors.New(said), fmt.Sprintf("name one, or * for all: --%s %s", subjectFlag, strings.Join(quoted(subjects), ", ")))
	}
	return subjects[0], nil
}

// readWaivers reads the waivers that are in force for a command: those of the file in the
// current directory, and of the file that --waive names.
func readWaivers(ctx context.Context, set *applied, file string) ([]waivers.Waiver, error) {
	all, err := waivers.Parse(settings.Here, set.waivers)
	if err != nil || file == "" {
		return all, inFile(err)
	}
	more, err := files.Within(ctx, deadline.Silence, func() ([]waivers.Waiver, error) { return waivers.Load(file) })
	if err != nil {
		return nil, inFile(hintMissing(err))
	}
	return append(all, more...), nil
}

// hintMissing adds a hint to the error of a file that does not exist.
func hintMissing(err error) error {
	if fault, ok := errors.AsType[*settings.Error](err); ok && len(fault.Hints) == 0 {
		fault.Hints = []string{"--" + waiveFlag.Name + " takes a file as gpudoctor " + waiveName + " writes it"}
	}
	return err
}

// quoted are words as they are typed.
func quoted(words []string) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = complaint.Quote(w)
	}
	return all
}
