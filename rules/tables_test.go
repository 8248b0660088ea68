package rules

import (
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// TestPolicyReadsTables holds that a rule of the user's may read a table, imported or
// not, and that what a table lacks is undefined.
func TestPolicyReadsTables(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		"import data.tables.xids\n" + finds(`"params": {"xid": xids.xids[0].code}`): true,
		finds(`"params": {"xids": count(data.tables.xids.xids)}`):                   true,
		finds(`"params": {"xids": data.tables.xids.nothing}`):                       false,
	} {
		s, err := policyOf(t, map[string]string{"own.rego": ruleText("own", high, body)})
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.Evaluate(t.Context(), &checks.Facts{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(v.Findings) == 1; got != want {
			t.Errorf("%s: findings %v, want some: %v", body, v.Findings, want)
		}
	}
}

// TestSpecialisedByTable holds that a definition is left out that no row of a table
// allows, and no other.
func TestSpecialisedByTable(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		"some x in xids.xids; x.code == 79":               true,
		"some x in xids.xids; x.code == 1":                false,
		"79 in {c | c := xids.xids[_].code}":              true,
		"xids.sxids.critical":                             true,
		"xids.sxids.harmless":                             false,
		"xids.xids[_].class == input.class":               true,
		"data.tables.xids.actions.reset[_] == \"reboot\"": true,
		"data.tables.xids.actions.reset[_] == \"pray\"":   false,
		"data.tables[input.class]":                        true,
	} {
		m, err := ast.ParseModuleWithOpts("t.rego", "package gpudoctor.rules.t\nimport data.tables.xids\nfindings contains true if { "+body+" }", ast.ParserOptions{RegoVersion: ast.RegoV1})
		if err != nil {
			t.Fatal(err)
		}
		kept := specialised(map[string]*ast.Module{"t.rego": m}, []Rule{{ID: "t", File: "t.rego"}}, anything)["t.rego"].Rules
		if got := len(kept) == 1 && !kept[0].Head.Assign; got != want {
			t.Errorf("%s may hold: %v, want %v (%v)", body, got, want, kept)
		}
	}
}

// TestTableRemedies holds that the metadata of a rule that takes its remedies from a
// table has them all, so that the documentation of the rule names them.
func TestTableRemedies(t *testing.T) {
	t.Parallel()
	s, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	named := map[string][]string{} // By rule.
	name := func(rule string, remedies []string) { named[rule] = append(named[rule], remedies...) }
	for _, x := range data.XIDs().XIDs {
		rule := "gpu-events"
		if x.Class == "fault" || x.Class == "link" {
			rule = "gpu-fault"
		}
		name(rule, data.XIDs().Actions[x.Action])
	}
	for id, remedies := range named {
		rule, ok := s.Rule(id)
		if !ok {
			t.Errorf("no rule %s", id)
		}
		slices.Sort(remedies)
		for _, remedy := range slices.Compact(remedies) {
			if !slices.Contains(rule.Remedies, remedy) {
				t.Errorf("%s: its table has the remedy %s, its metadata does not", id, remedy)
			}
		}
	}
}
