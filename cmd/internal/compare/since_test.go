package compare

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/baseline"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestSince enumerates what a finding may be before and now, and how its rule was judged: each
// one that was there is cured, remains or is not judged, and it is cured only where its rule was
// judged without it.
func TestSince(t *testing.T) {
	const rule = "acs-redirect"
	there := finding(rule, rules.High, "0000:17:00.0")
	for _, before := range []bool{false, true} {
		for _, now := range []bool{false, true} {
			for judged, says := range map[string]func(*report.Document){
				"passed":         func(d *report.Document) { d.Passed = []string{rule} },
				"skipped":        func(d *report.Document) { d.Skipped = []report.Skipped{{Rule: rule, Missing: []string{"needs root"}}} },
				"not applicable": func(d *report.Document) { d.NotApplicable = map[string]string{rule: "no GPU"} },
				"left out":       func(*report.Document) {},
			} {
				t.Run(fmt.Sprintf("before %v, now %v, %s", before, now, judged), func(t *testing.T) {
					was, is := &report.Document{Passed: []string{rule}}, &report.Document{}
					if before {
						was.Findings = []rules.Finding{there}
						was.Advice = []remedies.Advice{{Remedy: "disable-acs", Cures: []remedies.Cure{{Rule: rule, Subject: there.Subject}}}, {Remedy: "other", Cures: []remedies.Cure{{Rule: "other"}}}}
					}
					if now {
						is.Findings = []rules.Finding{there}
					} else {
						says(is)
					}
					b := Since("1", Input{Name: "before.json", Report: was}, Input{Report: is})
					want := map[string]int{}
					switch {
					case before && now:
						want["remaining"] = 1
					case before && judged == "passed":
						want["cured"] = 1
					case before:
						want["not judged"] = 1
					case now:
						want["new"] = 1
					}
					got := map[string][]baseline.Compared{"remaining": b.Remaining, "cured": b.Cured, "not judged": b.NotJudged, "new": b.New}
					for list, findings := range got {
						expect.Len(t, want[list], findings, "%s", list)
						for _, f := range findings {
							advised := slices.Equal(f.Advised, []string{"disable-acs"})
							expect.That(t, f.Rule == rule && advised == (list != "new") && (f.Reason != "") == (list == "not judged"), "%s: %+v", list, f)
						}
					}
					expect.That(t, len(b.Entries()) > 0, "nothing is said")
				})
			}
		}
	}
}

// TestSinceRates checks that the slowest transfers are compared, and that noise is no difference.
func TestSinceRates(t *testing.T) {
	measured := func(gbps ...float64) *report.Document {
		d := &report.Document{Transfers: &probe.Report{}}
		for _, g := range gbps {
			d.Transfers.Transfers = append(d.Transfers.Transfers, probe.Transfer{Test: probe.TestCopy, GBps: new(g)})
		}
		return d
	}
	for name, tt := range map[string]struct {
		before, now *report.Document
		want        []baseline.TestRate
	}{
		"faster":       {measured(54, 25), measured(53, 55), []baseline.TestRate{{Test: probe.TestCopy, Before: 25, After: 53}}},
		"noise":        {measured(54), measured(53.9), nil},
		"not measured": {measured(), measured(54), nil},
		"no probe":     {&report.Document{}, measured(54), nil},
	} {
		got := Since("1", Input{Report: tt.before}, Input{Report: tt.now}).Rates
		expect.That(t, slices.Equal(got, tt.want), "%s: %+v, want %+v", name, got, tt.want)
	}
}

// TestSinceVariables checks that of findings which differ in their variable alone, one may be
// cured and the other remain.
func TestSinceVariables(t *testing.T) {
	variable := func(name string) rules.Finding {
		f := finding("env-misconfig", rules.Medium, "environment")
		f.Params = map[string]any{"variable": name}
		return f
	}
	was := &report.Document{Findings: []rules.Finding{variable("NCCL_A"), variable("NCCL_B")}}
	b := Since("1", Input{Report: was}, Input{Report: &report.Document{Findings: []rules.Finding{variable("NCCL_B")}}})
	expect.That(t, len(b.Cured) == 1 && len(b.Remaining) == 1 && len(b.New)+len(b.NotJudged) == 0, "%+v", b)
}

// TestSinceConsequences enumerates what became of a cause and how its consequence was judged: a consequence that was
// not judged is said to be one of what is cured only where every finding of its cause's rule is.
func TestSinceConsequences(t *testing.T) {
	const cause, effect = "wrong-nic", "collective-failed"
	for _, judged := range []bool{false, true} {
		for name, now := range map[string]func(*report.Document){
			"cured":      func(d *report.Document) { d.Passed = []string{cause} },
			"not judged": func(*report.Document) {},
			"remains": func(d *report.Document) {
				d.Findings = []rules.Finding{finding(cause, rules.High, "NCCL_SOCKET_IFNAME")}
			},
			"another": func(d *report.Document) { d.Findings = []rules.Finding{finding(cause, rules.High, "another subject")} },
		} {
			root := finding(cause, rules.High, "NCCL_SOCKET_IFNAME")
			root.Explains = []rules.Finding{finding(effect, rules.High, "host")}
			was, is := &report.Document{Findings: []rules.Finding{root}}, &report.Document{}
			now(is)
			if judged {
				is.Passed = append(is.Passed, effect)
			} else {
				is.NotApplicable = map[string]string{effect: "the collectives were not run"}
			}
			b := Since("1", Input{Name: "before.json", Report: was}, Input{Report: is})
			said := ""
			for _, e := range b.Entries() {
				if strings.Contains(e.Text, "("+effect) {
					said = e.Label + " " + e.Text
				}
			}
			want := "open "
			switch {
			case judged:
				want = "cured "
			case name == "cured":
				want = "gone? "
			}
			expect.That(t, strings.HasPrefix(said, want) && strings.Contains(said, "is cured; the consequence itself was not judged") == (want == "gone? "), "the cause: %s, the effect judged: %v: %q, want %q", name, judged, said, want)
			for _, f := range b.NotJudged {
				expect.That(t, (f.Rule != effect || (f.CauseCured == cause) == (want == "gone? ")) && (f.Rule == effect || f.CauseCured == ""), "the cause: %s: %+v", name, f)
			}
		}
	}
}
