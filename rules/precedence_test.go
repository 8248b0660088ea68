package rules

import (
	"cmp"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestFoldByKind checks, for every way to write an entry of explains, which findings of two rules go under each other.
func TestFoldByKind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		explains string
		under    func(cause, effect string) bool
	}{
		{"b", func(string, string) bool { return true }},
		{"b/x", func(_, effect string) bool { return effect == "x" }},
		{"x > b", func(cause, _ string) bool { return cause == "x" }},
		{"x > b/y", func(cause, effect string) bool { return cause == "x" && effect == "y" }},
	} {
		rules := []Rule{{ID: "a", Explains: []string{c.explains}}, {ID: "b"}}
		for _, cause := range []string{"", "x", "y"} {
			for _, effect := range []string{"", "x", "y"} {
				causes := fold([]Finding{{Rule: "a", ID: cause, Severity: High, Subject: "s"}, {Rule: "b", ID: effect, Severity: Critical, Subject: "s"}}, rules)
				expect.Equal(t, c.under(cause, effect), len(causes) == 1, "a explains %q: b/%s goes under a/%s", c.explains, effect, cause)
			}
		}
	}
}

// evidenceKinds are what rules rest on when they name the cause of one failure, the strongest first (docs/rules.md). What
// stands between the second and the last, a program's message that names the component, a setting in force and an error
// code, is judged by rows and by failure-area, whose candidates come in that order.
var evidenceKinds = [][]string{
	{"control-experiment"}, {"app-failure/exception", "app-failure/exit", "app-failure/assertion"}, {"failure-area", "nccl-bug", "rccl-bug"}, {"job-failed"},
}

// TestEvidenceKinds checks that of two kinds of evidence for one failure the weaker never stands above the stronger.
func TestEvidenceKinds(t *testing.T) {
	t.Parallel()
	s := expect.Value(Load())(t)
	of := func(key string) Finding {
		rule, id, _ := strings.Cut(key, "/")
		return Finding{Rule: rule, ID: id, Cause: rule, Severity: High, Confidence: Likely, Subject: key, Order: new(int)}
	}
	for i, stronger := range evidenceKinds {
		for _, weaker := range evidenceKinds[i+1:] {
			for _, a := range stronger {
				for _, b := range weaker {
					strong, weak := of(a), of(b)
					weak.Severity, weak.Confidence = Critical, Confirmed
					causes := fold([]Finding{weak, strong}, s.rules)
					expect.That(t, len(causes) == 1 && causes[0].Rule == strong.Rule, "%s and %s: %v", a, b, causes)
				}
			}
		}
	}
}

// TestCircular enumerates all pairs of explanations between two rules with two kinds of findings each: those that let a
// finding be a consequence of itself are refused, and folding ends for all others.
func TestCircular(t *testing.T) {
	t.Parallel()
	keys := []string{"", "x", "y"}
	entry := func(own, other, kind string) string {
		if kind != "" {
			other += "/" + kind
		}
		if own != "" {
			return own + " > " + other
		}
		return other
	}
	meet := func(a, b string) bool { return a == "" || b == "" || a == b }
	refused := 0
	for i := range 81 {
		c1, e1, c2, e2 := keys[i%3], keys[i/3%3], keys[i/9%3], keys[i/27]
		rules := []Rule{{ID: "a", Explains: []string{entry(c1, "b", e1)}}, {ID: "b", Explains: []string{entry(c2, "a", e2)}}}
		want, got := meet(e1, c2) && meet(e2, c1), circular(rules)
		expect.That(t, got["a"] == want && got["b"] == want, "%q and %q: circular %v, want %t", rules[0].Explains, rules[1].Explains, got, want)
		if want {
			refused++
			continue
		}
		var findings []Finding
		for _, kind := range keys {
			findings = append(findings, Finding{Rule: "a", ID: kind, Severity: High}, Finding{Rule: "b", ID: kind, Severity: High})
		}
		fold(findings, rules)
	}
	expect.That(t, refused != 0 && refused != 81, "%d were refused", refused)
}

// TestFirstOf checks, for lists that have a kind in common, that each puts its own kinds in order, that what one leaves
// out comes back by no other, and that a kind which none names is always reported.
func TestFirstOf(t *testing.T) {
	t.Parallel()
	rule := Rule{ID: "a", FirstOf: []string{"x", "y", "u > v > w", "t > v"}}
	for hold, want := range map[string]string{"xyuvw": "xu", "oyyxxo": "oxxo", "oyo": "oyo", "o": "o", "": "", "yvw": "yv", "tvw": "t", "tuw": "tu", "w": "w", "xt": "xt"} {
		findings := expect.Map([]rune(hold), func(id rune) Finding { return Finding{ID: string(id)} })
		told := expect.Map(rule.foremostKind(findings), func(f Finding) string { return f.ID })
		expect.Equal(t, want, strings.Join(told, ""), "of %s", hold)
	}
}

// TestCircularKinds checks that a kind of finding may explain another one of its own rule, and not itself.
func TestCircularKinds(t *testing.T) {
	t.Parallel()
	for entries, want := range map[string]bool{"b;x > a/y": false, "x > a/y;y > a/z": false, "x > a/y;y > a/x": true, "x > a": true} {
		expect.Equal(t, want, circular([]Rule{{ID: "a", Explains: strings.Split(entries, ";")}, {ID: "b"}})["a"], "%s: circular", entries)
	}
}

// TestSurer checks, for all confidences of two findings on one fault, that the one that is
// kept is as sure as the surer of them, of the symptom and of the cause.
func TestSurer(t *testing.T) {
	of := func(f Finding) Confidence { return cmp.Or(f.OfCause, f.Confidence) }
	var all []Finding
	for _, c := range confidences {
		all = append(all, Finding{Confidence: c})
		for _, ofCause := range confidences {
			if ofCause.Rank() > c.Rank() {
				all = append(all, Finding{Confidence: c, OfCause: ofCause})
			}
		}
	}
	for _, kept := range all {
		for _, other := range all {
			got := kept
			got.surer(other)
			expect.That(t, got.Confidence.Rank() == min(kept.Confidence.Rank(), other.Confidence.Rank()), "%+v and %+v: confidence %s", kept, other, got.Confidence)
			expect.That(t, of(got).Rank() == min(of(kept).Rank(), of(other).Rank()) && got.OfCause != got.Confidence, "%+v and %+v: of the cause %q", kept, other, got.OfCause)
		}
	}
}

// TestConfirmedByConsequence checks that a measured consequence confirms the symptom and
// leaves the cause as sure as it was.
func TestConfirmedByConsequence(t *testing.T) {
	rules := []Rule{{ID: "cause", Explains: []string{"effect"}}, {ID: "effect"}}
	for _, own := range confidences {
		for _, effect := range confidences {
			got := fold([]Finding{{Rule: "cause", Cause: "cause", Severity: High, Confidence: own}, {Rule: "effect", Cause: "effect", Severity: High, Confidence: effect}}, rules)
			expect.Must(t, len(got) == 1, "%s and %s: %d findings", own, effect, len(got))
			confidence, ofCause := own, Confidence("")
			if effect == Confirmed && own != Confirmed {
				confidence, ofCause = Confirmed, own
			}
			expect.That(t, got[0].Confidence == confidence && got[0].OfCause == ofCause, "a %s cause with a %s effect is %s, of the cause %q", own, effect, got[0].Confidence, got[0].OfCause)
		}
	}
}
