package main

import (
	"errors"
	"io"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
)

// The flags that say whether names and secrets are replaced by stand-ins.
var (
	redactFlag   = &cli.BoolFlag{Name: "redact", DisableDefaultText: true, Usage: "also replace names and addresses on a terminal and in a pipe"}
	noRedactFlag = &cli.BoolFlag{Name: "no-redact", DisableDefaultText: true, Usage: "keep names, addresses and secrets"}
)

var errRedactBoth = errors.New("--redact and --no-redact cannot be used together")

// readRedaction reads the flags.
func readRedaction(c *cli.Context) redactChoice {
	switch {
	case c.Bool(noRedactFlag.Name):
		return redactNothing
	case c.Bool(redactFlag.Name):
		return redactAll
	}
	return redactFiles
}

// redactChoice is what was asked for.
type redactChoice int

// The choices.
const (
	redactFiles   redactChoice = iota // Names in files, and secrets everywhere.
	redactAll                         // Names and secrets everywhere.
	redactSecrets                     // Secrets everywhere, and no names.
	redactNothing
)

// versions are one report for places where more or less of it may be seen. Each is made when it is first asked for.
type versions struct {
	choice          redactChoice
	whole           *report.Document
	named, redacted func() *report.Document
}

// Of returns the versions of a report.
func (c redactChoice) Of(d *report.Document) versions {
	return versions{c, d, sync.OnceValue(d.WithoutSecrets), sync.OnceValue(d.Redact)}
}

// ToFile is the version for a file.
func (v versions) ToFile() *report.Document { return v.to(true) }

// ToStdout is the version for standard output.
func (v versions) ToStdout(stdout io.Writer) *report.Document { return v.to(stdio.IsFile(stdout)) }

func (v versions) to(file bool) *report.Document {
	switch {
	case v.choice == redactNothing:
		return v.whole
	case v.choice == redactAll || v.choice == redactFiles && file:
		return v.redacted()
	}
	return v.named()
}
