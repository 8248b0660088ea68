package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/fleet"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

const (
	fleetName  = "fleet"
	expectFlag = "expect"

	takesReports = "fleet takes JSON reports (gpudoctor check -o FILE.json), folders and tar archives of them, snapshots, logs, and a folder of these for each node"
	// maxExpected bounds a list of nodes in bytes.
	maxExpected = 8 << 20
)

func fleetCommand() *cli.Command {
	return &cli.Command{
		Name:      fleetName,
		Usage:     "fold the reports of many nodes into one",
		ArgsUsage: "PATH...",
		Description: `PATH is a JSON report (gpudoctor check --format json), several of them after
each other, a tar archive or a folder of them, or - for standard input. What has
no report is judged first, as check --from does: a file with a snapshot or a log of
a node, or a folder for each node in a folder, with all that is known of it
(ticket/n1/, ticket/n2/). It shows which nodes are well, which causes they share, what the nodes with a cause have
that the others lack, whose measurements are far from those of like hardware,
which versions and settings differ, and who did not report.

In a Slurm job, each node writes a file of its own:

  srun --output=reports/%N.json gpudoctor check --format json
  gpudoctor fleet reports/ --expect "$SLURM_JOB_NODELIST" -o fleet.html

Where names are replaced in a report, the name of its file is that of the node;
where they are in a snapshot, that of its folder.
Formats are text, json, markdown, html (with a picture of the nodes), junit and
prometheus.

exit code: 0 no node has findings that count; 1 findings, or a node that is slower
than like nodes; 2 wrong usage or an error; 3 a node could not be judged, has no
report, or it cannot be read`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: expectFlag, Usage: "`NODES`: all nodes (n1,n2 or n[1-8]), or a file with their names, to name those without a report"},
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
	s := style(c)
	expected, err := expectedNodes(c.Context, c.String(expectFlag))
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
	f := fleet.Fold(read, expected, version)
	known, err := learn(c.String(policyFlag.Name))
	if err != nil {
		return err
	}
	if err := f.Judge(c.Context, known.rules); err != nil {
		return problem(err)
	}
	err = writeOutputs(c.Context, all, c.App.Writer, func(w io.Writer, o output) error {
		if o.file != "" {
			return f.Write(w, o.format.Name, report.Style{ASCII: s.ASCII})
		}
		return f.Write(w, o.format.Name, s)
	})
	if err != nil {
		return err
	}
	if err := sayWritten(all, fmt.Sprintf("%s; exit %d", f.Headline(), f.ExitCode), c.App.Writer); err != nil {
		return err
	}
	return verdict(f.ExitCode)
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
	inputs := lines.Map(paths, func(p string) input { return input{name: p, stdin: c.App.Reader} })
	return all, apart(filesOf(all), inputs, c.App.Writer)
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

// expectedNodes are the names of nodes in a file, or in the value itself.
func expectedNodes(ctx context.Context, value string) ([]string, error) {
	text, err := files.Within(ctx, deadline.Silence, func() ([]byte, error) {
		f, err := os.Open(value)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // It was only read.
		return io.ReadAll(io.LimitReader(f, maxExpected+1))
	})
	switch {
	case value == "":
		return nil, nil
	case errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(value, `/\`) && !strings.HasSuffix(value, ".txt"), errors.Is(err, syscall.ENAMETOOLONG):
		text = []byte(value)
	case err != nil:
		return nil, complaint.Hinted(fmt.Errorf("--%s %s: %s", expectFlag, complaint.Quote(value), complaint.Reason(err, "file")), "it takes names with commas between, or a text with the name of a node in each line")
	case len(text) > maxExpected:
		return nil, complaint.Hinted(fmt.Errorf("--%s %s: larger than %d MiB", expectFlag, complaint.Quote(value), maxExpected>>20), "it takes a text with the name of a node in each line")
	}
	return fleet.Names(string(text)), nil
}
