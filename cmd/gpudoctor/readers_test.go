package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
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
)

// sarifSchema is the schema that OASIS publishes with SARIF 2.1.0 Errata 01, as gosec v2.29.0
// (Apache-2.0) holds it in report/sarif/testdata.
//
//go:embed testdata/sarif-schema-2.1.0.json
var sarifSchema []byte

// readEntry is a finding as a reader of a format for CI systems sees it. What a format does not hold is empty.
type readEntry struct {
	rule, text    string
	fails, waived bool
}

// readReport is what a reader sees in a report: what was not examined by the code of the reason, whether the exit code is neither 0 nor
// 1, and whether a reader takes the report for a success without remarks.
type readReport struct {
	entries           []readEntry
	gaps              []string
	broken, allPassed bool
}

// ids are the rules of the entries that are waived or not, sorted.
func (r readReport) ids(waived bool) []string {
	var ids []string
	for _, e := range r.entries {
		if e.waived == waived {
			ids = append(ids, e.rule)
		}
	}
	slices.Sort(ids)
	return ids
}

// readers read the formats for CI systems as the programs of others do.
var readers = map[string]func([]byte) (readReport, error){
	"sarif": readSARIF, "junit": readJUnit, "github": readGitHub, "gitlab": readGitLab, "prometheus": readPrometheus,
}

var sarifValidator = sync.OnceValues(func() (*jsonschema.Schema, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(sarifSchema))
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err = errors.Join(err, c.AddResource("sarif.json", v)); err != nil {
		return nil, err
	}
	return c.Compile("sarif.json")
})

func readSARIF(raw []byte) (r readReport, err error) {
	schema, err := sarifValidator()
	if err != nil {
		return r, err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return r, err
	}
	var log struct{ Runs []garif.Run }
	if err := errors.Join(schema.Validate(v), json.Unmarshal(raw, &log)); err != nil {
		return r, err
	}
	if len(log.Runs) != 1 || len(log.Runs[0].Invocations) != 1 {
		return r, errors.New("not one run with one invocation")
	}
	run := log.Runs[0]
	r.broken = !run.Invocations[0].ExecutionSuccessful
	for _, n := range run.Invocations[0].ToolExecutionNotifications {
		if n.Level != "note" && n.Descriptor.Id != "exit-code" {
			r.gaps = append(r.gaps, n.Descriptor.Id)
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
		text := strings.NewReplacer("{{", "{", "}}", "}", "] (", "](").Replace(one.Message.Text)
		r.entries = append(r.entries, readEntry{one.RuleId, text, (*one.Properties)["failsGate"] == true, len(one.Suppressions) > 0})
	}
	r.allPassed = len(r.entries)+len(r.gaps) == 0 && !r.broken
	return r, nil
}

func readJUnit(raw []byte) (r readReport, err error) {
	suites, err := junit.Ingest(raw)
	if err != nil || len(suites) != 1 {
		return r, fmt.Errorf("%d suites: %w", len(suites), err)
	}
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
			r.broken = true
		case class == "verdict" && c.Status == junit.StatusSkipped:
			code, _, _ := strings.Cut(c.Name, " ")
			r.gaps = append(r.gaps, code)
		case c.Name != "rule":
			text := strings.Join([]string{body, c.SystemOut, c.Message}, "\n")
			r.entries = append(r.entries, readEntry{class, text, c.Status == junit.StatusFailed, c.Status == junit.StatusSkipped})
		}
	}
	r.allPassed = suites[0].Totals.Passed == suites[0].Totals.Tests
	return r, nil
}

var (
	// workflowCommand matches a workflow command with its properties, and ruleInTitle the rule at the end of a title.
	workflowCommand = regexp.MustCompile(`^::(error|warning|notice) (?:file=[^,:]+,)?(?:line=\d+,)?title=([^,:]+)::(.*)\n$`)
	ruleInTitle     = regexp.MustCompile(`\(([a-z0-9-]+)\)$`)
)

func readGitHub(raw []byte) (r readReport, err error) {
	decode := strings.NewReplacer("%25", "%", "%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",").Replace
	for line := range strings.Lines(string(raw)) {
		m := workflowCommand.FindStringSubmatch(line)
		if m == nil {
			return r, fmt.Errorf("no command: %q", line)
		}
		title, text := decode(m[2]), strings.NewReplacer("%25", "%", "%0D", "\r", "%0A", "\n").Replace(m[3])
		code, isGap := strings.CutPrefix(title, "gpudoctor: ")
		rule := ruleInTitle.FindStringSubmatch(title)
		switch {
		case isGap && m[1] == "notice":
		case isGap:
			r.gaps = append(r.gaps, code)
		case title == "gpudoctor":
			_, end, _ := strings.Cut(text, "; exit ")
			number, _, _ := strings.Cut(end, ":")
			r.broken = number > "1"
			if (m[1] == "error") != (number > "0") {
				return r, fmt.Errorf("the level of %q does not fit", line)
			}
		case rule == nil:
			return r, fmt.Errorf("no rule in %q", title)
		default:
			r.entries = append(r.entries, readEntry{rule[1], text, m[1] == "error", strings.HasPrefix(title, "Waived: ")})
		}
	}
	r.allPassed = len(r.entries)+len(r.gaps) == 0 && !r.broken
	return r, nil
}

// readGitLab reads issues of code quality. GitLab publishes no schema; what it requires is in
// https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format. The type is that by which
// editorconfig-checker writes for GitLab.
func readGitLab(raw []byte) (r readReport, err error) {
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
			r.broken = true
		case isGap:
			r.gaps = append(r.gaps, code)
		default:
			waived := strings.HasPrefix(one.Description, "waived until ")
			r.entries = append(r.entries, readEntry{rule: one.Check, text: one.Description, waived: waived})
		}
	}
	r.allPassed = len(all) == 0
	return r, nil
}

// readPrometheus parses and lints metrics with the libraries of promtool.
func readPrometheus(raw []byte) (r readReport, err error) {
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
			switch value := int(m.GetGauge().GetValue()); name {
			case "gpudoctor_exit_code":
				r.broken = value > 1
			case "gpudoctor_verdict":
				r.allPassed = r.allPassed || labels["state"] == "healthy" && value == 1
			case "gpudoctor_not_examined":
				r.gaps = append(r.gaps, slices.Repeat([]string{labels["code"]}, value)...)
			case "gpudoctor_finding", "gpudoctor_waived_finding":
				e := readEntry{rule: labels["rule"], text: labels["subject"], waived: name == "gpudoctor_waived_finding"}
				r.entries = append(r.entries, slices.Repeat([]readEntry{e}, value)...)
			}
		}
	}
	return r, nil
}
