package waivers

import (
	"cmp"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// For are waivers of the same terms, one for the subject of each finding that a waiver is for, consequences
// included, and for the path and the object of each.
func (w Waiver) For(findings []rules.Finding) []Waiver {
	var all []Waiver
	for _, f := range findings {
		if one := w; w.covers(f) {
			one.Subject = f.Subject
			if f.Object != nil {
				one.Path, one.Object = f.Object.File, f.Object.Name
			}
			all = append(all, one)
		}
		all = append(all, w.For(f.Explains)...)
	}
	all = lines.Unique(all)
	slices.SortStableFunc(all, func(a, b Waiver) int { return cmp.Compare(a.About(), b.About()) })
	return all
}

// standIns match the stand-ins of names (docs/redaction.md).
var standIns = lazy.New(`\b(?:host-|user|job-|image-|serial-|export-)\d+\b|\bexample\.com\b|\b240\.\d+\.\d+\.\d+|\b2001:db8:[0-9a-f:]*|\b00000000-0000-0000-0000-\d{12}\b`)

// WithoutStandIns replaces the stand-ins in waivers by *: the next run knows the names.
func WithoutStandIns(all []Waiver) []Waiver {
	for i := range all {
		for _, text := range []*string{&all[i].Subject, &all[i].Path, &all[i].Object} {
			*text = standIns.ReplaceAllString(*text, "*")
		}
	}
	return slices.Compact(all)
}
