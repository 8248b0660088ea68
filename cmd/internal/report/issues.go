package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/rules"
)

// ciReport is what the formats of CI systems and monitors show: each shows the same issues, and everything that
// keeps a verdict from being healthy.
type ciReport struct {
	*view
	ascii bool
	// issues are the findings, most severe first, and then those that are waived.
	issues []issue
	// gaps are the reasons of the verdict that are no findings.
	gaps []Reason
	// broken is why the exit code is neither 0 nor 1, empty if it is.
	broken string
	// rules are those that the issues name, in order of id.
	rules []rules.Rule
	// examined is the place of what is about no file in particular.
	examined place
}

// issue is a finding as these formats show it: one entry with a place and a fingerprint.
type issue struct {
	// Of the finding, the message names the subject, and the subject the part of a file. It has nothing else that is shown.
	rules.Finding
	// Details are what follows from it and what to do, a line each.
	Details []string
	// Terms are what the waiver says; empty for a finding that is not waived.
	Terms string

	place place
	// fingerprint names the issue in this report and in those of later runs.
	fingerprint string
	// fails is true if the issue makes the exit code 1.
	fails  bool
	waiver waivers.Waiver
}

// text is the message with the details below it.
func (i issue) text() string { return strings.Join(append([]string{i.Message}, i.Details...), "\n") }

// waived reports whether a finding is waived.
func (i issue) waived() bool { return i.Terms != "" }

// place is a file that an issue is about, as it is named. line is 0 if the issue is about no single line.
type place struct {
	file string
	line int
}

// noFile is the file of issues that are about none.
const noFile = "machine"

// shown is the file of a place, safe to print.
func (r *ciReport) shown(p place) string { return lines.Printable(p.file, r.ascii) }

// forCI is a writer for a CI system or a monitor.
func forCI(write func(*bytes.Buffer, *ciReport)) func(*bytes.Buffer, *Document, Style) {
	return func(b *bytes.Buffer, d *Document, s Style) { write(b, newCIReport(d, s.ASCII)) }
}

func newCIReport(d *Document, ascii bool) *ciReport {
	r := &ciReport{view: newView(d, ascii), ascii: ascii, issues: d.issues(ascii), rules: lines.Clean(d.spokenOf(), ascii), examined: d.examined()}
	r.gaps = lines.Map(r.Verdict.gaps(), func(g Reason) Reason { return Reason{Code: g.Code, Text: "not examined: " + g.Text} })
	if r.Verdict.ExitCode > 1 {
		r.broken = r.Exit()
	}
	return r
}

// Exit is the exit code and its reason.
func (v *view) Exit() string { return fmt.Sprintf("exit %d: %s", v.Verdict.ExitCode, v.Verdict.Reason) }

// issues lists the findings, most severe first, one entry for each, and then those that are
// waived.
func (d *Document) issues(ascii bool) []issue {
	all := make([]issue, 0, len(d.Findings)+len(d.Waived))
	seen := map[string]int{}
	for _, f := range d.Findings {
		all = append(all, d.issue(f, seen, waivers.Waiver{}, "", ascii))
	}
	for _, w := range d.Waived {
		all = append(all, d.issue(w.Finding, seen, w.Waiver, w.Terms(), ascii))
	}
	return all
}

// issue describes a finding. seen counts the findings with the same rule and subject, which
// a number distinguishes.
func (d *Document) issue(f rules.Finding, seen map[string]int, w waivers.Waiver, terms string, ascii bool) issue {
	shown := rules.Finding{Rule: f.Rule, Subject: f.About(), Title: f.Title, Severity: f.Severity, Confidence: f.Confidence, Message: withSubject(f)}
	i := lines.Clean(issue{Finding: shown, Details: d.details(f, ascii), Terms: terms}, ascii)
	i.place, i.waiver = d.placeOf(f), w
	i.fails = !i.waived() && d.FailOn.reaches(worst(f))
	variable, _ := f.Params["variable"].(string)
	key := strings.Join([]string{f.Rule, f.About(), variable}, "\x00")
	seen[key]++
	i.fingerprint = fingerprint(key, seen[key])
	return i
}

// fingerprint is a digest of what identifies an issue. The message is no part of it, because
// measured values in it vary. A number distinguishes issues with the same key.
func fingerprint(key string, number int) string {
	if number > 1 {
		key += "\x00" + strconv.Itoa(number)
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// withSubject is the message of a finding, with the subject before it unless it names it.
func withSubject(f rules.Finding) string {
	if strings.Contains(f.Message, f.Subject) || f.Subject == "host" {
		return f.Message
	}
	return f.Subject + ": " + f.Message
}

// details are the consequences of a finding, and what to do as the text has it, a line each however long it is.
func (d *Document) details(one rules.Finding, ascii bool) []string {
	f := lines.Clean(newViewer(d).finding(groupOf(one)), ascii)
	said := lines.Map(one.Explains, func(e rules.Finding) string { return fmt.Sprintf("cause of %s: %s: %s", e.Rule, e.Subject, e.Message) })
	t := (&text{Page: lines.Page{B: &bytes.Buffer{}, Width: math.MaxInt}, v: &view{}, full: true}).prepared()
	t.write("candidates", &f)
	t.write("cure", &f)
	return append(said, lines.NonEmpty(strings.Split(t.B.String(), "\n")...)...)
}

// placeOf is the line that the first evidence with a line quotes, or else the text or
// recording that was examined.
func (d *Document) placeOf(f rules.Finding) place {
	for _, e := range f.Evidence {
		switch name, line := splitLine(e.Source); {
		case line == 0:
		case f.Rule == waivers.Expired:
			return place{file: name, line: line}
		case d.isFile(name):
			return place{file: d.inFolder(name), line: line}
		}
	}
	if f.Object != nil {
		return place{file: d.inFolder(f.Object.File), line: f.Object.Line}
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
	return place{file: noFile}
}

// isFile reports whether the source of evidence is one of the texts, or a file of the
// machine.
func (d *Document) isFile(source string) bool {
	if strings.HasPrefix(source, "/") {
		return !strings.ContainsAny(source, " ,")
	}
	return d.isText(source)
}

// conclusion is the verdict in one line.
func (r *ciReport) conclusion() string { return r.Verdict.InShort() + "; " + r.Exit() }

// spokenOf are the rules that findings name, in order of id.
func (d *Document) spokenOf() []rules.Rule {
	named := map[string]rules.Rule{}
	for _, f := range d.AllFindings() {
		named[f.Rule] = d.ruleOf(f)
	}
	all := slices.Collect(maps.Values(named))
	slices.SortFunc(all, func(a, b rules.Rule) int { return strings.Compare(a.ID, b.ID) })
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
