package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/cmd/internal/compare"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/rules"
)

const diffName = "diff"

const takesSides = "diff and --baseline take reports (gpudoctor check -o FILE.json), snapshots, facts files, examples, and copies of /sys and /proc"

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:      diffName,
		Usage:     "compare two reports or recordings and show what changed",
		ArgsUsage: "A B",
		Flags: []cli.Flag{
			policyFlag,
			redactFlag, noRedactFlag,
			formatFlag,
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, DisableDefaultText: true, Usage: "show all differences and every location"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, DisableDefaultText: true, Usage: "print nothing; the exit code says whether they differ"},
			asciiFlag,
		},
		Action: diff,
	}
}

func diff(c *cli.Context) error {
	names := c.Args().Slice()
	if len(names) != 2 {
		return complaint.Hinted(fmt.Errorf("diff takes two files, got %d", len(names)), "gpudoctor diff yesterday.json today.json", takesSides)
	}
	redact := readRedaction(c)
	sides, err := readInputs(c.Context, names, c.String(policyFlag.Name))
	if err != nil {
		return err
	}
	alikeNames(sides)
	redactSides(redact, sides, c.App.Writer)
	d := compare.Compare(version, sides[0], sides[1])
	if !c.Bool("quiet") {
		s := style(c)
		if err := stdio.Write(c.App.Writer, func(w io.Writer) error { return d.Write(w, formatIn(c), s) }); err != nil {
			return err
		}
	}
	return verdict(map[bool]int{true: exitFindings}[!d.Same])
}

// readInputs reads reports and recordings. Rules are applied to recordings, for the profile of the reports.
func readInputs(ctx context.Context, names []string, policy string) ([]compare.Input, error) {
	sides := make([]compare.Input, len(names))
	profile := rules.Training
	for i, name := range names {
		data, form, err := readSide(ctx, name)
		if err != nil {
			return nil, err
		}
		sides[i] = compare.Input{Name: name, Form: form}
		if form != compare.FormReport {
			continue
		}
		d, err := compare.ReadReport(name, data)
		switch {
		case errors.Is(err, compare.ErrNewer):
			return nil, complaint.Hinted(err, "update gpudoctor")
		case err != nil:
			return nil, complaint.Hinted(err, takesSides)
		}
		sides[i].Report, profile = d, d.Profile
	}
	for i, s := range sides {
		if s.Form == compare.FormReport {
			continue
		}
		r := requestFor(profile, s.Name)
		r.options.Whole, r.policy = deadline.Texts, policy
		d, err := diagnose(ctx, r)
		switch {
		case err != nil:
			return nil, err
		case d.TextsOnly():
			return nil, source{}.unlike(s.Name)
		}
		sides[i].Report, sides[i].Facts = d, d.Facts()
	}
	return sides, nil
}

// alikeNames replaces names by stand-ins on both sides where one has them: names and stand-ins are no difference.
func alikeNames(sides []compare.Input) {
	if compare.Replaced(sides[0]) != compare.Replaced(sides[1]) {
		for i, s := range sides {
			if s.Facts != nil && !compare.Replaced(s) {
				sides[i].Report, sides[i].Facts = s.Report.Redact(), host.RedactFacts(s.Facts)
			}
		}
	}
}

// readSide says what a file is, and reads it if it is a report.
func readSide(ctx context.Context, name string) ([]byte, compare.Form, error) {
	if strings.HasPrefix(name, examplePrefix) {
		return nil, compare.FormRecording, knownExample(name)
	}
	if name == standardInput {
		return nil, "", complaint.Hinted(errors.New("diff does not read standard input"), "write it to a file, and name the file")
	}
	var s source
	var data []byte
	form := compare.FormReport
	_, err := files.Within(ctx, deadline.Silence, func() (any, error) {
		info, err := s.readable(name)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return nil, errNotFile
		}
		if info.IsDir() || s.isRecording(ctx, name) || s.begins(ctx, name, text.IsArchive) {
			form = compare.FormRecording
			return nil, nil
		}
		if info.Size() > host.MaxSnapshot {
			return nil, errUnlike
		}
		if data, err = os.ReadFile(name); err == nil && !compare.IsReport(data) {
			err = errUnlike
		}
		return nil, err
	})
	switch {
	case err == nil:
		return data, form, nil
	case errors.Is(err, errUnlike):
		return nil, "", s.unlike(name)
	case errors.Is(err, errNotFile):
		return nil, "", complaint.Hinted(fmt.Errorf("%s: %w", complaint.Quote(name), err), takesSides)
	}
	return nil, "", cannotRead("", name, err, takesSides)
}

// unlike is the error for a file that shows no machine, and is no report.
func (source) unlike(name string) error {
	return complaint.Hinted(fmt.Errorf("%s: %w", complaint.Quote(name), errUnlike), takesSides, "to make a report from a log: gpudoctor check --from FILE -o FILE.json")
}

var (
	errUnlike  = errors.New("neither a JSON report nor a recording")
	errNotFile = errors.New("not a regular file")
)

// redactSides replaces names on both sides where the difference is written to a file, and
// secrets everywhere. The same thing gets the same stand-in on both sides.
func redactSides(choice redactChoice, sides []compare.Input, stdout io.Writer) {
	if choice == redactNothing {
		return
	}
	redactor := host.NewSecretsRedactor()
	if choice == redactAll || stdio.IsFile(stdout) {
		redactor = host.NewRedactor()
		for _, s := range sides {
			redactor.Study(s.Facts)
			redactor.Study(s.Report)
		}
	}
	for i, s := range sides {
		s.Name = redactor.Text(s.Name)
		s.Report = host.Redact(redactor, s.Report)
		if s.Facts != nil {
			s.Facts = host.Redact(redactor, s.Facts)
		}
		sides[i] = s
	}
}
