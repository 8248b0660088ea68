// Package terms explains the words of a report that are no ids: exit codes, severities,
// confidences, verdicts, kinds of remedy and waivers.
package terms

import (
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Kind is what a term is.
type Kind string

// The kinds.
const (
	ExitCode   Kind = "exit code"
	Severity   Kind = "severity"
	Confidence Kind = "confidence"
	Verdict    Kind = "verdict"
	Remedy     Kind = "kind of remedy"
	Waiver     Kind = "waiver"
)

// Term is a word of a report.
type Term struct {
	Kind Kind
	Name string
	// Means says what it means, Do what a user does about it.
	Means, Do string
}

// all are the terms, those of a kind in their order.
var all = []Term{
	{
		ExitCode, "0",
		"no finding at or above --fail-on (default high), and neither a transfer nor the probe failed",
		"Nothing needs to be done. With --strict, everything that the verdict needs was also examined. For diff: no differences.",
	},
	{
		ExitCode, "1",
		"a finding at or above --fail-on",
		"Read the first finding of the report and apply its first remedy. --fail-on sets another severity. For diff: there are differences.",
	},
	{
		ExitCode, "2",
		"wrong usage, input that cannot be read, input in which nothing was recognized (the report says what to send), a report that could not be written, a resource limit (ulimit) that is too low, or an internal error",
		"Read the error message and its hints on standard error.",
	},
	{
		ExitCode, "3",
		"no finding at or above --fail-on, but transfers failed (--fail-on none, --skip), the probe was requested but failed, or a file of a job is broken; with --strict, also if anything that the verdict needs could not be examined",
		"Read the last lines of the report: they name what failed or is missing. --verbose says why.",
	},
	{
		ExitCode, "128 and above",
		"stopped by a signal: 128 plus the signal number (129 SIGHUP, 130 SIGINT, 131 SIGQUIT, 143 SIGTERM)",
		"Run it again. If the time limit of a job or of CI stopped it, set a shorter --deadline.",
	},
	{Severity, string(rules.Critical), "communication fails, or data is corrupted", "Do not start a job until it is fixed."},
	{Severity, string(rules.High), "communication fails under likely conditions, loses more than half of the bandwidth, or made a job fail", "Fix it, or apply the workaround, before the next job."},
	{Severity, string(rules.Medium), "a noticeable part of the bandwidth is lost, or communication fails under less likely conditions", "Plan the fix."},
	{Severity, string(rules.Low), "little performance is lost", "Fix it when convenient."},
	{Severity, string(rules.Info), "nothing needs to be done", "Nothing."},
	{Confidence, string(rules.Confirmed), "the probe measured it, or a program's own message says it", "After \"cause\": apply the remedy. After \"symptom\": only the failure is certain; the rest of the words says how sure the cause is."},
	{Confidence, string(rules.Likely), "the facts imply it", "Apply the remedy; its verification shows whether this was the cause."},
	{Confidence, string(rules.Possible), "the facts allow it", "Check first: the finding says what to look at."},
	{Verdict, string(report.Healthy), "everything that the profile requires was examined, and nothing of medium severity or above was found", "Nothing."},
	{Verdict, string(report.Findings), "something of medium severity or above was found, waived or not", "Start with the first finding: findings are sorted by severity."},
	{Verdict, string(report.Inconclusive), "nothing of medium severity or above was found, but something failed or was not examined", "Read the last lines of the report: they name what is missing and how to examine it."},
	{Remedy, string(remedies.Fix), "it removes the cause", "Prefer it if you can accept what it requires."},
	{Remedy, string(remedies.Workaround), "it avoids the consequence, at a cost", "Use it until the fix is in place, and remove it afterwards."},
	{Waiver, "waived", "a waiver accepts the finding until a date: it is listed, and does not count for the exit code", "Fix it before the waiver expires. Its consequences count unless they are waived themselves."},
	{Waiver, waivers.Expired, "a waiver is past its last day: what it waived counts again", "Fix what it waived, or set a later date and review the reason; otherwise remove the waiver."},
}

// All are the terms.
func All() []Term { return append([]Term(nil), all...) }

// Names are the words that Find finds; "exit" stands for all exit codes.
func Names() []string {
	names := []string{"exit"}
	for _, t := range all {
		if t.Kind != ExitCode {
			names = append(names, t.Name)
		}
	}
	return names
}

// Find finds the terms that words name: "critical", "exit 3", "3", "exit code 130", or
// "exit" for all exit codes.
func Find(words []string) []Term {
	name := strings.ToLower(strings.Join(words, " "))
	code := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(name, "exit"), "-"))
	code = strings.TrimSpace(strings.TrimPrefix(code, "code"))
	var found []Term
	for _, t := range all {
		if t.Kind == ExitCode && (code == t.Name || code == "" && name != "" || t.signals(code)) || t.Name == name || string(t.Kind) == name {
			found = append(found, t)
		}
	}
	return found
}

// signals reports whether a code is one of those of signals (signal(7)).
func (t Term) signals(code string) bool {
	const first, last = 129, 192
	n, err := strconv.Atoi(code)
	return err == nil && len(t.Name) > 1 && t.Kind == ExitCode && n >= first && n <= last
}
