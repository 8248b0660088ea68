package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/job"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/area"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/settings"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Schema is the version of the report. It changes when a field changes its
// meaning or goes away; a new optional field does not change it.
const Schema = "gpudoctor.report/v1"

// Document is gpudoctor's report on one machine. Two documents made from the same
// facts by the same version differ only in sources and timing.
type Document struct {
	// Schema is always "gpudoctor.report/v1".
	Schema string `json:"schema" jsonschema:"enum=gpudoctor.report/v1"`
	// Version is the version of gpudoctor.
	Version string `json:"version"`
	// RulesDigest names the built-in rules, tables, messages and remedies: it differs
	// where any of them differs.
	RulesDigest Digest `json:"rules_digest,omitempty"`
	// Sources are what was examined: "this machine", or the files that were
	// given.
	Sources []string `json:"sources"`
	// Settings are the flags set in configuration files; absent if there are none.
	Settings []settings.Setting `json:"settings,omitempty"`
	// Profile is the profile that the machine was judged for.
	Profile rules.Profile `json:"profile"`
	// FailOn is the lowest severity that makes the exit code 1.
	FailOn Threshold `json:"fail_on"`
	// Host is a summary of the machine.
	Host Host `json:"host"`
	// Traits are the versions, firmware and settings by which gpudoctor fleet compares this machine with
	// others, by name; what is not known is left out.
	Traits map[string]string `json:"traits,omitempty"`
	// Verdict is the result of the report in one object.
	Verdict Verdict `json:"verdict"`
	// Areas give the state of each area of the machine, one line each.
	Areas []area.Line `json:"areas,omitempty"`
	// Objects are the parts of files that were judged by themselves, the worst first; absent for a machine.
	Objects []JudgedObject `json:"objects,omitempty"`
	// Findings are the faults, most severe first; the consequences of a finding
	// are listed in its explains.
	Findings []rules.Finding `json:"findings"`
	// Waived are the findings that a waiver accepts for a time, most severe first. They
	// do not count for the exit code.
	Waived []waivers.Waived `json:"waived,omitempty"`
	// UnusedWaivers are the waivers that match no finding of the rules that were
	// judged.
	UnusedWaivers []waivers.Waiver `json:"unused_waivers,omitempty"`
	// Advice are the remedies, best first.
	Advice []remedies.Advice `json:"advice"`
	// Withheld is what the findings name and need not or must not be done here:
	// what is already in effect, and what would take away a setting that another
	// finding needs.
	Withheld []remedies.Withheld `json:"withheld,omitempty"`
	// Passed are the rules that found nothing wrong.
	Passed []string `json:"passed"`
	// Skipped are the rules that could not be judged.
	Skipped []Skipped `json:"skipped"`
	// NotApplicable are the rules that have nothing to judge here, each with
	// the reason.
	NotApplicable map[string]string `json:"not_applicable"`
	// Unknown lists the facts that could not be read.
	Unknown []facts.Unknown `json:"unknown"`
	// Transfers is what the probe measured; absent when none was run.
	Transfers *probe.Report `json:"transfers,omitempty"`
	// Collectives is what collectives of NCCL or RCCL did; absent when none were run.
	Collectives *probe.Collectives `json:"collectives,omitempty"`
	// Job is what became of the processes of a job that failed, as logs tell.
	Job *facts.Job `json:"job,omitempty"`
	// Baseline is what became of the findings of an earlier report; absent unless one was
	// given.
	Baseline *Baseline `json:"baseline,omitempty"`
	// Texts are the texts that were examined, and what each was taken for.
	Texts []facts.Text `json:"texts,omitempty"`
	// Wanted are the texts that would decide what could not be judged, most useful
	// first; absent if a machine was examined.
	Wanted []Wanted `json:"wanted,omitempty"`
	// Redacted says what was replaced by stand-ins: "names" for names of hosts,
	// users, jobs and images, addresses, serial numbers and secrets, "secrets" for
	// only secrets; absent if nothing was replaced.
	Redacted Redaction `json:"redacted,omitempty"`
	// Timing is how long the run took. It differs from run to run.
	Timing Timing `json:"timing"`

	facts     *facts.Facts        // What it was made of.
	parts     []Part              // What it says of each part of it.
	shown     func() *facts.Facts // The same, as far as this report may show it.
	textsOnly bool                // No machine was examined, but what somebody sent.
	probed    bool                // The probe was asked for.
	only      int                 // How many rules were asked for by name.
	runs      string              // How the job is started, as instructions names it.
	recheck   remedies.Recheck
	folder    string // What the names of the texts are relative to; empty for the current folder.
	rule      func(id string) (rules.Rule, bool)
}

// Facts are what the report was made of; nil where it was read from a file.
func (d *Document) Facts() *facts.Facts { return d.facts }

// AddTraits adds the traits, which only the JSON document has.
func (d *Document) AddTraits() { d.Traits = rules.Traits(d.facts) }

// TextsOnly is true where no machine was examined, live or recorded.
func (d *Document) TextsOnly() bool { return d.textsOnly }

// Digest is the beginning of a SHA-256 sum, in hexadecimal digits.
type Digest string

// Skipped is a rule that could not be judged.
type Skipped struct {
	Rule string `json:"rule"`
	// Missing says what the rule lacked, one line for each of lacks.
	Missing []string `json:"missing"`
	// Lacks is what it lacked: the path of each fact, why the fact is not
	// known, and what the rule says of it.
	Lacks []rules.Missing `json:"lacks,omitempty"`
	// Fault is true where the rule itself is at fault.
	Fault bool `json:"fault,omitempty"`
}

// skippedOf makes the report's list of what the rules say, in order of id.
func skippedOf(skipped []rules.Skipped) []Skipped {
	all := make([]Skipped, 0, len(skipped))
	for _, s := range skipped {
		one := Skipped{Rule: s.Rule, Missing: make([]string, 0, len(s.Missing)), Lacks: s.Missing, Fault: s.Fault}
		for _, m := range s.Missing {
			one.Missing = append(one.Missing, m.String())
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b Skipped) int { return cmp.Compare(a.Rule, b.Rule) })
	return all
}

// Host is a summary of the machine.
type Host struct {
	// Summary describes the machine in one line, most important first: the GPUs,
	// how they are connected, the driver, and the platform.
	Summary string `json:"summary"`
	// Hostname is the host name of the machine.
	Hostname string `json:"hostname,omitempty"`
	// Kernel, Arch and Distribution describe the operating system.
	Kernel       string `json:"kernel,omitempty"`
	Arch         string `json:"arch,omitempty"`
	Distribution string `json:"distribution,omitempty"`
	// Virtualization is the hypervisor that the machine runs on, or "none".
	Virtualization string `json:"virtualization,omitempty"`
	// Container is the container runtime around the process, "none", or
	// empty when that is not known.
	Container string `json:"container,omitempty"`
	// CPU is the processor's model.
	CPU string `json:"cpu,omitempty"`
	// Driver is the GPU driver's version, CUDA the newest CUDA version it supports.
	Driver string `json:"driver,omitempty"`
	CUDA   string `json:"cuda,omitempty"`
	// GPUs are the machine's GPUs, ordered by PCI address.
	GPUs []GPU `json:"gpus"`

	parts  []string // Of Summary.
	looked bool     // Something was read that would show each GPU.
}

// GPU is a summary of one GPU.
type GPU struct {
	// Address is its PCI address.
	Address string `json:"address"`
	// Index is the GPU's number in the management library.
	Index *int `json:"index,omitempty"`
	// Name is the model.
	Name string `json:"name,omitempty"`
	// MemoryBytes is its memory.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
}

// Counts are findings by severity.
type Counts struct {
	Critical int `json:"critical"`
	High     int `json:"high"`
	Medium   int `json:"medium"`
	Low      int `json:"low"`
	Info     int `json:"info"`
}

// Timing is how long the stages took, in milliseconds.
type Timing struct {
	// TotalMS is the total time, from reading to ranking.
	TotalMS float64 `json:"total_ms"`
	// RulesMS is the time of judging, RemediesMS that of ranking.
	RulesMS    float64 `json:"rules_ms"`
	RemediesMS float64 `json:"remedies_ms"`
	// ChecksMS is the time of each check; checks run concurrently.
	ChecksMS map[string]float64 `json:"checks_ms"`
}

// Milliseconds is a duration as Timing holds it, rounded to a microsecond.
func Milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

// Threshold is the lowest severity that makes the exit code 1, or "none".
type Threshold string

// Never is a threshold that no finding reaches.
const Never Threshold = "none"

// severities are all severities, most severe first.
var severities = []rules.Severity{rules.Critical, rules.High, rules.Medium, rules.Low, rules.Info}

// Thresholds are all values of a threshold, most severe first.
func Thresholds() []string {
	return append(lines.Map(severities, func(s rules.Severity) string { return string(s) }), string(Never))
}

// reaches reports whether a severity is at or above the threshold.
func (t Threshold) reaches(s rules.Severity) bool {
	return t != Never && atLeast(s, rules.Severity(t))
}

// atLeast reports whether a severity is as bad as another, or worse.
func atLeast(s, as rules.Severity) bool {
	return slices.Index(severities, s) <= slices.Index(severities, as)
}

// Input is what a report is made from.
type Input struct {
	Version string
	// RulesDigest names the rules and remedies.
	RulesDigest Digest
	Sources     []string
	Profile     rules.Profile
	FailOn      Threshold
	// Strict makes the exit code 3 if something that the verdict needs was
	// not available.
	Strict bool
	// Only are the rules that were asked for by name, if any: then the
	// verdict needs these and nothing else.
	Only []string
	// Probed is true if the probe was requested in this run.
	Probed bool
	// TextsOnly is true where no machine was examined, live or recorded.
	TextsOnly bool
	// Folder is what the names of the texts are relative to, if one folder was given.
	Folder string
	// Rules are all rules.
	Rules    []rules.Rule
	Settings []settings.Setting
	Facts    *facts.Facts
	// Verdict is what the rules say, and Waiving what waivers make of it; nil if there
	// are no waivers.
	Verdict  rules.Result
	Waiving  *waivers.Result
	Advice   []remedies.Advice
	Withheld []remedies.Withheld
	// Parts are the parts of files that were judged by themselves; empty for a machine.
	Parts []Part
	// Recheck is how gpudoctor was called.
	Recheck remedies.Recheck
	Timing  Timing
}

// New makes a report. The same input gives the same report.
func New(in Input) *Document {
	findings := in.Verdict.Findings
	if in.Waiving != nil {
		findings = in.Waiving.Findings
	}
	d := &Document{
		Schema:        Schema,
		Version:       in.Version,
		RulesDigest:   in.RulesDigest,
		Settings:      in.Settings,
		Sources:       list(in.Sources),
		Profile:       in.Profile,
		FailOn:        in.FailOn,
		Host:          newHost(in.Facts),
		Findings:      fillOrigins(whole(findings), in.Facts),
		Advice:        wholeAdvice(in.Advice),
		Passed:        list(slices.Sorted(slices.Values(in.Verdict.Passed))),
		Skipped:       skippedOf(in.Verdict.Skipped),
		NotApplicable: maps.Clone(in.Verdict.NotApplicable),
		Unknown:       list(in.Facts.Unknown),
		Timing:        in.Timing,
		Texts:         in.Facts.Texts,
		facts:         in.Facts,
		shown:         func() *facts.Facts { return in.Facts },
		textsOnly:     in.TextsOnly,
		probed:        in.Probed,
		only:          len(in.Only),
		runs:          apply.RunsBy(in.Facts),
		recheck:       in.Recheck,
		Withheld:      in.Withheld,
		folder:        in.Folder,
		rule:          ruleIn(in.Rules),
	}
	if in.Waiving != nil {
		d.addWaived(in.Waiving, in.Facts)
	}
	if in.Facts.Transfers != nil {
		t := *in.Facts.Transfers
		t.Devices, t.Peers, t.Transfers = list(t.Devices), list(t.Peers), list(t.Transfers)
		d.Transfers = &t
	}
	if j := job.Of(in.Facts); j != nil && len(j.Members) > 0 {
		d.Job = j
	}
	if c := in.Facts.Collectives; c != nil {
		own := *c
		own.GPUs, own.Arms = list(own.GPUs), list(own.Arms)
		d.Collectives = &own
	}
	if d.NotApplicable == nil {
		d.NotApplicable = map[string]string{}
	}
	if d.Timing.ChecksMS == nil {
		d.Timing.ChecksMS = map[string]float64{}
	}
	if d.textsOnly {
		d.Wanted = d.wanted(in.Rules, in.Facts)
		d.Host.parts = ofTexts(d)
		d.Host.Summary = strings.Join(d.Host.parts, ", ")
	}
	lacks := rules.Lacking(d.Profile, in.Facts)
	d.Verdict = d.judge(in, lacks)
	if d.addParts(in.Parts); len(d.Objects) > 0 {
		return d // The areas are those of a machine.
	}
	d.Areas = area.Lines(area.Input{
		Facts: in.Facts, Rules: in.Rules, Profile: d.Profile, Verdict: in.Verdict, TextsOnly: d.textsOnly, Paths: d.peerPaths(), Unseen: d.unseenGPUs(lacks),
	})
	return d
}

// ruleIn returns what finds a rule by its id.
func ruleIn(all []rules.Rule) func(string) (rules.Rule, bool) {
	return func(id string) (rules.Rule, bool) {
		i := slices.IndexFunc(all, func(r rules.Rule) bool { return r.ID == id })
		if i < 0 {
			return rules.Rule{}, false
		}
		return all[i], true
	}
}

// list makes a nil list an empty one, so that it stands as [] in JSON.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// looked reports whether something was read that would show each GPU: what a driver does not
// find may be another vendor's.
func looked(f *facts.Facts) bool {
	if f.GPUs != nil {
		return f.GPUs.Devices != nil
	}
	return f.PCI != nil
}

// whole copies findings with every list in them made.
func whole(findings []rules.Finding) []rules.Finding {
	all := make([]rules.Finding, 0, len(findings))
	for _, f := range findings {
		f.Evidence, f.Remedies = list(f.Evidence), list(f.Remedies)
		if f.Explains != nil {
			f.Explains = whole(f.Explains)
		}
		all = append(all, f)
	}
	return all
}

// wholeAdvice copies advice with every list in it made.
func wholeAdvice(advice []remedies.Advice) []remedies.Advice {
	all := make([]remedies.Advice, 0, len(advice))
	for _, a := range advice {
		a.Cures, a.Needs, a.Links = list(a.Cures), list(a.Needs), list(a.Links)
		all = append(all, a)
	}
	return all
}

// count counts findings by severity.
func count(findings []rules.Finding) Counts {
	n := map[rules.Severity]int{}
	for _, f := range findings {
		n[f.Severity]++
	}
	return Counts{n[rules.Critical], n[rules.High], n[rules.Medium], n[rules.Low], n[rules.Info]}
}

// list are the counts, most severe first.
func (c Counts) list() []int { return []int{c.Critical, c.High, c.Medium, c.Low, c.Info} }

// String lists the counts that are not zero: "1 critical, 2 low".
func (c Counts) String() string {
	var parts []string
	for i, n := range c.list() {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, severities[i]))
		}
	}
	return strings.Join(parts, ", ")
}
