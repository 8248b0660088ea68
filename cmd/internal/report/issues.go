package report

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/ci"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"

	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/rules"
)

// forCI is a writer for a CI system or a monitor.
func forCI(write func(*bytes.Buffer, *ci.Report)) func(*bytes.Buffer, *Document, Style) {
	return func(b *bytes.Buffer, d *Document, s Style) { write(b, d.forCI(s)) }
}

// forCI is what such a writer shows. Its texts are safe to print, the names of files are not.
func (d *Document) forCI(s Style) *ci.Report {
	clean := func(text string) string { return lines.Printable(text, s.ASCII) }
	cleaned := func(texts []string) []string {
		out := make([]string, len(texts))
		for i, text := range texts {
			out[i] = clean(text)
		}
		return out
	}
	v := &d.Verdict
	r := &ci.Report{
		ASCII: s.ASCII, Version: clean(d.Version), RulesDigest: string(d.RulesDigest), Profile: clean(string(d.Profile)), FailOn: string(d.FailOn),
		Machine: clean(d.Host.Summary), Sources: cleaned(d.Sources), Seconds: d.Timing.TotalMS / 1000,
		State: string(v.State), States: []string{string(Healthy), string(Findings), string(Inconclusive)},
		ExitCode: v.ExitCode, Reason: clean(v.Reason), Conclusion: d.conclusion(s),
		Issues: d.issues(s), Passed: cleaned(d.Passed), NotApplicable: len(d.NotApplicable), Examined: d.examined(),
	}
	if v.ExitCode > 1 {
		r.Broken = fmt.Sprintf("exit %d: %s", v.ExitCode, r.Reason)
	}
	for i, n := range []int{v.Counts.Critical, v.Counts.High, v.Counts.Medium, v.Counts.Low, v.Counts.Info} {
		r.Counts = append(r.Counts, ci.Count{Severity: string(severities[i]), N: n})
	}
	for _, w := range d.UnusedWaivers {
		r.Unused = append(r.Unused, ci.Remark{Place: ci.Place{File: w.File, Line: w.Line}, Text: clean(unused(w))})
	}
	for _, g := range v.gaps() {
		r.Gaps = append(r.Gaps, ci.Gap{Code: string(g.Code), Text: "not examined: " + clean(g.Text)})
	}
	for _, code := range reasonCodes {
		if code != ReasonFinding && code != ReasonWaived {
			r.GapCodes = append(r.GapCodes, string(code))
		}
	}
	for _, skipped := range d.Skipped {
		r.Skipped = append(r.Skipped, ci.Skipped{Rule: clean(skipped.Rule), Reason: clean(reasonOf(skipped)), Missing: cleaned(skipped.Missing)})
	}
	for _, rule := range d.spokenOf() {
		rule.ID, rule.Title, rule.Description = clean(rule.ID), clean(rule.Title), clean(rule.Description)
		rule.Links = slices.Clone(rule.Links)
		for i := range rule.Links {
			rule.Links[i].Ref = clean(rule.Links[i].Ref)
		}
		r.Rules = append(r.Rules, rule)
	}
	for _, a := range d.Areas {
		r.Areas = append(r.Areas, ci.Area{Name: string(a.Name), State: string(a.State)})
	}
	return r
}

// issues lists the findings, most severe first, one entry for each, and then those that are
// waived.
func (d *Document) issues(s Style) []ci.Issue {
	all := make([]ci.Issue, 0, len(d.Findings)+len(d.Waived))
	seen := map[string]int{}
	for _, f := range d.Findings {
		all = append(all, d.issue(f, seen, s))
	}
	for _, w := range d.Waived {
		i := d.issue(w.Finding, seen, s)
		i.Fails, i.Waiver, i.Terms = false, &w.Waiver, lines.Printable(w.Waiver.Terms(), s.ASCII)
		all = append(all, i)
	}
	return all
}

// issue describes a finding. seen counts the findings with the same rule and subject, which
// a number distinguishes.
func (d *Document) issue(f rules.Finding, seen map[string]int, s Style) ci.Issue {
	clean := func(text string) string { return lines.Printable(text, s.ASCII) }
	i := ci.Issue{
		Rule: clean(f.Rule), Subject: clean(f.About()), Title: clean(f.Title), Severity: f.Severity, Confidence: f.Confidence,
		Message: clean(withSubject(f)), Place: d.placeOf(f), Fails: d.FailOn.reaches(worst(f)),
	}
	for _, said := range d.details(f) {
		i.Details = append(i.Details, clean(said))
	}
	variable, _ := f.Params["variable"].(string)
	key := strings.Join([]string{f.Rule, f.About(), variable}, "\x00")
	seen[key]++
	i.Fingerprint = ci.Fingerprint(key, seen[key])
	return i
}

// withSubject is the message of a finding, with the subject before it unless it names it.
func withSubject(f rules.Finding) string {
	if strings.Contains(f.Message, f.Subject) || f.Subject == "host" {
		return f.Message
	}
	return f.Subject + ": " + f.Message
}

// details are the consequences of a finding, what to do and how to check it.
func (d *Document) details(f rules.Finding) []string {
	g := groups([]rules.Finding{f})[0]
	var said []string
	for _, e := range f.Explains {
		said = append(said, fmt.Sprintf("cause of %s: %s: %s", e.Rule, e.Subject, e.Message))
	}
	for _, c := range g.candidates() {
		said = append(said, "may be "+c.Cause+": "+inFavour(c, strings.TrimSpace, strings.TrimSpace))
	}
	for _, note := range g.withheld(d.Withheld) {
		said = append(said, "note: "+note)
	}
	cure := cureOf(g, d.Advice)
	for _, l := range cure.lead {
		said = append(said, d.remedy(l))
	}
	if len(cure.others) > 0 {
		said = append(said, fmt.Sprintf("more: %s (gpudoctor explain %s)", strings.Join(cure.others, ", "), cure.others[0]))
	}
	for _, step := range g.steps() {
		said = append(said, "look: "+step.Look+behind(": ", step.Command))
	}
	if len(cure.lead) > 0 {
		said = append(said, "check: "+after(d.recheck.Fresh(), ": ")+d.recheck.Command(g.ids()...))
	}
	return said
}

// remedy is one of the advice in one line.
func (d *Document) remedy(l labelledAdvice) string {
	primary, _ := apply.Instructions(l.advice.Apply, d.runsOf(l.advice))
	if len(primary) > 1 { // Beside what can be typed, the steps are remarks.
		primary = slices.DeleteFunc(primary, func(i apply.Instruction) bool { return i.Where == apply.ByHand })
	}
	var todo []string
	for _, i := range primary {
		separator := "; "
		if i.Where == apply.ByHand {
			separator = " "
		}
		todo = append(todo, after(i.Where, ": ")+strings.Join(i.Lines, separator))
	}
	return fmt.Sprintf("%s: %s%s (%s)", l.label, strings.TrimSuffix(l.advice.Title, "."), behind(": ", strings.Join(todo, "; ")), apply.Effort(l.advice.Needs, l.advice.Lasts))
}

// behind is a text with what separates it from what stands before it; nothing if it is
// empty.
func behind(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

// placeOf is the line that the first evidence with a line quotes, or else the text or
// recording that was examined.
func (d *Document) placeOf(f rules.Finding) ci.Place {
	for _, e := range f.Evidence {
		if m := lineOfText.FindStringSubmatch(e.Source); m != nil {
			line, err := strconv.Atoi(m[2])
			switch {
			case err != nil:
			case f.Rule == waivers.Expired:
				return ci.Place{File: m[1], Line: line}
			case d.isFile(m[1]):
				return ci.Place{File: d.inFolder(m[1]), Line: line}
			}
		}
	}
	if f.Object != nil {
		return ci.Place{File: d.inFolder(f.Object.File), Line: f.Object.Line}
	}
	for _, e := range f.Evidence {
		if d.isFile(e.Source) {
			return ci.Place{File: d.inFolder(e.Source)}
		}
	}
	return d.examined()
}

// inFolder is a file as a person in the current folder names it.
func (d *Document) inFolder(file string) string {
	if d.folder == "" || strings.HasPrefix(file, "/") {
		return file
	}
	return filepath.Join(d.folder, file)
}

// examined is the place of what is about no file in particular.
func (d *Document) examined() ci.Place {
	if len(d.Sources) == 1 && d.recheck.Files {
		return ci.Place{File: d.Sources[0]}
	}
	return ci.Place{File: ci.Machine}
}

// isFile reports whether the source of evidence is one of the texts, or a file of the
// machine.
func (d *Document) isFile(source string) bool {
	if strings.HasPrefix(source, "/") {
		return !strings.ContainsAny(source, " ,")
	}
	for _, t := range d.Texts {
		if t.Name == source {
			return true
		}
	}
	return false
}

// conclusion is the verdict in one line.
func (d *Document) conclusion(s Style) string {
	said := []string{string(d.Verdict.State)}
	if counts := d.Verdict.Tally(); counts != "" {
		said = append(said, counts)
	}
	return strings.Join(said, ", ") + fmt.Sprintf("; exit %d: %s", d.Verdict.ExitCode, lines.Printable(d.Verdict.Reason, s.ASCII))
}

// spokenOf are the rules that findings name, in order of id.
func (d *Document) spokenOf() []rules.Rule {
	named := map[string]rules.Rule{}
	for _, f := range d.AllFindings() {
		named[f.Rule] = d.ruleOf(f)
	}
	ids := make([]string, 0, len(named))
	for id := range named {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	all := make([]rules.Rule, 0, len(ids))
	for _, id := range ids {
		all = append(all, named[id])
	}
	return all
}

// ruleOf is the rule of a finding. Where it is not known, the finding says what it can.
func (d *Document) ruleOf(f rules.Finding) rules.Rule {
	if d.rule != nil {
		if r, ok := d.rule(f.Rule); ok {
			return r
		}
	}
	return rules.Rule{ID: f.Rule, Title: f.Title, Severity: f.Severity, Confidence: f.Confidence}
}
