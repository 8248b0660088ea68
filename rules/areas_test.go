package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestAreas checks that every built-in rule belongs to an area of its own, that every
// area has a rule, and that a rule of --policy has the area that it names, or policy.
func TestAreas(t *testing.T) {
	s := expect.Value(Load())(t)
	found := map[Area]bool{}
	for _, rule := range s.Rules() {
		expect.That(t, len(rule.Areas) != 0 && !slices.Contains(rule.Areas, AreaPolicy), "%s (%s) belongs to %v; name custom.areas", rule.ID, rule.File, rule.Areas)
		for _, area := range rule.Areas {
			found[area] = true
		}
	}
	for _, area := range Areas() {
		expect.That(t, found[area] || area == AreaPolicy, "no rule belongs to %s", area)
	}
	for named, want := range map[string]string{"": "policy", "numa": "numa", "pcie, iommu": "pcie, iommu", "gpu": `unknown area "gpu"`} {
		s, err := load(nil, map[string][]byte{"pcie/mine.rego": []byte(ruleText("mine", high+"#   areas: ["+named+"]\n", fires))})
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = strings.Join(expect.Map(s.Rules()[0].Areas, func(area Area) string { return string(area) }), ", ")
		}
		expect.That(t, strings.Contains(got, want), "areas [%s]: got %q, want %q", named, got, want)
	}
}
