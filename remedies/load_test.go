package remedies

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// spare are remedies that no rule names yet, with the reason why they are here.
var spare = map[string]string{}

func builtin(tb testing.TB) *Set {
	tb.Helper()
	return expect.Value(Load())(tb)
}

// TestRemediesAndRulesMeet checks that every remedy that a rule names exists,
// and that every remedy is named by a rule, or is spare for a reason.
func TestRemediesAndRulesMeet(t *testing.T) {
	s := builtin(t)
	all := expect.Value(rules.Load())(t).Rules()
	expect.NoError(t, s.Check(all))
	expect.Must(t, len(all) > 0, "there are no rules yet")
	used := map[string]bool{}
	for _, rule := range all {
		for _, id := range rule.Remedies {
			used[id] = true
		}
	}
	for _, r := range s.Remedies() {
		if r.Vendor+r.Scheduler != "" && used[r.FormOf] {
			continue // It stands in for the one that a rule names.
		}
		expect.That(t, used[r.ID] || spare[r.ID] != "", "%s.yaml: no rule names it", r.ID)
		expect.That(t, !used[r.ID] || spare[r.ID] == "", "%s.yaml: a rule names it; take it off the spare ones", r.ID)
	}
	for id := range spare {
		_, ok := s.Remedy(id)
		expect.That(t, ok, "the spare remedy %s does not exist", id)
	}
}

// TestVerify checks that gpudoctor's own command stands first.
func TestVerify(t *testing.T) {
	for _, r := range builtin(t).Remedies() {
		expect.That(t, strings.HasPrefix(r.Verify, "{{check}}"), "%s: verify = %q, which does not begin with {{check}}", r.ID, r.Verify)
		for _, source := range r.Sources {
			expect.That(t, strings.HasPrefix(source, "https://"), "%s: source %q is not https", r.ID, source)
		}
	}
}

// TestCases checks that each case's first remedy stands first.
func TestCases(t *testing.T) {
	s := builtin(t)
	set := expect.Value(rules.Load())(t)
	expect.NoError(t, set.Compile(rules.Options{})) // For all cases at once.
	cases := expect.Value(fixtures.Cases(os.DirFS("../fixtures")))(t)
	for i, c := range cases {
		if expect.FewRows() && i%16 > 0 {
			continue // The race detector makes each many times as slow.
		}
		t.Run(c.Name, func(t *testing.T) {
			var opts rules.Options
			if c.Facts.Fleet != nil {
				opts.Profile = rules.Fleet
			}
			v := expect.Value(set.Evaluate(t.Context(), c.Facts, opts))(t)
			for _, f := range v.Findings {
				holdParams(t, s, set, f)
			}
			advice := s.Rank(v.Findings, Situation{Facts: c.Facts, Proofs: s.Proofs(c.Facts.Transfers)}).Advice
			got := ""
			if len(advice) > 0 {
				got = advice[0].Remedy
			}
			expect.That(t, got == c.Want.FirstRemedy || c.Want.FirstRemedy == "" && len(c.Want.Findings) != 0, "first remedy = %q, want %q", got, c.Want.FirstRemedy)
		})
	}
}

const good = `id: own
title: Do it
kind: fix
description: It does it.
cost: None.
needs: [root]
risk: low
lasts: boot
apply: {commands: ["do {{.bridge}}"], steps: ["{{without .bridge}}find the bridge"]}
undo: Undo it.
verify: gpudoctor check
sources: ["https://example.com"]
`

func TestLoadWith(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	for name, tt := range map[string]struct {
		name, old, replacement string
		want                   string // The error, behind the folder's name; none when empty.
	}{
		"good":            {name: "own.yaml"},
		"unknown key":     {name: "own.yaml", old: "cost: None.", replacement: "cots: None.", want: "own.yaml:5: field cots not found in type Remedy"},
		"wrong type":      {name: "own.yaml", old: "needs: [root]", replacement: "needs: {a: b}", want: "own.yaml:6: cannot unmarshal !!map into []Need"},
		"broken":          {name: "own.yaml", old: "title: Do it", replacement: "title: a: b", want: "own.yaml:2: mapping values are not allowed in this context"},
		"empty":           {name: "own.yaml", old: good, want: "own.yaml: the file is empty"},
		"two documents":   {name: "own.yaml", old: "risk: low\n", replacement: "risk: low\n---\nid: other\n", want: "own.yaml:8: more than one document"},
		"file name":       {name: "other.yaml", want: `other.yaml: id "own" differs from the file's name`},
		"unknown kind":    {name: "own.yaml", old: "kind: fix", replacement: "kind: magic", want: `own.yaml: kind: unknown word "magic": one of [fix workaround]`},
		"form of none":    {name: "own.yaml", old: "kind: fix", replacement: "kind: fix\nform_of: pray", want: `own.yaml: form_of: "pray" is not a remedy, or is itself a form of one`},
		"unknown need":    {name: "own.yaml", old: "[root]", replacement: "[luck]", want: `own.yaml: needs: unknown word "luck": one of [job-restart container-restart image-rebuild root driver-reload reboot bios hands-on]`},
		"no undo":         {name: "own.yaml", old: "undo: Undo it.\n", want: "own.yaml: undo is missing"},
		"empty apply":     {name: "own.yaml", old: `{commands: ["do {{.bridge}}"], steps: ["{{without .bridge}}find the bridge"]}`, replacement: "{}", want: "own.yaml: apply is empty"},
		"bad placeholder": {name: "own.yaml", old: "do {{.bridge}}", replacement: "do {{bridge}}", want: "own.yaml: placeholder do {{bridge}} is not understood"},
		"a gap":           {name: "own.yaml", old: ", steps: [\"{{without .bridge}}find the bridge\"]", want: "own.yaml: apply does not say what to do when {{.bridge}} is not known"},
		"a gap in words":  {name: "own.yaml", old: "title: Do it", replacement: "title: Do {{.bridge}}", want: "own.yaml: {{.bridge}} has no text for when it is not known"},
		"id taken":        {name: "iommu-pt.yaml", old: "id: own", replacement: "id: iommu-pt", want: "iommu-pt.yaml: the remedy id iommu-pt is taken by iommu-pt.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Must(t, strings.Contains(good, tt.old), "the remedy does not hold %q", tt.old)
			dir := t.TempDir()
			expect.NoError(t, os.WriteFile(filepath.Join(dir, tt.name), []byte(strings.Replace(good, tt.old, tt.replacement, 1)), 0o600))
			s, err := LoadWith(dir)
			if tt.want == "" {
				expect.NoError(t, err)
				_, ok := s.Remedy("own")
				expect.That(t, ok, "the user's remedy is not there")
				return
			}
			expect.Must(t, err != nil, "no error, want %q", tt.want)
			expect.Equal(t, tt.want, strings.TrimPrefix(err.Error(), dir+string(filepath.Separator)), "error")
			_, ok := errors.AsType[*rules.Problem](err)
			expect.That(t, ok, "error is a %T, want a *rules.Problem", err)
		})
	}
}

func TestCheck(t *testing.T) {
	err := builtin(t).Check([]rules.Rule{{File: "pcie/x.rego", Remedies: []string{"iommu-pt", "iomu-pt"}}})
	want := `pcie/x.rego: unknown remedy "iomu-pt"; did you mean iommu-pt?`
	expect.That(t, err != nil && err.Error() == want, "Check = %v, want %s", err, want)
}

// FuzzDecode checks that no file makes the loader panic.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("id: &a [*a]"))
	f.Add([]byte("{{{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, faults := decode("own.yaml", text)
		expect.That(t, len(faults) != 0 || !reflect.DeepEqual(r, Remedy{}), "an empty remedy was taken")
	})
}
