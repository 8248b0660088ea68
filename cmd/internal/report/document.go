package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
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
	Schema  string `json:"schema" jsonschema:"enum=gpudoctor.report/v1"` // Always "gpudoctor.report/v1".
	Version string `json:"version"`                                      // The version of gpudoctor.
	// RulesDigest names the built-in rules, tables, messages and remedies: it differs where any of them differs.
	RulesDigest Digest `json:"rules_digest,omitempty"`
	// Sources are what was examined: "this machine", or the files that were given.
	Sources []string `json:"sources"`
	// Settings are the flags set in configuration files; absent if there are none.
	Settings []settings.Setting `json:"settings,omitempty"`
	Profile  rules.Profile      `json:"profile"` // The profile that the machine was judged for.
	FailOn   Threshold          `json:"fail_on"` // The lowest severity that makes the exit code 1.
	Host     Host               `json:"host"`    // A summary of the machine.
	// Traits are the versions, firmware and settings by which gpudoctor fleet compares this machine with
	// others, by name; what is not known is left out.
	Traits  map[string]string `json:"traits,omitempty"`
	Verdict Verdict           `json:"verdict"` // The result of the report in one object.
	// Areas give the state of each area of the machine, one line each.
	Areas []area.Line `json:"areas,omitempty"`
	// Objects are the parts of files that were judged by themselves, the worst first; absent for a machine.
	Objects []JudgedObject `json:"objects,omitempty"`
	// Findings are the faults, most severe first; the consequences of a finding are listed in its explains.
	Findings []rules.Finding `json:"findings"`
	// Waived are the findings that a waiver accepts for a time, most severe first. They do not count for the exit code.
	Waived []waivers.Waived `json:"waived,omitempty"`
	// UnusedWaivers are the waivers that match no finding of the rules that were judged.
	UnusedWaivers []waivers.Waiver  `json:"unused_waivers,omitempty"`
	Advice        []remedies.Advice `json:"advice"` // The remedies, best first.
	// Withheld is what the findings name and need not or must not be done here: what is already in effect, and what
	// would take away a setting that another finding needs.
	Withheld []remedies.Withheld `json:"withheld,omitempty"`
	Passed   []string            `json:"passed"`  // The rules that found nothing wrong.
	Skipped  []Skipped           `json:"skipped"` // The rules that could not be judged.
	// NotApplicable are the rules that have nothing to judge here, each with the reason.
	NotApplicable map[string]string `json:"not_applicable"`
	// Unknown lists the facts that could not be read.
	Unknown   []facts.Unknown `json:"unknown"`
	Transfers *probe.Report   `json:"transfers,omitempty"` // What the probe measured; absent when none was run.
	// Collectives is what collectives of NCCL or RCCL did; absent when none were run.
	Collectives *probe.Collectives `json:"collectives,omitempty"`
	// Job is what became of the processes of a job that failed, as logs tell.
	Job *facts.Job `json:"job,omitempty"`
	// Baseline is what became of the findings of an earlier report; absent unless one was given.
	Baseline *Baseline    `json:"baseline,omitempty"`
	Texts    []facts.Text `json:"texts,omitempty"` // The texts that were examined, and what each was taken for.
	// Wanted are the texts that would decide what could not be judged, most useful
	// first; absent if a machine was examined.
	Wanted []Wanted `json:"wanted,omitempty"`
	// Redacted says what was replaced by stand-ins: "names" for names of hosts, users, jobs and images, addresses,
	// serial numbers and secrets, "secrets" for only secrets; absent if nothing was replaced.
	Redacted Redaction `json:"redacted,omitempty"`
	Timing   Timing    `json:"timing"` // How long the run took. It differs from run to run.

	in    Input               // What it was made of.
	shown func() *facts.Facts // The facts, as far as this report may show them.
	runs  string              // How the job is started, as apply.Instructions names it.
}

// Facts are what the report was made of; nil where it was read from a file.
func (d *Document) Facts() *facts.Facts { return d.in.Facts }

// AddTraits adds the traits, which only the JSON document has.
func (d *Document) AddTraits() { d.Traits = rules.Traits(d.in.Facts) }

// TextsOnly is true where no machine was examined, live or recorded.
func (d *Document) TextsOnly() bool { return d.in.TextsOnly }

// Digest is the beginning of a SHA-256 sum, in hexadecimal digits.
type Digest string

// Skipped is a rule that could not be judged.
type Skipped struct {
	Rule string `json:"rule"`
	// Missing says what the rule lacked, one line for each of lacks.
	Missing []string `json:"missing"`
	// Lacks is what it lacked: the path of each fact, why the fact is not known, and what the rule says of it.
	Lacks []rules.Missing `json:"lacks,omitempty"`
	Fault bool            `json:"fault,omitempty"` // True where the rule itself is at fault.
}

func skippedOf(skipped []rules.Skipped) []Skipped {
	all := lines.Map(skipped, func(s rules.Skipped) Skipped {
		return Skipped{Rule: s.Rule, Missing: lines.Map(s.Missing, rules.Missing.String), Lacks: s.Missing, Fault: s.Fault}
	})
	slices.SortStableFunc(all, func(a, b Skipped) int { return cmp.Compare(a.Rule, b.Rule) })
	return all
}

// Host is a summary of the machine.
type Host struct {
	// Summary describes the machine in one line, most important first: the GPUs,
	// how they are connected, the driver, and the platform.
	Summary  string `json:"summary"`
	Hostname string `json:"hostname,omitempty"` // The host name of the machine.
	// Kernel, Arch and Distribution describe the operating system.
	Kernel         string `json:"kernel,omitempty"`
	Arch           string `json:"arch,omitempty"`
	Distribution   string `json:"distribution,omitempty"`
	Virtualization string `json:"virtualization,omitempty"` // The hypervisor that the machine runs on, or "none".
	// Container is the container runtime around the process, "none", or empty when that is not known.
	Container string `json:"container,omitempty"`
	CPU       string `json:"cpu,omitempty"` // The processor's model.
	// Driver is the GPU driver's version, CUDA the newest CUDA version it supports.
	Driver string `json:"driver,omitempty"`
	CUDA   string `json:"cuda,omitempty"`
	GPUs   []GPU  `json:"gpus"` // The machine's GPUs, ordered by PCI address.

	parts  []string // Of Summary.
	looked bool     // Something was read that would show each GPU.
}

// GPU is a summary of one GPU.
type GPU struct {
	Address     string `json:"address"`                // Its PCI address.
	Index       *int   `json:"index,omitempty"`        // The GPU's number in the management library.
	Name        string `json:"name,omitempty"`         // The model.
	MemoryBytes int64  `json:"memory_bytes,omitempty"` // Its memory.
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
	TotalMS float64 `json:"total_ms"` // The total time, from reading to ranking.
	// RulesMS is the time of judging, RemediesMS that of ranking.
	RulesMS    float64            `json:"rules_ms"`
	RemediesMS float64            `json:"remedies_ms"`
	ChecksMS   map[string]float64 `json:"checks_ms"` // The time of each check; checks run concurrently.
}

// Milliseconds is a duration as Timing holds it, rounded to a microsecond.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Threshold is the lowest severity that makes the exit code 1, or "none".
type Threshold string

// Never is a threshold that no finding reaches.
const Never Threshold = "none"

var severities = []rules.Severity{rules.Critical, rules.High, rules.Medium, rules.Low, rules.Info}

// Thresholds are all values of a threshold, most severe first.
func Thresholds() []string {
	return append(lines.Map(severities, func(s rules.Severity) string { return string(s) }), string(Never))
}

func (t Threshold) reaches(s rules.Severity) bool { return t != Never && atLeast(s, rules.Severity(t)) }

func atLeast(s, as rules.Severity) bool {
	return slices.Index(severities, s) <= slices.Index(severities, as)
}

// Input is what a report is made from.
type Input struct {
	Version     string
	RulesDigest Digest
	Sources     []string
	Profile     rules.Profile
	FailOn      Threshold
	Strict      bool     // The exit code is 3 if something that the verdict needs was not available.
	Only        []string // The rules that were asked for by name, if any: then the verdict needs these and nothing else.
	Probed      bool     // The probe was requested in this run.
	TextsOnly   bool     // No machine was examined, live or recorded.
	// Folder is what the names of the texts are relative to, if one folder was given.
	Folder   string
	Rules    []rules.Rule
	Settings []settings.Setting
	Facts    *facts.Facts
	// Verdict is what the rules say, and Waiving what waivers make of it, if there are any.
	Verdict  rules.Result
	Waiving  *waivers.Result
	Advice   []remedies.Advice
	Withheld []remedies.Withheld
	Parts    []Part // Of files, that were judged by themselves.
	Recheck  remedies.Recheck
	Timing   Timing
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
		Sources:       in.Sources,
		Profile:       in.Profile,
		FailOn:        in.FailOn,
		Host:          newHost(in.Facts),
		Findings:      fillOrigins(findings, in.Facts),
		Advice:        in.Advice,
		Passed:        slices.Sorted(slices.Values(in.Verdict.Passed)),
		Skipped:       skippedOf(in.Verdict.Skipped),
		NotApplicable: in.Verdict.NotApplicable,
		Unknown:       in.Facts.Unknown,
		Transfers:     in.Facts.Transfers,
		Collectives:   in.Facts.Collectives,
		Timing:        in.Timing,
		Texts:         in.Facts.Texts,
		Withheld:      in.Withheld,
		in:            in,
		shown:         func() *facts.Facts { return in.Facts },
		runs:          apply.RunsBy(in.Facts),
	}
	if in.Waiving != nil {
		for _, w := range in.Waiving.Waived {
			w.Finding = fillOrigins([]rules.Finding{w.Finding}, in.Facts)[0]
			d.Waived = append(d.Waived, w)
		}
		d.UnusedWaivers = slices.Clone(in.Waiving.Unused)
	}
	if j := job.Of(in.Facts); j != nil && len(j.Members) > 0 {
		d.Job = j
	}
	if d.in.TextsOnly {
		d.Wanted = d.wanted()
		if len(d.Host.GPUs) == 0 {
			d.Host.parts = d.Host.parts[1:] // That no GPU was seen says nothing.
		}
		d.Host.parts = append(slices.Clone(d.Host.parts), "from "+lines.Count(len(d.Texts), "text"))
		d.Host.Summary = strings.Join(d.Host.parts, ", ")
	}
	lacks := rules.Lacking(d.Profile, in.Facts)
	d.Verdict = d.judge(lacks)
	if d.addObjects(); len(d.Objects) > 0 {
		return d // The areas are those of a machine.
	}
	d.Areas = area.Lines(area.Input{
		Facts: in.Facts, Rules: in.Rules, Profile: d.Profile, Verdict: in.Verdict, TextsOnly: d.in.TextsOnly, Paths: d.peerPaths(), Unseen: d.unseenGPUs(lacks),
	})
	return d
}

// looked reports whether something was read that would show each GPU, of any vendor.
func looked(f *facts.Facts) bool {
	return f.GPUs != nil && f.GPUs.Devices != nil || f.GPUs == nil && f.PCI != nil
}

func count(findings []rules.Finding) Counts {
	n := map[rules.Severity]int{}
	for _, f := range findings {
		n[f.Severity]++
	}
	return Counts{n[rules.Critical], n[rules.High], n[rules.Medium], n[rules.Low], n[rules.Info]}
}

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

// Redaction says what in a report stand-ins took the place of.
type Redaction string

// What stand-ins may take the place of.
const (
	// RedactedNames are names of hosts, users, jobs and images, addresses, serial numbers and secrets.
	RedactedNames Redaction = "names"
	// RedactedSecrets are secrets only.
	RedactedSecrets Redaction = "secrets"
)

// Redact returns a copy of the report with the stand-ins that the facts have when they are redacted by themselves.
func (d *Document) Redact() *Document {
	r := host.NewRedactor()
	redacted := host.Redact(r, d.shown())
	return d.redact(r, RedactedNames, func() *facts.Facts { return redacted })
}

// WithoutSecrets returns a copy of the report that shows names, and no secrets.
func (d *Document) WithoutSecrets() *Document {
	r := host.NewSecretsRedactor()
	return d.redact(r, RedactedSecrets, func() *facts.Facts { return host.Redact(r, d.shown()) })
}

func (d *Document) redact(r *host.Redactor, what Redaction, redacted func() *facts.Facts) *Document {
	out := host.Redact(r, d)
	out.Redacted = what
	// What is no field of the JSON document.
	out.shown = redacted
	out.Host.parts = host.Redact(r, d.Host.parts)
	out.in = Input{
		Facts: d.in.Facts, Rules: d.in.Rules, TextsOnly: d.in.TextsOnly, Probed: d.in.Probed,
		Only: host.Redact(r, d.in.Only), Recheck: host.Redact(r, d.in.Recheck), Folder: host.Redact(r, d.in.Folder),
	}
	out.runs = host.Redact(r, d.runs)
	for i, o := range d.Objects {
		out.Objects[i].runs = host.Redact(r, o.runs)
	}
	return out
}

// RedactedNote says so to a person who has the report from another.
func (d *Document) RedactedNote() string {
	if d.Redacted != RedactedNames {
		return ""
	}
	return "Names, addresses and secrets are replaced by stand-ins; --no-redact keeps them."
}
