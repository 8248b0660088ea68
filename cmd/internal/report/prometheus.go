package report

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
)

// writePrometheus writes metrics for the textfile collector of node_exporter, in the text
// format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/).
func writePrometheus(b *bytes.Buffer, r *ciReport) {
	m := &metrics{b: b, ascii: r.ascii}
	m.family("gpudoctor_info", "The version of gpudoctor, the digest of its rules and the profile; always 1.")
	m.sample(1, "version", r.Version, "rules_digest", string(r.RulesDigest), "profile", string(r.Profile))
	m.family("gpudoctor_verdict", "1 for the state of the verdict, 0 for the others.")
	for _, state := range []State{Healthy, Findings, Inconclusive} {
		m.sample(truth(r.Verdict.State == state), "state", string(state))
	}
	m.family("gpudoctor_exit_code", "The exit code of the last run.")
	m.sample(float64(r.Verdict.ExitCode))
	m.family("gpudoctor_findings", "Findings by severity, without their consequences.")
	for i, n := range r.Verdict.Counts.list() {
		m.sample(float64(n), "severity", string(severities[i]))
	}
	counting, waived := r.issues, []issue{}
	if first := slices.IndexFunc(counting, issue.waived); first >= 0 {
		counting, waived = counting[:first], counting[first:]
	}
	m.findings("gpudoctor_finding", "Findings with this rule and subject, without their consequences.", counting)
	m.findings("gpudoctor_waived_finding", "Waived findings with this rule and subject.", waived)
	m.expiries(waived)
	m.family("gpudoctor_not_examined", "Reasons why the verdict is not healthy that are no findings, by code.")
	gaps := map[ReasonCode]int{}
	for _, g := range r.gaps {
		gaps[g.Code]++
	}
	for _, code := range reasonCodes {
		if code != ReasonFinding && code != ReasonWaived {
			m.sample(float64(gaps[code]), "code", string(code))
		}
	}
	m.family("gpudoctor_rules", "Rules by outcome.")
	for _, o := range []struct {
		outcome string
		n       int
	}{{"passed", len(r.Passed)}, {"not-judged", len(r.Skipped)}, {"not-applicable", len(r.NotApplicable)}, {"found", len(r.rules)}} {
		m.sample(float64(o.n), "outcome", o.outcome)
	}
	m.family("gpudoctor_area", "1 for the state of each area of the machine.")
	for _, a := range r.Areas {
		m.sample(1, "area", string(a.Name), "state", string(a.State))
	}
	m.family("gpudoctor_duration_seconds", "The duration of the last run.")
	m.sample(r.Timing.TotalMS / 1000)
}

// truth is a truth value as a metric.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// metrics writes families of gauges.
type metrics struct {
	b     *bytes.Buffer
	name  string
	ascii bool
}

// family begins a family.
func (m *metrics) family(name, help string) {
	m.name = name
	fmt.Fprintf(m.b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
}

// sample writes a value. The labels are names and values in turn.
func (m *metrics) sample(value float64, labels ...string) {
	var set []string
	for i := 0; i+1 < len(labels); i += 2 {
		set = append(set, labels[i]+`="`+metricLabel.Replace(lines.Printable(labels[i+1], m.ascii))+`"`)
	}
	m.b.WriteString(m.name)
	if len(set) > 0 {
		m.b.WriteString("{" + strings.Join(set, ",") + "}")
	}
	m.b.WriteString(" " + strconv.FormatFloat(value, 'f', -1, 64) + "\n")
}

// findings writes a sample for each rule, severity, confidence and subject.
func (m *metrics) findings(name, help string, all []issue) {
	type key struct{ rule, severity, confidence, subject string }
	counts, order := map[key]int{}, []key{}
	for _, i := range all {
		k := key{i.Rule, string(i.Severity), string(i.Confidence), i.Subject}
		if counts[k] == 0 {
			order = append(order, k)
		}
		counts[k]++
	}
	m.family(name, help)
	for _, k := range order {
		m.sample(float64(counts[k]), "rule", k.rule, "severity", k.severity, "confidence", k.confidence, "subject", k.subject)
	}
}

// expiries writes when each waiver that is in use ends.
func (m *metrics) expiries(waived []issue) {
	m.family("gpudoctor_waiver_expiry_timestamp_seconds", "The end of the last day on which a waiver is in force.")
	seen := map[string]bool{}
	for _, i := range waived {
		at := i.waiver.Place()
		if end, err := time.Parse(waivers.DateForm, i.waiver.Expires); err == nil && !seen[at] {
			seen[at] = true
			m.sample(float64(end.AddDate(0, 0, 1).Unix()), "rule", i.waiver.Rule, "owner", i.waiver.Owner, "place", at)
		}
	}
}

// metricLabel escapes the value of a label.
var metricLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
