package report

import (
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
)

// Redaction says what in a report stand-ins took the place of.
type Redaction string

const (
	// RedactedNames are names of hosts, users, jobs and images, addresses, serial
	// numbers and secrets.
	RedactedNames Redaction = "names"
	// RedactedSecrets are secrets only.
	RedactedSecrets Redaction = "secrets"
)

// Redact returns a copy of the report in which stand-ins take the place of what
// identifies a machine, its users and their work. They are those that the facts
// have when they are redacted by themselves.
func (d *Document) Redact() *Document {
	r := host.NewRedactor()
	redacted := host.Redact(r, d.shown())
	return d.redact(r, RedactedNames, func() *facts.Facts { return redacted })
}

// WithoutSecrets returns a copy of the report that shows names, and no secrets.
func (d *Document) WithoutSecrets() *Document {
	r := host.NewSecretsRedactor()
	return d.redact(r, RedactedSecrets, func() *facts.Facts { return host.Redact(r, d.shown()) })
}

func (d *Document) redact(r *host.Redactor, what Redaction, redacted func() *facts.Facts) *Document {
	out := host.Redact(r, d)
	out.Redacted = what
	// What is no field of the JSON document.
	out.shown, out.parts = redacted, nil // No format shows parts.
	out.Host.parts = host.Redact(r, d.Host.parts)
	out.recheck = host.Redact(r, d.recheck)
	out.folder = host.Redact(r, d.folder)
	out.runs = host.Redact(r, d.runs)
	for i, o := range d.Objects {
		out.Objects[i].runs = host.Redact(r, o.runs)
	}
	for i, reason := range d.Verdict.Reasons {
		out.Verdict.Reasons[i].short = host.Redact(r, reason.short)
	}
	return out
}

// RedactedNote says so to a person who has the report from another.
func (d *Document) RedactedNote() string {
	if d.Redacted != RedactedNames {
		return ""
	}
	return "Names, addresses and secrets are replaced by stand-ins; --no-redact keeps them."
}
