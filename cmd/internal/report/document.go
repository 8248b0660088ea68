package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Schema is the version of the report. It changes when a field changes its
// meaning or goes away; a new optional field does not change it.
const Schema = "gpudoctor.report/v1"

// Document is what gpudoctor says of one machine. Two documents made of the
// same facts by the same version differ in sources and timing alone.
type Document struct {
	// Schema is always "gpudoctor.report/v1".
	Schema string `json:"schema" jsonschema:"enum=gpudoctor.report/v1"`
	// Version is gpudoctor's own.
	Version string `json:"version"`
	// Sources are what was examined: "this machine", or the files that were
	// given.
	Sources []string `json:"sources"`
	// Profile is what the machine was judged for.
	Profile rules.Profile `json:"profile"`
	// FailOn is the severity from which on findings make the exit code 1.
	FailOn Threshold `json:"fail_on"`
	// Host is the machine in short.
	Host Host `json:"host"`
	// Verdict is the report in one object.
	Verdict Verdict `json:"verdict"`
	// Findings are the faults, the worst first; the consequences of one
	// stand in its explains.
	Findings []rules.Finding `json:"findings"`
	// Advice is what can be done, the best first.
	Advice []remedies.Advice `json:"advice"`
	// Withheld is what the findings name and need not or must not be done here:
	// what is in force already, and what would take away a setting that another
	// finding needs.
	Withheld []remedies.Withheld `json:"withheld,omitempty"`
	// Passed are the rules that found nothing wrong.
	Passed []string `json:"passed"`
	// Skipped are the rules that could not be judged.
	Skipped []rules.Skipped `json:"skipped"`
	// NotApplicable are the rules that have nothing to judge here, each with
	// the reason.
	NotApplicable map[string]string `json:"not_applicable"`
	// Unknown lists the facts that could not be read.
	Unknown []checks.Unknown `json:"unknown"`
	// Transfers is what the probe measured; absent when none was run.
	Transfers *probe.Report `json:"transfers,omitempty"`
	// Texts are the texts that were examined, and what each was taken for.
	Texts []checks.Text `json:"texts,omitempty"`
	// Wanted are the texts that would settle what could not be judged, what
	// settles most first; of texts alone.
	Wanted []Wanted `json:"wanted,omitempty"`
	// Timing is how long it took. It differs from run to run.
	Timing Timing `json:"timing"`

	persistent *bool  // Persistence mode is on for every GPU.
	textsOnly  bool   // No machine was examined, but what somebody sent.
	runs       string // How the job is started, as instructions names it.
	recheck    remedies.Recheck
}

// Host is the machine in short.
type Host struct {
	// Summary is the machine in one line, its parts in the order that they
	// matter: the GPUs, how they are joined, the driver, what it runs on.
	Summary string `json:"summary"`
	// Hostname is the machine's own name for itself.
	Hostname string `json:"hostname,omitempty"`
	// Kernel, Arch and Distribution describe the operating system.
	Kernel       string `json:"kernel,omitempty"`
	Arch         string `json:"arch,omitempty"`
	Distribution string `json:"distribution,omitempty"`
	// Virtualization is the hypervisor below it, or "none".
	Virtualization string `json:"virtualization,omitempty"`
	// Container is the container runtime around the process, "none", or
	// empty when that is not known.
	Container string `json:"container,omitempty"`
	// CPU is the processor's model.
	CPU string `json:"cpu,omitempty"`
	// Driver is the GPU driver's version, CUDA the newest CUDA it serves.
	Driver string `json:"driver,omitempty"`
	CUDA   string `json:"cuda,omitempty"`
	// GPUs are its GPUs by PCI address.
	GPUs []GPU `json:"gpus"`

	parts  []string // Of Summary.
	looked bool     // Something was read that would show a GPU.
}

// GPU is one GPU in short.
type GPU struct {
	// Address is its PCI address.
	Address string `json:"address"`
	// Index is the management library's number for it.
	Index *int `json:"index,omitempty"`
	// Name is the model.
	Name string `json:"name,omitempty"`
	// MemoryBytes is its memory.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
}

// State is the verdict in one word.
type State string

// The states of a verdict.
const (
	// Healthy means that all that a job needs was tried or judged, and that
	// nothing of medium severity or above was found.
	Healthy State = "healthy"
	// Findings means that something of medium severity or above was found.
	Findings State = "findings"
	// Unproven means that nothing of medium severity or above was found, yet
	// something that the verdict rests on could not be judged.
	Unproven State = "unproven"
	// NoGPU means that there is no GPU to judge, and that nothing of medium
	// severity or above was found in the host and the container.
	NoGPU State = "no-gpu"
	// Inconclusive means that texts were examined and no machine, and that
	// nothing of medium severity or above was found in them.
	Inconclusive State = "inconclusive"
)

// Verdict is the report in one object.
type Verdict struct {
	// State is the verdict in one word.
	State State `json:"state"`
	// Counts are the findings by severity, consequences not counted.
	Counts Counts `json:"counts"`
	// ExitCode is the one that the program ends with: 0, 1, 2 where texts were
	// given and nothing in them was recognised, or 3 where --strict was given
	// and something in missing could not be judged.
	ExitCode int `json:"exit_code" jsonschema:"enum=0,enum=1,enum=2,enum=3"`
	// Reason says why.
	Reason string `json:"reason"`
	// Missing lists what the verdict needs and could not be had, with the
	// reason and, where there is one, the way to have it.
	Missing []string `json:"missing"`

	short []string // Missing without what the line of the transfers says.
	// unread is true where nothing in the texts was recognised.
	unread bool
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
	// TotalMS is the whole, from reading to ranking.
	TotalMS float64 `json:"total_ms"`
	// RulesMS and RemediesMS are the judging and the ranking.
	RulesMS    float64 `json:"rules_ms"`
	RemediesMS float64 `json:"remedies_ms"`
	// ChecksMS is each check's time; they run side by side.
	ChecksMS map[string]float64 `json:"checks_ms"`
}

// Milliseconds is a duration as Timing holds it, rounded to a microsecond.
func Milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

// Threshold is the severity from which on findings make the exit code 1, or
// "none".
type Threshold string

// Never is the threshold that no finding reaches.
const Never Threshold = "none"

// severities are all severities, the worst first.
var severities = []rules.Severity{rules.Critical, rules.High, rules.Medium, rules.Low, rules.Info}

// Thresholds are all values of a threshold, the severest first.
func Thresholds() []string {
	var all []string
	for _, s := range severities {
		all = append(all, string(s))
	}
	return append(all, string(Never))
}

// reaches reports whether a severity is at or above the threshold.
func (t Threshold) reaches(s rules.Severity) bool {
	return t != Never && atLeast(s, rules.Severity(t))
}

// atLeast reports whether a severity is as bad as another, or worse.
func atLeast(s, as rules.Severity) bool {
	return slices.Index(severities, s) <= slices.Index(severities, as)
}

// Input is what a report is made of.
type Input struct {
	Version string
	Sources []string
	Profile rules.Profile
	FailOn  Threshold
	// Strict makes the exit code 3 when something that the verdict needs
	// could not be had.
	Strict bool
	// Only are the rules that were asked for by name, if any: then the
	// verdict needs these and nothing else.
	Only []string
	// TextsOnly is true where no machine was examined, live or recorded.
	TextsOnly bool
	// Severities are those of the rules.
	Severities map[string]rules.Severity
	Facts      *checks.Facts
	Verdict    rules.Verdict
	Advice     []remedies.Advice
	Withheld   []remedies.Withheld
	// Recheck is how gpudoctor was called.
	Recheck remedies.Recheck
	Timing  Timing
}

// New makes a report. The same input gives the same report.
func New(in Input) *Document {
	d := &Document{
		Schema:        Schema,
		Version:       in.Version,
		Sources:       list(in.Sources),
		Profile:       in.Profile,
		FailOn:        in.FailOn,
		Host:          newHost(in.Facts),
		Findings:      withOrigins(whole(in.Verdict.Findings), in.Facts),
		Advice:        wholeAdvice(in.Advice),
		Passed:        list(slices.Sorted(slices.Values(in.Verdict.Passed))),
		Skipped:       make([]rules.Skipped, 0, len(in.Verdict.Skipped)),
		NotApplicable: maps.Clone(in.Verdict.NotApplicable),
		Unknown:       list(in.Facts.Unknown),
		Timing:        in.Timing,
		Texts:         in.Facts.Texts,
		persistent:    persistent(in.Facts.GPUs),
		textsOnly:     in.TextsOnly,
		runs:          runsBy(in.Facts),
		recheck:       in.Recheck,
		Withheld:      in.Withheld,
	}
	for _, s := range in.Verdict.Skipped {
		s.Missing = list(s.Missing)
		d.Skipped = append(d.Skipped, s)
	}
	if in.Facts.Transfers != nil {
		t := *in.Facts.Transfers
		t.Devices, t.Peers, t.Transfers = list(t.Devices), list(t.Peers), list(t.Transfers)
		d.Transfers = &t
	}
	slices.SortFunc(d.Skipped, func(a, b rules.Skipped) int { return cmp.Compare(a.Rule, b.Rule) })
	if d.NotApplicable == nil {
		d.NotApplicable = map[string]string{}
	}
	if d.Timing.ChecksMS == nil {
		d.Timing.ChecksMS = map[string]float64{}
	}
	if d.textsOnly {
		d.Wanted = d.wanted(in.Severities, in.Facts)
		d.Host.parts = ofTexts(d)
		d.Host.Summary = strings.Join(d.Host.parts, ", ")
	}
	d.Verdict = d.judge(in)
	return d
}

// list makes a nil list an empty one, so that it stands as [] in JSON.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// looked reports whether anything was read that would show a GPU.
func looked(f *checks.Facts) bool { return f.PCI != nil || f.GPUs != nil || f.Transfers != nil }

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

// judge sums the report up.
func (d *Document) judge(in Input) Verdict {
	v := Verdict{Counts: count(d.Findings)}
	v.Missing, v.short = d.missing(in)
	switch {
	case v.Counts.Critical+v.Counts.High+v.Counts.Medium > 0:
		v.State = Findings
	case d.textsOnly:
		v.State = Inconclusive
		v.unread = !slices.ContainsFunc(in.Facts.Texts, func(t checks.Text) bool { return len(t.Kinds) > 0 })
	case d.Profile == rules.Training && len(d.Host.GPUs) == 0 && looked(in.Facts) && d.unseen() == "":
		v.State = NoGPU
	case len(v.Missing) > 0:
		v.State = Unproven
	default:
		v.State = Healthy
	}
	reaching := 0
	for _, f := range d.Findings {
		if d.FailOn.reaches(worst(f)) {
			reaching++
		}
	}
	switch {
	case v.unread:
		v.ExitCode, v.Reason = 2, "nothing in what was sent was recognised"
	case reaching > 0:
		v.ExitCode = 1
		v.Reason = fmt.Sprintf("%s at or above %s", plural(reaching, "finding"), d.FailOn)
	case in.Strict && len(v.Missing) > 0:
		v.ExitCode = 3
		v.Reason = "--strict, and not judged: " + strings.Join(v.short, "; ")
	case len(d.Findings) > 0 && d.FailOn != Never:
		v.Reason = fmt.Sprintf("no finding at or above %s", d.FailOn)
	case len(d.Findings) > 0:
		v.Reason = "--fail-on none"
	default:
		v.Reason = "no finding"
	}
	return v
}

// count counts findings by severity.
func count(findings []rules.Finding) Counts {
	var c Counts
	for _, f := range findings {
		switch f.Severity {
		case rules.Critical:
			c.Critical++
		case rules.High:
			c.High++
		case rules.Medium:
			c.Medium++
		case rules.Low:
			c.Low++
		default:
			c.Info++
		}
	}
	return c
}

// missing lists what the verdict needs and could not be had: the rules that
// were asked for by name, or else the sections that the profile rests on and,
// between several GPUs, transfers that were really made. short leaves out why
// paths were not tried.
func (d *Document) missing(in Input) (missing, short []string) {
	missing = []string{}
	if d.textsOnly && len(in.Only) == 0 {
		missing = append(missing, "the machine (texts of it were examined)")
		return missing, missing
	}
	if len(in.Only) > 0 {
		for _, s := range d.Skipped {
			if slices.Contains(in.Only, s.Rule) {
				missing = append(missing, s.Rule+" ("+reasonOf(s)+")")
			}
		}
		return missing, missing
	}
	missing = append(missing, d.missingSections(in.Facts)...)
	short = missing
	why, open := d.missingTransfers(in.Facts)
	if why == "" {
		return missing, short
	}
	short = append(slices.Clone(missing), "transfers ("+why+")")
	if len(open) > 0 {
		why += ": " + gapsInWords(open)
	}
	return append(missing, "transfers ("+why+")"), short
}

// missingSections lists the sections that the profile rests on and that could
// not be read, those with the same reason together.
func (d *Document) missingSections(f *checks.Facts) []string {
	needed := map[string]bool{"env": f.Env == nil, "libraries": f.Libraries == nil}
	if d.Profile == rules.Training {
		needed = map[string]bool{
			"pci": f.PCI == nil, "gpus": f.GPUs == nil, "links": f.Links == nil,
			"container": f.Container == nil, "env": f.Env == nil,
		}
	}
	var why, missing []string
	sections := map[string][]string{} // By the reason why they are missing.
	for _, section := range slices.Sorted(maps.Keys(needed)) {
		if needed[section] {
			reason := d.whyUnknown(section)
			if sections[reason] == nil {
				why = append(why, reason)
			}
			sections[reason] = append(sections[reason], section)
		}
	}
	for _, reason := range why {
		missing = append(missing, strings.Join(sections[reason], ", ")+" ("+reason+")")
	}
	return missing
}

// missingTransfers says what is missing of the transfers; open are the reasons
// why some paths were not tried. It is empty where nothing is missing.
func (d *Document) missingTransfers(f *checks.Facts) (why string, open []gap) {
	if d.Profile != rules.Training {
		return "", nil
	}
	all := newPaths(d)
	switch t := d.Transfers; {
	case len(d.Host.GPUs) == 0 && looked(f):
		return cmp.Or(d.unseen(), "no GPU was found"), nil
	case len(d.Host.GPUs) < 2:
		return "", nil
	case t == nil:
		return d.whyUnknown("transfers"), nil
	case t.Outcome == probe.Unknown || t.Outcome == probe.Unsupported:
		return cmp.Or(t.Reason, "the probe could not run"), nil
	case len(d.Findings) == 0 && (t.Outcome != probe.OK || all.wrong()):
		// Its rule was left out, or the user's policy took its place.
		return "they fail, and no rule that was judged says so", nil
	}
	untried := all.with(probe.Unknown)
	if len(untried) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%d of %s could not be tried", len(untried), plural(len(all), "peer path")), gaps(d, untried)
}

// unseen says why there may be GPUs although none is seen: a library failed
// that has something to answer.
func (d *Document) unseen() string {
	for _, u := range d.Unknown {
		if u.Section == "gpus" && u.Fact == "devices" {
			return u.Reason
		}
	}
	return ""
}

// whyUnknown gives the reason that the facts state for the lack of a section.
func (d *Document) whyUnknown(section string) string {
	for _, u := range d.Unknown {
		if u.Section == section && u.Fact == "" {
			return u.Reason
		}
	}
	return "the facts do not hold them"
}

// plural counts a thing in words: "one finding", "2 findings".
func plural(n int, thing string) string {
	if n == 1 {
		return "one " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
