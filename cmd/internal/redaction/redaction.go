// Package redaction says which names and secrets are replaced by stand-ins in what is written,
// by where it goes.
package redaction

import (
	"io"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
)

// Choice is what was asked for.
type Choice int

// The choices.
const (
	// Files replaces names in files, and secrets everywhere.
	Files Choice = iota
	// All replaces names everywhere.
	All
	// Secrets replaces secrets everywhere, and no names.
	Secrets
	// Nothing replaces nothing.
	Nothing
)

// Versions are the versions of one report for places where more or less of it may
// be seen.
type Versions struct {
	choice Choice
	whole  *report.Document
	// named and redacted are made when they are first asked for.
	named, redacted *report.Document
}

// Of returns the versions of a report.
func (c Choice) Of(d *report.Document) *Versions { return &Versions{choice: c, whole: d} }

// ToFile is the version for a file.
func (v *Versions) ToFile() *report.Document {
	if v.choice == Nothing {
		return v.whole
	}
	if v.choice == Secrets {
		return v.withoutSecrets()
	}
	if v.redacted == nil {
		v.redacted = v.whole.Redact()
	}
	return v.redacted
}

// ToStdout is the version for standard output.
func (v *Versions) ToStdout(stdout io.Writer) *report.Document {
	switch {
	case v.choice == Nothing:
		return v.whole
	case v.choice == All || stdio.IsFile(stdout):
		return v.ToFile()
	}
	return v.withoutSecrets()
}

func (v *Versions) withoutSecrets() *report.Document {
	if v.named == nil {
		v.named = v.whole.WithoutSecrets()
	}
	return v.named
}
