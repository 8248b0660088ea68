package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
)

// The flags that say whether names and secrets are replaced by stand-ins.
var (
	redactFlag   = &cli.BoolFlag{Name: "redact", DisableDefaultText: true, Usage: "also replace names and addresses on a terminal and in a pipe"}
	noRedactFlag = &cli.BoolFlag{Name: "no-redact", DisableDefaultText: true, Usage: "keep names, addresses and secrets"}
	// keepFlag is what noRedactFlag was called before 0.2.
	keepFlag = &cli.BoolFlag{Name: "keep-identifiers", DisableDefaultText: true, Hidden: true, Usage: "keep names, addresses and secrets"}
)

var errRedactBoth = errors.New("--redact and --no-redact cannot be used together")

// readRedaction reads the flags.
func readRedaction(c *cli.Context) (redactChoice, error) {
	keep := c.Bool(noRedactFlag.Name) || c.Bool(keepFlag.Name)
	switch {
	case keep && c.Bool(redactFlag.Name):
		return redactFiles, complaint.Hinted(errRedactBoth, "by default, names are replaced in files, and secrets everywhere")
	case keep:
		return redactNothing, nil
	case c.Bool(redactFlag.Name):
		return redactAll, nil
	}
	return redactFiles, nil
}
