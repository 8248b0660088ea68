package report

import (
	"bytes"

	"github.com/gpudoctor/gpudoctor/rules"
)

// gitLabIssue is an entry of a report on code quality
// (https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format).
type gitLabIssue struct {
	Description string `json:"description"`
	CheckName   string `json:"check_name"`
	Fingerprint string `json:"fingerprint"`
	Severity    string `json:"severity"`
	Location    struct {
		Path  string `json:"path"`
		Lines struct {
			Begin int `json:"begin"`
		} `json:"lines"`
	} `json:"location"`
}

// gitLabSeverities are GitLab's names.
var gitLabSeverities = map[rules.Severity]string{
	rules.Critical: "blocker", rules.High: "critical", rules.Medium: "major", rules.Low: "minor", rules.Info: "info",
}

// writeGitLab writes findings, and what was not examined, as issues of code quality.
func writeGitLab(b *bytes.Buffer, r *ciReport) {
	all := []gitLabIssue{}
	add := func(check, fingerprint, severity, text string, p place) {
		one := gitLabIssue{Description: text, CheckName: check, Fingerprint: fingerprint, Severity: severity}
		one.Location.Path, one.Location.Lines.Begin = r.shown(p), max(p.line, 1)
		all = append(all, one)
	}
	for _, i := range r.issues {
		if i.waived() {
			i.Severity, i.Message = rules.Info, i.Terms+"\n"+i.Message
		}
		add(i.Rule, i.fingerprint, gitLabSeverities[i.Severity], i.text(), i.place)
	}
	severity := gitLabSeverities[rules.Low]
	if r.Verdict.ExitCode > 1 {
		severity = gitLabSeverities[rules.High]
	}
	seen := map[ReasonCode]int{}
	for _, g := range r.gaps {
		seen[g.Code]++
		add("gpudoctor/"+string(g.Code), fingerprint("gap\x00"+string(g.Code), seen[g.Code]), severity, g.Text, r.examined)
	}
	if r.broken != "" {
		add("gpudoctor/exit-code", fingerprint("exit-code", 1), severity, r.broken, r.examined)
	}
	Encode(b, all)
}
