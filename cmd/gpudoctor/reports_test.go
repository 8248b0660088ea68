package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/area"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/formattest"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestReportsOfAll checks, for all situations, what people need to act on a report: that no area with a finding is ok, nor one whose
// facts were not read or whose rules were not judged; that the report in Markdown is valid and short enough for a ticket; and that
// the readers of others take each format for CI systems and monitors, with every finding, whatever was not examined, and the exit code.
func TestReportsOfAll(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	known := learnt(t)
	seen := adviceTally{}
	try := expect.EachNth(1)
	situations(t, func(s situation) {
		if !try() {
			return
		}
		d := tellOf(t.Context(), t, known, s)
		written := map[string]string{}
		for _, name := range []string{"text", "markdown", "html"} {
			written[name] = writtenAs(name, d, report.Style{})
		}
		faults := append(wrongAreas(known, s, d), formattest.MarkdownFaults([]byte(written["markdown"]))...)
		for _, l := range d.Areas {
			seen["area "+string(l.State)]++
		}
		for _, format := range slices.Sorted(maps.Keys(readers)) {
			if fault := misread(d, format); fault != "" {
				faults = append(faults, format+": "+fault)
			}
		}
		for _, hold := range []func(*report.Document, map[string]string, adviceTally) []string{namesRules, verdictCounts, certaintySaysOfWhat, namesTheLine} {
			faults = append(faults, hold(d, written, seen)...)
		}
		for _, fault := range faults {
			t.Errorf("%s: %s", s.name, fault)
		}
	})
	expect.Len(t, len(report.FormatNames())-len(readers), []string{"text", "json", "markdown", "html"}, "formats without a reader")
	for _, name := range []string{"slight findings beside a verdict", "lines to look at", "area ok", "area note", "area problem", "area unknown", "area not-applicable"} {
		expect.That(t, seen[name] != 0, "nothing looked at: %s", name)
	}
	t.Logf("looked at: %v", seen)
}

// namesRules checks that the report in Markdown fits into a ticket, and that it names the rule of every finding.
func namesRules(d *report.Document, written map[string]string, _ adviceTally) (faults []string) {
	if n := len(written["markdown"]); n > report.MaxMarkdown {
		faults = append(faults, fmt.Sprintf("%d bytes of Markdown", n))
	}
	for _, f := range d.Findings {
		if !strings.Contains(written["markdown"], "`"+f.Rule+"`") {
			faults = append(faults, f.Rule+" is not named in Markdown")
		}
	}
	return faults
}

// verdictCounts checks that a verdict which is not made of the findings counts them.
func verdictCounts(d *report.Document, written map[string]string, seen adviceTally) (faults []string) {
	if d.Verdict.State == report.Findings || len(d.Findings) == 0 {
		return nil
	}
	seen["slight findings beside a verdict"]++
	counts := d.Verdict.Counts.String()
	head, _, _ := strings.Cut(written["markdown"], "\n")
	_, page, _ := strings.Cut(written["html"], "<h1>")
	page, _, _ = strings.Cut(page, "</h1>")
	for format, title := range map[string]string{"markdown": head, "html": page} {
		if !strings.HasSuffix(title, counts) {
			faults = append(faults, format+" does not count "+counts+" in its title: "+title)
		}
	}
	if d.Verdict.State == report.Healthy && !strings.Contains(written["text"], "\nHealthy; "+counts+".") {
		faults = append(faults, "text does not count "+counts+" after its verdict")
	}
	return faults
}

var (
	certainties = regexp.MustCompile("^(?:cause (?:confirmed|likely|possible|open)|symptom (?:confirmed|likely), cause (?:likely|possible|open))$")
	// certainty is where each format tells it.
	certainty = map[string]*regexp.Regexp{
		"text":     regexp.MustCompile(`(?m)[a-z0-9-](?: x \d+)?, ((?:symptom [a-z]+, )?cause [a-z]+)$`),
		"markdown": regexp.MustCompile("(?m)^`[a-z0-9-]+`, ((?:cause|symptom) [a-z, ]+)[:.]"),
		"html":     regexp.MustCompile(`<span class="severity">(?:critical|high|medium)</span> <span>([^<]*)</span>`),
	}
)

// certaintySaysOfWhat checks that each finding of medium severity or above says whether the
// cause or only the symptom is known, in all formats with the same words.
func certaintySaysOfWhat(_ *report.Document, written map[string]string, seen adviceTally) (faults []string) {
	var told []string
	for _, format := range []string{"html", "markdown", "text"} {
		var said []string
		for _, m := range certainty[format].FindAllStringSubmatch(written[format], -1) {
			seen[m[1]]++
			if !certainties.MatchString(m[1]) {
				faults = append(faults, format+" says "+m[1])
			}
			said = append(said, m[1])
		}
		if format == "html" {
			told = said
		} else if !slices.Equal(said, told) {
			faults = append(faults, format+" says "+strings.Join(said, "; ")+", and html "+strings.Join(told, "; "))
		}
	}
	return faults
}

// namesTheLine checks that the advice to debug a program begins with what the finding knows
// of the place: the line that failed.
func namesTheLine(d *report.Document, _ map[string]string, seen adviceTally) (faults []string) {
	for _, a := range d.Advice {
		if a.Remedy != "fix-application" {
			continue
		}
		if len(a.Apply.Steps) == 0 {
			faults = append(faults, "fix-application has no steps")
			continue
		}
		steps := strings.Join(a.Apply.Steps, "\n")
		for _, f := range d.Findings {
			if !slices.Contains(a.Cures, remedies.Cure{Rule: f.Rule, Subject: f.Subject}) {
				continue
			}
			if line, known := f.Params["failed_line"]; known && isPlain(fmt.Sprint(f.Params["failed_file"])) {
				seen["lines to look at"]++
				if want := fmt.Sprintf("Look first at line %v of %v,", line, f.Params["failed_file"]); !strings.Contains(steps, want) {
					faults = append(faults, "no step says "+want)
				}
			}
		}
	}
	return faults
}

// isPlain reports whether a file's name is one that may be put into advice.
func isPlain(name string) bool {
	return regexp.MustCompile(`^(?:/?[A-Za-z0-9_][A-Za-z0-9._+-]*|(?:/[A-Za-z0-9_+][A-Za-z0-9._+-]*)+)$`).MatchString(name)
}

func ruleIDs(findings []rules.Finding) []string {
	ids := expect.Map(findings, func(f rules.Finding) string { return f.Rule })
	slices.Sort(ids)
	return ids
}

// misread says how a report in a format differs from the document; empty where it does not.
func misread(d *report.Document, format string) string {
	r, err := readers[format]([]byte(writtenAs(format, d, report.Style{})))
	if err != nil {
		return err.Error()
	}
	gaps := expect.Map(gapsOf(d), func(r report.Reason) string { return string(r.Code) })
	slices.Sort(gaps)
	slices.Sort(r.gaps)
	switch {
	case !slices.Equal(r.ids(false), ruleIDs(d.Findings)):
		return "it has findings of " + strings.Join(r.ids(false), " ")
	case !slices.Equal(r.ids(true), ruleIDs(d.AllFindings()[len(d.Findings):])):
		return "it has waived findings of " + strings.Join(r.ids(true), " ")
	case !slices.Equal(r.gaps, gaps):
		return "it says that this was not examined: " + strings.Join(r.gaps, " ")
	case r.broken != (d.Verdict.ExitCode > 1):
		return "it does not tell the exit code"
	case r.allPassed && d.Verdict.State == report.Inconclusive:
		return "it reads as a success, and is inconclusive"
	}
	return mistold(d, r, format)
}

var remedyLine = regexp.MustCompile(`(?m)^(now|fix|or|more|note) +\S`)

func mistold(d *report.Document, r readReport, format string) string {
	var told strings.Builder
	fail := 0
	for _, e := range r.entries {
		told.WriteString(e.text + "\n")
		if e.fails {
			fail++
		}
	}
	failing := format == "sarif" || format == "junit" || format == "github"
	if failing && (fail > 0) != (d.Verdict.ExitCode == 1) {
		return "what fails in it does not fit the exit code"
	}
	if format == "prometheus" {
		return ""
	}
	for _, f := range d.AllFindings() {
		for _, text := range append(expect.Map(f.Explains, func(e rules.Finding) string { return e.Message }), f.Message) {
			if text = lines.Printable(text, false); len(text) < lines.MaxField/2 && !strings.Contains(told.String(), text) {
				return "it does not say " + text
			}
		}
		cured := slices.ContainsFunc(d.Advice, func(a remedies.Advice) bool {
			return slices.Contains(a.Cures, remedies.Cure{Rule: f.Rule, Subject: f.Subject})
		})
		if cured && !slices.ContainsFunc(r.entries, func(e readEntry) bool { return e.rule == f.Rule && remedyLine.MatchString(e.text) }) {
			return "it names no remedy for " + f.Rule
		}
	}
	return ""
}

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

// TestAreasOfSomeRules checks that a rule that was left out leaves no area ok.
func TestAreasOfSomeRules(t *testing.T) {
	known := learnt(t)
	whole := healthyPair(t)
	for _, rule := range expect.SomeRows(16, known.rules.Rules()) {
		if len(rule.Profiles) > 0 && !slices.Contains(rule.Profiles, rules.Training) {
			continue // It is not judged in any case.
		}
		verdicts := judge(t, known, whole, selection{profile: rules.Training, failOn: "high", skip: []string{rule.ID}})
		for _, l := range verdicts.Areas {
			expect.That(t, !slices.Contains(rule.Areas, l.Name) || l.State != area.OK, "%s is ok without %s", l.Name, rule.ID)
		}
	}
}

func flatten(findings []rules.Finding) []rules.Finding {
	var all []rules.Finding
	for _, f := range findings {
		all = append(append(all, f), flatten(f.Explains)...)
	}
	return all
}

func gapsOf(d *report.Document) []report.Reason {
	return lines.Filter(d.Verdict.Reasons, func(r report.Reason) bool { return r.Code != report.ReasonFinding && r.Code != report.ReasonWaived })
}

func waiving(t *testing.T, known knowledge, s situation, verdict *rules.Result, all []waivers.Waiver, strict bool) *report.Document {
	t.Helper()
	in := report.Input{
		Version: version, Sources: s.request.source.names(), Profile: s.request.profile, FailOn: s.request.failOn, Strict: strict, TextsOnly: s.textsOnly,
		Rules: known.rules.Rules(), Facts: s.facts, Verdict: *verdict, Recheck: s.request.again,
	}
	if all != nil {
		applied := waivers.Apply(*verdict, all, "2027-01-31")
		in.Waiving = &applied
	}
	return report.New(in)
}

// TestWaiversOfAll checks, for all situations: if every finding is waived, each is listed as
// waived, in every format, and none counts; what was not examined stays as it was, the exit
// code of it too, and no verdict becomes healthy. If all waivers have expired, every finding
// counts as if there were none. A waiver of one rule is for the findings of this rule alone.
func TestWaiversOfAll(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	known := learnt(t)
	waivedFindings, inconclusive := 0, 0
	try := expect.EachNth(5) // Profiles alternate.
	situations(t, func(s situation) {
		if !try(string(s.request.profile)) {
			return
		}
		verdict, _ := judgedAndTold(t.Context(), t, known, s)
		found := flatten(verdict.Findings)
		all := []waivers.Waiver{}
		for i, id := range slices.Compact(ruleIDs(found)) {
			all = append(all, waivers.Waiver{Rule: id, Reason: "r", Expires: "2027-01-31", File: "f", Line: i + 1})
		}
		for _, strict := range []bool{false, true} {
			plain := waiving(t, known, s, verdict, nil, strict)
			waived := waiving(t, known, s, verdict, all, strict)
			waivedFindings += len(waived.Waived)
			if waived.Verdict.State == report.Inconclusive {
				inconclusive++
			}
			expect.Equal(t, "", wronglyWaived(plain, waived, found, strict), "%s, strict %t", s.name, strict)
			if !strict {
				for _, format := range slices.Sorted(maps.Keys(readers)) {
					expect.Equal(t, "", misread(waived, format), "%s, waived, %s", s.name, format)
				}
			}
			expired := slices.Clone(all)
			for i := range expired {
				expired[i].Expires = "2027-01-30"
			}
			late := waiving(t, known, s, verdict, expired, strict)
			if len(late.Findings) != len(plain.Findings)+len(all) || len(late.Waived) > 0 || late.Verdict.ExitCode != plain.Verdict.ExitCode || late.Verdict.State != plain.Verdict.State {
				t.Errorf("%s: with expired waivers %d findings, exit %d; without %d, exit %d", s.name, len(late.Findings), late.Verdict.ExitCode, len(plain.Findings), plain.Verdict.ExitCode)
			}
		}
		for _, w := range all {
			one := waivers.Apply(*verdict, []waivers.Waiver{w}, "2027-01-31")
			expect.That(t, !slices.Contains(ruleIDs(flatten(one.Findings)), w.Rule) && len(flatten(one.Findings))+len(one.Waived) == len(found), "%s: the waiver of %s leaves %v, and waives %d of %d", s.name, w.Rule, ruleIDs(one.Findings), len(one.Waived), len(found))
		}
	})
	least := 25 // Of a twentieth of them.
	if expect.Night() {
		least = 500
	}
	expect.That(t, waivedFindings >= least && inconclusive >= 25, "only %d findings were waived, %d verdicts inconclusive", waivedFindings, inconclusive)
	t.Logf("%d findings were waived, %d verdicts inconclusive", waivedFindings, inconclusive)
}

// wronglyWaived says how a report in which every finding is waived makes too much of it; empty where it does not.
func wronglyWaived(plain, waived *report.Document, found []rules.Finding, strict bool) string {
	v, code := waived.Verdict, 0
	gaps := gapsOf(plain)
	switch before := plain.Verdict.ExitCode; {
	case before == 2, before == 3, before == 1 && strict && len(gaps) > 0:
		code = max(before, 2)
		if before == 1 {
			code = 3
		}
	case slices.ContainsFunc(plain.Verdict.Reasons, func(r report.Reason) bool { return r.Code == report.ReasonFailed || r.Code == report.ReasonProbe }):
		code = 3
	}
	graveWaived := len(grave(waived.AllFindings()[len(waived.Findings):])) > 0
	switch {
	case len(waived.Findings) > 0 || v.Waived != len(found) || !slices.Equal(ruleIDs(waived.AllFindings()), ruleIDs(found)):
		return "not every finding is listed as waived"
	case !slices.Equal(gapsOf(waived), gaps):
		return "what was not examined differs"
	case v.State == report.Healthy && (plain.Verdict.State != report.Healthy || graveWaived):
		return "it became healthy"
	case len(gaps) == 0 && graveWaived && v.State != report.Findings, len(gaps) > 0 && !graveWaived && v.State != report.Inconclusive:
		return "its state is " + string(v.State)
	case v.ExitCode != code:
		return "the exit code is " + string(rune('0'+v.ExitCode)) + ", want " + string(rune('0'+code))
	}
	return ""
}

// otherWords writes what a document says to people, which is its reasons, and the lines of events whose meaning is in
// their id and fields, in other words: backwards. Equal words stay equal. It returns how many it changed.
func otherWords(v any) (changed int) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			changed += otherWords(item)
		}
	case map[string]any:
		for key, item := range v {
			_, isEvent := v["id"]
			if words, ok := item.(string); ok && (key == "reason" || key == "words" || key == "message" && isEvent) {
				letters := []rune(words)
				slices.Reverse(letters)
				v[key] = string(letters)
				changed++
			}
			changed += otherWords(item)
		}
	}
	return changed
}

// TestProseDecidesNothing checks, for all situations, that no verdict changes with the words that are meant for people: no
// code looks into them, and meaning travels in fields of its own.
func TestProseDecidesNothing(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	known, changed, try := learnt(t), 0, expect.EachNth(1)
	said := func(s situation) (all []string) {
		d := tellOf(t.Context(), t, known, s)
		all = append(all, fmt.Sprint(d.Verdict.State, d.Verdict.ExitCode))
		for _, f := range flatten(d.Findings) {
			all = append(all, fmt.Sprint(f.Rule, f.Subject, f.Severity, f.Confidence, f.Remedies))
		}
		return all
	}
	situations(t, func(s situation) {
		document := decoded[map[string]any](t, expect.Value(json.Marshal(s.facts))(t))
		n := otherWords(document)
		if n == 0 || !try() {
			return
		}
		changed += n
		other := s
		other.facts = decoded[*facts.Facts](t, expect.Value(json.Marshal(document))(t))
		expect.NoDiff(t, said(s), said(other), "%s, in other words", s.name)
	})
	expect.AtLeast(t, 30, changed, "reasons and lines were changed")
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
		expect.Equal(t, area.Unknown, d.Areas[i].State, "%s without its facts (%s)", name, d.Areas[i].Summary)
	}
}
