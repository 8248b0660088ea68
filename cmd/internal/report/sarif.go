package report

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/chavacava/garif"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/gfm"
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
func writeSARIF(b *bytes.Buffer, d *Document, s Style) {
	run := garif.NewRun(garif.NewTool(d.sarifDriver(s)))
	run.Invocations = []*garif.Invocation{d.sarifInvocation(s)}
	run.AutomationDetails = &garif.RunAutomationDetails{Id: "gpudoctor/" + string(d.Profile) + "/"}
	out := sarifRun{Run: run, Results: []sarifResult{}}
	for _, i := range d.issues(s) {
		out.Results = append(out.Results, i.sarif())
	}
	raw, err := Marshal(sarifLog{Schema: sarifSchema, Version: sarifVersion, Runs: []sarifRun{out}})
	if err != nil {
		panic(fmt.Sprintf("encode SARIF: %v", err)) // All of it is strings, numbers and lists.
	}
	b.Write(raw)
}

// sarifDriver describes the program and the rules that the results name.
func (d *Document) sarifDriver(s Style) *garif.ToolComponent {
	driver := garif.NewDriver("gpudoctor")
	driver.Version = lines.Printable(d.Version, s.ASCII)
	for _, r := range d.spokenOf() {
		driver.Rules = append(driver.Rules, sarifRule(r, s))
	}
	return driver
}

// sarifRule describes a rule.
func sarifRule(r rules.Rule, s Style) *garif.ReportingDescriptor {
	clean := func(text string) string { return sarifText(lines.Printable(text, s.ASCII)) }
	rule := garif.NewReportingDescriptor(lines.Printable(r.ID, s.ASCII))
	rule.ShortDescription = garif.NewMultiformatMessageString(clean(r.Title))
	rule.DefaultConfiguration = garif.NewReportingConfiguration()
	rule.DefaultConfiguration.Enabled = true
	rule.DefaultConfiguration.Level = sarifLevel(r.Severity)
	help, marked := []string{clean(r.Title)}, []string{gfm.Inline(r.Title)}
	if r.Description != "" {
		rule.FullDescription = garif.NewMultiformatMessageString(clean(r.Description))
		help, marked = []string{clean(r.Description)}, []string{gfm.Inline(r.Description)}
	}
	for _, l := range r.Links {
		help = append(help, clean(l.Ref))
		marked = append(marked, "- "+gfm.Inline(l.Ref))
	}
	explain := "gpudoctor explain " + r.ID
	rule.Help = garif.NewMultiformatMessageString(strings.Join(append(help, clean(explain)), "\n"))
	rule.Help.Markdown = strings.Join(append(marked, "\n"+gfm.Code(explain)), "\n")
	if len(r.Links) > 0 && isURL(r.Links[0].Ref) {
		rule.HelpUri = r.Links[0].Ref
	}
	tags := make([]string, 0, len(r.Areas))
	for _, a := range r.Areas {
		tags = append(tags, string(a))
	}
	properties := garif.PropertyBag{"precision": sarifPrecision(r.Confidence), "problem.severity": sarifProblem(r.Severity)}
	if len(tags) > 0 {
		properties["tags"] = tags
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
func (d *Document) sarifInvocation(s Style) *garif.Invocation {
	invocation := garif.NewInvocation(d.Verdict.ExitCode < 2)
	invocation.ExitCode = d.Verdict.ExitCode
	invocation.ExitCodeDescription = lines.Printable(d.Verdict.Reason, s.ASCII)
	level := string(garif.ResultLevel_Warning)
	if d.Verdict.ExitCode > 1 {
		level = string(garif.ResultLevel_Error)
	}
	add := func(id, level, text string) {
		n := garif.NewNotification(garif.NewMessageFromText(sarifText(text)))
		n.Level = level
		n.Descriptor = garif.NewReportingDescriptorReference()
		n.Descriptor.Id = id
		invocation.ToolExecutionNotifications = append(invocation.ToolExecutionNotifications, n)
	}
	for _, g := range d.notExamined(s) {
		add(string(g.Code), level, g.Text)
	}
	if said := d.broken(s); said != "" {
		add("exit-code", level, said)
	}
	for _, w := range d.UnusedWaivers {
		add("waiver-unused", string(garif.ResultLevel_Note), lines.Printable(unused(w), s.ASCII))
	}
	for _, skipped := range d.Skipped {
		add("not-judged/"+lines.Printable(skipped.Rule, s.ASCII), string(garif.ResultLevel_Note), lines.Printable(skipped.Rule+" was not judged: "+reasonOf(skipped), s.ASCII))
	}
	return invocation
}

// sarif is an issue as a result.
func (i issue) sarif() sarifResult {
	r := garif.NewResult(garif.NewMessageFromText(sarifText(i.text())))
	r.RuleId, r.Kind, r.Level = i.rule, garif.ResultKind_Fail, sarifLevel(i.severity)
	r.PartialFingerprints = map[string]string{"gpudoctor/v1": i.fingerprint}
	location := garif.NewLocation().WithURI(sarifURI(i.place.file))
	if i.place.line > 0 {
		location.PhysicalLocation.Region = garif.NewRegion()
		location.PhysicalLocation.Region.StartLine = i.place.line
	}
	logical := garif.NewLogicalLocation()
	logical.FullyQualifiedName, logical.Kind = i.subject, "resource"
	location.LogicalLocations = []*garif.LogicalLocation{logical}
	r.Locations = []*garif.Location{location}
	properties := garif.PropertyBag{"severity": string(i.severity), "confidence": string(i.confidence), "failsGate": i.fails}
	r.Properties = &properties
	return sarifResult{Result: r, Suppressions: i.suppressions()}
}

// suppressions are the waiver of a result, if it has one.
func (i issue) suppressions() []*garif.Suppression {
	if !i.isWaived() {
		return []*garif.Suppression{}
	}
	s := garif.NewSuppression("external")
	s.Status, s.Justification = "accepted", i.terms
	s.Location = garif.NewLocation().WithURI(sarifURI(i.waiver.File))
	s.Location.PhysicalLocation.Region = garif.NewRegion()
	s.Location.PhysicalLocation.Region.StartLine = i.waiver.Line
	return []*garif.Suppression{s}
}

// sarifURI is a file as a reference: absolute for a file of the machine, relative for one
// that was named.
func sarifURI(file string) string {
	parts := strings.Split(file, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	path := strings.Join(parts, "/")
	if strings.HasPrefix(path, "/") {
		return "file://" + path
	}
	if strings.Contains(parts[0], ":") { // It is no scheme.
		return "./" + path
	}
	return path
}

// sarifText writes a text such that nothing in it is a placeholder (3.11.5) or a link
// (3.11.6).
func sarifText(text string) string {
	return strings.NewReplacer("{", "{{", "}", "}}", "](", "] (").Replace(text)
}

// sarifLevel is the level of a severity.
func sarifLevel(s rules.Severity) garif.ResultLevel {
	switch s {
	case rules.Critical, rules.High:
		return garif.ResultLevel_Error
	case rules.Medium:
		return garif.ResultLevel_Warning
	case rules.Low, rules.Info:
	}
	return garif.ResultLevel_Note
}

// sarifProblem is the severity as GitHub's code scanning sorts by it.
func sarifProblem(s rules.Severity) string {
	return map[garif.ResultLevel]string{garif.ResultLevel_Error: "error", garif.ResultLevel_Warning: "warning", garif.ResultLevel_Note: "recommendation"}[sarifLevel(s)]
}

// sarifPrecision is the confidence as GitHub's code scanning names it.
func sarifPrecision(c rules.Confidence) string {
	at := slices.Index([]rules.Confidence{rules.Confirmed, rules.Likely, rules.Possible}, c)
	return []string{"low", "very-high", "high", "medium"}[at+1]
}
