package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/origin"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/rules"
)

// issue is a finding as the formats for CI systems show it: one entry with a place and a
// fingerprint. Its texts are safe to print.
type issue struct {
	rule, subject, title string
	severity             rules.Severity
	confidence           rules.Confidence
	// message is what was found, in one line, and details are what follows from it and
	// what to do, a line each.
	message string
	details []string
	place   place
	// fingerprint names the issue in this report and in those of later runs.
	fingerprint string
	// fails is true if the issue makes the exit code 1.
	fails bool
	// waiver is the waiver of a finding that is waived, nil for another.
	waiver *waivers.Waiver
	terms  string
}

// text is the message with the details below it.
func (i issue) text() string { return strings.Join(append([]string{i.message}, i.details...), "\n") }

// place is a file that an issue is about. Line is 0 if the issue is about no single line.
type place struct {
	file string
	line int
}

// machine is the file of issues that are about no file.
const machine = "machine"

// issues lists the findings, most severe first, one entry for each, and then those that are
// waived.
func (d *Document) issues(s Style) []issue {
	all := make([]issue, 0, len(d.Findings)+len(d.Waived))
	seen := map[string]int{}
	for _, f := range d.Findings {
		all = append(all, d.issue(f, seen, s))
	}
	for _, w := range d.Waived {
		i := d.issue(w.Finding, seen, s)
		i.fails, i.waiver, i.terms = false, &w.Waiver, lines.Printable(w.Waiver.Terms(), s.ASCII)
		all = append(all, i)
	}
	return all
}

// isWaived reports whether a finding is waived.
func (i issue) isWaived() bool { return i.waiver != nil }

// issue describes a finding. seen counts the findings with the same rule and subject, which
// a number distinguishes.
func (d *Document) issue(f rules.Finding, seen map[string]int, s Style) issue {
	clean := func(text string) string { return lines.Printable(text, s.ASCII) }
	i := issue{
		rule: clean(f.Rule), subject: clean(f.Subject), title: clean(f.Title), severity: f.Severity, confidence: f.Confidence,
		message: clean(withSubject(f)), place: d.placeOf(f), fails: d.FailOn.reaches(worst(f)),
	}
	for _, said := range d.details(f) {
		i.details = append(i.details, clean(said))
	}
	variable, _ := f.Params["variable"].(string)
	key := strings.Join([]string{f.Rule, f.Subject, variable}, "\x00")
	seen[key]++
	i.fingerprint = fingerprint(key, seen[key])
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
	primary, _ := apply.Instructions(l.advice.Apply, d.runs)
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
func (d *Document) placeOf(f rules.Finding) place {
	for _, e := range f.Evidence {
		if m := origin.LineOfText.FindStringSubmatch(e.Source); m != nil {
			line, err := strconv.Atoi(m[2])
			switch {
			case err != nil:
			case f.Rule == waivers.Expired:
				return place{m[1], line}
			case d.isFile(m[1]):
				return place{d.inFolder(m[1]), line}
			}
		}
	}
	for _, e := range f.Evidence {
		if d.isFile(e.Source) {
			return place{file: d.inFolder(e.Source)}
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
func (d *Document) examined() place {
	if len(d.Sources) == 1 && d.recheck.Files {
		return place{file: d.Sources[0]}
	}
	return place{file: machine}
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

// fingerprint is a digest of what identifies an issue. The message is no part of it, because
// measured values in it vary.
func fingerprint(key string, number int) string {
	if number > 1 {
		key += "\x00" + strconv.Itoa(number)
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// notExamined are the reasons of the verdict that are no findings.
func (d *Document) notExamined(s Style) []Reason {
	all := d.Verdict.gaps()
	for i := range all {
		all[i].Text = "not examined: " + lines.Printable(all[i].Text, s.ASCII)
	}
	return all
}

// broken is why the exit code is neither 0 nor 1; empty if it is.
func (d *Document) broken(s Style) string {
	if d.Verdict.ExitCode < 2 {
		return ""
	}
	return fmt.Sprintf("exit %d: %s", d.Verdict.ExitCode, lines.Printable(d.Verdict.Reason, s.ASCII))
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
