package rules

import (
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestInertLast checks that a setting that does nothing comes behind what does
// something, and that neither is taken for the other.
func TestInertLast(t *testing.T) {
	setting := func(variable string, inert bool) Finding {
		f := Finding{Rule: "env-misconfig", Title: "t", Subject: variable, Severity: Low, Confidence: Likely, Params: map[string]any{"variable": variable}}
		if inert {
			f.Params["effect"] = "none"
		}
		return f
	}
	all := []Finding{setting("NCCL_DEBUG", true), setting("NCCL_P2P_DISABLE", false), setting("NCCL_NVLS_ENABLE", false), setting("NCCL_P2P_DISABLE", false)}
	slices.SortFunc(all, Finding.Compare)
	got := expect.Map(Groups(all), func(g []Finding) string { return g[0].Subject })
	expect.NoDiff(t, []string{"NCCL_NVLS_ENABLE", "NCCL_P2P_DISABLE", "NCCL_DEBUG"}, got, "groups")
}

func TestAlike(t *testing.T) {
	one := Finding{Rule: "r", Title: "t", Severity: Low, Confidence: Likely}
	for name, change := range map[string]func(*Finding){
		"rule":       func(f *Finding) { f.Rule = "s" },
		"title":      func(f *Finding) { f.Title = "u" },
		"severity":   func(f *Finding) { f.Severity = High },
		"confidence": func(f *Finding) { f.Confidence = Possible },
		"variable":   func(f *Finding) { f.Params = map[string]any{"variable": "X"} },
		"effect":     func(f *Finding) { f.Params = map[string]any{"effect": "none"} },
	} {
		other := one
		change(&other)
		expect.That(t, one.likeness() != other.likeness(), "another %s is alike", name)
	}
	other := one
	other.Subject, other.Message = "s", "m"
	expect.That(t, one.likeness() == other.likeness(), "another subject is not alike")
}
