package report

import (
	"fmt"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/rules"
)

// addWaived adds the findings that are waived, and the waivers that match none.
func (d *Document) addWaived(r *waivers.Result, f *facts.Facts) {
	for _, w := range r.Waived {
		w.Finding = fillOrigins(whole([]rules.Finding{w.Finding}), f)[0]
		d.Waived = append(d.Waived, w)
	}
	d.UnusedWaivers = slices.Clone(r.Unused)
}

// waivedFindings are the findings that are waived.
func (d *Document) waivedFindings() []rules.Finding {
	return lines.Map(d.Waived, func(w waivers.Waived) rules.Finding { return w.Finding })
}

// AllFindings are all findings, those that are waived last.
func (d *Document) AllFindings() []rules.Finding {
	return slices.Concat(d.Findings, d.waivedFindings())
}

// Tally counts the findings in words: "1 critical, 2 low, 1 waived".
func (v Verdict) Tally() string {
	if v.Waived == 0 {
		return v.Counts.String()
	}
	return lines.Joined(", ", v.Counts.String(), fmt.Sprintf("%d waived", v.Waived))
}

// InShort is the verdict with the findings: "inconclusive, 2 low", or their counts alone where they decide.
func (v Verdict) InShort() string {
	if v.State == Findings {
		return v.Tally()
	}
	return lines.Joined(", ", string(v.State), v.Tally())
}

// unused says of a waiver that it matches no finding.
func unused(w waivers.Waiver) string {
	return w.Place() + ": the waiver of " + w.About() + " matches no finding"
}
