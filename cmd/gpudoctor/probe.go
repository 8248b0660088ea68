package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
	"github.com/gpudoctor/gpudoctor/checks/probe/nodes"
	"github.com/gpudoctor/gpudoctor/checks/probe/nodes/meeting"
	nccltext "github.com/gpudoctor/gpudoctor/checks/text/nccl"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/fleet"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
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
			Name:   "p2p",
			Usage:  "test every ordered pair of GPUs of this machine",
			Flags:  []cli.Flag{fromFlag, probeFlag, busyFlag, waitFlag, deadlineFlag, redactFlag, noRedactFlag, formatFlag, quietFlag, colorFlag, asciiFlag},
			Action: probeP2P,
		}, {
			Name:   "nccl",
			Usage:  "run collectives of NCCL or RCCL between the GPUs of this machine",
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
	return cmp.Or(stdio.Write(c.App.Writer, func(w io.Writer) error { return write(w, shown) }), verdict(code))
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

const nodesFlag = "nodes"

// tokenVariable holds the secret of a job.
const tokenVariable = "GPUDOCTOR_TOKEN"

// The flags of probe nccl with which the nodes of a job take part.
var (
	betweenFlag = &cli.BoolFlag{Name: nodesFlag, DisableDefaultText: true, Usage: "run them between the nodes of a job of srun, mpirun or Kubernetes, of which this is one"}
	countFlag   = &cli.IntFlag{Name: "count", DefaultText: "what started it says", Usage: "`N`: with --nodes, how many ranks the job has"}
	meetFlag    = &cli.StringFlag{Name: "meet", Usage: "`HOST:PORT`: with --nodes, where the first rank listens (default: the first host of the job)"}
	arriveFlag  = &cli.DurationFlag{Name: "arrive", Value: deadline.Arrive, Usage: "`TIME`: with --nodes, how long to wait for the other nodes"}
)

// probeNodes takes part in the probe of a job. The first rank leads it and writes the result; the others write nothing.
func probeNodes(c *cli.Context, opts gather.Options, format string) error {
	for _, other := range []string{fromFlag.Name, armsFlag.Name, redactFlag.Name} {
		if c.IsSet(other) {
			return complaint.Hinted(fmt.Errorf("--%s and --%s cannot be used together", other, nodesFlag), "the nodes of a running job are tested as they are configured, and named")
		}
	}
	host, _ := os.Hostname() // The rank names it as well.
	place, err := nodes.Find(os.Getenv, fullName("/etc/hosts", host), c.Int(countFlag.Name))
	if err != nil {
		return complaint.Hinted(err, "srun --ntasks-per-node=1 gpudoctor probe nccl --nodes", "RANK and WORLD_SIZE may be set by hand, and --count says of how many ranks; docs/probe.md has more")
	}
	o := meeting.Options{
		Place: place, Host: cmp.Or(os.Getenv("SLURMD_NODENAME"), host), Secret: cmp.Or(os.Getenv(tokenVariable), place.Engine+" "+place.Job), Arrive: c.Duration(arriveFlag.Name),
		Alone: deadline.Whole, Start: opts.ProbeTimeout, ReadLog: nccltext.Read,
	}
	_ = os.Unsetenv(tokenVariable) // No library needs it.
	if t := opts.ProbeTimeout; t > 0 {
		o.Patience, o.Join, o.Alone = min(t, deadline.Transfer), min(t, deadline.Join), max(o.Alone, 4*t)
	}
	if o.Meet, err = meeting.Points(c.String(meetFlag.Name), place); err != nil {
		return complaint.Hinted(err, "--meet takes HOST:PORT, such as node1:29500, the same on all ranks")
	}
	if !c.IsSet(deadlineFlag.Name) {
		opts.Whole = deadline.Nodes
	}
	p := newProgress(c.Bool(quietFlag.Name), &opts)
	defer p.Done()
	ctx, stop := context.WithTimeout(c.Context, opts.Whole)
	defer stop()
	opts.Whole, o.Progress = o.Alone, p.Step
	o.Survey = func(ctx context.Context) meeting.Survey { return survey(ctx, opts) }
	if place.Rank > 0 {
		if err := meeting.Join(ctx, o); err != nil {
			return complaint.Hinted(err, "it is sought at "+strings.Join(o.Meet, ", ")+"; --meet HOST:PORT names another place, the same on all ranks", "the first rank waits for --arrive, "+o.Arrive.String())
		}
		return nil
	}
	r, err := meeting.Lead(ctx, o)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return complaint.Hinted(err, "--meet HOST:PORT names another port, the same on all ranks")
	}
	p.Done()
	return writeNodes(c, format, r)
}

func writeNodes(c *cli.Context, format string, r *nodes.Report) error {
	code := fleet.NetworkExitCode(r)
	if c.Bool(quietFlag.Name) && code == exitOK {
		return nil
	}
	return cmp.Or(stdio.Write(c.App.Writer, func(w io.Writer) error {
		if format != "json" {
			return fleet.WriteNetwork(w, r)
		}
		return lines.WriteJSON(w, r)
	}), verdict(code))
}

// survey makes the check of this node by itself: what probe nccl runs first, between its own GPUs.
func survey(ctx context.Context, opts gather.Options) meeting.Survey {
	opts.Collectives, opts.CollectivesIfDue, opts.Probe, opts.CollectiveArms, opts.Progress = probe.Quick, false, probe.Off, collective.Names()[:1], func(string) {}
	g := collect(ctx, source{}, opts)
	if g.err != nil || g.facts.Collectives == nil {
		return meeting.Survey{Outcome: probe.Unknown, Reason: fmt.Sprintf("its own check did not run: %v", g.err)}
	}
	r := g.facts.Collectives
	s := meeting.Survey{Outcome: r.Outcome, Reason: r.Reason, GPUs: r.GPUs, Version: r.Version, Settings: collective.Shaping(), Local: collective.Local{API: "cuda", Library: r.Path}}
	if r.Library == "rccl" {
		s.Local.API = "hip"
	}
	if box := g.facts.Container; box != nil && box.NOFILESoft != nil {
		s.Local.FilesLimit = *box.NOFILESoft
	}
	return s
}

// fullName is the name of this host with its domain, as a pod of Kubernetes has it in /etc/hosts; its name if there is none.
func fullName(hosts, host string) string {
	f, err := os.Open(hosts)
	if err != nil {
		return host
	}
	defer f.Close() //nolint:errcheck // Only read.
	raw, _ := io.ReadAll(io.LimitReader(f, 1<<20))
	for name := range strings.FieldsSeq(string(raw)) {
		if strings.HasPrefix(name, host+".") {
			return name
		}
	}
	return host
}
