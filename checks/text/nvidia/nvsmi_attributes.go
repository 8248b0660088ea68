package nvidia

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// The long listings of nvidia-smi, text and XML, tell the same attributes under
// other names. Each is brought to one name here ("pci.link.width.current"), and
// nvsmiGPU fills a GPU from those.

// nvsmiBusID is a GPU's address as nvidia-smi writes it, with four digits of
// domain (before driver 384) or eight.

// nvsmiValue returns a value, or nothing for the words that stand for none.
func nvsmiValue(text string) string {
	text = strings.TrimSpace(text)
	switch strings.ToLower(strings.Trim(text, "[]")) {
	case "", "n/a", "not supported", "requested functionality has been deprecated", "unknown error", "insufficient permissions", "gpu is lost":
		return ""
	}
	return text
}

// nvsmiNumber reads the number at the beginning of a value: "16x", "116 W".
func nvsmiNumber(text string) (int64, bool) {
	text = nvsmiValue(text)
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9') {
		end++
	}
	n, err := strconv.ParseInt(text[:end], 10, 64)
	return n, err == nil
}

// nvsmiMemory reads an amount of memory: "143771 MiB", "0MiB".
func nvsmiMemory(text string) (int64, bool) {
	n, ok := nvsmiNumber(text)
	if !ok || n > 1<<40 {
		return 0, false
	}
	unit := strings.TrimLeft(nvsmiValue(text), "0123456789 ")
	switch {
	case strings.HasPrefix(unit, "KiB"):
		return n << 10, true
	case strings.HasPrefix(unit, "GiB"):
		return n << 30, true
	case strings.HasPrefix(unit, "MiB"), strings.HasPrefix(unit, "MB"), unit == "":
		return n << 20, true
	}
	return 0, false
}

// nvsmiSwitch reads a switch: "Enabled", "Disabled", "On", "Off", "Yes", "No".
func nvsmiSwitch(text string) *bool {
	switch strings.ToLower(nvsmiValue(text)) {
	case "enabled", "on", "yes", "true", "active":
		return new(true)
	case "disabled", "off", "no", "false", "not active":
		return new(false)
	}
	return nil
}

// nvsmiWord brings a value to the form of the facts: "Exclusive_Process" and
// "Exclusive Process" are "exclusive-process".
func nvsmiWord(text string) string {
	return strings.ToLower(strings.NewReplacer(" ", "-", "_", "-").Replace(nvsmiValue(text)))
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

// nvsmiArchitecture is NVML's word for an architecture.
func nvsmiArchitecture(text string) string {
	word := nvsmiWord(text)
	if word == "ada-lovelace" {
		return "ada"
	}
	return word
}

// nvsmiFabricState brings the state of a fabric to the form of the facts.
func nvsmiFabricState(text string) string {
	switch word := nvsmiWord(text); word {
	case "not-supported", "not-started", "in-progress", "completed":
		return word
	}
	return ""
}

// nvsmiSet enters one attribute of a GPU. One that it does not know it leaves.
func nvsmiSet(g *facts.GPU, name, text string) {
	value := nvsmiValue(text)
	n, isNumber := nvsmiNumber(text)
	bytes, isMemory := nvsmiMemory(text)
	on := nvsmiSwitch(text)
	switch name {
	case "name":
		g.Name = value
	case "architecture":
		g.Architecture = nvsmiArchitecture(value)
	case "compute_capability":
		g.ComputeCapability = value
	case "uuid":
		g.UUID = value
	case "persistence":
		g.Persistence = on
	case "mig.current":
		g.MIG = on
	case "mig.pending":
		g.MIGPending = on
	case "virtualization":
		g.VirtualizationMode = nvsmiVirtualization[nvsmiWord(value)]
	case "recovery":
		g.RecoveryAction = nvsmiRecovery[nvsmiWord(value)]
	case "compute_mode":
		g.ComputeMode = nvsmiWord(value)
	case "performance":
		if state, err := strconv.Atoi(strings.TrimPrefix(value, "P")); err == nil && state >= 0 && state <= 15 {
			g.PerformanceState = &state
		}
	case "utilization":
		if isNumber && n <= 100 {
			g.UtilizationPercent = new(int(n))
		}
	case "memory.total":
		if isMemory {
			g.MemoryBytes = bytes
		}
	case "memory.used":
		if isMemory {
			g.MemoryUsedBytes = &bytes
		}
	case "bar1.total":
		if isMemory && bytes > 0 {
			g.BAR1Bytes = &bytes
		}
	case "fabric.state":
		if state := nvsmiFabricState(value); state != "" {
			g.Fabric = &facts.Fabric{State: state}
		}
	case "fabric.status":
		if value != "" && g.Fabric != nil {
			g.Fabric.Status = strings.ToUpper(strings.ReplaceAll(value, " ", "_"))
		}
	case "fabric.clique":
		if isNumber && n < 1<<31 && g.Fabric != nil {
			g.Fabric.CliqueID = int(n)
		}
	case "fabric.cluster":
		if value != "" && g.Fabric != nil {
			g.Fabric.ClusterUUID = value
		}
	default:
		switch {
		case strings.HasPrefix(name, "fabric.health."):
			nvsmiHealth(g, strings.TrimPrefix(name, "fabric.health."), value)
		case strings.HasPrefix(name, "pcie."):
			nvsmiLink(g, strings.TrimPrefix(name, "pcie."), n, isNumber)
		case strings.HasPrefix(name, "ecc."):
			nvsmiECC(g, strings.TrimPrefix(name, "ecc."), n, isNumber, on)
		case strings.HasPrefix(name, "remapped."):
			nvsmiRemapped(g, strings.TrimPrefix(name, "remapped."), n, isNumber, on)
		default:
			return
		}
	}
}

// nvsmiTold enters one attribute of a GPU in what a listing says about it, and
// notes the line. A count that is added to another one has no line of its own.
func nvsmiTold(s *parse.Sink, known, told *facts.GPU, name, text string, l parse.Line) {
	s.Watch("gpus.devices["+known.Address+"]", told, l)
	before := nvsmiCounts(told.ECC)
	nvsmiSet(told, name, text)
	for i, count := range nvsmiCounts(told.ECC) {
		if before[i] > 0 && count > before[i] {
			s.Unwatch(told)
		}
	}
	s.Settle()
}

// nvsmiCounts are the counts of errors.
func nvsmiCounts(e *facts.ECC) (counts [4]int64) {
	if e == nil {
		return counts
	}
	for i, count := range []*int64{e.VolatileCorrected, e.VolatileUncorrected, e.AggregateCorrected, e.AggregateUncorrected} {
		if count != nil {
			counts[i] = *count
		}
	}
	return counts
}

// nvsmiHealth enters what nvidia-smi says about a part of the fabric's health.
func nvsmiHealth(g *facts.GPU, part, value string) {
	bad := ""
	switch on := nvsmiSwitch(value); {
	case part == "bandwidth" && strings.EqualFold(value, "degraded"):
		bad = "degraded-bandwidth"
	case part == "incorrect-configuration" && value != "" && !strings.EqualFold(value, "none") && (on == nil || *on):
		bad = part
	case part != "bandwidth" && part != "incorrect-configuration" && on != nil && *on:
		bad = part
	}
	if bad == "" || g.Fabric == nil || len(g.Fabric.Unhealthy) >= 8 {
		return
	}
	if slices.Contains(g.Fabric.Unhealthy, bad) {
		return
	}
	g.Fabric.Unhealthy = append(g.Fabric.Unhealthy, bad)
}

func nvsmiLink(g *facts.GPU, name string, n int64, ok bool) {
	if !ok || n > 1<<30 {
		return
	}
	if g.PCIe == nil {
		g.PCIe = &facts.GPULink{}
	}
	switch value := int(n); name {
	case "generation.max":
		g.PCIe.MaxGeneration = value
	case "generation.current":
		g.PCIe.Generation = value
	case "generation.device_max":
		g.PCIe.DeviceMaxGeneration = value
	case "width.max":
		g.PCIe.MaxWidth = value
	case "width.current":
		g.PCIe.Width = value
	case "replays":
		g.PCIe.Replays = &value
	}
}

// nvsmiECC enters an attribute of memory protection. Counts of one kind are
// added up: nvidia-smi lists those of SRAM and DRAM one by one since Turing.
func nvsmiECC(g *facts.GPU, name string, n int64, isNumber bool, on *bool) {
	if !isNumber && on == nil {
		return
	}
	if g.ECC == nil {
		g.ECC = &facts.ECC{}
	}
	add := func(count **int64) {
		if !isNumber {
			return
		}
		if *count == nil {
			*count = new(int64)
		}
		g.ECC.Enabled = true // It counts.
		**count += n
	}
	switch name {
	case "mode":
		if on != nil {
			g.ECC.Enabled = *on
		}
	case "volatile.corrected":
		add(&g.ECC.VolatileCorrected)
	case "volatile.uncorrected":
		add(&g.ECC.VolatileUncorrected)
	case "aggregate.corrected":
		add(&g.ECC.AggregateCorrected)
	case "aggregate.uncorrected":
		add(&g.ECC.AggregateUncorrected)
	case "retirement_pending":
		g.ECC.RetiredPagesPending = on
	case "sram_threshold":
		g.ECC.SRAMThresholdExceeded = on
	case "unrepairable":
		g.ECC.UnrepairableMemory = on
	case "channel_repair":
		g.ECC.ChannelRepairIsPending = on
	}
}

func nvsmiRemapped(g *facts.GPU, name string, n int64, isNumber bool, on *bool) {
	if !isNumber && on == nil {
		return
	}
	if g.RemappedRows == nil {
		g.RemappedRows = &facts.RemappedRows{}
	}
	switch {
	case name == "corrected" && n < 1<<30:
		g.RemappedRows.Corrected = int(n)
	case name == "uncorrected" && n < 1<<30:
		g.RemappedRows.Uncorrected = int(n)
	case name == "pending":
		g.RemappedRows.Pending = on != nil && *on || isNumber && n > 0
	case name == "failed":
		g.RemappedRows.Failed = on != nil && *on || isNumber && n > 0
	}
}

// nvsmiDriver notes the versions that nvidia-smi names.
func nvsmiDriver(s *parse.Sink, driver, cuda string, l parse.Line) {
	if driver = nvsmiValue(driver); nvsmiDriverVersion.MatchString(driver) {
		d := &s.GPUs().Driver
		if d.Version == "" {
			d.Version = driver
			s.Told("gpus.driver.version", driver, l)
		}
		s.Package("nvidia-driver", driver, "", "nvidia-smi", l)
	}
	if cuda = nvsmiValue(cuda); nvsmiCUDAVersion.MatchString(cuda) {
		d := &s.GPUs().Driver
		if d.CUDAVersion == "" {
			d.CUDAVersion = cuda
			s.Told("gpus.driver.cuda_version", cuda, l)
		}
		s.Package("cuda-driver", cuda, "", "nvidia-smi", l)
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
		if index >= 0 && g.Index == nil {
			g.Index = &index
		}
	} else {
		g = s.GPUAt(max(index, 0), l)
	}
	g.Vendor, g.InNVML = "nvidia", true
	return g
}

// nvsmiAnswered notes that NVML listed every GPU.
func nvsmiAnswered(s *parse.Sink, l parse.Line) {
	if gpus := s.GPUs(); gpus.NVML == "" {
		gpus.NVML = "ok"
		s.Told("gpus.nvml", gpus.NVML, l)
	}
}

// nvsmiReplace enters what one listing says about a GPU: it replaces what was
// known, and what it does not tell stays.
func nvsmiReplace(known, told *facts.GPU) {
	if known == nil || told == nil {
		return
	}
	parse.MergeGPU(told, known)
	*known = *told
}
