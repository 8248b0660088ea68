package rules

import (
	"io/fs"
	"regexp"
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// TestPolicyReadsTables checks that a rule of the user's may read a table, imported or
// not, and that what a table lacks is undefined.
func TestPolicyReadsTables(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		"import data.tables.xids\n" + finds(`"params": {"xid": xids.xids[0].code}`): true,
		finds(`"params": {"xids": count(data.tables.xids.xids)}`):                   true,
		finds(`"params": {"xids": data.tables.xids.nothing}`):                       false,
	} {
		s := expect.Value(policyOf(t, map[string]string{"own.rego": ruleText("own", high, body)}))(t)
		v := expect.Value(s.Evaluate(t.Context(), &facts.Facts{}, Options{}))(t)
		expect.That(t, (len(v.Findings) == 1) == want, "%s: findings %v, want some: %v", body, v.Findings, want)
	}
}

// TestTableRemedies checks that the metadata of a rule that takes its remedies from a
// table has them all, so that the documentation of the rule names them.
func TestTableRemedies(t *testing.T) {
	t.Parallel()
	s := expect.Value(Load())(t)
	all := map[string][]string{} // By rule.
	name := func(rule string, remedies []string) { all[rule] = append(all[rule], remedies...) }
	type row struct {
		Class, Library, Action string
		Remedies               []string
		JudgedBy               string `json:"judged_by"`
	}
	xids := data.Read[struct {
		Actions map[string][]string
		XIDs    []row
	}]("xids")
	for _, x := range xids.XIDs {
		rule := "gpu-events"
		if x.Class == "fault" || x.Class == "link" {
			rule = "gpu-fault"
		}
		name(rule, xids.Actions[x.Action])
	}
	type table struct{ Rows, Switches, Traits, Classes, NVML, Codes []row }
	for _, row := range data.Read[table]("known_faults").Rows {
		rule := "nccl-bug"
		if row.Library != "nccl" {
			rule = "rccl-bug"
		}
		name(rule, row.Remedies)
	}
	errors := data.Read[table]("driver_errors")
	for rule, rows := range map[string][]row{
		"env-misconfig": data.Read[table]("variables").Rows, "control-experiment": data.Read[table]("experiments").Switches,
		"nodes-differ": data.Read[table]("fleet").Traits, "transfer-failed": errors.Classes, "gpu-fault": errors.NVML,
	} {
		for _, row := range rows {
			name(rule, row.Remedies)
		}
	}
	for _, e := range errors.Codes {
		if e.JudgedBy != "" {
			name(e.JudgedBy, nil)
		}
	}
	for id, remedies := range all {
		rule, ok := s.Rule(id)
		expect.That(t, ok, "no rule %s", id)
		slices.Sort(remedies)
		for _, remedy := range slices.Compact(remedies) {
			expect.That(t, slices.Contains(rule.Remedies, remedy), "%s: its table has the remedy %s, its metadata does not", id, remedy)
		}
	}
}

// TestCircumstances checks that each circumstance that a table names is one that the module which reads the table can
// tell, that each of those is named, and that each message is one of the catalogue.
func TestCircumstances(t *testing.T) {
	t.Parallel()
	messages := map[string]bool{}
	for _, s := range message.Statements() {
		messages[s.ID] = true
	}
	rowsOf := func(table string) (n named) {
		for _, row := range data.Read[struct {
			Rows []struct{ When, Unless, Said []string }
		}](table).Rows {
			n.circumstances = slices.Concat(n.circumstances, row.When, row.Unless)
			n.messages = append(n.messages, row.Said...)
		}
		return n
	}
	for file, names := range map[string]named{"lib/setting_rows.rego": rowsOf("variables"), "lib/known_faults.rego": rowsOf("known_faults")} {
		can := circumstancesOf(t, file)
		used := map[string]bool{}
		for _, name := range names.circumstances {
			if comparison.MatchString(name) {
				continue
			}
			used[name] = true
			expect.That(t, can[name], "%s does not know the circumstance %q", file, name)
		}
		for name := range can {
			expect.That(t, used[name], "%s: no row of the table names the circumstance %q", file, name)
		}
		for _, id := range names.messages {
			expect.That(t, messages[id], "the table of %s names the message %q, which the catalogue lacks", file, id)
		}
	}
}

// named is what the rows of a table name.
type named struct{ circumstances, messages []string }

// comparison is a circumstance that compares a version.
var comparison = regexp.MustCompile(`^nccl(<|>=)[0-9.]+$`)

// circumstancesOf are the circumstances that a module tells: those of which its function holds is defined.
func circumstancesOf(t *testing.T, file string) map[string]bool {
	t.Helper()
	modules, faults := parse(map[string][]byte{file: expect.Value(fs.ReadFile(Files, file))(t)}, false)
	expect.Must(t, len(faults) == 0, "%v", faults)
	can := map[string]bool{}
	for _, rule := range modules[file].Rules {
		if rule.Head.Name.String() == "holds" {
			if name, ok := rule.Head.Args[0].Value.(ast.String); ok {
				can[string(name)] = true
			}
		}
	}
	return can
}
