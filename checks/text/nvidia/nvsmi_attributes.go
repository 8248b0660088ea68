package nvidia

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvsmiAttribute is what nvidia-smi tells of a GPU in its long listings and in those of columns.
type nvsmiAttribute struct {
	// paths are the names below the GPU, with their headings: those of -q, or of the elements
	// of -q -x where these differ by more than blanks, underscores and case. "|" separates them.
	paths string
	// columns are the names that --query-gpu takes, separated by "|".
	columns string
	set     nvsmiSet
}

// nvsmiSet enters a value in what is told about a GPU.
type nvsmiSet func(g *facts.GPU, v *nvsmiValue)

// nvsmiAttributes are those that are of use.
var nvsmiAttributes = []nvsmiAttribute{
	{"Product Name", "name|gpu_name", func(g *facts.GPU, v *nvsmiValue) { g.Name = v.text }},
	{"Product Architecture", "", func(g *facts.GPU, v *nvsmiValue) { g.Architecture = strings.TrimSuffix(v.word(), "-lovelace") }}, // NVML's word is "ada".
	{"", "compute_cap", func(g *facts.GPU, v *nvsmiValue) { g.ComputeCapability = v.text }},
	{"GPU UUID|uuid", "uuid|gpu_uuid", func(g *facts.GPU, v *nvsmiValue) { g.UUID = v.text }},
	{"Persistence Mode", "persistence_mode", func(g *facts.GPU, v *nvsmiValue) { g.Persistence = v.on }},
	{"MIG Mode/Current|mig_mode/current_mig", "mig.mode.current", func(g *facts.GPU, v *nvsmiValue) { g.MIG = v.on }},
	{"GPU Virtualization Mode/Virtualization Mode", "", func(g *facts.GPU, v *nvsmiValue) { g.VirtualizationMode = nvsmiVirtualization[v.word()] }},
	{"GPU Recovery Action", "gpu_recovery_action", func(g *facts.GPU, v *nvsmiValue) { g.RecoveryAction = nvsmiRecovery[v.word()] }},
	{"Performance State", "pstate", nvsmiPerformance},
	{"Utilization/Gpu|utilization/gpu_util", "utilization.gpu", nvsmiUtilization},
	{"FB Memory Usage/Total", "memory.total", nvsmiMemory(func(g *facts.GPU, bytes int64) { g.MemoryBytes = bytes })},
	{"FB Memory Usage/Used", "memory.used", nvsmiMemory(func(g *facts.GPU, bytes int64) { g.MemoryUsedBytes = &bytes })},
	{"BAR1 Memory Usage/Total", "", nvsmiMemory(func(g *facts.GPU, bytes int64) {
		if bytes > 0 {
			g.BAR1Bytes = &bytes
		}
	})},

	{nvsmiGeneration + "Max|pci/pci_gpu_link_info/pcie_gen/max_link_gen", "pcie.link.gen.max", nvsmiLink(func(l *facts.GPULink, n int) { l.MaxGeneration = n })},
	{nvsmiGeneration + "Current|pci/pci_gpu_link_info/pcie_gen/current_link_gen", "pcie.link.gen.current|pcie.link.gen.gpucurrent", nvsmiLink(func(l *facts.GPULink, n int) { l.Generation = n })},
	{nvsmiWidth + "Max|pci/pci_gpu_link_info/link_widths/max_link_width", "pcie.link.width.max", nvsmiLink(func(l *facts.GPULink, n int) { l.MaxWidth = n })},
	{nvsmiWidth + "Current|pci/pci_gpu_link_info/link_widths/current_link_width", "pcie.link.width.current", nvsmiLink(func(l *facts.GPULink, n int) { l.Width = n })},

	{"Fabric/State", "fabric.state", nvsmiFabricState},
	{"Fabric/Status", "fabric.status", nvsmiFabric(func(f *facts.Fabric, v *nvsmiValue) { f.Status = strings.ToUpper(strings.ReplaceAll(v.text, " ", "_")) })},
	{"Fabric/Health/Bandwidth", "", nvsmiUnhealthy("degraded-bandwidth", func(v *nvsmiValue) bool { return strings.EqualFold(v.text, "degraded") })},
	{"Fabric/Health/Route Recovery in progress", "", nvsmiUnhealthy("route-recovery", (*nvsmiValue).isOn)},
	{"Fabric/Health/Route Unhealthy", "", nvsmiUnhealthy("route-unhealthy", (*nvsmiValue).isOn)},
	{"Fabric/Health/Access Timeout Recovery", "", nvsmiUnhealthy("access-timeout-recovery", (*nvsmiValue).isOn)},
	{"Fabric/Health/Incorrect Configuration", "", nvsmiUnhealthy("incorrect-configuration", func(v *nvsmiValue) bool {
		return !strings.EqualFold(v.text, "none") && (v.on == nil || *v.on)
	})},

	{"ECC Mode/Current|ecc_mode/current_ecc", "ecc.mode.current", nvsmiECC(func(e *facts.ECC, on *bool) { e.Enabled = *cmp.Or(on, &e.Enabled) })},
	{nvsmiUncorrected, "ecc.errors.uncorrected.volatile.total", nvsmiCount},
	{"ECC Errors/Aggregate/SRAM Threshold Exceeded|ECC Errors/SRAM Threshold Exceeded", "", nvsmiECC(func(e *facts.ECC, on *bool) { e.SRAMThresholdExceeded = on })},
	{"ECC Errors/Channel Repair Pending", "", nvsmiECC(func(e *facts.ECC, on *bool) { e.ChannelRepairIsPending = on })},
	{"ECC Errors/Unrepairable Memory", "", nvsmiECC(func(e *facts.ECC, on *bool) { e.UnrepairableMemory = on })},
	{
		"Retired Pages/Pending Page Blacklist|Retired Pages/Pending|retired_pages/pending_retirement", "retired_pages.pending",
		nvsmiECC(func(e *facts.ECC, on *bool) { e.RetiredPagesPending = on }),
	},

	{"Remapped Rows/Pending|remapped_rows/remapped_row_pending", "remapped_rows.pending", nvsmiRemapped(func(r *facts.RemappedRows, is bool) { r.Pending = is })},
	{"Remapped Rows/Remapping Failure Occurred|remapped_rows/remapped_row_failure", "remapped_rows.failure", nvsmiRemapped(func(r *facts.RemappedRows, is bool) { r.Failed = is })},
}

// Beginnings of paths. Of what a link tells, grep may have cut off the upper headings: nvsmiByPath finds it without them.
const (
	nvsmiAboveLink  = "PCI/GPU Link Info/"
	nvsmiGeneration = nvsmiAboveLink + "PCIe Generation/"
	nvsmiWidth      = nvsmiAboveLink + "Link Width/"
)

// nvsmiUncorrected are the errors that -q lists one by one since Turing, those of SRAM and of DRAM, and as a sum before.
const nvsmiUncorrected = "ECC Errors/Volatile/SRAM Uncorrectable|ECC Errors/Volatile/DRAM Uncorrectable|ECC Errors/Volatile/SRAM Uncorrectable Parity|" +
	"ECC Errors/Volatile/SRAM Uncorrectable SEC-DED|ECC Errors/Volatile/Double Bit/Total"

// nvsmiByPath finds an attribute by its path, as nvsmiPath writes it, and nvsmiByColumn by its column.
var nvsmiByPath, nvsmiByColumn = nvsmiNames()

func nvsmiNames() (byPath, byColumn map[string]*nvsmiAttribute) {
	byPath, byColumn = make(map[string]*nvsmiAttribute), make(map[string]*nvsmiAttribute)
	for i := range nvsmiAttributes {
		a := &nvsmiAttributes[i]
		for path := range strings.SplitSeq(a.paths, "|") {
			byPath[nvsmiPath(path)] = a
			if below, ok := strings.CutPrefix(path, nvsmiAboveLink); ok {
				byPath[nvsmiPath(below)], byPath[nvsmiPath("GPU Link Info/"+below)] = a, a
			}
		}
		for column := range strings.SplitSeq(a.columns, "|") {
			byColumn[column] = a
		}
	}
	delete(byPath, "")
	delete(byColumn, "")
	return byPath, byColumn
}

// nvsmiPath is a path as both listings and all their versions have it.
func nvsmiPath(path string) string { return strings.ToLower(nvsmiBetweenWords.Replace(path)) }

var nvsmiBetweenWords = strings.NewReplacer(" ", "", "_", "", "-", "")

// nvsmiValue is what stands behind a name.
type nvsmiValue struct {
	// text is empty for the words that stand for no value.
	text string
	// number stands at the beginning of the text: "16x", "116 W".
	number   int64
	isNumber bool
	// on is what a switch says; nil for what is no switch.
	on *bool
	// added is set where the number was added to another one.
	added bool
}

func nvsmiValueOf(text string) *nvsmiValue {
	v := &nvsmiValue{text: strings.TrimSpace(text)}
	switch strings.ToLower(strings.Trim(v.text, "[]")) {
	case "n/a", "not supported", "requested functionality has been deprecated", "unknown error", "insufficient permissions", "gpu is lost":
		v.text = ""
	case "enabled", "on", "yes", "true", "active":
		v.on = new(true)
	case "disabled", "off", "no", "false", "not active":
		v.on = new(false)
	}
	n, err := strconv.ParseInt(v.text[:len(v.text)-len(strings.TrimLeft(v.text, "0123456789"))], 10, 64)
	v.number, v.isNumber = n, err == nil
	return v
}

func (v *nvsmiValue) isOn() bool { return v.on != nil && *v.on }

// word brings a value to the form of the facts: "Exclusive_Process" and "Exclusive Process" are "exclusive-process".
func (v *nvsmiValue) word() string {
	return strings.ToLower(strings.NewReplacer(" ", "-", "_", "-").Replace(v.text))
}

// bytes reads an amount of memory: "143771 MiB", "0MiB".
func (v *nvsmiValue) bytes() (int64, bool) {
	if !v.isNumber || v.number > 1<<40 {
		return 0, false
	}
	switch unit := strings.TrimLeft(v.text, "0123456789 "); {
	case strings.HasPrefix(unit, "KiB"):
		return v.number << 10, true
	case strings.HasPrefix(unit, "GiB"):
		return v.number << 30, true
	case strings.HasPrefix(unit, "MiB"), strings.HasPrefix(unit, "MB"), unit == "":
		return v.number << 20, true
	}
	return 0, false
}

// nvsmiVirtualization are the words of the facts for nvidia-smi's.
var nvsmiVirtualization = map[string]string{
	"none": "none", "pass-through": "passthrough", "vgpu": "vgpu", "host-vgpu": "host-vgpu", "host-vsga": "host-vsga",
}

// nvsmiRecovery are the words of the facts for nvidia-smi's: "GPU Reset".
var nvsmiRecovery = map[string]string{
	"none": "none", "reset": "gpu-reset", "gpu-reset": "gpu-reset", "reboot": "node-reboot", "node-reboot": "node-reboot",
	"drain-p2p": "drain-p2p", "drain-and-reset": "drain-and-reset", "recover-imex-domain": "recover-imex-domain",
}

func nvsmiPerformance(g *facts.GPU, v *nvsmiValue) {
	if state, err := strconv.Atoi(strings.TrimPrefix(v.text, "P")); err == nil && state >= 0 && state <= 15 {
		g.PerformanceState = &state
	}
}

func nvsmiUtilization(g *facts.GPU, v *nvsmiValue) {
	if v.isNumber && v.number <= 100 {
		g.UtilizationPercent = new(int(v.number))
	}
}

// nvsmiMemory makes the set of an amount of memory.
func nvsmiMemory(set func(g *facts.GPU, bytes int64)) nvsmiSet {
	return func(g *facts.GPU, v *nvsmiValue) {
		if bytes, ok := v.bytes(); ok {
			set(g, bytes)
		}
	}
}

// nvsmiLink makes the set of a number of the PCIe link.
func nvsmiLink(set func(l *facts.GPULink, n int)) nvsmiSet {
	return func(g *facts.GPU, v *nvsmiValue) {
		if v.isNumber && v.number <= 1<<30 {
			g.PCIe = cmp.Or(g.PCIe, &facts.GPULink{})
			set(g.PCIe, int(v.number))
		}
	}
}

func nvsmiFabricState(g *facts.GPU, v *nvsmiValue) {
	if word := v.word(); slices.Contains([]string{"not-supported", "not-started", "in-progress", "completed"}, word) {
		g.Fabric = &facts.Fabric{State: word}
	}
}

// nvsmiFabric makes the set of an attribute of a fabric whose state is known.
func nvsmiFabric(set func(f *facts.Fabric, v *nvsmiValue)) nvsmiSet {
	return func(g *facts.GPU, v *nvsmiValue) {
		if g.Fabric != nil && v.text != "" {
			set(g.Fabric, v)
		}
	}
}

// nvsmiUnhealthy makes the set of a part of the fabric's health.
func nvsmiUnhealthy(part string, isBad func(v *nvsmiValue) bool) nvsmiSet {
	return nvsmiFabric(func(f *facts.Fabric, v *nvsmiValue) {
		if isBad(v) && !slices.Contains(f.Unhealthy, part) {
			f.Unhealthy = append(f.Unhealthy, part)
		}
	})
}

// nvsmiECC makes the set of a switch of memory protection.
func nvsmiECC(set func(e *facts.ECC, on *bool)) nvsmiSet {
	return func(g *facts.GPU, v *nvsmiValue) {
		if v.isNumber || v.on != nil {
			set(nvsmiECCOf(g), v.on)
		}
	}
}

// nvsmiCount enters a count of errors, to which others may be added.
func nvsmiCount(g *facts.GPU, v *nvsmiValue) {
	if !v.isNumber {
		return
	}
	e := nvsmiECCOf(g)
	e.Enabled = true // It counts.
	before := *cmp.Or(e.VolatileUncorrected, new(int64))
	e.VolatileUncorrected, v.added = new(before+v.number), before > 0 && v.number > 0
}

func nvsmiECCOf(g *facts.GPU) *facts.ECC {
	g.ECC = cmp.Or(g.ECC, &facts.ECC{})
	return g.ECC
}

// nvsmiRemapped makes the set of a state of remapped rows: "Yes", or their number.
func nvsmiRemapped(set func(r *facts.RemappedRows, is bool)) nvsmiSet {
	return func(g *facts.GPU, v *nvsmiValue) {
		if v.isNumber || v.on != nil {
			g.RemappedRows = cmp.Or(g.RemappedRows, &facts.RemappedRows{})
			set(g.RemappedRows, v.isOn() || v.number > 0)
		}
	}
}

// nvsmiDriver notes the versions that nvidia-smi names.
func nvsmiDriver(s *parse.Sink, driver, cuda string, l parse.Line) {
	d := &s.GPUs().Driver
	if driver = strings.TrimSpace(driver); nvsmiDriverVersion.MatchString(driver) {
		s.Package("nvidia-driver", driver, "", "nvidia-smi", l)
		parse.Note(s, &d.Version, "gpus.driver.version", driver, l)
	}
	if cuda = strings.TrimSpace(cuda); nvsmiCUDAVersion.MatchString(cuda) {
		parse.Note(s, &d.CUDAVersion, "gpus.driver.cuda_version", cuda, l)
	}
}

var (
	nvsmiDriverVersion = lazy.New(`^\d{2,3}\.\d+(?:\.\d+)?$`)
	nvsmiCUDAVersion   = lazy.New(`^\d{1,2}\.\d{1,2}$`)
)

// nvsmiGPU returns the GPU at a bus id, or of an index where that is unknown.
func nvsmiGPU(s *parse.Sink, busID string, index int, l parse.Line) *facts.GPU {
	var g *facts.GPU
	if address := facts.Address(busID); address != "" {
		g = s.GPU(address, l)
		if index >= 0 {
			g.Index = cmp.Or(g.Index, &index)
		}
	} else {
		g = s.GPUAt(max(index, 0), l)
	}
	g.Vendor, g.InNVML = "nvidia", true
	return g
}

// nvsmiAnswered notes that NVML listed every GPU.
func nvsmiAnswered(s *parse.Sink, l parse.Line) { parse.Note(s, &s.GPUs().NVML, "gpus.nvml", "ok", l) }
