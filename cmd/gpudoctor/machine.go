package main

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	nccltext "github.com/gpudoctor/gpudoctor/checks/text/nccl"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/rules"
)

func factsCommand() *cli.Command {
	return &cli.Command{
		Name:  "facts",
		Usage: "print the facts as JSON, without applying rules",
		Flags: []cli.Flag{fromFlag, withFlag, probeFlag, busyFlag, waitFlag, deadlineFlag, maxBytesFlag, noRedactFlag, quietFlag},
		Action: func(c *cli.Context) error {
			src, opts, err := readSource(c)
			if err != nil {
				return err
			}
			if err := src.takeImage(c.Context, false); err != nil {
				return err
			}
			redact := readRedaction(c)
			g := collectShown(c.Context, src, opts, c.Bool("quiet"))
			if g.err != nil {
				return g.err
			}
			facts := g.facts
			if redact != redactNothing {
				facts = host.RedactFacts(facts)
			}
			return stdio.Write(c.App.Writer, func(w io.Writer) error { return host.WriteFacts(w, facts) })
		},
	}
}

func snapshotCommand() *cli.Command {
	return &cli.Command{
		Name:  "snapshot",
		Usage: "record this machine to examine it elsewhere",
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
	p := newProgress(c.Bool("quiet"), &opts)
	defer p.Done()
	var recording bytes.Buffer
	machine, err := live()
	if err != nil {
		return err
	}
	machine, record := machine.Record()
	opts.ReadLog = nccltext.Read
	checks.Gather(c.Context, machine, opts)
	if c.Err() != nil {
		return context.Cause(c.Context)
	}
	if err := record.Write(&recording, host.RecordOptions{Version: version, KeepNames: redact == redactNothing}); err != nil {
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

func topoCommand() *cli.Command {
	return &cli.Command{
		Name:  "topo",
		Usage: "show how the GPUs and NICs are connected, and where the problems are",
		Flags: []cli.Flag{fromFlag, withFlag, deadlineFlag, maxBytesFlag, policyFlag, redactFlag, noRedactFlag, colorFlag},
		Action: func(c *cli.Context) error {
			r, err := readJudging(c, rules.Training)
			if err != nil {
				return err
			}
			r.options.Probe = probe.Off
			d, err := diagnoseShown(c.Context, r)
			if d == nil {
				return err
			}
			shown := readRedaction(c).shown(d)(stdio.IsFile(c.App.Writer))
			return stdio.Write(c.App.Writer, func(w io.Writer) error { return report.WriteTopology(w, shown, style(c)) })
		},
	}
}
