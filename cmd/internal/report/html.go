package report

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/settings"
	"github.com/gpudoctor/gpudoctor/cmd/internal/topology"
)

// page is what the template of a page shows.
type page struct {
	*view
	// Headline is the report in a few words.
	Headline string
	// Picture is the machine as a picture; nil where no GPU is known. Tree is the same as text.
	Picture *topology.Machine
	Tree    string
	// Tables are the table of the paths between the GPUs, and those of tests.
	Tables []matrix
	// Outline is everything that was read.
	Outline []section
}

// pageList is names of which the same is said, the commonest first, under a title.
type pageList struct {
	Title string
	Rows  []alike
	// Open is true for a list that is not folded, Detail for one that is not printed, and that a text has with --verbose.
	Open, Detail bool
}

// Count counts the names.
func (l pageList) Count() int {
	n := 0
	for _, r := range l.Rows {
		n += len(r.Names)
	}
	return n
}

// writeHTML writes a report as a page for a browser.
func writeHTML(b *bytes.Buffer, d *Document, _ Style) {
	v := newView(d, false)
	p := page{view: v, Headline: v.headline(), Picture: v.picture(false), Outline: outlineOf(v.shown())}
	if p.Picture != nil {
		p.Tree = strings.Join(newText(v, Style{}).treeLines(p.Picture), "\n") + "\n"
	}
	if p.Matrix.Several() {
		p.Tables = append([]matrix{p.Matrix}, p.Tests...)
	}
	if err := compiled().Execute(b, &p); err != nil {
		panic(fmt.Sprintf("write page: %v", err)) // The template is part of the program, and a buffer takes all.
	}
}

// headline is the report in a few words.
func (v *view) headline() string {
	title := upper(v.Title)
	switch {
	case v.Verdict.State != Findings:
		return title
	case len(v.Findings)+len(v.Waived) == 1:
		return title + " finding"
	}
	return title + " findings"
}

// Class is the colour of the verdict.
func (v *view) Class() string {
	switch verdict := &v.Verdict; {
	case verdict.Counts.Critical+verdict.Counts.High > 0 || verdict.has(ReasonFailed):
		return "bad"
	case verdict.State == Findings:
		return "warn"
	case verdict.State == Healthy:
		return "good"
	}
	return "open"
}

// Sentence says what became of the transfers; empty where no machine was examined.
func (p *page) Sentence() string {
	if p.textsOnly {
		return ""
	}
	return upper(p.Said) + "."
}

// All are all findings, those that are waived last.
func (p *page) All() []finding { return slices.Concat(p.Found, p.Accepted) }

// first is what to do first.
type first struct {
	*finding
	Remedy *remedy
}

// First is what to do about the worst finding of medium severity or above that says what to do; nil if none does.
func (p *page) First() *first {
	for i := range p.Serious() {
		f := &p.Found[i]
		if len(f.Remedies) > 0 {
			r := f.Remedies[0]
			if typed := r.Typed(); len(typed) > 0 {
				r.Blocks = typed // What is said beside it stands with the finding.
			}
			return &first{f, &r}
		}
		if len(f.Steps) > 0 {
			return &first{f, nil}
		}
	}
	return nil
}

// PictureNotes belong to the picture.
func (p *page) PictureNotes() []string {
	var notes []string
	if p.Picture.Hidden {
		notes = append(notes, topology.HiddenPaths)
	}
	return append(notes, p.Picture.Notes...)
}

// Examined lists what texts were taken for, what became of the rules, and what could
// not be read.
func (v *view) Examined() []pageList {
	texts := lines.Map(v.Texts, func(t facts.Text) pair { return pair{t.Name, recognised(t)} })
	wanted := lines.Map(v.Wanted, func(w Wanted) pair { return pair{w.Send, "to decide " + strings.Join(w.Settles, ", ")} })
	notApplicable := lines.Map(slices.Sorted(maps.Keys(v.NotApplicable)), func(id string) pair { return pair{id, v.NotApplicable[id]} })
	set := lines.Map(v.Settings, func(s settings.Setting) pair { return pair{s.Place(), s.Key + ": " + strings.Join(s.Values, ", ")} })
	all := []pageList{
		{Title: "Texts", Rows: together(texts)},
		// Who is left without a certain verdict needs it first.
		{Title: "What to send next", Rows: together(wanted), Open: v.Open() || v.Verdict.State == Inconclusive},
		{Title: "Rules that could not be judged", Rows: commonest(v.notJudged()), Detail: true},
		{Title: "Facts that could not be read", Rows: commonest(v.notRead()), Detail: true},
		{Title: "Rules that do not apply", Rows: commonest(notApplicable), Detail: true},
		{Title: "Rules that passed", Rows: []alike{{Names: v.Passed}}, Detail: true},
		{Title: "Set in files", Rows: together(set), Detail: true},
	}
	return slices.DeleteFunc(all, func(l pageList) bool { return l.Count() == 0 })
}

// notJudged are the rules that could not be judged, each with what it lacked.
func (v *view) notJudged() []pair {
	return lines.Map(v.Skipped, func(s Skipped) pair { return pair{s.Rule, strings.Join(s.Missing, "; ")} })
}

// notRead are the facts that could not be read, each with the reason and what would help.
func (v *view) notRead() []pair {
	var all []pair
	for _, u := range v.Unknown {
		said := u.Reason
		if u.Hint != "" {
			said += " (" + u.Hint + ")"
		}
		all = append(all, pair{strings.TrimSuffix(u.Section+"."+u.Fact, "."), said})
	}
	return all
}

// rulesInNumbers counts the rules by what became of them.
func (v *view) rulesInNumbers() string {
	return fmt.Sprintf("%d passed, %d could not be judged, %d do not apply", len(v.Passed), len(v.Skipped), len(v.NotApplicable))
}

// About says what the report is of and how it came about.
func (v *view) About() []pair {
	all := []pair{
		{"Host", v.Host.Hostname},
		{"System", lines.Joined(", ", v.Host.Distribution, v.Host.Kernel, v.Host.Arch)},
		{"Processor", v.Host.CPU},
		{"Measured", strings.Join(v.Figures, "; ")},
		{"Examined", strings.Join(v.Sources, ", ")},
		{"Rules", v.rulesInNumbers()},
		{"Exit code", fmt.Sprintf("%d: %s", v.Verdict.ExitCode, v.Verdict.Reason)},
		{"gpudoctor", v.Version + ", profile " + string(v.Profile)},
		{"Redacted", v.RedactedNote()},
	}
	return slices.DeleteFunc(all, func(one pair) bool { return one.Text == "" })
}
