// Package area sums a report up in one line for each part of the machine.
package area

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// State says how an area is.
type State string

// The states.
const (
	OK            State = "ok"             // Its facts were read, and every rule that applies passed.
	Note          State = "note"           // The same, but for findings below medium severity.
	Problem       State = "problem"        // A finding of medium severity or above, or a transfer that failed or was slow.
	Unknown       State = "unknown"        // Its facts were not read, or a rule was not judged.
	NotApplicable State = "not-applicable" // There is nothing to judge.
)

// Short is the state in a narrow column.
func (s State) Short() string {
	if s == NotApplicable {
		return "n/a"
	}
	return string(s)
}

// Line is an area of the report.
type Line struct {
	Name rules.Area `json:"name"` // The area.
	// State says how it is.
	State State `json:"state"`
	// Summary holds the facts that tell, what was found, or why it is unknown.
	Summary string `json:"summary"`
	// Rules are the rules that gave the state: those with findings, or those that were not judged.
	Rules []string `json:"rules,omitempty"`
}

// Input is what the lines are made of.
type Input struct {
	Facts     *facts.Facts
	Rules     []rules.Rule
	Profile   rules.Profile
	Verdict   rules.Result
	TextsOnly bool // True where no machine was examined.
	Paths     Line // What became of the transfers between GPUs; its name is not read.
	// Unseen says why there may be GPUs although none is seen; empty where that is known.
	Unseen string
}

// Lines gives a line for each area that has rules.
func Lines(in Input) []Line {
	var all []Line
	for _, area := range rules.Areas() {
		if j := judge(in, area); area != rules.AreaPolicy || len(j.all) > 0 {
			all = append(all, j.line(in, area))
		}
	}
	return all
}

// finding is a finding and the rule of the cause under which it stands, if it does.
type finding struct {
	rules.Finding
	cause string
}

type judgement struct {
	all, found, skipped, left []string
	passed                    bool
	findings                  []finding
	lacks                     []rules.Missing
	notApplicable             []string // The reasons.
}

func judge(in Input, area rules.Area) judgement {
	var j judgement
	for _, rule := range in.Rules {
		if !slices.Contains(rule.Areas, area) {
			continue
		}
		j.all = append(j.all, rule.ID)
		findings := findingsOf(rule.ID, in.Verdict.Findings, "")
		elsewhere := len(findings) > 0
		findings = slices.DeleteFunc(findings, func(f finding) bool { return !concerns(f.Finding, rule.Areas, area) })
		if len(findings) > 0 {
			j.found = append(j.found, rule.ID)
			j.findings = append(j.findings, findings...)
		}
		why, notApplicable := in.Verdict.NotApplicable[rule.ID]
		switch i := slices.IndexFunc(in.Verdict.Skipped, func(s rules.Skipped) bool { return s.Rule == rule.ID }); {
		case i >= 0: // A skipped rule may also have findings.
			j.skipped = append(j.skipped, rule.ID)
			j.lacks = append(j.lacks, in.Verdict.Skipped[i].Missing[:min(1, len(in.Verdict.Skipped[i].Missing))]...)
		case len(findings) > 0:
		case notApplicable:
			j.notApplicable = append(j.notApplicable, why)
		case elsewhere, slices.Contains(in.Verdict.Passed, rule.ID):
			j.passed = true
		case len(rule.Profiles) > 0 && !slices.Contains(rule.Profiles, in.Profile):
			j.notApplicable = append(j.notApplicable, "not part of the profile "+string(in.Profile))
		case rule.LastResort && in.Facts.Logs == nil: // What it guesses from the probe's own log gives way to a cause.
			j.notApplicable = append(j.notApplicable, "no log was given")
		default:
			j.left = append(j.left, rule.ID)
		}
	}
	return j
}

// findingsOf lists the findings of a rule among some that stand under a cause.
func findingsOf(rule string, findings []rules.Finding, cause string) []finding {
	var all []finding
	for _, f := range findings {
		if f.Rule == rule {
			all = append(all, finding{f, cause})
		}
		all = append(all, findingsOf(rule, f.Explains, f.Rule)...)
	}
	return all
}

// concerns reports whether a finding is about an area of its rule: the first, or one that its evidence is from.
func concerns(f rules.Finding, own []rules.Area, area rules.Area) bool {
	return area == own[0] || slices.ContainsFunc(f.Evidence, func(e rules.Evidence) bool {
		section := areas[area].section
		return e.Fact == section || strings.HasPrefix(e.Fact, section+".")
	})
}

// line says how an area is, and why.
func (j judgement) line(in Input, area rules.Area) Line {
	l := Line{Name: area}
	grave := slices.ContainsFunc(j.findings, func(f finding) bool { return f.Severity.Rank() <= rules.Medium.Rank() })
	unread, nothing := unread(in, area)
	paths := in.Paths
	if area != rules.AreaPaths || in.TextsOnly {
		paths = Line{}
	}
	switch {
	case paths.State == Problem:
		l.State, l.Rules = Problem, j.found
	case grave:
		l.State, l.Summary, l.Rules = Problem, j.titles(), j.found
	case nothing != "" && len(j.found)+len(j.skipped)+len(j.left) == 0:
		l.State, l.Summary = NotApplicable, nothing
	case paths.State == Unknown:
		l.State, l.Rules = Unknown, j.skipped
	case len(j.all) > 0 && len(j.left) == len(j.all):
		l.State, l.Summary = Unknown, "excluded by --only or --skip"
	case unread != "":
		l.State, l.Summary, l.Rules = Unknown, unread, j.skipped
	case len(j.skipped) > 0:
		l.State, l.Summary, l.Rules = Unknown, cmp.Or(several(lines.Map(j.lacks, rules.Missing.Short)), "not judged"), j.skipped
	case len(j.left) > 0:
		l.State, l.Summary, l.Rules = Unknown, lines.Count(len(j.left), "rule")+" excluded by --only or --skip", j.left
	case len(j.found) > 0:
		l.State, l.Summary, l.Rules = Note, j.titles(), j.found
	case paths.State == Note:
		l.State = Note
	case paths.State == OK && j.passed:
		l.State = OK
	case j.passed:
		l.State, l.Summary = OK, summary(in.Facts, area)+inPart(in.Facts, area)
	default:
		l.State, l.Summary = NotApplicable, several(j.notApplicable)
	}
	if paths.Summary != "" && l.State != NotApplicable {
		l.Summary = strings.TrimSuffix(paths.Summary+"; "+l.Summary, "; ")
	}
	return l
}

// areas are, of each area that rests on a section of the facts, the section, whether it is known, and what it says where all is well.
var areas = map[rules.Area]struct {
	section string
	known   func(f *facts.Facts) bool
	summary func(f *facts.Facts) string
}{
	rules.AreaGPUs:      {"gpus", func(f *facts.Facts) bool { return f.GPUs != nil }, gpuSummary},
	rules.AreaPCIe:      {"pci", func(f *facts.Facts) bool { return f.PCI != nil }, pcieSummary},
	rules.AreaIOMMU:     {"iommu", func(f *facts.Facts) bool { return f.IOMMU != nil }, iommuSummary},
	rules.AreaNUMA:      {"numa", func(f *facts.Facts) bool { return f.NUMA != nil }, numaSummary},
	rules.AreaContainer: {"container", func(f *facts.Facts) bool { return f.Container != nil }, containerSummary},
	rules.AreaLibraries: {"libraries", func(f *facts.Facts) bool { return f.Libraries != nil }, librarySummary},
	rules.AreaEnvironment: {"env", func(f *facts.Facts) bool {
		return f.Env != nil && (f.Image == nil || f.Image.Environment != "")
	}, environmentSummary},
	rules.AreaNetwork: {"nics", func(f *facts.Facts) bool { return f.NICs != nil }, networkSummary},
	rules.AreaStorage: {"storage", func(f *facts.Facts) bool { return f.Storage != nil }, func(f *facts.Facts) string {
		return lines.Count(len(f.Storage.Drives), "NVMe drive")
	}},
	rules.AreaKernelLog: {"kernel_log", func(f *facts.Facts) bool { return f.KernelLog != nil }, kernelLogSummary},
	rules.AreaJob: {"", func(f *facts.Facts) bool { return f.Logs != nil }, func(*facts.Facts) string {
		return "the logs report no failure"
	}},
}

// unread says why the facts of an area are not known, or that they are known and hold
// nothing to judge; both are empty where they are known and hold something.
func unread(in Input, area rules.Area) (why, nothing string) {
	f := in.Facts
	known := area == rules.AreaPolicy
	if area == rules.AreaPaths {
		known = !in.TextsOnly && f.Image == nil || f.Transfers != nil || f.Links != nil || f.Benchmarks != nil
	} else if of := areas[area].known; of != nil {
		known = of(f)
	}
	switch {
	case area == rules.AreaGPUs && in.Unseen != "":
		return in.Unseen, ""
	case known:
		return "", ""
	case f.Image != nil && area != rules.AreaLibraries && area != rules.AreaEnvironment:
		return "", "not part of an image"
	case area == rules.AreaPaths:
		return "not in the input", ""
	case area == rules.AreaJob && len(f.Texts) == 0:
		return "no log was given", "no log was given"
	case area == rules.AreaNetwork && (noRDMA(f.Container) || f.PCI != nil && !f.PCI.Partial && nics(f.PCI) == 0):
		return "", "no RDMA device is available"
	}
	ofAll := func(u facts.Unknown) bool { return u.Section == areas[area].section && u.Fact == "" }
	if i := slices.IndexFunc(f.Unknown, ofAll); i >= 0 {
		return f.Unknown[i].Reason, ""
	}
	switch {
	case in.TextsOnly || area == rules.AreaJob:
		return "not in the input", ""
	case area == rules.AreaNetwork && nics(f.PCI) > 0:
		return lines.Count(nics(f.PCI), "NIC") + "; ports not examined (add the output of ibv_devinfo: --with FILE)", ""
	}
	return "not read", ""
}

// titles are what the findings are called, the worst first. Where all are consequences, it names their causes.
func (j judgement) titles() string {
	slices.SortStableFunc(j.findings, func(a, b finding) int { return a.Compare(b.Finding) })
	var all, causes []string
	for _, f := range j.findings {
		name, isVariable := f.Params["variable"].(string)
		switch {
		case f.cause != "":
			causes = append(causes, "a consequence of "+f.cause)
		case isVariable:
			all = append(all, name)
		default:
			all = append(all, f.Title)
		}
	}
	if len(all) == 0 {
		all = causes
	}
	return several(all)
}

// inPart says what of an area is not known although no rule lacked it.
func inPart(f *facts.Facts, area rules.Area) string {
	unknown := lines.Filter(f.Unknown, func(u facts.Unknown) bool { return u.Section == areas[area].section })
	if len(unknown) == 0 {
		return ""
	}
	return "; partly unknown: " + several(lines.Map(unknown, func(u facts.Unknown) string { return u.Reason }))
}

func several(texts []string) string { return lines.First(lines.Unique(texts), 2, "; ") }

func summary(f *facts.Facts, area rules.Area) string {
	if of := areas[area].summary; of != nil {
		return of(f)
	}
	return "all rules passed"
}

func gpuSummary(f *facts.Facts) string {
	devices := f.GPUs.Devices
	links := slices.Concat(lines.Map(devices, func(d facts.GPU) []facts.NVLink { return d.NVLinks })...)
	ecc, nvlinks := "", ""
	if on := len(lines.Filter(devices, func(d facts.GPU) bool { return d.ECC != nil && d.ECC.Enabled })); on > 0 {
		ecc = fmt.Sprintf("ECC on for %d", on)
	}
	if len(links) > 0 {
		nvlinks = fmt.Sprintf("%d of %d NVLinks up", len(lines.Filter(links, func(l facts.NVLink) bool { return l.Active })), len(links))
	}
	return lines.Joined(", ", lines.Count(len(devices), "GPU"), ecc, nvlinks)
}

// pcieSummary says how fast the links of the GPUs are at their best: one at rest is slower.
func pcieSummary(f *facts.Facts) string {
	type link struct{ generation, width int }
	var links []link
	for _, d := range f.PCI.Devices {
		if d.Kind == "gpu" && d.Link != nil {
			links = append(links, link{data.PCIeGeneration(d.Link.MaxSpeedGTs), d.Link.MaxWidth})
		}
	}
	if links = lines.Filter(links, func(l link) bool { return l.generation > 0 && l.width > 0 }); len(links) == 0 {
		return lines.Count(len(f.PCI.Devices), "device")
	}
	slices.SortStableFunc(links, func(a, b link) int { return cmp.Compare(a.generation*a.width, b.generation*b.width) })
	ends := lines.Map(slices.Compact([]link{links[0], links[len(links)-1]}), func(l link) string { return fmt.Sprintf("%d.0 x%d", l.generation, l.width) })
	return lines.Count(len(links), "GPU") + " at " + strings.Join(ends, " to ")
}

func iommuSummary(f *facts.Facts) string {
	switch mode := cmp.Or(f.IOMMU.Mode, f.IOMMU.DefaultDomain); mode {
	case "":
		return lines.Count(len(f.IOMMU.Groups), "group")
	case "off":
		return "off"
	case "passthrough":
		return "pass-through mode"
	default:
		return mode + " mode"
	}
}

func numaSummary(f *facts.Facts) string {
	said := lines.Count(len(f.NUMA.Nodes), "node")
	if b := f.NUMA.Balancing; b != nil {
		said += ", automatic balancing " + map[bool]string{true: "off", false: "on"}[*b == 0]
	}
	return said
}

func containerSummary(f *facts.Facts) string {
	c, place, shm, limit := f.Container, "", "", ""
	if c.Inside != nil {
		place = map[bool]string{true: strings.TrimSpace(c.Runtime + " container"), false: "not in a container"}[*c.Inside]
	}
	if c.SHM != nil && c.SHM.SizeBytes > 0 {
		shm = "/dev/shm " + humanize.IBytes(uint64(c.SHM.SizeBytes))
	}
	if m := c.MemlockSoftBytes; m != nil {
		limit = "locked memory unlimited"
		if *m >= 0 {
			limit = "locked memory " + humanize.IBytes(uint64(*m))
		}
	}
	return lines.Joined(", ", place, shm, limit)
}

func librarySummary(f *facts.Facts) string {
	names := map[string]string{"libnccl": "NCCL", "librccl": "RCCL", "libcudart": "CUDA runtime"}
	var parts []string
	for _, kind := range []string{"libnccl", "librccl", "libcudart"} {
		copies := lines.Filter(f.Libraries.Files, func(file facts.Library) bool { return file.Kind == kind && file.Version != "" })
		if len(copies) > 0 {
			versions := lines.Map(copies, func(file facts.Library) string { return file.Version })
			parts = append(parts, names[kind]+" "+strings.Join(lines.Unique(versions), " and "))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), lines.Count(len(f.Libraries.Files), "file")+", neither NCCL nor RCCL among them")
}

func environmentSummary(f *facts.Facts) string {
	set := lines.Filter(f.Env.Variables, func(v facts.Variable) bool { return v.Effective })
	if len(set) == 0 {
		return "no communication variables set"
	}
	return "set: " + lines.First(lines.Unique(lines.Map(set, func(v facts.Variable) string { return v.Name })), 3, ", ")
}

func networkSummary(f *facts.Facts) string {
	if len(f.NICs.RDMA) == 0 {
		return lines.Count(len(f.NICs.Interfaces), "interface")
	}
	active := lines.Filter(f.NICs.RDMA, func(p facts.RDMAPort) bool { return p.State == "active" })
	return fmt.Sprintf("%d of %s active", len(active), lines.Count(len(f.NICs.RDMA), "RDMA port"))
}

func kernelLogSummary(f *facts.Facts) string {
	n := 0
	for _, e := range f.KernelLog.Events {
		n += max(1, e.Count)
	}
	if n == 0 {
		return "no GPU or PCIe events"
	}
	return lines.Count(n, "GPU or PCIe event") + ", no known faults"
}

// noRDMA reports whether it is known that no RDMA device is available.
func noRDMA(c *facts.ContainerFacts) bool {
	return c != nil && c.DeviceNodes != nil && !slices.ContainsFunc(c.DeviceNodes, func(n facts.DeviceNode) bool {
		return strings.HasPrefix(n.Path, "/dev/infiniband/uverbs")
	})
}

func nics(p *facts.PCIFacts) int {
	return len(lines.Filter(p.All(), func(d facts.PCIDevice) bool { return d.Kind == "nic" }))
}
