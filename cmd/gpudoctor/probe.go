package main

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/rules"
)

// operationsFlag is --verbose where there are collectives alone.
var operationsFlag = &cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, DisableDefaultText: true, Usage: "show every operation of every arm"}

// ncclFlag and armsFlag choose the library and the arms of the collectives.
var (
	ncclFlag = &cli.StringFlag{Name: "nccl", Usage: "`FILE`: the libnccl or librccl to load (default: the one that a job would load)"}
	armsFlag = &cli.StringFlag{Name: "arms", Usage: "`NAMES`: after the first run, try only these: " + strings.Join(collective.Names()[1:], ", ")}
)

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
			Flags:  []cli.Flag{fromFlag, probeFlag, busyFlag, waitFlag, deadlineFlag, redactFlag, noRedactFlag, formatFlag, quietFlag, colorFlag, asciiFlag},
			Action: probeP2P,
		}, {
			Name:  "nccl",
			Usage: "run collectives of NCCL or RCCL between the GPUs of this machine",
			Description: `Loads the library that a job would load, in a process for each GPU, and runs
all-reduce, send and receive and all-to-all. Each GPU verifies what it receives.
With --probe full, or if something fails, the same is tried without transports
such as P2P and shared memory, and without the library's variables.

With --nodes, it runs on each node of a job of Slurm, MPI or Kubernetes. The nodes
meet, run all-reduce all together and in pairs, and narrow down which node, NIC or
path is bad. The first rank writes the result.

exit code: 0 the collectives are correct and not slower than the links allow; 1 they
are not; 2 wrong usage or an error; 3 their outcome is not known`,
			Flags:  []cli.Flag{fromFlag, probeFlag, ncclFlag, armsFlag, betweenFlag, countFlag, meetFlag, arriveFlag, busyFlag, waitFlag, deadlineFlag, redactFlag, noRedactFlag, formatFlag, operationsFlag, quietFlag},
			Action: probeNCCL,
		}},
	}
}

func probeP2P(c *cli.Context) error {
	src, opts, err := readSource(c)
	if err != nil {
		return err
	}
	opts.Collectives = probe.Off
	s := style(c)
	s.Verbose, s.Quiet = true, false
	return probeAlone(c, src, opts, report.TransfersExitCode, func(w io.Writer, d *report.Document) error {
		return report.WriteTransfers(w, formatIn(c), d, s)
	})
}

// probeAlone runs a probe and writes what it did, unless that is well and --quiet is set.
func probeAlone(c *cli.Context, src source, opts gather.Options, codeOf func(*report.Document) int, write func(io.Writer, *report.Document) error) error {
	quiet := c.Bool(quietFlag.Name)
	g := collectShown(c.Context, src, opts, quiet)
	if g.err != nil {
		return g.err
	}
	d := report.New(report.Input{
		TextsOnly: g.textsOnly, Version: version, RulesDigest: rulesDigest(), Sources: src.names(), Profile: rules.Training, FailOn: report.Never, Facts: g.facts,
		Probed: len(src.from) == 0 && opts.Probe != probe.Off,
		Timing: report.Timing{TotalMS: report.Milliseconds(g.took["transfers"])},
	})
	code := codeOf(d)
	if quiet && code == exitOK {
		return nil
	}
	shown := readRedaction(c).shown(d)(stdio.IsFile(c.App.Writer))
	if err := stdio.Write(c.App.Writer, func(w io.Writer) error { return write(w, shown) }); err != nil {
		return err
	}
	return verdict(code)
}

func probeNCCL(c *cli.Context) error {
	src, opts, err := readSource(c)
	if err != nil {
		return err
	}
	if c.Bool(nodesFlag) {
		opts.NCCL = c.String(ncclFlag.Name)
		return probeNodes(c, opts, formatIn(c))
	}
	opts.Collectives, opts.CollectivesIfDue, opts.Probe, opts.NCCL = opts.Probe, false, probe.Off, c.String(ncclFlag.Name)
	if opts.NCCL != "" && len(src.from) > 0 {
		return complaint.Hinted(errors.New("--nccl and --from cannot be used together"), "a recording contains the collectives that were run when it was made")
	}
	if list := c.String(armsFlag.Name); list != "" {
		opts.CollectiveArms = strings.Split(list, ",")
		for _, name := range opts.CollectiveArms {
			if all := collective.Names(); !slices.Contains(all, name) {
				return complaint.UnknownName("arm", name, all, "--arms takes names of: "+join(all))
			}
		}
	}
	return probeAlone(c, src, opts, report.CollectivesExitCode, func(w io.Writer, d *report.Document) error {
		return report.WriteCollectives(w, formatIn(c), d.Collectives, c.Bool(operationsFlag.Name))
	})
}
