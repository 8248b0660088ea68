package report

import (
	"github.com/gpudoctor/gpudoctor/checks"
)

// Redaction says what in a report stand-ins took the place of.
type Redaction string

const (
	// RedactedNames are names of hosts, users, jobs and images, addresses, serial
	// numbers and secrets.
	RedactedNames Redaction = "names"
	// RedactedSecrets are secrets alone.
	RedactedSecrets Redaction = "secrets"
)

// Redact returns a copy of the report in which stand-ins take the place of what
// identifies a machine, its users and their work. They are those that the facts
// have when they are redacted by themselves.
func (d *Document) Redact() *Document {
	r := checks.NewRedactor()
	checks.Redact(r, d.facts)
	return d.redact(r, RedactedNames)
}

// WithoutSecrets returns a copy of the report that shows names, and no secrets.
func (d *Document) WithoutSecrets() *Document {
	return d.redact(checks.NewSecretsRedactor(), RedactedSecrets)
}

func (d *Document) redact(r *checks.Redactor, what Redaction) *Document {
	out := checks.Redact(r, d)
	out.Redacted = what
	// What is no field of the JSON document.
	out.Host.parts = checks.Redact(r, d.Host.parts)
	out.recheck = checks.Redact(r, d.recheck)
	out.runs = checks.Redact(r, d.runs)
	for i, reason := range d.Verdict.Reasons {
		out.Verdict.Reasons[i].short = checks.Redact(r, reason.short)
	}
	return out
}

// redactedNote says so to a person who has the report from another.
func (d *Document) redactedNote() string {
	if d.Redacted != RedactedNames {
		return ""
	}
	return "Names, addresses and secrets are replaced by stand-ins; --no-redact keeps them."
}
