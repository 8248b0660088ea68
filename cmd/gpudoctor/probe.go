package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/build"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/rules"
)

// tablesFlag is --verbose where there are transfers alone.
var tablesFlag = &cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, DisableDefaultText: true, Usage: "also show transfers to and from host memory, and the time of each stage"}

func probeCommand() *cli.Command {
	return &cli.Command{
		Name:  "probe",
		Usage: "move data between GPUs and report the result",
		Subcommands: []*cli.Command{{
			Name:  "p2p",
			Usage: "test every ordered pair of GPUs of this machine",
			Description: `exit code: 0 every path carries data correctly at the speed of its links, or
there are fewer than two GPUs; 1 a path does not; 2 wrong usage or an error; 3 a
path could not be tested`,
			Flags:  []cli.Flag{fromFlag, probeFlag, busyFlag, waitFlag, deadlineFlag, redactFlag, noRedactFlag, keepFlag, formatFlag, tablesFlag, quietFlag, colorFlag, asciiFlag},
			Action: probeP2P,
		}},
	}
}

func probeP2P(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	src, opts, err := readSource(c)
	if err != nil {
		return err
	}
	format, known := report.FormatNamed(c.String(formatFlag.Name))
	if !known || format.CI {
		return complaint.UnknownName("value of --format:", c.String(formatFlag.Name), report.TransferFormats(), "probe p2p --format takes one of: "+join(report.TransferFormats()))
	}
	s, err := readStyle(c)
	if err != nil {
		return err
	}
	redact, err := readRedaction(c)
	if err != nil {
		return err
	}
	g := collectShown(c.Context, src, opts, s.Quiet)
	if g.err != nil {
		return g.err
	}
	d := report.New(report.Input{
		TextsOnly: g.textsOnly, Version: version, RulesDigest: build.RulesDigest(), Sources: src.names(), Profile: rules.Training, FailOn: report.Never, Facts: g.facts,
		Probed: len(src.from) == 0 && opts.Probe != probe.Off,
		Timing: report.Timing{TotalMS: report.Milliseconds(g.took["transfers"])},
	})
	code := report.TransfersExitCode(d)
	if s.Quiet && code == exitOK {
		return nil
	}
	s.Tables, s.Quiet = true, false
	shown := redact.Of(d).ToStdout(c.App.Writer)
	if err := stdio.Write(c.App.Writer, func(w io.Writer) error { return format.WriteTransfers(w, shown, s) }); err != nil {
		return err
	}
	return verdict(code)
}
