package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/fleet"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/rules"
)

const (
	fleetName    = "fleet"
	takesReports = "fleet takes JSON reports (gpudoctor check -o FILE.json), folders and tar archives of them, snapshots, logs, and a folder of these for each node"
)

func fleetCommand() *cli.Command {
	return &cli.Command{
		Name:      fleetName,
		Usage:     "fold the reports of many nodes into one",
		ArgsUsage: "PATH...",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "expect", Usage: "`NODES`: all nodes (n1,n2 or n[1-8]), to name those without a report"},
			checkFormatFlag,
			outputFlag,
			policyFlag,
			colorFlag,
			asciiFlag,
		},
		Action: foldFleet,
	}
}

func foldFleet(c *cli.Context) error {
	paths := c.Args().Slice()
	if len(paths) == 0 {
		return complaint.Hinted(errors.New("fleet takes reports"), "gpudoctor fleet reports/", "gpudoctor fleet --help shows an example")
	}
	all, err := fleetOutputs(c, paths)
	if err != nil {
		return err
	}
	read, err := fleet.Read(c.Context, paths, c.App.Reader, judgeNode)
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return complaint.Hinted(fmt.Errorf("%s: %s", complaint.Quote(at.Path), complaint.Reason(err, "file or folder")), takesReports)
	}
	if err != nil {
		return err
	}
	f := fleet.Fold(read, fleet.Names(c.String("expect")), version)
	known, err := learn(c.String(policyFlag.Name))
	if err != nil {
		return err
	}
	if err := f.Judge(c.Context, known.rules); err != nil {
		return problem(err)
	}
	if err := writeOutputs(c.Context, all, style(c), c.App.Writer, func(w io.Writer, o output, s report.Style) error {
		return f.Write(w, o.format.Name, s)
	}); err != nil {
		return err
	}
	return cmp.Or(sayWritten(all, fmt.Sprintf("%s; exit %d", f.Headline(), f.ExitCode), c.App.Writer), verdict(f.ExitCode))
}

// fleetOutputs are the places that it is written to, none of them one of the files that are read.
func fleetOutputs(c *cli.Context, paths []string) ([]output, error) {
	all, err := outputs(c.StringSlice("output"), c.String("format"), c.IsSet("format"))
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if !slices.Contains(fleet.Formats(), o.format.Name) {
			return nil, complaint.UnknownName("value of --format:", o.format.Name, fleet.Formats(), "fleet writes: "+join(fleet.Formats()))
		}
	}
	return all, apart(c.App, filesOf(all), paths...)
}

// judgeNode judges a recording, texts or a folder of these, as check --from does.
func judgeNode(ctx context.Context, file string) ([]byte, error) {
	if err := compileOnce(); err != nil {
		return nil, err
	}
	r := requestFor(rules.Training, file)
	r.options.Whole = deadline.Texts
	d, err := diagnose(ctx, r)
	if err != nil {
		return nil, err
	}
	d.AddTraits()
	return json.Marshal(d)
}

// compileOnce compiles the rules, which all nodes are judged by.
var compileOnce = sync.OnceValue(func() error {
	known, err := rules.Load()
	if err != nil {
		return err
	}
	return known.Compile(rules.Options{Profile: rules.Training})
})
