package report

import (
	"bytes"
	"cmp"
	"net/url"
	"strings"

	"github.com/chavacava/garif"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Where the format is defined, and its schema.
const (
	sarifVersion = "2.1.0"
	sarifSchema  = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

// sarifLog, sarifRun and sarifResult write what the library leaves out if it is empty.
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	*garif.Run
	Results []sarifResult `json:"results"`
}

// sarifResult has a list of suppressions even if it is empty: where one result of a run has a
// list, all have (SARIF 2.1.0, 3.27.23).
type sarifResult struct {
	*garif.Result
	Suppressions []*garif.Suppression `json:"suppressions"`
}

// writeSARIF writes the findings for code scanning (OASIS SARIF 2.1.0).
func writeSARIF(b *bytes.Buffer, r *ciReport) {
	run := garif.NewRun(garif.NewTool(r.sarifDriver()))
	run.Invocations = []*garif.Invocation{r.sarifInvocation()}
	run.AutomationDetails = &garif.RunAutomationDetails{Id: "gpudoctor/" + string(r.Profile) + "/"}
	out := sarifRun{Run: run, Results: list(lines.Map(r.issues, issue.sarif))}
	Encode(b, sarifLog{Schema: sarifSchema, Version: sarifVersion, Runs: []sarifRun{out}})
}

// sarifDriver describes the program and the rules that the results name.
func (r *ciReport) sarifDriver() *garif.ToolComponent {
	driver := garif.NewDriver("gpudoctor")
	driver.Version = r.Version
	driver.Rules = lines.Map(r.rules, sarifRule)
	return driver
}

// sarifRule describes a rule.
func sarifRule(r rules.Rule) *garif.ReportingDescriptor {
	rule := garif.NewReportingDescriptor(r.ID)
	rule.ShortDescription = garif.NewMultiformatMessageString(sarifText(r.Title))
	rule.DefaultConfiguration = garif.NewReportingConfiguration()
	rule.DefaultConfiguration.Enabled = true
	rule.DefaultConfiguration.Level = sarifLevels[r.Severity].level
	help, marked := []string{sarifText(r.Title)}, []string{lines.Inline(r.Title)}
	if r.Description != "" {
		rule.FullDescription = garif.NewMultiformatMessageString(sarifText(r.Description))
		help, marked = []string{sarifText(r.Description)}, []string{lines.Inline(r.Description)}
	}
	for _, l := range r.Links {
		help = append(help, sarifText(l.Ref))
		marked = append(marked, "- "+lines.Inline(l.Ref))
	}
	explain := "gpudoctor explain " + r.ID
	rule.Help = garif.NewMultiformatMessageString(strings.Join(append(help, sarifText(explain)), "\n"))
	rule.Help.Markdown = strings.Join(append(marked, "\n"+lines.Code(explain)), "\n")
	if len(r.Links) > 0 && isURL(r.Links[0].Ref) {
		rule.HelpUri = r.Links[0].Ref
	}
	properties := garif.PropertyBag{"precision": cmp.Or(sarifPrecisions[r.Confidence], "low"), "problem.severity": sarifLevels[r.Severity].problem}
	if len(r.Areas) > 0 {
		properties["tags"] = r.Areas
	}
	rule.Properties = &properties
	return rule
}

// isURL reports whether a source is an address of the web.
func isURL(ref string) bool {
	u, err := url.Parse(ref)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// sarifInvocation says how the run went: what was not examined, and why.
func (r *ciReport) sarifInvocation() *garif.Invocation {
	invocation := garif.NewInvocation(r.Verdict.ExitCode < 2)
	invocation.ExitCode = r.Verdict.ExitCode
	invocation.ExitCodeDescription = r.Verdict.Reason
	level := string(garif.ResultLevel_Warning)
	if r.Verdict.ExitCode > 1 {
		level = string(garif.ResultLevel_Error)
	}
	add := func(id, level, text string) {
		n := garif.NewNotification(garif.NewMessageFromText(sarifText(text)))
		n.Level = level
		n.Descriptor = garif.NewReportingDescriptorReference()
		n.Descriptor.Id = id
		invocation.ToolExecutionNotifications = append(invocation.ToolExecutionNotifications, n)
	}
	for _, g := range r.gaps {
		add(string(g.Code), level, g.Text)
	}
	if r.broken != "" {
		add("exit-code", level, r.broken)
	}
	for _, said := range r.Unused {
		add("waiver-unused", string(garif.ResultLevel_Note), said)
	}
	for _, skipped := range r.Skipped {
		add("not-judged/"+skipped.Rule, string(garif.ResultLevel_Note), skipped.Rule+" was not judged: "+reasonOf(skipped))
	}
	return invocation
}

// sarif is an issue as a result.
func (i issue) sarif() sarifResult {
	r := garif.NewResult(garif.NewMessageFromText(sarifText(i.text())))
	r.RuleId, r.Kind, r.Level = i.Rule, garif.ResultKind_Fail, sarifLevels[i.Severity].level
	r.PartialFingerprints = map[string]string{"gpudoctor/v1": i.fingerprint}
	location := garif.NewLocation().WithURI(sarifURI(i.place.file))
	if i.place.line > 0 {
		location.PhysicalLocation.Region = garif.NewRegion()
		location.PhysicalLocation.Region.StartLine = i.place.line
	}
	logical := garif.NewLogicalLocation()
	logical.FullyQualifiedName, logical.Kind = i.Subject, "resource"
	location.LogicalLocations = []*garif.LogicalLocation{logical}
	r.Locations = []*garif.Location{location}
	properties := garif.PropertyBag{"severity": string(i.Severity), "confidence": string(i.Confidence), "failsGate": i.fails}
	r.Properties = &properties
	return sarifResult{Result: r, Suppressions: i.suppressions()}
}

// suppressions are the waiver of a result, if it has one.
func (i issue) suppressions() []*garif.Suppression {
	if !i.waived() {
		return []*garif.Suppression{}
	}
	s := garif.NewSuppression("external")
	s.Status, s.Justification = "accepted", i.Terms
	s.Location = garif.NewLocation().WithURI(sarifURI(i.waiver.File))
	s.Location.PhysicalLocation.Region = garif.NewRegion()
	s.Location.PhysicalLocation.Region.StartLine = i.waiver.Line
	return []*garif.Suppression{s}
}

// sarifURI is a file as a reference: absolute for a file of the machine, relative for one
// that was named.
func sarifURI(file string) string {
	u := url.URL{Path: file}
	if strings.HasPrefix(file, "/") {
		u.Scheme = "file"
	}
	return u.String()
}

// sarifText writes a text such that nothing in it is a placeholder (3.11.5) or a link
// (3.11.6).
func sarifText(text string) string {
	return strings.NewReplacer("{", "{{", "}", "}}", "](", "] (").Replace(text)
}

// sarifLevels are the levels of severities, and how GitHub's code scanning sorts by them.
var sarifLevels = map[rules.Severity]struct {
	level   garif.ResultLevel
	problem string
}{
	rules.Critical: {garif.ResultLevel_Error, "error"}, rules.High: {garif.ResultLevel_Error, "error"}, rules.Medium: {garif.ResultLevel_Warning, "warning"},
	rules.Low: {garif.ResultLevel_Note, "recommendation"}, rules.Info: {garif.ResultLevel_Note, "recommendation"},
}

// sarifPrecisions are the confidences as GitHub's code scanning names them.
var sarifPrecisions = map[rules.Confidence]string{rules.Confirmed: "very-high", rules.Likely: "high", rules.Possible: "medium"}
