package main

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// termKind is what a term is.
type termKind string

// The kinds.
const (
	exitCodeTerm   termKind = "exit code"
	severityTerm   termKind = "severity"
	confidenceTerm termKind = "confidence"
	verdictTerm    termKind = "verdict"
	remedyTerm     termKind = "kind of remedy"
	waiverTerm     termKind = "waiver"
	glossaryTerm   termKind = "term"
)

// reportTerm is a word of a report.
type reportTerm struct {
	Kind termKind
	Name string
	// Means says what it means, Do what a user does about it.
	Means, Do string
}

// allTerms are the terms, those of a kind in their order.
var allTerms = []reportTerm{
	{
		exitCodeTerm, "0",
		"no finding at or above --fail-on (default high), and neither a transfer nor the probe failed",
		"Nothing needs to be done. With --strict, everything that the verdict needs was also examined. For diff: no differences.",
	},
	{
		exitCodeTerm, "1",
		"a finding at or above --fail-on",
		"Read the first finding of the report and apply its first remedy. --fail-on sets another severity. For diff: there are differences.",
	},
	{
		exitCodeTerm, "2",
		"wrong usage, input that cannot be read, input in which nothing was recognized (the report says what to send), a report that could not be written, a resource limit (ulimit) that is too low, or an internal error",
		"Read the error message and its hints on standard error.",
	},
	{
		exitCodeTerm, "3",
		"no finding at or above --fail-on, but transfers failed (--fail-on none, --skip), the probe was requested but failed, or a file of a job is broken; with --strict, also if anything that the verdict needs could not be examined",
		"Read the last lines of the report: they name what failed or is missing. --verbose says why.",
	},
	{
		exitCodeTerm, "128 and above",
		"stopped by a signal: 128 plus the signal number (129 SIGHUP, 130 SIGINT, 131 SIGQUIT, 143 SIGTERM)",
		"Run it again. If the time limit of a job or of CI stopped it, set a shorter --deadline.",
	},
	{severityTerm, string(rules.Critical), "communication fails, or data is corrupted", "Do not start a job until it is fixed."},
	{severityTerm, string(rules.High), "communication fails under likely conditions, loses more than half of the bandwidth, or made a job fail", "Fix it, or apply the workaround, before the next job."},
	{severityTerm, string(rules.Medium), "a noticeable part of the bandwidth is lost, or communication fails under less likely conditions", "Plan the fix."},
	{severityTerm, string(rules.Low), "little performance is lost", "Fix it when convenient."},
	{severityTerm, string(rules.Info), "nothing needs to be done", "Nothing."},
	{confidenceTerm, string(rules.Confirmed), "the probe measured it, or a program's own message says it", "After \"cause\": apply the remedy. After \"symptom\": only the failure is certain; the rest of the words says how sure the cause is."},
	{confidenceTerm, string(rules.Likely), "the facts imply it", "Apply the remedy; its verification shows whether this was the cause."},
	{confidenceTerm, string(rules.Possible), "the facts allow it", "Check first: the finding says what to look at."},
	{verdictTerm, string(report.Healthy), "everything that the profile requires was examined, and nothing of medium severity or above was found", "Nothing."},
	{verdictTerm, string(report.Findings), "something of medium severity or above was found, waived or not", "Start with the first finding: findings are sorted by severity."},
	{verdictTerm, string(report.Inconclusive), "nothing of medium severity or above was found, but something failed or was not examined", "Read the last lines of the report: they name what is missing and how to examine it."},
	{remedyTerm, string(remedies.Fix), "it removes the cause", "Prefer it if you can accept what it requires."},
	{remedyTerm, string(remedies.Workaround), "it avoids the consequence, at a cost", "Use it until the fix is in place, and remove it afterwards."},
	{waiverTerm, "waived", "a waiver accepts the finding until a date: it is listed, and does not count for the exit code", "Fix it before the waiver expires. Its consequences count unless they are waived themselves."},
	{waiverTerm, waivers.Expired, "a waiver is past its last day: what it waived counts again", "Fix what it waived, or set a later date and review the reason; otherwise remove the waiver."},
}

// everyTerm are the terms with those of the glossary.
func everyTerm() []reportTerm {
	return slices.Concat(allTerms, lines.Map(report.Glossary(), func(t report.Term) reportTerm {
		return reportTerm{Kind: glossaryTerm, Name: t.Name, Means: t.Means}
	}))
}

// termNames are the words that findTerms finds; "exit" stands for all exit codes.
func termNames() []string {
	words := lines.Filter(everyTerm(), func(t reportTerm) bool { return t.Kind != exitCodeTerm })
	return append([]string{"exit"}, lines.Map(words, func(t reportTerm) string { return t.Name })...)
}

// findTerms finds the terms that words name: "critical", "3", "exit 3", or "exit" for all exit codes.
func findTerms(words []string) []reportTerm {
	name := strings.ToLower(strings.Join(words, " "))
	code, ofExit := strings.CutPrefix(name, "exit")
	return lines.Filter(everyTerm(), func(t reportTerm) bool {
		return t.Kind == exitCodeTerm && ofExit && (code == "" || code == " "+t.Name) || strings.EqualFold(t.Name, name) || string(t.Kind) == name
	})
}
