package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/fleet"
	"github.com/gpudoctor/gpudoctor/cmd/internal/settings"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
)

const (
	fleetName    = "fleet"
	expectedFlag = "expected"
)

// fleetFormats are the formats that it writes.
var fleetFormats = []string{"text", "json"}

func fleetCommand() *cli.Command {
	return &cli.Command{
		Name:      fleetName,
		Usage:     "fold the reports of many nodes into one",
		ArgsUsage: "PATH...",
		Description: `PATH is a JSON report (gpudoctor check --format json --no-redact), several of
them after each other, a tar archive or a folder of them, or - for standard
input. It shows which nodes are well, which causes they share, what the nodes
with a cause have that the others lack, whose measurements are far from those
of like hardware, what differs between like nodes, and who did not report.

srun gpudoctor check --format json --no-redact | gpudoctor fleet -

exit code: 0 all nodes are well; 1 findings; 2 wrong usage or an error; 3 a
node has no report or could not be judged`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: expectedFlag, Usage: "`FILE`: the names of all nodes, one in each line, to name those without a report"},
			formatFlag,
		},
		Action: foldFleet,
	}
}

func foldFleet(c *cli.Context) error {
	paths := c.Args().Slice()
	if len(paths) == 0 {
		return complaint.Hinted(errors.New("fleet takes reports"), "gpudoctor fleet reports/", "gpudoctor fleet --help shows an example")
	}
	format := c.String(formatFlag.Name)
	if !slices.Contains(fleetFormats, format) {
		return complaint.UnknownName("value of --format:", format, fleetFormats, "fleet --format takes one of: "+join(fleetFormats))
	}
	expected, err := nodesOf(c)
	if err != nil {
		return err
	}
	read, err := fleet.Read(c.Context, paths, c.App.Reader)
	if err != nil {
		return complaint.Hinted(err, "fleet takes reports of gpudoctor check --format json, and folders and archives of them")
	}
	f := fleet.Fold(read, expected)
	write := f.WriteText
	if format == "json" {
		write = f.WriteJSON
	}
	if err := stdio.Write(c.App.Writer, func(w io.Writer) error { return write(w) }); err != nil {
		return err
	}
	if f.ExitCode != exitOK {
		return verdict(f.ExitCode)
	}
	return nil
}

// nodesOf are the names in the file of --expected.
func nodesOf(c *cli.Context) ([]string, error) {
	name := c.String(expectedFlag)
	if name == "" {
		return nil, nil
	}
	text, err := files.Within(c.Context, deadline.Silence, func() ([]byte, error) { return settings.Read(name) })
	if err != nil {
		return nil, complaint.Hinted(fmt.Errorf("--%s: %w", expectedFlag, err), "it is a text with the name of a node in each line")
	}
	return strings.Fields(string(text)), nil
}
