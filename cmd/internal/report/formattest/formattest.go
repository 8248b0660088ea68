// Package formattest reads, in tests, reports as the programs of others do.
package formattest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/chavacava/garif"
	codeclimate "github.com/editorconfig-checker/editorconfig-checker/v3/pkg/error"
	"github.com/joshdk/go-junit"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// sarifSchema is the schema that OASIS publishes with SARIF 2.1.0 Errata 01, as gosec v2.29.0
// (Apache-2.0) holds it in report/sarif/testdata.
//
//go:embed sarif-schema-2.1.0.json
var sarifSchema []byte

// Entry is a finding as a reader sees it. What a format does not hold is empty.
type Entry struct {
	Rule, Text string
	// Fails is true where the finding makes the exit code 1.
	Fails bool
	// Waived is true for a waived finding.
	Waived bool
}

// Report is what a reader sees in a report.
type Report struct {
	Entries []Entry
	// Gaps say what was not examined, by the code of the reason.
	Gaps []string
	// Broken is true where the report says that the exit code is neither 0 nor 1.
	Broken bool
	// AllPassed is true where a reader takes the report for a success without remarks.
	AllPassed bool
}

// Rules are the rules of the entries that are waived or not, sorted.
func (r Report) Rules(waived bool) []string {
	ids := lines.Map(lines.Filter(r.Entries, func(e Entry) bool { return e.Waived == waived }), func(e Entry) string { return e.Rule })
	slices.Sort(ids)
	return ids
}

// Readers read the formats, by name.
var Readers = map[string]func([]byte) (Report, error){
	"sarif": readSARIF, "junit": readJUnit, "github": readGitHub, "gitlab": readGitLab, "prometheus": readPrometheus,
}

var sarifValidator = sync.OnceValues(func() (*jsonschema.Schema, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(sarifSchema))
	if err != nil {
		return nil, err
	}
	const name = "sarif.json"
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name, v); err != nil {
		return nil, err
	}
	return c.Compile(name)
})

// readSARIF validates SARIF against its schema.
func readSARIF(raw []byte) (r Report, err error) {
	schema, err := sarifValidator()
	if err != nil {
		return r, err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return r, err
	}
	if err := schema.Validate(v); err != nil {
		return r, err
	}
	var log struct{ Runs []garif.Run }
	if err := json.Unmarshal(raw, &log); err != nil {
		return r, err
	}
	if len(log.Runs) != 1 || len(log.Runs[0].Invocations) != 1 {
		return r, errors.New("not one run with one invocation")
	}
	run := log.Runs[0]
	r.Broken = !run.Invocations[0].ExecutionSuccessful
	for _, n := range run.Invocations[0].ToolExecutionNotifications {
		if n.Level != "note" && n.Descriptor.Id != "exit-code" {
			r.Gaps = append(r.Gaps, n.Descriptor.Id)
		}
	}
	described := map[string]bool{}
	for _, rule := range run.Tool.Driver.Rules {
		if described[rule.Id] {
			return r, fmt.Errorf("the rule %s is described twice", rule.Id)
		}
		described[rule.Id] = true
	}
	for _, one := range run.Results {
		if !described[one.RuleId] || len(one.Locations) != 1 || one.Suppressions == nil || len(one.PartialFingerprints) != 1 {
			return r, fmt.Errorf("a result of %s lacks its rule, location, suppressions or fingerprint", one.RuleId)
		}
		r.Entries = append(r.Entries, Entry{
			Rule: one.RuleId, Text: strings.NewReplacer("{{", "{", "}}", "}", "] (", "](").Replace(one.Message.Text),
			Fails: (*one.Properties)["failsGate"] == true, Waived: len(one.Suppressions) > 0,
		})
	}
	r.AllPassed = len(r.Entries)+len(r.Gaps) == 0 && !r.Broken
	return r, nil
}

// readJUnit reads JUnit with the reader of others.
func readJUnit(raw []byte) (r Report, err error) {
	suites, err := junit.Ingest(raw)
	if err != nil {
		return r, err
	}
	if len(suites) != 1 {
		return r, fmt.Errorf("%d suites", len(suites))
	}
	t := suites[0].Totals
	seen := map[string]bool{}
	for _, c := range suites[0].Tests {
		key := c.Classname + " " + c.Name
		if seen[key] || c.Name == "" {
			return r, fmt.Errorf("there are two cases %q", key)
		}
		seen[key] = true
		class := strings.TrimPrefix(c.Classname, "gpudoctor.")
		body := ""
		if failed, ok := errors.AsType[junit.Error](c.Error); ok {
			body = failed.Message + "\n" + failed.Body
		}
		switch {
		case class == "verdict" && c.Status == junit.StatusError:
			r.Broken = true
		case class == "verdict" && c.Status == junit.StatusSkipped:
			code, _, _ := strings.Cut(c.Name, " ")
			r.Gaps = append(r.Gaps, code)
		case c.Name == "rule":
		default:
			r.Entries = append(r.Entries, Entry{Rule: class, Text: strings.Join([]string{body, c.SystemOut, c.Message}, "\n"), Fails: c.Status == junit.StatusFailed, Waived: c.Status == junit.StatusSkipped})
		}
	}
	r.AllPassed = t.Passed == t.Tests
	return r, nil
}

// command matches a workflow command with its properties.
var command = lazy.New(`^::(error|warning|notice) (?:file=[^,:]+,)?(?:line=\d+,)?title=([^,:]+)::(.*)$`)

// readGitHub decodes workflow commands.
func readGitHub(raw []byte) (r Report, err error) {
	decode := strings.NewReplacer("%25", "%", "%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",").Replace
	for line := range strings.Lines(string(raw)) {
		m := command.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			return r, fmt.Errorf("no command: %q", line)
		}
		title, text := decode(m[2]), strings.NewReplacer("%25", "%", "%0D", "\r", "%0A", "\n").Replace(m[3])
		code, isGap := strings.CutPrefix(title, "gpudoctor: ")
		switch {
		case isGap && m[1] == "notice":
		case isGap:
			r.Gaps = append(r.Gaps, code)
		case title == "gpudoctor":
			_, end, _ := strings.Cut(text, "; exit ")
			number, _, _ := strings.Cut(end, ":")
			r.Broken = number > "1"
			if (m[1] == "error") != (number > "0") {
				return r, fmt.Errorf("the level of %q does not fit", line)
			}
		default:
			rule := ruleInTitle.FindStringSubmatch(title)
			if rule == nil {
				return r, fmt.Errorf("no rule in %q", title)
			}
			r.Entries = append(r.Entries, Entry{Rule: rule[1], Text: text, Fails: m[1] == "error", Waived: strings.HasPrefix(title, "Waived: ")})
		}
	}
	r.AllPassed = len(r.Entries)+len(r.Gaps) == 0 && !r.Broken
	return r, nil
}

// ruleInTitle is the rule at the end of a title.
var ruleInTitle = lazy.New(`\(([a-z0-9-]+)\)$`)

// readGitLab reads issues of code quality. GitLab publishes no schema; what it requires is in
// https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format. The type is that by which
// editorconfig-checker writes for GitLab.
func readGitLab(raw []byte) (r Report, err error) {
	var all []codeclimate.CodeclimateIssue
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		return r, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) || all == nil {
		return r, errors.New("not one list")
	}
	seen := map[string]bool{}
	for _, one := range all {
		switch {
		case one.Description == "" || one.Check == "" || one.Fingerprint == "" || one.Location.Path == "" || one.Location.Lines.Begin < 1:
			return r, fmt.Errorf("a field is missing: %+v", one)
		case !slices.Contains([]string{"info", "minor", "major", "critical", "blocker"}, one.Severity):
			return r, fmt.Errorf("the severity %q is unknown", one.Severity)
		case seen[one.Fingerprint]:
			return r, fmt.Errorf("two issues have the fingerprint %s", one.Fingerprint)
		}
		seen[one.Fingerprint] = true
		code, isGap := strings.CutPrefix(one.Check, "gpudoctor/")
		switch {
		case isGap && code == "exit-code":
			r.Broken = true
		case isGap:
			r.Gaps = append(r.Gaps, code)
		default:
			r.Entries = append(r.Entries, Entry{Rule: one.Check, Text: one.Description, Waived: strings.HasPrefix(one.Description, "waived until ")})
		}
	}
	r.AllPassed = len(all) == 0
	return r, nil
}

// readPrometheus parses and lints metrics with the libraries of promtool.
func readPrometheus(raw []byte) (r Report, err error) {
	problems, err := promlint.New(bytes.NewReader(raw)).Lint()
	if err != nil || len(problems) > 0 {
		return r, fmt.Errorf("%v %w", problems, err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	if err != nil {
		return r, err
	}
	for name, family := range families {
		seen := map[string]bool{}
		for _, m := range family.GetMetric() {
			labels, key := map[string]string{}, ""
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
				key += l.GetName() + "\x00" + l.GetValue() + "\x00"
			}
			if seen[key] { // The collector refuses the file.
				return r, fmt.Errorf("two samples of %s have the labels %v", name, labels)
			}
			seen[key] = true
			value := int(m.GetGauge().GetValue())
			switch name {
			case "gpudoctor_exit_code":
				r.Broken = value > 1
			case "gpudoctor_verdict":
				r.AllPassed = r.AllPassed || labels["state"] == "healthy" && value == 1
			}
			switch name {
			case "gpudoctor_not_examined":
				r.Gaps = append(r.Gaps, slices.Repeat([]string{labels["code"]}, value)...)
			case "gpudoctor_finding", "gpudoctor_waived_finding":
				e := Entry{Rule: labels["rule"], Text: labels["subject"], Waived: name == "gpudoctor_waived_finding"}
				r.Entries = append(r.Entries, slices.Repeat([]Entry{e}, value)...)
			}
		}
	}
	return r, nil
}
