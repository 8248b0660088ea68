package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/rules"
)

func showRuleCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print the file of a rule",
		ArgsUsage: "ID",
		Flags:     []cli.Flag{policyFlag},
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return complaint.Hinted(fmt.Errorf("rules show takes one id, got %d", c.Args().Len()), "gpudoctor rules list shows the rules")
			}
			policy, err := readPolicy(c)
			if err != nil {
				return err
			}
			known, err := learn(policy)
			if err != nil {
				return err
			}
			id := c.Args().First()
			rule, ok := known.rules.Rule(id)
			if !ok {
				return problem(&rules.UnknownRuleError{ID: id, Nearest: rules.Nearest(id, known.names())})
			}
			source, err := known.rules.Source(rule)
			if err != nil {
				return fmt.Errorf("read %s: %w", rule.File, err)
			}
			return stdio.Write(c.App.Writer, func(w io.Writer) error { return writeSource(w, source) })
		},
	}
}

// writeSource writes a file's lines, with what a terminal would obey made visible.
func writeSource(w io.Writer, source []byte) error {
	var b strings.Builder
	for line := range strings.Lines(string(source)) {
		indent := len(line) - len(strings.TrimLeft(line, "\t"))
		b.WriteString(strings.Repeat("\t", indent) + lines.Printable(strings.TrimRight(line[indent:], "\r\n"), false) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func testPolicyCommand() *cli.Command {
	return &cli.Command{
		Name:      "test",
		Usage:     "check rules of your own, and run their tests and cases",
		ArgsUsage: "DIR",
		Description: `Checks the rules (*.rego) in DIR against the contract and the schema of the
facts, runs their tests (*_test.rego) with coverage, and judges the cases: folders
below DIR/cases with want.json, and facts.json (what gpudoctor facts wrote) or
patch.json. Each test has the bounds of a rule, and no network, clock or environment.

exit code: 0 everything passed; 1 a test or a case failed; 2 the rules are
malformed, or wrong usage`,
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
			if err := stdio.Write(c.App.Writer, r.Write); err != nil {
				return err
			}
			return verdict(map[bool]int{true: exitFindings, false: exitOK}[r.Failed > 0])
		},
	}
}
