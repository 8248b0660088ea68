package remedies

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// informative are the params that no template has to read, with who reads them. Programs read them in the JSON report.
var informative = map[string]string{
	"fault":          "package rules: findings of one fault are told as one",
	"variable":       "package rules and the report: findings about different variables stand apart",
	"effect":         "package rules: a setting without effect ranks lower",
	"capability":     "programs: the capability that a container lacks",
	"source":         "programs: where the knowledge is from",
	"answers":        "programs: what the driver answers of peer access",
	"pairs":          "programs: the pairs of GPUs concerned",
	"staged_good":    "programs: whether copies through the host arrived",
	"width":          "programs: the width of a link",
	"best_width":     "programs: the width that a link could have",
	"links":          "programs: the numbers of NVLinks",
	"xid":            "programs: the number of an Xid",
	"stage":          "programs: the call in which a driver hangs",
	"meant":          "programs: the variable that a misspelt name stands for",
	"cuda":           "programs: the release of CUDA that needs a newer driver",
	"fabric_manager": "programs: the version of the fabric manager",
}

// informativeOfRules are such params of findings in Rego, which are templates' elsewhere.
var informativeOfRules = []string{"driver", "gpus", "vendor"}

// unread lists the params that no template of the remedies reads and that are not informative.
func unread(s *Set, params, remedies []string) []string {
	reads := map[string]bool{}
	read := func(name string) { // As params.values looks it up.
		for _, key := range []string{name + "s", name, strings.TrimSuffix(name, "s")} {
			reads[key] = true
		}
	}
	for _, r := range s.Remedies() {
		if !slices.Contains(remedies, r.ID) && !slices.Contains(remedies, r.FormOf) {
			continue
		}
		r.walk(func(text string) {
			names := expect.Map(slots(text), func(slot slot) string { return slot.name })
			conditions, _ := conditionsOf(text)
			for _, when := range conditions {
				names = append(names, when.name)
			}
			for _, name := range names {
				read(name)
				if from := derived[name]; from != "" {
					read(from)
				}
				if name == "device" { // See paramsOf.
					read("gpu")
				}
			}
		})
	}
	return slices.DeleteFunc(slices.Clone(params), func(name string) bool { return reads[name] || informative[name] != "" })
}

// TestFindingParams checks that a template of the remedies reads each param of a finding: a
// misspelt name would leave a gap where the value is known.
func TestFindingParams(t *testing.T) {
	s := builtin(t)
	set := expect.Value(rules.Load())(t)
	for id, v := range message.Templates() {
		rule, _ := set.Rule(v.Rule)
		grades := []message.Grade{v.Grade}
		for _, c := range v.Grades {
			grades = append(grades, c.Grade)
		}
		for _, g := range grades {
			remedies := slices.Concat(g.Remedies, v.Remedies)
			if len(remedies) == 0 {
				remedies = rule.Remedies
			}
			expect.Len(t, 0, unread(s, slices.Sorted(maps.Keys(g.Params)), remedies), "%s: params that no template of the remedies %v reads", id, remedies)
		}
	}
}

// holdParams holds the same of a finding and of those that it explains, with all remedies
// of their rules: a rule may give the same params whatever it advises.
func holdParams(t *testing.T, s *Set, set *rules.Set, f rules.Finding) {
	t.Helper()
	rule, _ := set.Rule(f.Rule)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(f.Params)), func(name string) bool { return slices.Contains(informativeOfRules, name) })
	expect.Len(t, 0, unread(s, names, rule.Remedies), "%s: params that no template of the remedies %v reads", f.Rule, rule.Remedies)
	for _, e := range f.Explains {
		holdParams(t, s, set, e)
	}
}

// TestUnread checks that a name which no template reads is found.
func TestUnread(t *testing.T) {
	s := builtin(t)
	for _, tt := range []struct{ params, remedies, want []string }{
		{[]string{"bridges", "bridgez", "fault"}, []string{"disable-acs"}, []string{"bridgez"}},
		{[]string{"node", "nodes", "gpu"}, []string{"pass-device-nodes"}, []string{"gpu"}},
		{[]string{"gpu", "gpus", "driver"}, []string{"reset-gpu"}, []string{"driver"}},
		{[]string{"devices"}, []string{"reseat-or-fix-pcie-link"}, []string{}},
		{[]string{"devices"}, nil, []string{"devices"}},
	} {
		expect.NoDiff(t, tt.want, unread(s, tt.params, tt.remedies), "%v of %v", tt.params, tt.remedies)
	}
}
