package main

import (
	"io"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
)

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
