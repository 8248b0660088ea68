package rules

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestSurer checks, for all confidences of two findings on one fault, that the one that is
// kept is as sure as the surer of them, of the symptom and of the cause.
func TestSurer(t *testing.T) {
	of := func(f Finding) Confidence {
		if f.OfCause != "" {
			return f.OfCause
		}
		return f.Confidence
	}
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
			if want := min(kept.Confidence.Rank(), other.Confidence.Rank()); got.Confidence.Rank() != want {
				t.Errorf("%+v and %+v: confidence %s", kept, other, got.Confidence)
			}
			if want := min(of(kept).Rank(), of(other).Rank()); of(got).Rank() != want || got.OfCause == got.Confidence {
				t.Errorf("%+v and %+v: of the cause %q", kept, other, got.OfCause)
			}
		}
	}
}

// TestConfirmedByConsequence checks that a measured consequence confirms the symptom and
// leaves the cause as sure as it was.
func TestConfirmedByConsequence(t *testing.T) {
	rules := []Rule{{ID: "cause", Explains: []string{"effect"}}, {ID: "effect"}}
	for _, own := range confidences {
		for _, effect := range confidences {
			got := fold([]Finding{
				{Rule: "cause", Cause: "cause", Severity: High, Confidence: own},
				{Rule: "effect", Cause: "effect", Severity: High, Confidence: effect},
			}, rules)
			expect.Must(t, len(got) == 1, "%s and %s: %d findings", own, effect, len(got))
			want := Finding{Confidence: own}
			if effect == Confirmed && own != Confirmed {
				want = Finding{Confidence: Confirmed, OfCause: own}
			}
			if got[0].Confidence != want.Confidence || got[0].OfCause != want.OfCause {
				t.Errorf("a %s cause with a %s effect is %s, of the cause %q", own, effect, got[0].Confidence, got[0].OfCause)
			}
		}
	}
}
