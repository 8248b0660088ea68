package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
)

func factsCommand() *cli.Command {
	return &cli.Command{
		Name:  "facts",
		Usage: "print the facts as JSON, without applying rules",
		Description: `The document is the input of the rules; gpudoctor check --from accepts it. Names
of hosts, users, jobs and images, serial numbers, UUIDs, MAC and IP addresses and
secrets are replaced: each value always by the same stand-in.`,
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
