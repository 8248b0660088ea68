package report

import (
	"bytes"
	"cmp"
	"net/url"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

type object = map[string]any

func sarifMessage(text string) object { return object{"text": sarifText(text)} }

// writeSARIF writes the findings for code scanning (OASIS SARIF 2.1.0).
func writeSARIF(b *bytes.Buffer, r *ciReport) {
	driver := object{"name": "gpudoctor", "version": r.Version, "rules": lines.Map(r.rules, sarifRule)}
	Encode(b, struct {
		Schema  string   `json:"$schema"`
		Version string   `json:"version"`
		Runs    []object `json:"runs"`
	}{sarifSchema, "2.1.0", []object{{
		"tool": object{"driver": driver}, "automationDetails": object{"id": "gpudoctor/" + string(r.Profile) + "/"},
		"invocations": []object{r.sarifInvocation()}, "results": lines.Map(r.issues, issue.sarif),
	}}})
}

func sarifRule(r rules.Rule) object {
	said := cmp.Or(r.Description, r.Title)
	help, marked := []string{sarifText(said)}, []string{lines.Inline(said)}
	for _, l := range r.Links {
		help = append(help, sarifText(l.Ref))
		marked = append(marked, "- "+lines.Inline(l.Ref))
	}
	explain := "gpudoctor explain " + r.ID
	level := sarifLevels[r.Severity]
	properties := object{"precision": cmp.Or(sarifPrecisions[r.Confidence], "low"), "problem.severity": level.problem}
	if len(r.Areas) > 0 {
		properties["tags"] = r.Areas
	}
	rule := object{
		"id": r.ID, "shortDescription": sarifMessage(r.Title), "defaultConfiguration": object{"enabled": true, "level": level.level}, "properties": properties,
		"help": object{
			"text":     strings.Join(append(help, sarifText(explain)), "\n"),
			"markdown": strings.Join(append(marked, "\n"+lines.Code(explain)), "\n"),
		},
	}
	if r.Description != "" {
		rule["fullDescription"] = sarifMessage(r.Description)
	}
	if len(r.Links) > 0 && isURL(r.Links[0].Ref) {
		rule["helpUri"] = r.Links[0].Ref
	}
	return rule
}

func isURL(ref string) bool {
	u, err := url.Parse(ref)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// sarifInvocation says how the run went: what was not examined, and why.
func (r *ciReport) sarifInvocation() object {
	level := "warning"
	if r.Verdict.ExitCode > 1 {
		level = "error"
	}
	var all []object
	add := func(id, level, text string) {
		all = append(all, object{"message": sarifMessage(text), "level": level, "descriptor": object{"id": id}})
	}
	for _, g := range r.gaps {
		add(string(g.Code), level, g.Text)
	}
	if r.broken != "" {
		add("exit-code", level, r.broken)
	}
	for _, said := range r.Unused {
		add("waiver-unused", "note", said)
	}
	for _, skipped := range r.Skipped {
		add("not-judged/"+skipped.Rule, "note", skipped.Rule+" was not judged: "+reasonOf(skipped))
	}
	invocation := object{"executionSuccessful": r.Verdict.ExitCode < 2, "exitCode": r.Verdict.ExitCode, "exitCodeDescription": r.Verdict.Reason}
	if len(all) > 0 {
		invocation["toolExecutionNotifications"] = all
	}
	return invocation
}

// sarif is an issue as a result. It has a list of suppressions even if that is empty: where one result of a run has a list, all
// have (SARIF 2.1.0, 3.27.23).
func (i issue) sarif() object {
	location := sarifPlace(i.place)
	location["logicalLocations"] = []object{{"fullyQualifiedName": i.Subject, "kind": "resource"}}
	var suppressions []object
	if i.waived() {
		suppressions = []object{{"kind": "external", "status": "accepted", "justification": i.Terms, "location": sarifPlace(place{i.waiver.File, i.waiver.Line})}}
	}
	return object{
		"ruleId": i.Rule, "kind": "fail", "level": sarifLevels[i.Severity].level, "message": sarifMessage(i.text()), "locations": []object{location},
		"partialFingerprints": object{"gpudoctor/v1": i.fingerprint}, "suppressions": suppressions,
		"properties": object{"severity": i.Severity, "confidence": i.Confidence, "failsGate": i.fails},
	}
}

func sarifPlace(p place) object {
	physical := object{"artifactLocation": object{"uri": sarifURI(p.file)}}
	if p.line > 0 {
		physical["region"] = object{"startLine": p.line}
	}
	return object{"physicalLocation": physical}
}

// sarifURI is a file as a reference: absolute for a file of the machine, relative for one that was named.
func sarifURI(file string) string {
	u := url.URL{Path: file}
	if strings.HasPrefix(file, "/") {
		u.Scheme = "file"
	}
	return u.String()
}

// sarifText writes a text such that nothing in it is a placeholder (3.11.5) or a link (3.11.6).
func sarifText(text string) string {
	return strings.NewReplacer("{", "{{", "}", "}}", "](", "] (").Replace(text)
}

// sarifLevels are the levels of severities, and how GitHub's code scanning sorts by them.
var sarifLevels = map[rules.Severity]struct{ level, problem string }{
	rules.Critical: {"error", "error"}, rules.High: {"error", "error"}, rules.Medium: {"warning", "warning"},
	rules.Low: {"note", "recommendation"}, rules.Info: {"note", "recommendation"},
}

// sarifPrecisions are the confidences as GitHub's code scanning names them.
var sarifPrecisions = map[rules.Confidence]string{rules.Confirmed: "very-high", rules.Likely: "high", rules.Possible: "medium"}
