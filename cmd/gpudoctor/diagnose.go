package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/compare"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/settings"
	"github.com/gpudoctor/gpudoctor/cmd/internal/units"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// request is what is to be examined, and how it is to be judged.
type request struct {
	source source
	// options are how its facts are gathered.
	options    gather.Options
	profile    rules.Profile
	failOn     report.Threshold
	strict     bool
	only, skip []string
	policy     string
	// target is the machine that an image is judged for where --target names no file of
	// it; nil for none. driver is the version of the driver there that --driver states.
	target *facts.TargetFacts
	driver string
	// waive is the file that --waive names, and waivers are those in force.
	waive   string
	waivers []waivers.Waiver
	// baseline is an earlier report that the new one is compared with; nil for none.
	baseline *compare.Input
	// settings are what files set of it.
	settings []settings.Setting
	// again is what a command has to repeat to judge the same things again.
	again remedies.Recheck
}

// ruleLimit and ruleMemory are rules.Options.Limit and Memory; tests change them.
var (
	ruleLimit  time.Duration
	ruleMemory uint64
)

// diagnose is the straight line: host, facts, findings, advice, report. The rules are read while facts are gathered,
// and compiled while the GPUs are probed. It may return both a report and an error: see gathered.
func diagnose(ctx context.Context, r request) (*report.Document, error) {
	start := time.Now()
	gathering, stop := context.WithCancel(ctx)
	defer stop()
	target, err := r.openTarget(gathering)
	if err != nil {
		return nil, err
	}
	read := make(chan gathered, 1)
	go func() { read <- collect(gathering, r.source, r.options) }()
	known, only, skip, err := r.knowledge()
	if err != nil {
		return nil, err
	}
	if err := waivers.CheckRules(r.waivers, known.ruleIDs()); err != nil {
		return nil, err
	}
	choice := rules.Options{Profile: r.profile, Only: only, Skip: skip, Limit: ruleLimit, Memory: ruleMemory}
	// Of a folder there are many units to judge; of one file, only what it needs is compiled later.
	if r.probed() || r.profile == rules.Launch && len(only) == 0 && r.source.folder() != "" {
		if err := known.rules.Compile(choice); err != nil {
			return nil, problem(err)
		}
	}
	g := r.aim(<-read, target)
	if g.facts == nil {
		return nil, g.err
	}
	f, complete := g.facts, time.Now()
	// A policy of the user's may take forever. What is left is given as processor time, which a busy machine
	// does not use up.
	choice.Time = max(r.options.Whole-time.Since(start), deadline.Ending)
	var parts []report.Part
	var verdict *rules.Result
	if r.profile == rules.Launch {
		parts = units.Split(f)
		verdict, err = units.Evaluate(ctx, known.rules, parts, choice)
	} else {
		verdict, err = known.rules.Evaluate(ctx, f, choice)
	}
	if err != nil {
		return nil, problem(err)
	}
	judged := time.Now()
	counting, waiving := verdict.Findings, (*waivers.Result)(nil)
	accepted := units.Accepted(parts)
	if err := waivers.CheckRules(accepted, known.acceptable()); err != nil {
		return nil, err
	}
	if accepted = append(accepted, r.waivers...); len(accepted) > 0 {
		applied := waivers.Apply(*verdict, accepted, time.Now().UTC().Format(waivers.DateForm))
		counting, waiving = applied.Findings, &applied
	}
	ranking := units.Rank(parts, counting, f, func(findings []rules.Finding, f *facts.Facts) remedies.Ranking {
		return r.rank(known.remedies, findings, f)
	})
	end := time.Now()

	timing := report.Timing{
		TotalMS:    report.Milliseconds(end.Sub(start)),
		RulesMS:    report.Milliseconds(judged.Sub(complete)),
		RemediesMS: report.Milliseconds(end.Sub(judged)),
		ChecksMS:   map[string]float64{},
	}
	for check, d := range g.took {
		timing.ChecksMS[check] = report.Milliseconds(d)
	}
	return report.New(report.Input{
		Probed: r.probed(), TextsOnly: g.textsOnly, Rules: known.rules.Rules(),
		Version: version, RulesDigest: rulesDigest(), Sources: r.source.names(), Profile: r.profile, FailOn: r.failOn, Strict: r.strict, Only: only,
		Facts: f, Verdict: *verdict, Waiving: waiving, Advice: ranking.Advice, Withheld: ranking.Withheld, Recheck: r.again, Timing: timing,
		Settings: r.settings, Folder: r.source.folder(), Parts: parts,
	}), g.err
}

func diagnoseShown(ctx context.Context, r request) (*report.Document, error) {
	p := newProgress(false, &r.options)
	defer p.Done()
	return diagnose(ctx, r)
}

// probed reports whether the request asks for transfers of its own.
func (r request) probed() bool { return len(r.source.from) == 0 && r.options.Probe != probe.Off }

func (r request) rank(known *remedies.Set, findings []rules.Finding, f *facts.Facts) remedies.Ranking {
	return known.Suiting(f).Rank(findings, remedies.Situation{Facts: f, Proofs: known.Proofs(f.Transfers), Recheck: r.again})
}

// requestFor is what check is asked for by its flags --from and --profile.
func requestFor(profile rules.Profile, from ...string) request {
	flags := repeat(fromFlag.Name, from...)
	if profile != rules.Training {
		flags = append(flags, repeat("profile", string(profile))...)
	}
	return request{source: source{from: from}, profile: profile, failOn: report.Threshold(rules.High), again: remedies.Recheck{Flags: flags, Files: readsFiles(from)}}
}

func repeat(flag string, values ...string) []string {
	var flags []string
	for _, value := range values {
		flags = append(flags, "--"+flag, value)
	}
	return flags
}

// readsFiles reports whether a source is other than an example, which nothing changes.
func readsFiles(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, examplePrefix) })
}

// repeated are the flags that decide what is examined and how it is judged, but for --only and --skip.
var repeated = []string{
	fromFlag.Name, withFlag.Name, probeFlag.Name, busyFlag.Name, waitFlag.Name, deadlineFlag.Name, maxBytesFlag.Name, "exclude", "profile", targetFlag.Name,
	driverFlag.Name, platformFlag.Name, plainHTTPFlag.Name, policyFlag.Name, waiveFlag.Name, "fail-on", "strict",
}

// recheck is what a command has to repeat to judge the same things again.
func recheck(c *cli.Context) remedies.Recheck {
	again := remedies.Recheck{Files: readsFiles(append(c.StringSlice(fromFlag.Name), c.StringSlice(withFlag.Name)...))}
	for _, name := range repeated {
		switch value := c.Value(name).(type) {
		case cli.StringSlice:
			again.Flags = append(again.Flags, repeat(name, c.StringSlice(name)...)...)
		case bool:
			if value {
				again.Flags = append(again.Flags, "--"+name)
			}
		default:
			if c.IsSet(name) {
				again.Flags = append(again.Flags, repeat(name, fmt.Sprint(value))...)
			}
		}
	}
	return again
}

// knowledge is the rules and remedies that the request is judged by, with the
// rules that it asks for and those that it leaves out.
func (r request) knowledge() (known knowledge, only, skip []string, err error) {
	if known, err = learn(r.policy); err != nil {
		return known, nil, nil, err
	}
	only, err = known.expand(r.only)
	if err == nil {
		skip, err = known.expand(r.skip)
	}
	return known, only, skip, cmp.Or(err, known.anyLeft(r.profile, only, skip))
}

type knowledge struct {
	rules    *rules.Set
	remedies *remedies.Set
}

// learn loads the rules and remedies, concurrently, including those in a folder of the user.
func learn(policy string) (knowledge, error) {
	var k knowledge
	var ruleErr, remedyErr error
	var wg sync.WaitGroup
	if policy == "" {
		wg.Go(func() { k.remedies, remedyErr = remedies.Load() })
		k.rules, ruleErr = rules.Load()
	} else {
		wg.Go(func() { k.remedies, remedyErr = remedies.LoadWith(policy) })
		k.rules, ruleErr = rules.LoadWith(policy)
	}
	wg.Wait()
	if err := cmp.Or(ruleErr, remedyErr); err != nil || policy == "" {
		return k, problem(err)
	}
	return k, problem(k.remedies.Check(k.rules.Rules()))
}

// acceptable are what a remark in a file may accept: the ids of all rules and causes.
func (k knowledge) acceptable() []string {
	return append(k.ruleIDs(), lines.Map(k.rules.Rules(), func(r rules.Rule) string { return r.Cause })...)
}

func (k knowledge) ruleIDs() []string {
	return lines.Map(k.rules.Rules(), func(r rules.Rule) string { return r.ID })
}

// problem gives the faults of rules and remedies as one line for the first of them and hints for the rest.
func problem(err error) error {
	var all []error
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	var first *rules.Problem
	if err == nil || !errors.As(err, &first) {
		return err
	}
	return complaint.Hinted(first, append(lines.NonEmpty(first.Hint), alsoHints(all)...)...)
}

// expand checks that each id is a rule, and replaces each cause by the rules that report it.
func (k knowledge) expand(ids []string) ([]string, error) {
	var all []string
	for _, id := range ids {
		meant := lines.Filter(k.rules.Rules(), func(r rules.Rule) bool { return r.ID == id || r.Cause == id })
		if len(meant) == 0 {
			return nil, complaint.UnknownName("rule", id, k.ruleIDs(), "gpudoctor rules list shows the rules")
		}
		all = append(all, lines.Map(meant, func(r rules.Rule) string { return r.ID })...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// anyLeft refuses a choice of rules that leaves none to judge: such a run could only be green.
func (k knowledge) anyLeft(profile rules.Profile, only, skip []string) error {
	left := slices.ContainsFunc(k.rules.Rules(), func(r rules.Rule) bool {
		return (len(only) == 0 || slices.Contains(only, r.ID)) && !slices.Contains(skip, r.ID) && (len(r.Profiles) == 0 || slices.Contains(r.Profiles, profile))
	})
	if !left {
		return complaint.Hinted(fmt.Errorf("--only and --skip leave no rule to apply for the profile %s", profile), "gpudoctor rules list shows the rules and their profiles")
	}
	return nil
}
