package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/rules"
)

// checkPolicy refuses a folder without rules and remedies: a policy that is left out unnoticed would let things pass.
func checkPolicy(dir string) error {
	found, err := rules.ReadPolicyFolder(dir, func(name string) bool {
		return path.Ext(name) == ".yaml" || path.Ext(name) == ".rego" && !strings.HasSuffix(name, "_test.rego")
	})
	place, reason := dir, "the folder contains no rules or remedies"
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		place, reason = filepath.Join(dir, filepath.FromSlash(at.Path)), complaint.Reason(err, "folder")
	} else if err != nil || len(found) > 0 {
		return err
	}
	return complaint.Hinted(fmt.Errorf("--policy %s: %s", place, reason), "--policy takes a folder with rules (*.rego) or remedies (*.yaml)")
}

func testPolicyCommand() *cli.Command {
	return &cli.Command{
		Name:      "test",
		Usage:     "check rules of your own, and run their tests and cases",
		ArgsUsage: "DIR",
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return complaint.Hinted(fmt.Errorf("rules test takes one folder, got %d", c.Args().Len()), "gpudoctor rules test DIR")
			}
			dir := c.Args().First()
			if err := checkPolicy(dir); err != nil {
				return err
			}
			known, err := learn(dir)
			if err != nil {
				return err
			}
			r, err := runPolicyTests(c.Context, known.rules, dir)
			if err != nil {
				return problem(err)
			}
			return cmp.Or(stdio.WriteText(c.App.Writer, r.String()), verdict(map[bool]int{true: exitFindings}[r.failed > 0]))
		},
	}
}

type policyResults struct {
	rules, tests, cases int
	// failed is how many tests and cases failed, and failures say why, a line each.
	failed   int
	failures []string
}

// runPolicyTests runs the tests of the policy in a folder, and judges its cases. The rules are those of
// the policy together with the built-in ones.
func runPolicyTests(ctx context.Context, set *rules.Set, dir string) (r policyResults, err error) {
	r.rules = len(lines.Filter(set.Rules(), func(rule rules.Rule) bool { return set.Own(rule.ID) }))
	tests, err := set.TestPolicy(ctx, dir)
	if err != nil {
		return r, err
	}
	for _, t := range tests {
		if t.Failure != "" {
			r.failed++
			r.failures = append(r.failures, fmt.Sprintf("%s:%d: %s: %s", t.File, t.Line, t.Name, t.Failure))
		}
	}
	cases, err := fixtures.Cases(os.DirFS(dir))
	if err != nil {
		return r, complaint.Hinted(fmt.Errorf("read cases: %w", err), "a case is a folder with want.json, and facts.json or patch.json")
	}
	for _, c := range cases {
		failures, err := judgeCase(ctx, set, c)
		if err != nil {
			return r, err
		}
		if len(failures) > 0 {
			r.failed++
		}
		r.failures = append(r.failures, prefixed("case "+c.Name+": ", failures)...)
	}
	r.tests, r.cases = len(tests), len(cases)
	return r, nil
}

// judgeCase compares what the policy's own rules report on a machine with what is wanted.
// Each rule is judged in the first of its profiles.
func judgeCase(ctx context.Context, set *rules.Set, c fixtures.Case) ([]string, error) {
	own := map[rules.Profile][]string{}
	for _, rule := range set.Rules() {
		if set.Own(rule.ID) {
			own[rule.Profiles[0]] = append(own[rule.Profiles[0]], rule.ID)
		}
	}
	var got []string
	var skipped []rules.Skipped
	for _, profile := range slices.Sorted(maps.Keys(own)) {
		v, err := set.Evaluate(ctx, c.Facts, rules.Options{Profile: profile, Only: own[profile]})
		if err != nil {
			return nil, err
		}
		skipped = append(skipped, v.Skipped...)
		for _, f := range v.Findings {
			if set.Own(f.Rule) {
				got = append(got, fmt.Sprintf("%s %s %s %s", f.Rule, f.Subject, f.Severity, f.Confidence))
			}
		}
	}
	want := lines.Map(c.Want.Findings, func(f fixtures.Finding) string {
		return fmt.Sprintf("%s %s %s %s", f.Rule, f.Subject, f.Severity, f.Confidence)
	})
	failures := slices.Concat(
		lines.Lacking("unexpected finding: ", got, want), lines.Lacking("missing finding: ", want, got),
		lines.Lacking("not skipped: ", c.Want.Skipped, lines.Map(skipped, func(s rules.Skipped) string { return s.Rule })),
	)
	for _, s := range skipped {
		if s.Fault {
			failures = append(failures, s.Rule+": "+s.Missing[0].Words)
		}
	}
	slices.Sort(failures)
	return failures, nil
}

func (r policyResults) String() string {
	said := append(prefixed("FAIL  ", r.failures), fmt.Sprintf("%s, %s, %s: %d failed", lines.Count(r.rules, "rule"), lines.Count(r.tests, "test"), lines.Count(r.cases, "case"), r.failed))
	return strings.Join(lines.Clean(said, false), "\n") + "\n"
}
