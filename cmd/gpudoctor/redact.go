package main

import (
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
)

// The flags that say whether names and secrets are replaced by stand-ins.
var (
	redactFlag   = &cli.BoolFlag{Name: "redact", DisableDefaultText: true, Usage: "also replace names and addresses on a terminal and in a pipe"}
	noRedactFlag = &cli.BoolFlag{Name: "no-redact", DisableDefaultText: true, Usage: "keep names, addresses and secrets"}
)

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

// shown returns what of a report may be seen in a file, or elsewhere. Each version is made when it is first asked for.
func (c redactChoice) shown(d *report.Document) func(inFile bool) *report.Document {
	named, redacted := sync.OnceValue(d.WithoutSecrets), sync.OnceValue(d.Redact)
	return func(inFile bool) *report.Document {
		switch {
		case c == redactNothing:
			return d
		case c == redactAll || c == redactFiles && inFile:
			return redacted()
		}
		return named()
	}
}
