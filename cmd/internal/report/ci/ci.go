// Package ci writes reports in the formats of CI systems and monitors. Each shows the same
// issues, and everything that keeps a verdict from being healthy.
package ci

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Report is what the formats show of a report. Its texts are safe to print; the names of
// files are as they are.
type Report struct {
	// ASCII keeps to characters that every terminal has.
	ASCII bool

	Version, RulesDigest string
	Profile              string
	// FailOn is the severity from which on a finding makes the exit code 1.
	FailOn string
	// Machine describes it in one line.
	Machine string
	Sources []string
	// Seconds are how long the run took.
	Seconds float64

	// State is the verdict, one of States.
	State    string
	States   []string
	ExitCode int
	// Reason is why the exit code is what it is, and Conclusion the verdict in one line.
	Reason, Conclusion string
	// Broken is why the exit code is neither 0 nor 1, empty if it is.
	Broken string
	// Counts are the findings by severity, the most severe first.
	Counts []Count

	// Issues are the findings, most severe first, and then those that are waived.
	Issues []Issue
	// Unused are the waivers that match no finding.
	Unused []Remark
	// Gaps are the reasons of the verdict that are no findings, GapCodes all there may be.
	Gaps     []Gap
	GapCodes []string
	// Skipped are the rules that could not be judged, Passed those that found nothing.
	Skipped []Skipped
	Passed  []string
	// NotApplicable counts the rules that do not apply.
	NotApplicable int
	// Rules are those that the issues name, in order of id.
	Rules []rules.Rule
	// Areas are the parts of the machine.
	Areas []Area
	// Examined is the place of what is about no file in particular.
	Examined Place
}

// Count is how many findings have a severity.
type Count struct {
	Severity string
	N        int
}

// Area is the state of a part of the machine.
type Area struct{ Name, State string }

// Gap is a reason of the verdict that is no finding.
type Gap struct{ Code, Text string }

// Skipped is a rule that could not be judged: why, and what was missing.
type Skipped struct {
	Rule, Reason string
	Missing      []string
}

// Remark is about a place.
type Remark struct {
	Place Place
	Text  string
}

// Issue is a finding as these formats show it: one entry with a place and a fingerprint.
type Issue struct {
	Rule, Subject, Title string
	Severity             rules.Severity
	Confidence           rules.Confidence
	// Message is what was found, in one line, and Details are what follows from it and
	// what to do, a line each.
	Message string
	Details []string
	Place   Place
	// Fingerprint names the issue in this report and in those of later runs.
	Fingerprint string
	// Fails is true if the issue makes the exit code 1.
	Fails bool
	// Waiver is the waiver of a finding that is waived, nil for another, and Terms what it
	// says.
	Waiver *waivers.Waiver
	Terms  string
}

// text is the message with the details below it.
func (i Issue) text() string { return strings.Join(append([]string{i.Message}, i.Details...), "\n") }

// waived reports whether a finding is waived.
func (i Issue) waived() bool { return i.Waiver != nil }

// Place is a file that an issue is about. Line is 0 if the issue is about no single line.
type Place struct {
	File string
	Line int
}

// shown is a place whose file is safe to print.
func (r *Report) shown(p Place) Place {
	p.File = lines.Printable(p.File, r.ASCII)
	return p
}

// Machine is the file of issues that are about no file.
const Machine = "machine"

// Fingerprint is a digest of what identifies an issue. The message is no part of it, because
// measured values in it vary. A number distinguishes issues with the same key.
func Fingerprint(key string, number int) string {
	if number > 1 {
		key += "\x00" + strconv.Itoa(number)
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// encode writes a value as JSON.
func encode(b *bytes.Buffer, v any) {
	raw, err := lines.JSON(v)
	if err != nil {
		panic(fmt.Sprintf("encode a report: %v", err)) // All of it is strings, numbers and lists.
	}
	b.Write(raw)
}
