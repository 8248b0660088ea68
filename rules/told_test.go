package rules

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text"
)

// factsOfLine are the facts of a log of one line.
func factsOfLine(t *testing.T, line string) *facts.Facts {
	t.Helper()
	file := filepath.Join(t.TempDir(), "job.log")
	if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := text.Read(t.Context(), []string{file}, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return read.Facts
}

// TestVerdicts holds, for every example of every row with a verdict, that a log with
// that line has the finding of the verdict: of a rule that exists, with a severity and
// a confidence, remedies that the rule names, the line as evidence, and no gap in its
// text. Of a verdict that asks for conditions it holds so with these given.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	set := compiledSet(t)
	tried := 0
	for _, row := range message.Statements() {
		v := row.Verdict
		if v == nil {
			continue
		}
		rule, ok := set.Rule(v.Rule)
		if !ok {
			t.Errorf("%s: the verdict's rule %s does not exist", row.ID, v.Rule)
			continue
		}
		for _, grade := range grades(v) {
			for _, remedy := range grade.Remedies {
				if !slices.Contains(rule.Remedies, remedy) {
					t.Errorf("%s: the rule %s does not name the remedy %s", row.ID, v.Rule, remedy)
				}
			}
		}
		for _, example := range row.Examples {
			tried++
			f := factsOfLine(t, example)
			var got []Finding
			if len(v.When) == 0 {
				verdict, err := set.Evaluate(t.Context(), f, Options{Only: []string{v.Rule}})
				if err != nil {
					t.Fatal(err)
				}
				got = verdict.Findings
			} else {
				got = set.told(hear(f.Logs), given(v, row.ID, v.When...))[v.Rule]
			}
			at := slices.IndexFunc(got, func(f Finding) bool {
				return f.Rule == v.Rule && f.Subject == v.Subject && slices.ContainsFunc(f.Evidence, func(e Evidence) bool { return e.Fact == "logs.messages["+row.ID+"]" })
			})
			if at < 0 {
				t.Errorf("%s: %q gives no finding of %s: %v", row.ID, example, v.Rule, got)
				continue
			}
			checkTold(t, row.ID, got[at], f.Logs.Messages[0].Text)
		}
	}
	if tried == 0 {
		t.Error("no row has a verdict")
	}
}

// grades are all that a verdict may say.
func grades(v *message.Verdict) []message.Grade {
	all := []message.Grade{v.Grade}
	for _, c := range v.Grades {
		all = append(all, c.Grade)
	}
	return all
}

// given is what a verdict goes by where a row was said, all values are known and some
// conditions hold.
func given(v *message.Verdict, row string, holds ...string) *circumstances {
	said := &circumstances{Said: message.Said{Rows: map[string]bool{row: true}, Holds: map[string]bool{}, Values: map[string]string{}}}
	for _, name := range holds {
		said.Holds[name] = true
	}
	_, values := v.Conditions()
	for _, name := range values {
		said.Values[name] = "known"
	}
	return said
}

// checkTold holds that a finding of a message is whole.
func checkTold(t *testing.T, row string, got Finding, line string) {
	t.Helper()
	if strings.ContainsAny(strings.ReplaceAll(got.Message, line, ""), "{}") || strings.Contains(got.Message, message.UnknownWords) {
		t.Errorf("%s: the text has a gap: %s", row, got.Message)
	}
	if got.Severity.Rank() == len(severities) || got.Confidence.Rank() == len(confidences) || got.Order == nil || len(got.Remedies) == 0 {
		t.Errorf("%s: severity %q, confidence %q, order %v, remedies %q", row, got.Severity, got.Confidence, got.Order, got.Remedies)
	}
}

// TestToldConditions holds, of every verdict: without one of its conditions it is not
// told, beside a row or a condition that it gives way to neither; each grade is told
// where its conditions alone hold; and of several messages the first is told.
func TestToldConditions(t *testing.T) {
	t.Parallel()
	set := compiledSet(t)
	gaveWay, graded := 0, 0
	for id, v := range message.Verdicts() {
		messages := hear(&facts.LogFacts{Messages: []facts.Message{
			{ID: id, Text: "said later", Source: "a", Line: 9, Order: 9}, {ID: id, Text: "said first", Source: "a", Line: 8, Order: 8},
		}})
		told := func(holds ...string) []Finding { return set.told(messages, given(v, id, holds...))[v.Rule] }
		whole := told(v.When...)
		if len(whole) != 1 || *whole[0].Order != 8 || whole[0].Evidence[0].Source != "a:8" || v.All != (len(whole[0].Evidence) == 2) {
			t.Errorf("%s, twice: %v", id, whole)
			continue
		}
		for i, name := range v.When {
			if f := told(slices.Delete(slices.Clone(v.When), i, i+1)...); len(f) > 0 {
				t.Errorf("%s is told without %s", id, name)
			}
		}
		for _, name := range v.Unless {
			gaveWay++
			if f := told(append(slices.Clone(v.When), name)...); len(f) > 0 {
				t.Errorf("%s is told beside %s", id, name)
			}
		}
		for i, c := range v.Grades {
			graded++
			f := told(slices.Concat(v.When, c.When)...)
			if len(f) != 1 {
				t.Errorf("%s: grade %d is never told", id, i+1)
				continue
			}
			if i == 0 && (c.Severity != "" && string(f[0].Severity) != c.Severity || c.Remedies != nil && !slices.Equal(f[0].Remedies, c.Remedies)) {
				t.Errorf("%s: grade %d is told as %v", id, i+1, f[0])
			}
			checkTold(t, id, f[0], "said first")
		}
	}
	if gaveWay == 0 || graded == 0 {
		t.Errorf("%d rows or conditions before which a verdict gives way, %d grades", gaveWay, graded)
	}
}

// TestConditionNames holds that every name that a verdict uses is a row of the catalogue
// or is defined in lib/conditions.rego, and that every name defined there is used.
func TestConditionNames(t *testing.T) {
	t.Parallel()
	set := compiledSet(t)
	defined := map[string]map[string]bool{"holds": {}, "values": {}, "shown": {}}
	modules, err := set.modulesOf([]Rule{conditionRule})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range modules[conditionRule.File].Rules {
		of := defined[rule.Head.Name.String()]
		if of == nil {
			continue
		}
		switch name := rule.Head.Key.Value.(type) {
		case ast.String:
			of[string(name)] = true
		case *ast.Array:
			of[string(name.Elem(0).Value.(ast.String))] = true
		default:
			t.Errorf("%s: the name of a condition is to be written out", rule.Location)
		}
	}
	used := map[string]map[string]bool{"holds": {}, "values": {}}
	rows := map[string]bool{}
	for _, row := range message.Statements() {
		rows[row.ID] = true
	}
	for id, v := range message.Verdicts() {
		names, values := v.Conditions()
		for _, name := range names {
			used["holds"][name] = true
			if !defined["holds"][name] {
				t.Errorf("%s: no condition %s in %s", id, name, conditionRule.File)
			}
		}
		for _, name := range values {
			used["values"][name] = true
			if !defined["values"][name] {
				t.Errorf("%s: no value %s in %s", id, name, conditionRule.File)
			}
		}
		others := slices.Concat(v.When, v.Unless, v.Also)
		for _, c := range v.Grades {
			others = slices.Concat(others, c.When, c.Unless)
		}
		for _, name := range others {
			if !message.IsCondition(name) && !rows[name] {
				t.Errorf("%s: %s is no row", id, name)
			}
		}
	}
	for name := range defined["shown"] {
		if !defined["holds"][name] {
			t.Errorf("%s: %s is shown and is no condition", conditionRule.File, name)
		}
	}
	for set, names := range used {
		for name := range defined[set] {
			if !names[name] {
				t.Errorf("%s: no verdict uses %s", conditionRule.File, name)
			}
		}
	}
}
