package main

import (
	"errors"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
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

// redactChoice is what was asked for.
type redactChoice int

// The choices.
const (
	// Files replaces names in files, and secrets everywhere.
	redactFiles redactChoice = iota
	// All replaces names everywhere.
	redactAll
	// Secrets replaces secrets everywhere, and no names.
	redactSecrets
	// Nothing replaces nothing.
	redactNothing
)

// versions are the versions of one report for places where more or less of it may
// be seen.
type versions struct {
	choice redactChoice
	whole  *report.Document
	// named and redacted are made when they are first asked for.
	named, redacted *report.Document
}

// Of returns the versions of a report.
func (c redactChoice) Of(d *report.Document) *versions { return &versions{choice: c, whole: d} }

// ToFile is the version for a file.
func (v *versions) ToFile() *report.Document {
	if v.choice == redactNothing {
		return v.whole
	}
	if v.choice == redactSecrets {
		return v.withoutSecrets()
	}
	if v.redacted == nil {
		v.redacted = v.whole.Redact()
	}
	return v.redacted
}

// ToStdout is the version for standard output.
func (v *versions) ToStdout(stdout io.Writer) *report.Document {
	switch {
	case v.choice == redactNothing:
		return v.whole
	case v.choice == redactAll || stdio.IsFile(stdout):
		return v.ToFile()
	}
	return v.withoutSecrets()
}

func (v *versions) withoutSecrets() *report.Document {
	if v.named == nil {
		v.named = v.whole.WithoutSecrets()
	}
	return v.named
}
