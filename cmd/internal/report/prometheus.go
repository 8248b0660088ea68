package report

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
)

// Metric begins a metric (https://prometheus.io/docs/instrumenting/exposition_formats/), and returns what writes a sample of it: the
// value, and names and values of labels.
func Metric(b *bytes.Buffer, name, help string) func(value float64, labels ...string) {
	name = "gpudoctor_" + name
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
	return func(value float64, labels ...string) {
		var pairs []string
		for i := 0; i < len(labels); i += 2 {
			pairs = append(pairs, labels[i]+`="`+labelEscaper.Replace(labels[i+1])+`"`)
		}
		fmt.Fprintf(b, "%s%s %s\n", name, lines.After(lines.Behind("{", strings.Join(pairs, ",")), "}"), strconv.FormatFloat(value, 'f', -1, 64))
	}
}

var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func writePrometheus(b *bytes.Buffer, r *ciReport) {
	Metric(b, "info", "The version of gpudoctor, the digest of its rules and the profile; always 1.")(1, "version", r.Version, "rules_digest", string(r.RulesDigest), "profile", string(r.Profile))
	put := Metric(b, "verdict", "1 for the state of the verdict, 0 for the others.")
	for _, state := range []State{Healthy, Findings, Inconclusive} {
		put(map[bool]float64{true: 1}[state == r.Verdict.State], "state", string(state))
	}
	Metric(b, "exit_code", "The exit code of the last run.")(float64(r.Verdict.ExitCode))
	put = Metric(b, "findings", "Findings by severity, without their consequences.")
	for i, n := range r.Verdict.Counts.list() {
		put(float64(n), "severity", string(severities[i]))
	}
	counting, notCounting := r.issues[:len(r.Findings)], r.issues[len(r.Findings):]
	countAlike(Metric(b, "finding", "Findings with this rule and subject, without their consequences."), counting)
	countAlike(Metric(b, "waived_finding", "Waived findings with this rule and subject."), notCounting)
	put = Metric(b, "waiver_expiry_timestamp_seconds", "The end of the last day on which a waiver is in force.")
	for _, alike := range lines.Grouped(notCounting, func(i issue) string { return i.waiver.Place() }) {
		w := lines.Clean(alike[0].waiver, false)
		if end, err := time.Parse(waivers.DateForm, w.Expires); err == nil {
			put(float64(end.AddDate(0, 0, 1).Unix()), "rule", w.Rule, "owner", w.Owner, "place", w.Place())
		}
	}
	put = Metric(b, "not_examined", "Reasons why the verdict is not healthy that are no findings, by code.")
	gaps := map[ReasonCode]float64{}
	for _, g := range r.gaps {
		gaps[g.Code]++
	}
	for _, code := range reasonCodes {
		if code != ReasonFinding && code != ReasonWaived {
			put(gaps[code], "code", string(code))
		}
	}
	put = Metric(b, "rules", "Rules by outcome.")
	put(float64(len(r.Passed)), "outcome", "passed")
	put(float64(len(r.Skipped)), "outcome", "not-judged")
	put(float64(len(r.NotApplicable)), "outcome", "not-applicable")
	put(float64(len(r.rules)), "outcome", "found")
	put = Metric(b, "area", "1 for the state of each area of the machine.")
	for _, l := range r.Areas {
		put(1, "area", string(l.Name), "state", string(l.State))
	}
	Metric(b, "duration_seconds", "The duration of the last run.")(r.Timing.TotalMS / 1000)
}

func countAlike(put func(value float64, labels ...string), all []issue) {
	for _, alike := range lines.Grouped(all, func(i issue) [4]string {
		return [...]string{i.Rule, string(i.Severity), string(i.Confidence), i.Subject}
	}) {
		i := alike[0]
		put(float64(len(alike)), "rule", i.Rule, "severity", string(i.Severity), "confidence", string(i.Confidence), "subject", i.Subject)
	}
}
