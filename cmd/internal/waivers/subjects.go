package waivers

import (
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Subjects are the subjects of the findings of a rule, consequences included, each once.
func Subjects(findings []rules.Finding, rule string) []string {
	var all []string
	for _, f := range findings {
		if f.Rule == rule {
			all = append(all, f.Subject)
		}
		all = append(all, Subjects(f.Explains, rule)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// standIns match the stand-ins of names (docs/redaction.md).
var standIns = lazy.New(`\b(?:host-|user|job-|image-|serial-|export-)\d+\b|\bexample\.com\b|\b240\.\d+\.\d+\.\d+|\b2001:db8:[0-9a-f:]*|\b00000000-0000-0000-0000-\d{12}\b`)

// WithoutStandIns replaces the stand-ins in subjects by *: the next run knows the names.
func WithoutStandIns(subjects []string) []string {
	all := make([]string, len(subjects))
	for i, s := range subjects {
		all[i] = standIns.ReplaceAllString(s, "*")
	}
	return slices.Compact(all)
}
