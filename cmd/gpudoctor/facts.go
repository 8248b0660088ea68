package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks"
)

func factsCommand() *cli.Command {
	return &cli.Command{
		Name:  "facts",
		Usage: "print what was read, as JSON, without judging it",
		Description: `The document is what rules see; gpudoctor check --from takes it. Host names,
serial numbers, UUIDs, MAC and IP addresses are replaced by stand-ins.`,
		Flags: []cli.Flag{fromFlag, withFlag, probeFlag, busyFlag, waitFlag, deadlineFlag, maxBytesFlag, keepFlag, quietFlag},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			src, opts, err := readSource(c)
			if err != nil {
				return err
			}
			p := newProgress(c.Bool("quiet"), opts.Whole)
			defer p.done()
			opts.Progress = p.step
			g := gather(c.Context, src, opts)
			if g.err != nil {
				return g.err
			}
			p.done()
			facts := g.facts
			if !c.Bool(keepFlag.Name) {
				facts = facts.Redact()
			}
			return toStdout(c.App.Writer, func(w io.Writer) error { return checks.WriteFacts(w, facts) })
		},
	}
}
