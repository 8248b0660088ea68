package main

import (
	"bytes"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
)

func snapshotCommand() *cli.Command {
	return &cli.Command{
		Name:  "snapshot",
		Usage: "record this machine to examine it elsewhere",
		Description: `Runs every check and records what it reads. Names of hosts, users, jobs and
images, serial numbers, UUIDs, MAC and IP addresses and secrets are replaced:
each value always by the same stand-in.
gpudoctor check --from FILE then gives the same findings on any machine.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FILE`: the file to write, NAME.txtar; - for standard output"},
			noRedactFlag,
			probeFlag,
			busyFlag,
			waitFlag,
			deadlineFlag,
			quietFlag,
		},
		Action: snapshot,
	}
}

func snapshot(c *cli.Context) error {
	file := c.String("output")
	switch {
	case file == "":
		return complaint.Hinted(errors.New("snapshot needs -o FILE"), "gpudoctor snapshot -o host.txtar")
	case file != "-":
		if err := writable("-o", file); err != nil {
			return err
		}
	}
	_, opts, err := readSource(c)
	if err != nil {
		return err
	}
	redact := readRedaction(c)
	p := newProgress(c.Bool("quiet"), opts.Whole)
	defer p.Done()
	var recording bytes.Buffer
	opts.Progress = p.Step
	if err := record(c.Context, &recording, opts, redact == redactNothing); err != nil {
		return err
	}
	p.Done()
	if file == "-" {
		return stdio.WriteText(c.App.Writer, recording.String())
	}
	if err := writeFile(c.Context, file, recording.Bytes(), stdio.Private); err != nil {
		return err
	}
	if !c.Bool("quiet") {
		kept := "names, serial numbers, addresses and secrets replaced"
		if redact == redactNothing {
			kept = "with names, serial numbers, addresses and secrets"
		}
		tell("gpudoctor: wrote %s, %d KiB, %s", file, (recording.Len()+1023)/1024, kept)
		tell("hint: gpudoctor check --from %s", file)
	}
	return nil
}
