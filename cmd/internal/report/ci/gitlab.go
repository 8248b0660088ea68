package ci

import (
	"bytes"

	"github.com/gpudoctor/gpudoctor/rules"
)

// gitLabIssue is an entry of a report on code quality
// (https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format).
type gitLabIssue struct {
	Description string         `json:"description"`
	CheckName   string         `json:"check_name"`
	Fingerprint string         `json:"fingerprint"`
	Severity    string         `json:"severity"`
	Location    gitLabLocation `json:"location"`
}

type gitLabLocation struct {
	Path  string      `json:"path"`
	Lines gitLabLines `json:"lines"`
}

type gitLabLines struct {
	Begin int `json:"begin"`
}

// gitLabSeverities are GitLab's names.
var gitLabSeverities = map[rules.Severity]string{
	rules.Critical: "blocker", rules.High: "critical", rules.Medium: "major", rules.Low: "minor", rules.Info: "info",
}

// GitLab writes findings, and what was not examined, as issues of code quality.
func GitLab(b *bytes.Buffer, r *Report) {
	all := []gitLabIssue{}
	add := func(check, fingerprint, severity, text string, p Place) {
		all = append(all, gitLabIssue{
			Description: text, CheckName: check, Fingerprint: fingerprint, Severity: severity,
			Location: gitLabLocation{Path: r.shown(p).File, Lines: gitLabLines{Begin: max(p.Line, 1)}},
		})
	}
	for _, i := range r.Issues {
		if i.waived() {
			i.Severity, i.Message = rules.Info, i.Terms+"\n"+i.Message
		}
		add(i.Rule, i.Fingerprint, gitLabSeverities[i.Severity], i.text(), i.Place)
	}
	severity := gitLabSeverities[rules.Low]
	if r.ExitCode > 1 {
		severity = gitLabSeverities[rules.High]
	}
	seen := map[string]int{}
	for _, g := range r.Gaps {
		seen[g.Code]++
		add("gpudoctor/"+g.Code, Fingerprint("gap\x00"+g.Code, seen[g.Code]), severity, g.Text, r.Examined)
	}
	if r.Broken != "" {
		add("gpudoctor/exit-code", Fingerprint("exit-code", 1), severity, r.Broken, r.Examined)
	}
	encode(b, all)
}
