package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/cmd/internal/compare"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/cmd/internal/units"
	"github.com/gpudoctor/gpudoctor/rules"
)

// The flags that several commands take.
var (
	fromFlag     = &cli.StringSliceFlag{Name: "from", Usage: "`FILE`: examine logs or command output (file, folder, archive or -), or a recording"}
	withFlag     = &cli.StringSliceFlag{Name: "with", Usage: "`FILE`: also examine this log, such as the output of the failed job"}
	probeFlag    = &cli.StringFlag{Name: "probe", Usage: "`MODE`: run the probe: off, quick or full (default quick)"}
	busyFlag     = &cli.BoolFlag{Name: "probe-busy", DisableDefaultText: true, Usage: "also test GPUs that other processes are using"}
	waitFlag     = &cli.DurationFlag{Name: "probe-timeout", Usage: "`TIME`: timeout for each driver step (30s, 2m)"}
	deadlineFlag = &cli.DurationFlag{
		Name: "deadline", EnvVars: []string{"GPUDOCTOR_DEADLINE"},
		Usage: "`TIME`: stop after this time (default 30s; 2m with --probe full, 10m with --from)",
	}
	maxBytesFlag = &cli.StringFlag{
		Name:  "max-bytes",
		Usage: "`SIZE`: read at most this much input, unpacked (500MB, 8GiB; default " + humanize.IBytes(text.DefaultMaxBytes) + ")",
	}
	targetFlag    = &cli.StringFlag{Name: "target", Usage: "`FILE`: judge an image or files of a job for this recorded machine"}
	driverFlag    = &cli.StringFlag{Name: "driver", Usage: "`VERSION`: judge an image for machines with this NVIDIA driver (550.54)"}
	platformFlag  = &cli.StringFlag{Name: "platform", Usage: "`OS/ARCH`: examine this image of several (default linux/amd64, or that of --target)"}
	plainHTTPFlag = &cli.BoolFlag{Name: "plain-http", DisableDefaultText: true, Usage: "reach the registry of an image without encryption"}
	colorFlag     = &cli.StringFlag{
		Name: "color", Value: colorAuto, EnvVars: []string{"GPUDOCTOR_COLOR"},
		Usage: "`WHEN`: auto, always or never",
	}
	formatFlag = &cli.StringFlag{
		Name: "format", Value: "text", EnvVars: []string{"GPUDOCTOR_FORMAT"},
		Usage: "`FORMAT`: write text or json, or for diff also markdown",
	}
	// checkFormatFlag is formatFlag where findings are written.
	checkFormatFlag = &cli.StringFlag{
		Name: "format", Value: "text", EnvVars: []string{"GPUDOCTOR_FORMAT"},
		Usage: "`FORMAT`: write text, json, markdown, html or a format for CI",
	}
	outputFlag = &cli.StringSliceFlag{
		Name: "output", Aliases: []string{"o"},
		Usage: "`FILE`: write FILE (.txt, .json, .md, .html) or FORMAT=FILE; may be repeated",
	}
	verboseFlag = &cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, DisableDefaultText: true, Usage: "also show evidence, all transfers and what was not judged"}
	quietFlag   = &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, DisableDefaultText: true, Usage: "print only what makes the exit code nonzero"}
	waiveFlag   = &cli.StringFlag{Name: "waive", Usage: "`FILE`: accept the findings that this file waives"}
	policyFlag  = &cli.StringFlag{
		Name: "policy", EnvVars: []string{"GPUDOCTOR_POLICY"},
		Usage: "`DIR`: add rules (*.rego) and remedies (*.yaml)",
	}
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:  "check",
		Usage: "examine this machine or a recording, and recommend what to do",
		Flags: append([]cli.Flag{
			fromFlag,
			withFlag,
			probeFlag,
			busyFlag,
			waitFlag,
			maxBytesFlag,
			&cli.StringSliceFlag{Name: "exclude", Usage: "`PATTERN`: leave out these files and folders below --from (test/*)"},
			&cli.StringFlag{Name: "baseline", Usage: "`FILE`: also say what became of the findings of this report or snapshot"},
			&cli.StringFlag{
				Name: "profile", Value: string(rules.Training), EnvVars: []string{"GPUDOCTOR_PROFILE"},
				Usage: "`PROFILE`: training, image (under build) or launch (files of a job)",
			},
		}, judgingFlags()...),
		Action: check,
	}
}

func judgingFlags() []cli.Flag {
	return []cli.Flag{
		deadlineFlag,
		targetFlag,
		driverFlag,
		platformFlag,
		plainHTTPFlag,
		&cli.StringFlag{
			Name: "fail-on", Value: string(rules.High), EnvVars: []string{"GPUDOCTOR_FAIL_ON"},
			Usage: "`SEV`: lowest severity for exit code 1: critical to info, or none",
		},
		&cli.BoolFlag{Name: "strict", DisableDefaultText: true, Usage: "exit with code 3 if anything could not be examined"},
		&cli.StringSliceFlag{Name: "only", Usage: "`IDS`: apply only these rules (comma-separated)"},
		&cli.StringSliceFlag{Name: "skip", Usage: "`IDS`: skip these rules"},
		policyFlag,
		waiveFlag,
		redactFlag, noRedactFlag,
		checkFormatFlag,
		outputFlag,
		verboseFlag,
		quietFlag,
		colorFlag,
		asciiFlag,
	}
}

func check(c *cli.Context) error {
	r, err := readRequest(c)
	if err != nil {
		return err
	}
	return runRequest(c, r)
}

func runRequest(c *cli.Context, r request) error {
	all, err := outputs(c.StringSlice("output"), c.String("format"), c.IsSet("format"))
	if err != nil {
		return err
	}
	if err := apart(c.App, filesOf(all), append(r.source.inputs(), lines.NonEmpty(r.waive)...)...); err != nil {
		return err
	}
	s := style(c)
	redact := readRedaction(c)
	if r.profile == rules.Launch && redact == redactFiles {
		redact = redactSecrets // The names are those of the reader's own repository.
	}
	set := settingsOf(c.App)
	if r.waivers, err = readWaivers(c.Context, set, r.waive); err != nil {
		return err
	}
	tellSettings(set, s.Quiet)
	r.settings = set.All
	p := newProgress(s.Quiet, &r.options)
	defer p.Done()
	d, err := diagnose(c.Context, r)
	if d == nil {
		return err
	}
	p.Done()
	if r.baseline != nil {
		sides := []compare.Input{*r.baseline, {Report: d, Facts: d.Facts()}}
		alikeNames(sides)
		d.Baseline = compare.Since(sides[0], sides[1])
	}
	if slices.ContainsFunc(all, func(o output) bool { return o.format.Name == "json" }) && r.profile == rules.Training {
		d.AddTraits()
	}
	shown := redact.shown(d)
	if err := writeOutputs(c.Context, all, s, c.App.Writer, func(w io.Writer, o output, s report.Style) error {
		return o.format.Write(w, shown(o.file != "" || stdio.IsFile(c.App.Writer)), s)
	}); err != nil {
		return err
	}
	if !s.Quiet {
		if err := sayWritten(all, fmt.Sprintf("%s; exit %d", d.Verdict.InShort(), d.Verdict.ExitCode), c.App.Writer); err != nil {
			return err
		}
	}
	return cmp.Or(err, verdict(d.Verdict.ExitCode))
}

// readRequest reads what is to be examined, and how it is to be judged.
func readRequest(c *cli.Context) (request, error) {
	profile := rules.Profile(c.String("profile"))
	r, err := readJudging(c, profile)
	if err != nil {
		return r, err
	}
	if err := r.takeImage(c); err != nil {
		return r, err
	}
	if r.profile == rules.Launch && len(r.source.from) == 0 {
		return r, complaint.Hinted(errors.New("--profile launch needs files: --from FILE"), units.Takes)
	}
	if name := c.String("baseline"); name != "" {
		before, err := readInputs(c.Context, []string{name}, r.policy)
		if err != nil {
			return r, err
		}
		r.baseline = &before[0]
	}
	return r, r.readTarget(c)
}

func readJudging(c *cli.Context, profile rules.Profile) (request, error) {
	r := request{
		profile: profile,
		failOn:  report.Threshold(cmp.Or(c.String("fail-on"), string(rules.High))), // Some commands have no such flag.
		strict:  c.Bool("strict"),
		only:    ids(c.StringSlice("only")),
		skip:    ids(c.StringSlice("skip")),
		waive:   c.String(waiveFlag.Name),
		policy:  c.String(policyFlag.Name),
		again:   recheck(c),
	}
	for _, flag := range []string{"only", "skip"} {
		if c.IsSet(flag) && len(ids(c.StringSlice(flag))) == 0 {
			return r, complaint.Hinted(fmt.Errorf("--%s %s matches no rule", flag, strings.Join(c.StringSlice(flag), " ")), "gpudoctor rules list shows the rules")
		}
	}
	var err error
	if r.source, r.options, err = readSource(c); err != nil {
		return r, err
	}
	if r.profile == rules.Image && !c.IsSet(probeFlag.Name) {
		r.options.Probe, r.options.Collectives, r.options.CollectivesIfDue = probe.Off, probe.Off, false
	}
	r.options.Image = r.profile == rules.Image
	return r, err
}

// readSource reads --from, --with and how the probe is to be run.
func readSource(c *cli.Context) (s source, opts gather.Options, err error) {
	opts.Probe = probe.Mode(cmp.Or(c.String(probeFlag.Name), string(probe.Quick)))
	opts.ProbeBusy = c.Bool(busyFlag.Name)
	opts.ProbeTimeout = c.Duration(waitFlag.Name)
	if opts.ProbeTimeout < 0 {
		return s, opts, errors.New("--probe-timeout is negative")
	}
	if opts.Whole = c.Duration(deadlineFlag.Name); c.IsSet(deadlineFlag.Name) && opts.Whole < deadline.Least {
		return s, opts, complaint.Hinted(fmt.Errorf("--deadline %s is too short", opts.Whole), "the minimum is "+deadline.Least.String())
	}
	opts.Whole = cmp.Or(opts.Whole, defaultDeadline(c, opts))
	opts.Collectives, opts.CollectivesIfDue = opts.Probe, opts.Probe == probe.Quick
	s = source{from: c.StringSlice(fromFlag.Name), exclude: c.StringSlice("exclude"), with: c.StringSlice(withFlag.Name), stdin: c.App.Reader}
	if s.maxBytes, err = readSize(c, maxBytesFlag.Name); err != nil {
		return s, opts, err
	}
	if len(s.from) > 0 && (c.IsSet(probeFlag.Name) && opts.Probe != probe.Off || c.IsSet(busyFlag.Name) || c.IsSet(waitFlag.Name)) {
		return s, opts, complaint.Hinted(errors.New("--probe and --from cannot be used together"), "a recording contains the transfers that were measured when it was made")
	}
	return s, opts, s.check(c.Context)
}

// readSize reads a flag that takes a number of bytes; 0 is one that is not set.
func readSize(c *cli.Context, flag string) (int64, error) {
	if !c.IsSet(flag) {
		return 0, nil
	}
	size, err := humanize.ParseBytes(c.String(flag))
	if err != nil || size == 0 || size > math.MaxInt64 {
		return 0, complaint.Hinted(fmt.Errorf("invalid value %q for --%s", c.String(flag), flag), "a size is a positive number with a unit: 500MB, 2GiB")
	}
	return int64(size), nil
}

// defaultDeadline is how long the whole command may take by default. A longer
// --probe-timeout also raises it.
func defaultDeadline(c *cli.Context, opts gather.Options) time.Duration {
	switch {
	case len(c.StringSlice(fromFlag.Name))+len(c.StringSlice(withFlag.Name)) > 0, c.Command.Name == "image":
		return deadline.Texts
	case opts.Probe == probe.Full:
		return max(deadline.Full, 4*opts.ProbeTimeout)
	}
	return max(deadline.Whole, 4*opts.ProbeTimeout)
}

func ids(lists []string) []string {
	return lines.NonEmpty(lines.Map(strings.Split(strings.Join(lists, ","), ","), strings.TrimSpace)...)
}
