package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// State is the verdict in one word.
type State string

// The states of a verdict.
const (
	Healthy      State = "healthy"      // All that the profile calls for was examined, and nothing of medium severity or above was found.
	Findings     State = "findings"     // Something of medium severity or above was found, waived or not.
	Inconclusive State = "inconclusive" // Nothing of it was found, and something failed or was not examined: Verdict.Reasons says what.
)

// ReasonCode names why a verdict is not Healthy.
type ReasonCode string

// The reasons.
const (
	ReasonFinding ReasonCode = "finding"            // A finding of medium severity or above.
	ReasonWaived  ReasonCode = "finding-waived"     // A waived finding of medium severity or above.
	ReasonFailed  ReasonCode = "transfers-failed"   // Transfers failed, and no finding reports it.
	ReasonProbe   ReasonCode = "probe-failed"       // The probe was requested and failed.
	ReasonUntried ReasonCode = "transfers-untried"  // Transfers were not tried, for a reason that is not a failure.
	ReasonSection ReasonCode = "section-unknown"    // A section of the facts could not be read.
	ReasonRule    ReasonCode = "rule-not-judged"    // A rule that --only names was not judged, or one whose finding would be high or critical.
	ReasonNoGPU   ReasonCode = "no-gpu"             // There is no GPU to judge.
	ReasonTexts   ReasonCode = "texts-only"         // Texts were examined instead of a machine.
	ReasonCut     ReasonCode = "texts-unread"       // Texts were not read, or only in part.
	ReasonBroken  ReasonCode = "file-broken"        // A file of a job is not valid or cannot be read.
	ReasonUnread  ReasonCode = "nothing-recognised" // Nothing in the texts was recognized.
)

var reasonCodes = []ReasonCode{
	ReasonFinding, ReasonWaived, ReasonFailed, ReasonProbe, ReasonUntried, ReasonSection, ReasonRule, ReasonNoGPU, ReasonTexts, ReasonCut, ReasonBroken, ReasonUnread,
}

// Reason is one reason why the verdict is not Healthy.
type Reason struct {
	// Code is for programs, Text for people.
	Code ReasonCode `json:"code"`
	Text string     `json:"text"`
}

// Verdict is the result of the report in one object. The headline, the closing line,
// the JSON and the exit code all follow from it.
type Verdict struct {
	State State `json:"state"` // The verdict in one word.
	// Reasons say why the verdict is not Healthy, most important first.
	Reasons []Reason `json:"reasons"`
	Counts  Counts   `json:"counts"`           // The findings by severity, without consequences.
	Waived  int      `json:"waived,omitempty"` // The number of waived findings, which are not in counts.
	// ExitCode is the program's exit code: 0; 1 if a finding is at or above
	// fail_on; 2 if nothing in the input was recognized; 3 if nothing was
	// recognized and a part of the input was not read, or if transfers or the probe failed or a file of a job is broken without such a finding, and, with
	// --strict, if reasons contains anything other than findings.
	ExitCode int `json:"exit_code" jsonschema:"enum=0,enum=1,enum=2,enum=3"`
	// Reason explains the exit code.
	Reason string `json:"reason"`
	// Missing lists what the verdict needs but was not available, with the
	// reason and, if there is one, the way to get it.
	Missing []string `json:"missing"`
}

func (v *Verdict) has(code ReasonCode) bool {
	return slices.ContainsFunc(v.Reasons, func(r Reason) bool { return r.Code == code })
}

// text is the reason of that kind in words; empty where there is none.
func (v *Verdict) text(code ReasonCode) string {
	if i := slices.IndexFunc(v.Reasons, func(r Reason) bool { return r.Code == code }); i >= 0 {
		return v.Reasons[i].Text
	}
	return ""
}

// gaps are the reasons that are no findings.
func (v *Verdict) gaps() []Reason {
	return lines.Filter(v.Reasons, func(r Reason) bool { return r.Code != ReasonFinding && r.Code != ReasonWaived })
}

// shortly gives the first of the reasons that are no findings in a sentence.
func (v *Verdict) shortly() string { return lines.First(v.Missing, maxReasons, "; ") }

// judge computes the verdict, once, from all that the report holds.
func (d *Document) judge(lacks []rules.Missing) Verdict {
	v := Verdict{State: Healthy, Counts: count(d.Findings), Waived: len(d.Waived)}
	grave := lines.Filter(d.Findings, func(f rules.Finding) bool { return atLeast(worst(f), rules.Medium) })
	v.Reasons = lines.Map(grave, func(f rules.Finding) Reason { return Reason{Code: ReasonFinding, Text: f.Rule + ": " + f.About()} })
	for _, w := range d.Waived {
		if atLeast(w.Finding.Severity, rules.Medium) {
			v.Reasons = append(v.Reasons, Reason{Code: ReasonWaived, Text: fmt.Sprintf("%s: %s (waived until %s)", w.Finding.Rule, w.Finding.About(), w.Waiver.Expires)})
		}
	}
	gaps := d.unexamined(lacks)
	switch {
	case len(v.Reasons) > 0:
		v.State = Findings
	case len(gaps) > 0:
		v.State = Inconclusive
	}
	v.Reasons = append(v.Reasons, gaps...)
	v.Missing = lines.Map(gaps, func(r Reason) string { return r.Text })
	v.ExitCode, v.Reason = d.exitCode(&v)
	return v
}

// exitCode is the exit code of a verdict, and why.
func (d *Document) exitCode(v *Verdict) (code int, why string) {
	reaching := len(lines.Filter(d.Findings, func(f rules.Finding) bool { return d.FailOn.reaches(worst(f)) }))
	switch {
	case v.has(ReasonUnread) && v.has(ReasonCut):
		return 3, "nothing was recognized in what was read of the input"
	case v.has(ReasonUnread):
		return 2, "nothing in the input was recognized"
	case reaching > 0:
		return 1, fmt.Sprintf("%s at or above %s", lines.Count(reaching, "finding"), d.FailOn)
	case d.collectivesFailed(d.waivedFindings()):
		return 3, "collectives failed, but no finding at or above " + string(d.FailOn) + " reports it"
	case v.has(ReasonFailed), d.failures(rules.Unexplained(d.Transfers, d.waivedFindings())) > 0:
		return 3, "transfers failed, but no finding at or above " + string(d.FailOn) + " reports it"
	case v.has(ReasonProbe):
		return 3, "the probe was requested but failed"
	case v.has(ReasonBroken):
		return 3, "a file of the job is broken: " + v.text(ReasonBroken)
	case d.in.Strict && len(v.gaps()) > 0:
		return 3, "--strict is set, and these were not examined: " + v.shortly()
	case len(d.Findings) > 0 && d.FailOn == Never:
		return 0, "--fail-on none"
	case len(d.Findings) > 0:
		return 0, fmt.Sprintf("no finding at or above %s", d.FailOn)
	case len(d.Waived) > 0:
		return 0, lines.Count(len(d.Waived), "finding") + " waived, and no other"
	}
	return 0, "no finding"
}

// unexamined says what failed without a finding that says so, and what was not examined.
func (d *Document) unexamined(lacks []rules.Missing) []Reason {
	var all []Reason
	rest := rules.Unexplained(d.Transfers, d.AllFindings())
	if rest != nil && (!d.noGPU() || len(rest.Transfers)+len(rest.Devices) > 0) {
		all = append(all, Reason{Code: ReasonFailed, Text: "transfers (they failed or are too slow, and the rules that report them were excluded)"})
	}
	all = append(all, d.collectivesGap()...)
	all = append(all, unreadTexts(d.in.Facts.Texts)...)
	switch {
	case d.in.TextsOnly && !slices.ContainsFunc(d.in.Facts.Texts, func(t facts.Text) bool { return len(t.Kinds) > 0 }):
		return append(all, Reason{Code: ReasonUnread, Text: "the machine (nothing in the input was recognized)"})
	case d.Profile == rules.Launch:
		// What files do not say of a machine is no gap; a file that was not understood is.
		// Where no rule was skipped for a value that is not shown, those that lack it have findings.
		all = append(unreadTexts(slices.DeleteFunc(slices.Clone(d.in.Facts.Texts), isBroken)), unreadFiles(d.in.Facts, len(d.Skipped) == 0)...)
		// Several rules read one value that a file does not show.
		return slices.Concat(all, missingSections(lacks), reasonsFor(ReasonRule, lines.Map(d.Skipped, func(s Skipped) pair { return pair{s.Rule, reasonOf(s)} })))
	case d.in.TextsOnly && len(d.in.Only) == 0:
		return append(all, Reason{Code: ReasonTexts, Text: "the machine (only logs or command output were examined)"})
	case len(d.in.Only) > 0:
		// The probe is run whatever rules are asked for.
		all = append(all, lines.Filter(d.missingTransfers(lacks), func(r Reason) bool { return r.Code == ReasonNoGPU || r.Code == ReasonProbe })...)
		asked := lines.Filter(d.Skipped, func(s Skipped) bool { return slices.Contains(d.in.Only, s.Rule) })
		all = append(all, lines.Map(asked, notJudged)...)
		if d.in.TextsOnly {
			all = append(all, Reason{Code: ReasonTexts, Text: "the machine (only logs or command output were examined)"})
		}
		return all
	}
	all = append(all, missingSections(lacks)...)
	transfers := d.missingTransfers(lacks)
	all = append(all, transfers...)
	return append(all, d.missingRules(len(transfers) > 0)...)
}

// collectivesFailed reports whether collectives failed that no finding of a list cites.
func (d *Document) collectivesFailed(list []rules.Finding) bool {
	c := d.Collectives
	failed := c != nil && (c.Outcome.Failed() || slices.ContainsFunc(c.Arms, func(a probe.Arm) bool { return a.Outcome.Failed() }))
	return failed && !slices.ContainsFunc(list, citesCollectives)
}

func citesCollectives(f rules.Finding) bool { return f.Cites("collectives") }

// collectivesGap says that collectives failed or are slow without a finding that cites them, or could not be run.
func (d *Document) collectivesGap() []Reason {
	switch c := d.Collectives; {
	case c == nil:
		return nil
	case d.collectivesFailed(d.AllFindings()), c.Outcome == probe.Slow && !slices.ContainsFunc(d.AllFindings(), citesCollectives):
		return []Reason{{Code: ReasonFailed, Text: "collectives (they failed or are too slow, and the rules that report them were excluded)"}}
	case c.Outcome != probe.Unknown || c.Cause == probe.CauseNoLibrary || c.Cause == probe.CauseNoDevice || c.Cause == probe.CauseStatic:
		return nil // They are told, or there was nothing to run.
	}
	return []Reason{untried(d.harmless(d.Collectives.Cause, d.Collectives.GPUs...), "collectives", cmp.Or(d.Collectives.Reason, "they could not be run"))}
}

// unreadTexts says how many texts were not read to their end, and names the first. What holds no text does not count.
func unreadTexts(texts []facts.Text) []Reason {
	texts = lines.Filter(texts, func(t facts.Text) bool { return t.Unread != "" || t.Problem == "" })
	unread := lines.Filter(texts, func(t facts.Text) bool { return t.Unread != "" })
	if len(unread) == 0 {
		return nil
	}
	number := func(of []facts.Text) (n int) {
		for _, t := range of {
			n += max(t.More, 1)
		}
		return n
	}
	which := unread[0].Name + ": " + unread[0].Problem
	if number(unread) > 1 {
		which = "the first is " + which
	}
	return []Reason{{Code: ReasonCut, Text: fmt.Sprintf("%d of %s (not read to the end; %s)", number(unread), lines.Count(number(texts), "text"), which)}}
}

// reasonsFor are reasons of one kind, for names of which the same is said.
func reasonsFor(code ReasonCode, all []pair) []Reason {
	return lines.Map(together(all), func(a alike) Reason {
		return Reason{Code: code, Text: strings.Join(slices.Compact(a.Names), ", ") + " (" + a.Text + ")"}
	})
}

func notJudged(s Skipped) Reason {
	return Reason{Code: ReasonRule, Text: s.Rule + " (" + reasonOf(s) + ")"}
}

// missingSections lists the sections that hold what the profile requires and is not known,
// those with the same reason together. What transfers lack, missingTransfers explains.
func missingSections(lacks []rules.Missing) []Reason {
	others := lines.Filter(lacks, func(m rules.Missing) bool { return m.Section() != "transfers" })
	return reasonsFor(ReasonSection, lines.Map(others, func(m rules.Missing) pair {
		return pair{m.Section(), cmp.Or(m.Reason, m.Words, "the facts do not contain them")}
	}))
}

// missingRules lists the rules that could not be judged and are at fault themselves, or whose finding would be high or critical.
// told is true where the lack of transfers is a reason by itself. Good transfers answer what would have explained a failure.
func (d *Document) missingRules(told bool) []Reason {
	answered := map[string]bool{}
	if d.Profile == rules.Training && proven(d) {
		for _, r := range d.in.Rules {
			answered[r.ID] = slices.ContainsFunc(r.Explains, func(id string) bool { return measured[id] }) || measured[r.ID]
		}
	}
	var all []Reason
	ofOthers := func(m rules.Missing) bool { return m.Section() != "transfers" }
	for _, s := range d.Skipped {
		told := told && len(s.Lacks) > 0 && !slices.ContainsFunc(s.Lacks, ofOthers)
		i := slices.IndexFunc(d.in.Rules, func(r rules.Rule) bool { return r.ID == s.Rule })
		required := i >= 0 && atLeast(d.in.Rules[i].Severity, rules.High) && !answered[s.Rule] && !told
		if s.Fault || required { // What a faulty rule would have said is not known, and a transfer does not answer it.
			all = append(all, notJudged(s))
		}
	}
	return all
}

// measured are the rules that judge the transfers themselves.
var measured = map[string]bool{
	"p2p-broken-platform": true, "p2p-slow": true, "p2p-unsupported-gpu": true, "transfer-failed": true, "driver-hang": true,
}

// proven reports whether the probe ended and every GPU and every transfer that the driver offers is good.
func proven(d *Document) bool {
	t := d.Transfers
	return t != nil && t.Outcome == probe.OK && len(t.Devices) > 0 &&
		!slices.ContainsFunc(t.Devices, func(g probe.Device) bool { return g.Outcome != probe.OK }) &&
		!slices.ContainsFunc(t.Transfers, func(x probe.Transfer) bool { return x.Outcome != probe.OK && x.Outcome != probe.Unsupported })
}

// failures counts the transfers, GPUs and steps that failed in the probe's report or a part of it. That
// the driver finds no GPU where there is none is no failure.
func (d *Document) failures(t *probe.Report) int {
	if t == nil {
		return 0
	}
	devices := lines.Filter(t.Devices, func(g probe.Device) bool { return g.Outcome.Failed() })
	n := countTransfers(t, probe.Outcome.Failed) + len(devices)
	if t.Outcome.Failed() && !d.noGPU() {
		n++
	}
	return n
}

// noGPU reports whether the driver says that it finds no GPU, and nothing else shows one.
func (d *Document) noGPU() bool {
	return d.Transfers != nil && d.Transfers.ErrorCode == noDeviceCode && len(d.Host.GPUs) == 0
}

// noDeviceCode says that there is nothing to probe (CUDA_ERROR_NO_DEVICE, cuda.h).
const noDeviceCode = 100

// untried is the reason for something that was not tried. It is excused where that is no failure of the probe.
func untried(excused bool, what, why string) Reason {
	return Reason{Code: map[bool]ReasonCode{true: ReasonUntried, false: ReasonProbe}[excused], Text: what + " (" + why + ")"}
}

// missingTransfers says what is missing of the transfers.
func (d *Document) missingTransfers(lacks []rules.Missing) []Reason {
	if d.Profile != rules.Training && d.Transfers == nil {
		return nil
	}
	one := func(excused bool, why string) []Reason { return []Reason{untried(excused, "transfers", why)} }
	switch t := d.Transfers; {
	case d.Profile == rules.Training && len(d.Host.GPUs) == 0 && !looked(d.in.Facts):
		_, why := noGPU(d)
		return one(!d.in.Probed, why)
	case d.Profile == rules.Training && len(d.Host.GPUs) == 0 && d.unseen() != "":
		return one(true, d.unseen())
	case d.Profile == rules.Training && len(d.Host.GPUs) == 0:
		return []Reason{{Code: ReasonNoGPU, Text: "transfers (no GPU was found)"}}
	case t == nil:
		u := d.unknown("transfers", "")
		return one(!d.in.Probed || u == nil || u.Kind != "", d.whyUnknown("transfers"))
	case t.Outcome == probe.Unknown || t.Outcome == probe.Unsupported:
		return one(d.harmless(t.Cause), cmp.Or(t.Reason, "the probe could not run"))
	case t.Outcome.Failed():
		return nil // That is no gap: see failures.
	case len(t.Devices) > 1 && len(newPaths(d)) == 0:
		return one(false, "no pair of the GPUs was tried")
	case len(t.Devices) == 0:
		return one(false, "the driver offers none of "+lines.Count(len(d.Host.GPUs), "GPU")+" to this process")
	}
	all := slices.Concat(d.untriedPaths(), d.untriedGPUs(), d.untriedTests())
	for _, m := range lacks {
		if len(all) == 0 && m.Section() == "transfers" {
			all = one(false, m.Short())
		}
	}
	return all
}

// harmless reports whether the cause of an unknown outcome is no failure of the probe: others
// hold the memory of a GPU only where they are seen to use it.
func (d *Document) harmless(cause probe.Cause, gpus ...string) bool {
	if cause == probe.CauseNoMemory {
		_, user := checks.FirstUser(d.in.Facts, gpus...)
		return user != nil
	}
	return slices.Contains([]probe.Cause{probe.CauseNoDevice, probe.CauseBusy, probe.CauseNoAccess, probe.CauseLeftAlone, probe.CauseUnavailable}, cause)
}

// excused reports whether it is no failure of the probe that a transfer was not tried, or its GPUs.
func (d *Document) excused(t *probe.Transfer) bool {
	if t.Cause != probe.CauseDevice && t.Cause != "" {
		return d.harmless(t.Cause, t.Source, t.Destination)
	}
	out := slices.DeleteFunc(slices.Clone(d.Transfers.Devices), func(g probe.Device) bool {
		return g.Outcome == probe.OK || g.Address != t.Source && g.Address != t.Destination
	})
	return len(out) > 0 && !slices.ContainsFunc(out, func(g probe.Device) bool { return !d.excusedGPU(g) })
}

// excusedGPU reports the same of a GPU. A failure is counted by itself.
func (d *Document) excusedGPU(g probe.Device) bool {
	return g.Cause == "" && g.Outcome.Failed() || d.harmless(g.Cause, g.Address)
}

// untriedGPUs are the GPUs that were not tested, as far as no path says so.
func (d *Document) untriedGPUs() []Reason {
	said := newPaths(d).with(probe.Unknown)
	open := lines.Filter(d.Transfers.Devices, func(g probe.Device) bool {
		told := slices.ContainsFunc(said, func(p path) bool { return p.source == g.Address || p.destination == g.Address })
		return g.Outcome != probe.OK && !g.Outcome.Failed() && !told
	})
	return lines.Map(open, func(g probe.Device) Reason {
		return untried(d.excusedGPU(g), "transfers", gapsInWords([]pair{gapOf(g)}))
	})
}

// untriedPaths are the ordered pairs of GPUs of which nothing is known.
func (d *Document) untriedPaths() []Reason {
	all := newPaths(d)
	unknown := all.with(probe.Unknown)
	if len(unknown) == 0 {
		return nil
	}
	// A recording may hold a probe of some pairs; a probe of our own leaves none out without a reason.
	excused := !slices.ContainsFunc(unknown, func(p path) bool {
		return p.plain == nil && d.in.Probed || p.plain != nil && !d.excused(p.plain)
	})
	why := fmt.Sprintf("%d of %s could not be judged", len(unknown), lines.Count(len(all), "peer path"))
	return []Reason{untried(excused, "transfers", why+lines.Behind(": ", gapsInWords(gaps(d, unknown))))}
}

// untriedTests are the tests beyond the plain copy of which nothing is known.
func (d *Document) untriedTests() []Reason {
	var all []Reason
	for i := range d.Transfers.Transfers {
		t := &d.Transfers.Transfers[i]
		if t.Test == probe.TestCopy || t.Outcome != probe.Unknown || t.Cause == probe.CauseDevice {
			continue
		}
		r := untried(d.excused(t), t.Test, cmp.Or(t.Reason, "not tried"))
		if !slices.ContainsFunc(all, func(o Reason) bool { return o.Code == r.Code && strings.HasPrefix(o.Text, t.Test+" (") }) { // Of each test, one excused and one not.
			all = append(all, r)
		}
	}
	if why := d.Transfers.SMTests; why != "" {
		all = append(all, untried(true, "SM loads and stores", why))
	}
	return all
}

// unseen says why there may be GPUs although none is seen: a library failed that has something to answer.
func (d *Document) unseen() string { return d.why("gpus", "devices", "") }

// unknown is what the facts say of the lack of a fact, or of a section; nil where they say nothing.
func (d *Document) unknown(section, fact string) *facts.Unknown {
	if i := slices.IndexFunc(d.Unknown, func(u facts.Unknown) bool { return u.Section == section && u.Fact == fact }); i >= 0 {
		return &d.Unknown[i]
	}
	return nil
}

// why is the reason that the facts state for the lack of a fact or a section, or else another one.
func (d *Document) why(section, fact, otherwise string) string {
	if u := d.unknown(section, fact); u != nil {
		return u.Reason
	}
	return otherwise
}

// whyUnknown is that of a section.
func (d *Document) whyUnknown(section string) string {
	return d.why(section, "", "the facts do not contain them")
}

func (d *Document) title() string {
	if d.Verdict.State == Findings {
		return d.Verdict.Tally()
	}
	return d.state() + d.besides()
}

func (d *Document) state() string {
	switch v := &d.Verdict; {
	case v.State == Healthy && len(d.in.Only) > 0:
		return "healthy by the " + lines.Count(len(d.in.Only), "rule") + " judged (--only)"
	case v.State == Healthy:
		return "healthy"
	case v.has(ReasonFailed):
		return "transfers fail"
	case v.has(ReasonUnread) && v.has(ReasonCut):
		return "nothing was recognized in what was read of the input"
	case v.has(ReasonUnread):
		return "nothing in the input was recognized"
	case v.has(ReasonTexts) && v.has(ReasonCut):
		return "no known fault found in what was read of the input"
	case v.has(ReasonTexts):
		return "no known fault found in the input"
	case v.has(ReasonNoGPU):
		return "no GPU to judge"
	}
	if len(d.Findings)+len(d.Waived) > 0 {
		return "not proven healthy"
	}
	return "no problems found, not proven healthy"
}

// verdictInWords is the verdict with what it rests on.
func (d *Document) verdictInWords() string {
	v := &d.Verdict
	said := []string{v.InShort()}
	if _, paths := transfersLine(d, newPaths(d)); !d.in.TextsOnly && d.Transfers != nil {
		said = append(said, paths)
	}
	if v.State == Inconclusive {
		said = append(said, "not examined: "+v.shortly())
	}
	return strings.Join(append(said, fmt.Sprintf("exit %d (%s)", v.ExitCode, v.Reason)), "; ")
}

// worst is the worst severity of a finding and what it explains.
func worst(f rules.Finding) rules.Severity {
	s := f.Severity
	for _, e := range f.Explains {
		if w := worst(e); atLeast(w, s) {
			s = w
		}
	}
	return s
}

// LaunchesSection is the section of the facts that holds descriptions of jobs.
const LaunchesSection = "launches"

// unreadFiles says which files describe no job that was understood; with open, also which values they do not show.
func unreadFiles(f *facts.Facts, open bool) []Reason {
	var all []Reason
	add := func(text string) { all = append(all, Reason{Code: ReasonCut, Text: text}) }
	unknown := func(name string) bool { // It is a template, for example.
		return slices.ContainsFunc(f.Unknown, func(u facts.Unknown) bool { return u.Section == LaunchesSection && u.Fact == "["+name+"]" })
	}
	for _, t := range f.Texts {
		switch {
		case isBroken(t):
			all = append(all, Reason{Code: ReasonBroken, Text: t.Name + " (" + t.Problem + ")"})
		case t.Problem != "" || t.More > 1:
		case len(t.Kinds) == 0:
			add(t.Name + " (not recognized)")
		case !slices.ContainsFunc(t.Kinds, func(k facts.TextKind) bool { return k.Kind != facts.KindObject }):
			// A service or a config map beside the pods.
		case !slices.ContainsFunc(f.Launches, func(l facts.Launch) bool { return l.Source == t.Name }) && !unknown(t.Name):
			add(t.Name + " (recognized as " + t.Kinds[0].Kind + ", which describes no job)")
		}
	}
	for _, u := range f.Unknown {
		if u.Section == LaunchesSection {
			add(u.Reason)
		}
	}
	if !open {
		return all
	}
	for i := range f.Launches {
		l := &f.Launches[i]
		for _, part := range slices.Sorted(maps.Keys(l.Unknown)) {
			add(fmt.Sprintf("%s (line %d of %s does not show it)", l.Unknown[part], cmp.Or(l.Lines[part], l.Line), l.Source))
		}
	}
	return all
}

func isBroken(t facts.Text) bool {
	return t.Unread == facts.UnreadBroken || t.Unread == facts.UnreadError
}
