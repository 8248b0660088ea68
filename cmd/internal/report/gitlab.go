package report

import (
	"bytes"

	"github.com/gpudoctor/gpudoctor/rules"
)

var gitLabSeverities = map[rules.Severity]string{
	rules.Critical: "blocker", rules.High: "critical", rules.Medium: "major", rules.Low: "minor", rules.Info: "info",
}

// writeGitLab writes findings, and what was not examined, as issues of code quality
// (https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format).
func writeGitLab(b *bytes.Buffer, r *ciReport) {
	var all []object
	add := func(check, fingerprint, severity, text string, p place) {
		location := object{"path": p.shown(), "lines": object{"begin": max(p.line, 1)}}
		all = append(all, object{"description": text, "check_name": check, "fingerprint": fingerprint, "severity": severity, "location": location})
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
