package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/page"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/ansi"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/gfm"

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
	all := make([]rules.Finding, 0, len(d.Waived))
	for _, w := range d.Waived {
		all = append(all, w.Finding)
	}
	return all
}

// AllFindings are all findings, those that are waived last.
func (d *Document) AllFindings() []rules.Finding {
	return slices.Concat(d.Findings, d.waivedFindings())
}

// Tally counts the findings in words: "1 critical, 2 low, 1 waived".
func (v Verdict) Tally() string {
	said := tally(v.Counts)
	if v.Waived == 0 {
		return said
	}
	if said != "" {
		said += ", "
	}
	return said + fmt.Sprintf("%d waived", v.Waived)
}

// unused says of a waiver that it matches no finding.
func unused(w waivers.Waiver) string {
	return w.Place() + ": the waiver of " + w.About() + " matches no finding"
}

// waived lists the findings that are waived, and the waivers that match none.
func (t *text) waived() {
	for _, w := range t.d.Waived {
		t.hanging("", "waived", ansi.Plain, t.clean(fmt.Sprintf("%s (%s, %s)", strings.TrimSuffix(withSubject(w.Finding), "."), w.Finding.Rule, w.Finding.Severity)))
		t.wrapped(strings.Repeat(" ", labelWidth), ansi.Dim, t.clean(w.Waiver.Terms()))
		if t.style.Verbose {
			t.evidence(strings.Repeat(" ", labelWidth), groups([]rules.Finding{w.Finding})[0])
		}
	}
	for _, w := range t.d.UnusedWaivers {
		t.entry("note", t.clean(unused(w)), "")
	}
}

// waived lists the findings that are waived, and the waivers that match none.
func (m *markdown) waived() {
	d := m.d
	if len(d.Waived)+len(d.UnusedWaivers) == 0 || m.findings == 0 {
		return
	}
	m.put("### Waived\n")
	for i, w := range d.Waived {
		if i == min(m.findings, m.listed) {
			m.put("- and %d more in the JSON report", len(d.Waived)-i)
			break
		}
		m.put("- %s, %s: %s. %s", upper(string(w.Finding.Severity)), m.code(w.Finding.Rule), m.inline(strings.TrimSuffix(withSubject(w.Finding), ".")), upper(m.inline(w.Waiver.Terms())))
	}
	for _, w := range d.UnusedWaivers[:min(len(d.UnusedWaivers), m.listed)] {
		m.put("- %s", gfm.Item(m.inline(unused(w))))
	}
	m.put("")
}

// waived adds the findings that are waived to the page, after the others.
func (h *pageOf) waived(r *page.Report) {
	for _, w := range h.d.Waived {
		f := h.finding(len(r.Findings)+1, groups([]rules.Finding{w.Finding})[0])
		f.Title = "Waived: " + f.Title
		f.Notes = append([]string{h.line(w.Waiver.Terms())}, f.Notes...)
		r.Findings = append(r.Findings, f)
	}
}
