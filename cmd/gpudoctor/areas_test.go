package main

import (
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/area"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
	"github.com/gpudoctor/gpudoctor/rules"
)

// isRead says of the areas that rest on one section of the facts whether that was read.
var isRead = map[rules.Area]func(f *facts.Facts) bool{
	rules.AreaGPUs:        func(f *facts.Facts) bool { return f.GPUs != nil },
	rules.AreaPCIe:        func(f *facts.Facts) bool { return f.PCI != nil },
	rules.AreaIOMMU:       func(f *facts.Facts) bool { return f.IOMMU != nil },
	rules.AreaNUMA:        func(f *facts.Facts) bool { return f.NUMA != nil },
	rules.AreaContainer:   func(f *facts.Facts) bool { return f.Container != nil },
	rules.AreaLibraries:   func(f *facts.Facts) bool { return f.Libraries != nil },
	rules.AreaEnvironment: func(f *facts.Facts) bool { return f.Env != nil },
	rules.AreaNetwork:     func(f *facts.Facts) bool { return f.NICs != nil },
	rules.AreaKernelLog:   func(f *facts.Facts) bool { return f.KernelLog != nil },
	rules.AreaJob:         func(f *facts.Facts) bool { return f.Logs != nil },
}

// wrongAreas says where the areas of a report do not follow from its rules and facts.
func wrongAreas(known knowledge, s situation, d *report.Document) []string {
	var faults []string
	lines := map[rules.Area]area.Line{}
	for _, l := range d.Areas {
		lines[l.Name] = l
		if read := isRead[l.Name]; l.State == area.OK && read != nil && !read(s.facts) {
			faults = append(faults, string(l.Name)+" is ok, and its facts were not read")
		}
		if l.Summary == "" {
			faults = append(faults, string(l.Name)+" has no summary")
		}
		if l.State == area.Problem && d.Verdict.State == report.Healthy {
			faults = append(faults, string(l.Name)+" is a problem, and the verdict is healthy")
		}
	}
	for _, a := range rules.Areas() {
		if _, ok := lines[a]; !ok && a != rules.AreaPolicy {
			faults = append(faults, "there is no line for "+string(a))
		}
	}
	areasOf := map[string][]rules.Area{}
	passed := map[rules.Area]bool{}
	for _, r := range known.rules.Rules() {
		areasOf[r.ID] = r.Areas
		for _, a := range r.Areas {
			passed[a] = passed[a] || slices.Contains(d.Passed, r.ID)
		}
	}
	found := map[rules.Area]bool{}
	var visit func(all []rules.Finding)
	visit = func(all []rules.Finding) {
		for _, f := range all {
			told := false
			for _, a := range areasOf[f.Rule] {
				found[a] = true
				l := lines[a]
				if !slices.Contains(l.Rules, f.Rule) {
					continue
				}
				told = true
				if grave := f.Severity.Rank() <= rules.Medium.Rank(); grave && l.State != area.Problem || l.State == area.OK || l.State == area.NotApplicable {
					faults = append(faults, string(a)+" is "+string(l.State)+" with a finding of "+f.Rule)
				}
			}
			if grave := f.Severity.Rank() <= rules.Medium.Rank(); grave && !told {
				faults = append(faults, "no area tells the finding of "+f.Rule)
			}
			if first := lines[areasOf[f.Rule][0]]; first.State == area.OK || first.State == area.NotApplicable {
				faults = append(faults, string(first.Name)+" is "+string(first.State)+" with a finding of "+f.Rule)
			}
			visit(f.Explains)
		}
	}
	visit(d.Findings)
	for _, skipped := range d.Skipped {
		for _, a := range areasOf[skipped.Rule] {
			if state := lines[a].State; state != area.Unknown && state != area.Problem {
				faults = append(faults, string(a)+" is "+string(state)+", and "+skipped.Rule+" was not judged")
			}
		}
	}
	for a, l := range lines {
		if l.State == area.OK && !passed[a] && !found[a] {
			faults = append(faults, string(a)+" is ok, and no rule passed")
		}
	}
	if r := s.facts.Transfers; r != nil && lines[rules.AreaPaths].State == area.OK && slices.ContainsFunc(r.Transfers, func(x probe.Transfer) bool {
		return x.Outcome != probe.OK && x.Outcome != probe.Unsupported
	}) {
		faults = append(faults, "the paths are ok, and not all transfers are")
	}
	return faults
}

// TestNothingKnownNoAreaIsOK checks that where nothing is known all areas of the machine
// are unknown, and that an area is not ok without the section that it rests on.
func TestNothingKnownNoAreaIsOK(t *testing.T) {
	known := learnt(t)
	for _, profile := range []rules.Profile{rules.Training, rules.Image} {
		empty := &facts.Facts{Schema: facts.FactsSchema}
		d := judge(t, known, empty, selection{profile: profile, failOn: "high"})
		for _, l := range d.Areas {
			expect.That(t, l.State == area.Unknown || l.Name == rules.AreaJob, "%s: nothing is known, and %s is %s (%s)", profile, l.Name, l.State, l.Summary)
		}
	}
	whole := healthyPair(t)
	for name, remove := range map[rules.Area]func(f *facts.Facts){
		rules.AreaGPUs:        func(f *facts.Facts) { f.GPUs = nil },
		rules.AreaPaths:       func(f *facts.Facts) { f.Transfers = nil },
		rules.AreaPCIe:        func(f *facts.Facts) { f.PCI = nil },
		rules.AreaContainer:   func(f *facts.Facts) { f.Container = nil },
		rules.AreaLibraries:   func(f *facts.Facts) { f.Libraries = nil },
		rules.AreaEnvironment: func(f *facts.Facts) { f.Env = nil },
		rules.AreaKernelLog:   func(f *facts.Facts) { f.KernelLog = nil },
	} {
		f := *whole
		remove(&f)
		d := judge(t, known, &f, selection{profile: rules.Training, failOn: "high"})
		i := slices.IndexFunc(d.Areas, func(l area.Line) bool { return l.Name == name })
		if state := d.Areas[i].State; state != area.Unknown {
			t.Errorf("without its facts %s is %s (%s)", name, state, d.Areas[i].Summary)
		}
	}
}

// TestAreasOfSomeRules checks that a rule that was left out leaves no area ok.
func TestAreasOfSomeRules(t *testing.T) {
	known := learnt(t)
	whole := healthyPair(t)
	for i, rule := range known.rules.Rules() {
		if night.Few() && i%16 > 0 {
			continue // The race detector makes each many times as slow.
		}
		if len(rule.Profiles) > 0 && !slices.Contains(rule.Profiles, rules.Training) {
			continue // It is not judged in any case.
		}
		verdicts := judge(t, known, whole, selection{profile: rules.Training, failOn: "high", skip: []string{rule.ID}})
		for _, l := range verdicts.Areas {
			expect.That(t, !slices.Contains(rule.Areas, l.Name) || l.State != area.OK, "%s is ok without %s", l.Name, rule.ID)
		}
	}
}
