package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/recorded"
)

func factsCommand() *cli.Command {
	return &cli.Command{
		Name:  "facts",
		Usage: "print what was read as JSON, without judging it",
		Description: `The document is what rules see; gpudoctor check --from takes it. Names of
hosts, users, jobs and images, serial numbers, UUIDs, MAC and IP addresses and
secrets are replaced by stand-ins, the same thing by the same one.`,
		Flags: []cli.Flag{fromFlag, withFlag, probeFlag, busyFlag, waitFlag, deadlineFlag, maxBytesFlag, noRedactFlag, keepFlag, quietFlag},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			src, opts, err := readSource(c)
			if err != nil {
				return err
			}
			redact, err := readRedaction(c)
			if err != nil {
				return err
			}
			g := collectShown(c.Context, src, opts, c.Bool("quiet"))
			if g.err != nil {
				return g.err
			}
			facts := g.facts
			if redact != redactNothing {
				facts = recorded.RedactFacts(facts)
			}
			return toStdout(c.App.Writer, func(w io.Writer) error { return recorded.WriteFacts(w, facts) })
		},
	}
}
