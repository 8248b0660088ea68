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
	// Name is the area.
	Name rules.Area `json:"name"`
	// State says how it is.
	State State `json:"state"`
	// Summary holds the facts that tell, what was found, or why it is unknown.
	Summary string `json:"summary"`
	// Rules are the rules that gave the state: those with findings, or those that were not
	// judged.
	Rules []string `json:"rules,omitempty"`
}

// Input is what the lines are made of.
type Input struct {
	Facts   *facts.Facts
	Rules   []rules.Rule
	Profile rules.Profile
	Verdict rules.Result
	// TextsOnly is true where no machine was examined.
	TextsOnly bool
	// Paths is what became of the transfers between GPUs; its name is not read.
	Paths Line
	// Unseen says why there may be GPUs although none is seen; empty where that is known.
	Unseen string
}

// Lines gives a line for each area that has rules.
func Lines(in Input) []Line {
	var lines []Line
	for _, area := range rules.Areas() {
		j := judge(in, area)
		if area == rules.AreaPolicy && len(j.all) == 0 {
			continue
		}
		lines = append(lines, j.line(in, area))
	}
	return lines
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
func concerns(f rules.Finding, areas []rules.Area, area rules.Area) bool {
	return area == areas[0] || slices.ContainsFunc(f.Evidence, func(e rules.Evidence) bool {
		return e.Fact == section[area] || strings.HasPrefix(e.Fact, section[area]+".")
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

// section is the section of the facts that an area rests on, as far as it is one.
var section = map[rules.Area]string{
	rules.AreaGPUs: "gpus", rules.AreaPCIe: "pci", rules.AreaIOMMU: "iommu", rules.AreaNUMA: "numa", rules.AreaContainer: "container",
	rules.AreaLibraries: "libraries", rules.AreaEnvironment: "env", rules.AreaNetwork: "nics", rules.AreaStorage: "storage", rules.AreaKernelLog: "kernel_log",
}

// unread says why the facts of an area are not known, or that they are known and hold
// nothing to judge; both are empty where they are known and hold something.
func unread(in Input, area rules.Area) (why, nothing string) {
	f := in.Facts
	known := map[rules.Area]bool{
		rules.AreaGPUs: f.GPUs != nil, rules.AreaPaths: !in.TextsOnly && f.Image == nil || f.Transfers != nil || f.Links != nil || f.Benchmarks != nil,
		rules.AreaPCIe: f.PCI != nil, rules.AreaIOMMU: f.IOMMU != nil, rules.AreaNUMA: f.NUMA != nil, rules.AreaContainer: f.Container != nil,
		rules.AreaLibraries: f.Libraries != nil, rules.AreaEnvironment: f.Env != nil && (f.Image == nil || f.Image.Environment != ""), rules.AreaNetwork: f.NICs != nil, rules.AreaStorage: f.Storage != nil,
		rules.AreaKernelLog: f.KernelLog != nil, rules.AreaJob: f.Logs != nil, rules.AreaPolicy: true,
	}[area]
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
	for _, u := range f.Unknown {
		if u.Section == section[area] && u.Fact == "" {
			return u.Reason, ""
		}
	}
	switch {
	case in.TextsOnly || area == rules.AreaJob:
		return "not in the input", ""
	case area == rules.AreaNetwork && f.PCI != nil && nics(f.PCI) > 0:
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
	unknown := lines.Filter(f.Unknown, func(u facts.Unknown) bool { return u.Section == section[area] })
	if len(unknown) == 0 {
		return ""
	}
	return "; partly unknown: " + several(lines.Map(unknown, func(u facts.Unknown) string { return u.Reason }))
}

func several(texts []string) string { return lines.First(lines.Unique(texts), 2, "; ") }

func summary(f *facts.Facts, area rules.Area) string {
	switch area {
	case rules.AreaGPUs:
		return gpuSummary(f.GPUs)
	case rules.AreaPCIe:
		return pcieSummary(f)
	case rules.AreaIOMMU:
		return iommuSummary(f.IOMMU)
	case rules.AreaNUMA:
		return numaSummary(f.NUMA)
	case rules.AreaContainer:
		return containerSummary(f.Container)
	case rules.AreaLibraries:
		return librarySummary(f.Libraries)
	case rules.AreaEnvironment:
		return environmentSummary(f.Env)
	case rules.AreaNetwork:
		return networkSummary(f.NICs)
	case rules.AreaStorage:
		return storageSummary(f.Storage)
	case rules.AreaKernelLog:
		return kernelLogSummary(f.KernelLog)
	case rules.AreaJob:
		return "the logs report no failure"
	default:
		return "all rules passed"
	}
}

func gpuSummary(g *facts.GPUFacts) string {
	parts := []string{lines.Count(len(g.Devices), "GPU")}
	links, active := 0, 0
	for _, d := range g.Devices {
		links += len(d.NVLinks)
		active += len(lines.Filter(d.NVLinks, func(l facts.NVLink) bool { return l.Active }))
	}
	if on := len(lines.Filter(g.Devices, func(d facts.GPU) bool { return d.ECC != nil && d.ECC.Enabled })); on > 0 {
		parts = append(parts, fmt.Sprintf("ECC on for %d", on))
	}
	if links > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d NVLinks up", active, links))
	}
	return strings.Join(parts, ", ")
}

// generations are those of PCIe by their rate in GT/s (PCI Express Base Specification 6.0, section 4.2).
var generations = map[float64]int{2.5: 1, 5: 2, 8: 3, 16: 4, 32: 5, 64: 6}

// pcieSummary says how fast the links of the GPUs are at their best: one at rest is slower.
func pcieSummary(f *facts.Facts) string {
	type link struct{ generation, width int }
	var links []link
	for _, d := range f.PCI.Devices {
		if d.Kind == "gpu" && d.Link != nil && generations[d.Link.MaxSpeedGTs] > 0 && d.Link.MaxWidth > 0 {
			links = append(links, link{generations[d.Link.MaxSpeedGTs], d.Link.MaxWidth})
		}
	}
	if f.GPUs != nil && len(links) == 0 {
		for _, d := range f.GPUs.Devices {
			if d.PCIe != nil && d.PCIe.MaxGeneration > 0 && d.PCIe.MaxWidth > 0 {
				links = append(links, link{d.PCIe.MaxGeneration, d.PCIe.MaxWidth})
			}
		}
	}
	if len(links) == 0 {
		return lines.Count(len(f.PCI.Devices), "device")
	}
	slices.SortStableFunc(links, func(a, b link) int { return cmp.Compare(a.generation*a.width, b.generation*b.width) })
	first, last := links[0], links[len(links)-1]
	said := fmt.Sprintf("%s at %d.0 x%d", lines.Count(len(links), "GPU"), first.generation, first.width)
	if first != last {
		said += fmt.Sprintf(" to %d.0 x%d", last.generation, last.width)
	}
	return said
}

func iommuSummary(i *facts.IOMMUFacts) string {
	switch mode := cmp.Or(i.Mode, i.DefaultDomain); mode {
	case "":
		return lines.Count(len(i.Groups), "group")
	case "off":
		return "off"
	case "passthrough":
		return "pass-through mode"
	default:
		return mode + " mode"
	}
}

func numaSummary(n *facts.NUMAFacts) string {
	said := lines.Count(len(n.Nodes), "node")
	if n.Balancing != nil {
		said += map[bool]string{true: ", automatic balancing off", false: ", automatic balancing on"}[*n.Balancing == 0]
	}
	return said
}

func containerSummary(c *facts.ContainerFacts) string {
	var parts []string
	switch {
	case c.Inside == nil:
	case *c.Inside:
		parts = append(parts, strings.TrimSpace(c.Runtime+" container"))
	default:
		parts = append(parts, "not in a container")
	}
	if c.SHM != nil && c.SHM.SizeBytes > 0 {
		parts = append(parts, "/dev/shm "+humanize.IBytes(uint64(c.SHM.SizeBytes)))
	}
	if m := c.MemlockSoftBytes; m != nil {
		limit := "unlimited"
		if *m >= 0 {
			limit = humanize.IBytes(uint64(*m))
		}
		parts = append(parts, "locked memory "+limit)
	}
	return strings.Join(parts, ", ")
}

var libraries = []struct{ kind, name string }{
	{"libnccl", "NCCL"},
	{"librccl", "RCCL"},
	{"libcudart", "CUDA runtime"},
}

func librarySummary(l *facts.LibraryFacts) string {
	var parts []string
	for _, wanted := range libraries {
		copies := lines.Filter(l.Files, func(file facts.Library) bool { return file.Kind == wanted.kind && file.Version != "" })
		if len(copies) > 0 {
			versions := lines.Map(copies, func(file facts.Library) string { return file.Version })
			parts = append(parts, wanted.name+" "+strings.Join(lines.Unique(versions), " and "))
		}
	}
	if len(parts) == 0 {
		return lines.Count(len(l.Files), "file") + ", neither NCCL nor RCCL among them"
	}
	return strings.Join(parts, ", ")
}

func environmentSummary(e *facts.EnvFacts) string {
	set := lines.Filter(e.Variables, func(v facts.Variable) bool { return v.Effective })
	names := lines.Unique(lines.Map(set, func(v facts.Variable) string { return v.Name }))
	if len(names) == 0 {
		return "no communication variables set"
	}
	return "set: " + lines.First(names, 3, ", ")
}

func networkSummary(n *facts.NICFacts) string {
	active := len(lines.Filter(n.RDMA, func(p facts.RDMAPort) bool { return p.State == "active" }))
	if len(n.RDMA) == 0 {
		return lines.Count(len(n.Interfaces), "interface")
	}
	return fmt.Sprintf("%d of %s active", active, lines.Count(len(n.RDMA), "RDMA port"))
}

func storageSummary(s *facts.StorageFacts) string {
	return lines.Count(len(s.Drives), "NVMe drive")
}

func kernelLogSummary(k *facts.KernelLogFacts) string {
	n := 0
	for _, e := range k.Events {
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
	return len(lines.Filter(p.Devices, func(d facts.PCIDevice) bool { return d.Kind == "nic" }))
}
