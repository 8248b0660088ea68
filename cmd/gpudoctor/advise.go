package main

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/emit"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
	"github.com/gpudoctor/gpudoctor/rules"
)

func adviseCommand() *cli.Command {
	return &cli.Command{
		Name:  "advise",
		Usage: "write the settings that this machine needs, for a launcher or a container",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "for", Usage: "`TARGET`: write a file for this launcher, runtime or part of the system"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FILE`: write to FILE instead of standard output"},
			fromFlag, withFlag, probeFlag, busyFlag, waitFlag, deadlineFlag, maxBytesFlag, policyFlag, formatFlag, colorFlag, asciiFlag,
		},
		Action: advise,
	}
}

func advise(c *cli.Context) error {
	r, file, err := readAdvise(c)
	if err != nil {
		return err
	}
	s := style(c)
	d, unread := diagnoseShown(c.Context, r)
	if d == nil {
		return unread
	}
	needs, err := planOf(d, r.policy)
	if err != nil {
		return cmp.Or(unread, err)
	}
	if c.IsSet("for") && needs.IsEmpty() {
		return complaint.Hinted(errors.New("no GPU is known and no problem was found, so there is nothing to write"),
			"on a machine with GPUs: gpudoctor snapshot -o machine.txtar; then here: gpudoctor advise --from machine.txtar",
			"an example: gpudoctor advise --from "+examplePrefix+example)
	}
	var b bytes.Buffer
	perm := stdio.Shared
	if target, ok := emit.Named(c.String("for")); ok {
		b.WriteString(target.Write(needs, file))
		if target.Executable {
			perm |= 0o111
		}
	} else if c.String(formatFlag.Name) == "json" {
		if err := lines.WriteJSON(&b, needs); err != nil {
			return err
		}
	} else {
		b.Write(emit.Overview(needs, s.Width, s.Color && file == "", s.ASCII))
	}
	if file != "" {
		if err := writeFile(c.Context, file, b.Bytes(), perm); err != nil {
			return err
		}
		b.Reset()
		b.WriteString("wrote " + lines.Printable(file, s.ASCII) + "\n")
	}
	return cmp.Or(stdio.WriteText(c.App.Writer, b.String()), unread)
}

// readAdvise reads what is examined, and the file that is written; empty for standard output.
func readAdvise(c *cli.Context) (r request, file string, err error) {
	if c.IsSet("for") && formatIn(c) != report.TransferFormats[0] {
		return r, "", complaint.Hinted(errors.New("--for and --format exclude each other"), "--format json writes the settings for programs, --for a file for a launcher")
	}
	if r, err = readJudging(c, rules.Training); err != nil {
		return r, "", err
	}
	file = c.String("output")
	if file == "" || file == standardInput {
		return r, "", nil
	}
	if err := writable("-o", file); err != nil {
		return r, "", err
	}
	return r, file, apart(c.App, []string{file}, r.source.inputs()...)
}

func planOf(d *report.Document, policy string) (*plan.Plan, error) {
	known, err := learn(policy)
	if err != nil {
		return nil, err
	}
	p := plan.New(plan.Input{
		Version: version, Machine: d.Host.Summary, Facts: d.Facts(), Findings: d.Findings, Advice: d.Advice, Remedies: known.remedies.Suiting(d.Facts()),
	})
	return host.Redact(host.NewSecretsRedactor(), p), nil
}
