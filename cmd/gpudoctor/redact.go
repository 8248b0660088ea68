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

// redaction is what was asked for.
type redaction int

const (
	// redactFiles replaces names in files, and secrets everywhere.
	redactFiles redaction = iota
	// redactAll replaces names everywhere.
	redactAll
	// redactNothing replaces nothing.
	redactNothing
)

var errRedactBoth = errors.New("--redact and --no-redact cannot be used together")

// readRedaction reads the flags.
func readRedaction(c *cli.Context) (redaction, error) {
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

// versions are the versions of one report for places where more or less of it may
// be seen.
type versions struct {
	choice redaction
	whole  *report.Document
	// named and redacted are made when they are first asked for.
	named, redacted *report.Document
}

// of returns the versions of a report.
func (r redaction) of(d *report.Document) *versions { return &versions{choice: r, whole: d} }

// toFile is the version for a file, toStdout that for standard output.
func (v *versions) toFile() *report.Document {
	if v.choice == redactNothing {
		return v.whole
	}
	if v.redacted == nil {
		v.redacted = v.whole.Redact()
	}
	return v.redacted
}

func (v *versions) toStdout(stdout io.Writer) *report.Document {
	switch {
	case v.choice == redactNothing:
		return v.whole
	case v.choice == redactAll || stdio.IsFile(stdout):
		return v.toFile()
	case v.named == nil:
		v.named = v.whole.WithoutSecrets()
	}
	return v.named
}
