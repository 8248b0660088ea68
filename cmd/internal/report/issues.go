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

// ciReport is what the formats of CI systems and monitors show.
type ciReport struct {
	*view
	issues   []issue      // The findings, most severe first, and then those that are waived.
	gaps     []Reason     // The reasons of the verdict that are no findings.
	broken   string       // Why the exit code is neither 0 nor 1; empty if it is.
	rules    []rules.Rule // Those that the issues name, in order of id.
	examined place        // Of what is about no file in particular.
}

// issue is a finding as these formats show it: one entry with a place and a fingerprint.
type issue struct {
	// Of the finding, the message names the subject, and the subject the part of a file. It has nothing else that is shown.
	rules.Finding
	Details []string // What follows from it and what to do, a line each.
	Terms   string   // What the waiver says; empty for a finding that is not waived.

	place       place
	fingerprint string // It names the issue in this report and in those of later runs.
	fails       bool   // It makes the exit code 1.
	waiver      waivers.Waiver
}

func (i issue) text() string { return strings.Join(append([]string{i.Message}, i.Details...), "\n") }

func (i issue) waived() bool { return i.Terms != "" }

// place is a file that an issue is about, as it is named. line is 0 if the issue is about no single line.
type place struct {
	file string
	line int
}

const noFile = "machine"

func (p place) shown() string { return lines.Printable(p.file, false) }

func forCI(write func(*bytes.Buffer, *ciReport)) func(*bytes.Buffer, *Document, Style) {
	return func(b *bytes.Buffer, d *Document, _ Style) { write(b, newCIReport(d)) }
}

func newCIReport(d *Document) *ciReport {
	r := &ciReport{view: newView(d, false), issues: d.issues(), rules: lines.Clean(d.spokenOf(), false), examined: d.examined()}
	r.gaps = lines.Map(r.Verdict.gaps(), func(g Reason) Reason { return Reason{Code: g.Code, Text: "not examined: " + g.Text} })
	if r.Verdict.ExitCode > 1 {
		r.broken = r.Exit()
	}
	return r
}

func (v *view) Exit() string { return fmt.Sprintf("exit %d: %s", v.Verdict.ExitCode, v.Verdict.Reason) }

// issues lists the findings, most severe first, and then those that are waived.
func (d *Document) issues() []issue {
	all := make([]issue, 0, len(d.Findings)+len(d.Waived))
	seen := map[string]int{}
	for _, f := range d.Findings {
		all = append(all, d.issue(f, seen, waivers.Waiver{}, ""))
	}
	for _, w := range d.Waived {
		all = append(all, d.issue(w.Finding, seen, w.Waiver, w.Terms()))
	}
	return all
}

// issue describes a finding. seen counts the findings with the same rule and subject.
func (d *Document) issue(f rules.Finding, seen map[string]int, w waivers.Waiver, terms string) issue {
	shown := rules.Finding{Rule: f.Rule, Subject: f.About(), Title: f.Title, Severity: f.Severity, Confidence: f.Confidence, Message: withSubject(f)}
	i := lines.Clean(issue{Finding: shown, Details: d.details(f), Terms: terms}, false)
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
func (d *Document) details(one rules.Finding) []string {
	f := lines.Clean((&viewer{d: d, shown: map[string]int{}}).finding(groups([]rules.Finding{one})[0]), false)
	said := lines.Map(one.Explains, func(e rules.Finding) string { return fmt.Sprintf("cause of %s: %s: %s", e.Rule, e.Subject, e.Message) })
	t := newText(&view{}, Style{})
	t.Width, t.full = math.MaxInt, true
	t.write("candidates", &f)
	t.write("cure", &f)
	return append(said, lines.NonEmpty(strings.Split(t.B.String(), "\n")...)...)
}

// placeOf is the first line that evidence quotes, or else the text or recording that was examined.
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
	if d.in.Folder == "" || strings.HasPrefix(file, "/") {
		return file
	}
	return filepath.Join(d.in.Folder, file)
}

func (d *Document) examined() place {
	if len(d.Sources) == 1 && d.in.Recheck.Files {
		return place{file: d.Sources[0]}
	}
	return place{file: noFile}
}

// isFile reports whether the source of evidence is one of the texts, or a file of the machine.
func (d *Document) isFile(source string) bool {
	if strings.HasPrefix(source, "/") {
		return !strings.ContainsAny(source, " ,")
	}
	return d.isText(source)
}

func (r *ciReport) conclusion() string { return r.Verdict.InShort() + "; " + r.Exit() }

// spokenOf are the rules that findings name, in order of id.
func (d *Document) spokenOf() []rules.Rule {
	named := map[string]rules.Rule{}
	for _, f := range d.AllFindings() {
		named[f.Rule] = rules.Rule{ID: f.Rule, Title: f.Title, Severity: f.Severity, Confidence: f.Confidence}
	}
	for _, r := range d.in.Rules {
		if _, spoken := named[r.ID]; spoken {
			named[r.ID] = r
		}
	}
	return slices.SortedFunc(maps.Values(named), func(a, b rules.Rule) int { return strings.Compare(a.ID, b.ID) })
}
