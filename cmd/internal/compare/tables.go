package compare

import (
	"reflect"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// identities are the fields that name an element of a list, by the element's type.
// Elements are paired by them and never by their place.
var identities = map[reflect.Type][]string{
	reflect.TypeFor[facts.PCIDevice]():           {"Address"},
	reflect.TypeFor[facts.UnnamedACS]():          {"Control"},
	reflect.TypeFor[facts.ResizableBAR]():        {"Index"},
	reflect.TypeFor[facts.BAR]():                 {"Index"},
	reflect.TypeFor[facts.IOMMUGroup]():          {"Devices"},
	reflect.TypeFor[facts.NUMANode]():            {"ID"},
	reflect.TypeFor[facts.GPU]():                 {"Address"},
	reflect.TypeFor[facts.GPUPeer]():             {"A", "B"},
	reflect.TypeFor[facts.RASBlock]():            {"Block"},
	reflect.TypeFor[facts.NVLink]():              {"Link"},
	reflect.TypeFor[facts.GPUProcess]():          {"Name"},
	reflect.TypeFor[facts.Pair]():                {"A", "B"},
	reflect.TypeFor[facts.HostPath]():            {"GPU"},
	reflect.TypeFor[facts.DeviceNode]():          {"Path"},
	reflect.TypeFor[facts.DriverDevice]():        {"Address"},
	reflect.TypeFor[facts.Variable]():            {"Name", "Source"},
	reflect.TypeFor[facts.Library]():             {"Path"},
	reflect.TypeFor[facts.PythonPackage]():       {"Path"},
	reflect.TypeFor[facts.ImageLayer]():          {"Digest"},
	reflect.TypeFor[facts.KernelEvent]():         {"ID", "Kind", "Code", "Address", "BAR", "Host"},
	reflect.TypeFor[probe.Device]():              {"Address"},
	reflect.TypeFor[probe.Peer]():                {"Source", "Destination"},
	reflect.TypeFor[probe.Transfer]():            {"Test", "Source", "Destination", "Way"},
	reflect.TypeFor[probe.Stage]():               {"Name"},
	reflect.TypeFor[probe.Candidate]():           {"Path"},
	reflect.TypeFor[probe.LeftOut]():             {"GPU"},
	reflect.TypeFor[probe.Arm]():                 {"Name", "Unset", "Raised"},
	reflect.TypeFor[probe.Rank]():                {"Rank"},
	reflect.TypeFor[probe.Operation]():           {"Name", "Bytes"},
	reflect.TypeFor[probe.CollectiveTransport](): {"A", "B", "Kind", "Network"},
	reflect.TypeFor[facts.RDMAPort]():            {"Host", "Device", "Port"},
	reflect.TypeFor[facts.GID]():                 {"Index"},
	reflect.TypeFor[facts.Interface]():           {"Host", "Name"},
	reflect.TypeFor[facts.Bond]():                {"Host", "Name"},
	reflect.TypeFor[facts.QoS]():                 {"Host", "Interface"},
	reflect.TypeFor[facts.NVMeDrive]():           {"Name"},
	reflect.TypeFor[facts.NVMeNamespace]():       {"Name"},
	reflect.TypeFor[facts.RAIDArray]():           {"Name"},
	reflect.TypeFor[facts.RAIDMember]():          {"Device"},
	reflect.TypeFor[facts.Mount]():               {"Path"},
	reflect.TypeFor[facts.DirectNIC]():           {"Device"},
	reflect.TypeFor[facts.DirectGPU]():           {"Address"},
	reflect.TypeFor[facts.DirectRead]():          {"Mount"},
	reflect.TypeFor[facts.Launch]():              {"Kind", "Name"},
	reflect.TypeFor[facts.Ignored]():             {"Rule"},
	reflect.TypeFor[facts.Package]():             {"Name", "Manager", "Host"},
	reflect.TypeFor[facts.Run]():                 {"Program", "Host", "Variables", "Devices"},
	reflect.TypeFor[facts.Benchmark]():           {"Tool", "Test", "What", "P2P", "Memory", "Ranks", "Nodes"},
	reflect.TypeFor[facts.BenchmarkPoint]():      {"A", "B", "Bytes"},
	reflect.TypeFor[facts.Message]():             {"ID", "Program", "Host", "Rank", "Device"},
	reflect.TypeFor[facts.Communicator]():        {"Library", "Ranks", "Nodes"},
	reflect.TypeFor[facts.Transport]():           {"Kind", "A", "B"},
	reflect.TypeFor[facts.NetworkChoice]():       {"Host", "Name"},
	reflect.TypeFor[facts.Affinity]():            {"Host", "GPU"},
	reflect.TypeFor[facts.Death]():               {"Host", "Rank", "What", "Class"},
	reflect.TypeFor[facts.Progress]():            {"Group", "Rank"},
	reflect.TypeFor[facts.Code]():                {"Space", "Number"},
	reflect.TypeFor[facts.Unknown]():             {"Section", "Fact"},
}

// Reasons why a field is left out.
const (
	byChance = "it changes over time on one machine"
	position = "it says where in a text something is"
	prose    = "it is a sentence for people; what it says is in other fields"
	follows  = "it follows from facts that are compared"
)

// noise are the fields that are no difference between machines, with the reason: one
// field, or a name that is left out of every type (".Line").
var noise = map[string]string{
	".Line":                        position,
	".Lines":                       position,
	".Order":                       position,
	".Begins":                      position,
	".Shown":                       position,
	".Time":                        byChance,
	".PID":                         byChance,
	"probe.Arm.Milliseconds":       byChance,
	"probe.Operation.Microseconds": byChance,
	"probe.Arm.Reason":             prose,
	"probe.Rank.Reason":            prose,
	"probe.Operation.Reason":       prose,
	"probe.Collectives.Reason":     prose,
	"probe.LeftOut.Reason":         prose,
	"facts.Facts.Schema":           "documents of another schema are refused",
	"facts.Facts.Profile":          "gpudoctor sets it; it is not a fact",
	"facts.Facts.Texts":            "it lists the files that were given",
	"facts.Facts.Origins":          position,
	"facts.Facts.Comparisons":      follows,
	"facts.Unknown.Hint":           prose,
	"facts.Virtualization.Source":  "it names the file that the value is from",
	"facts.PCIeLink.Source":        "it names the file that the value is from",
	"facts.KernelLogFacts.Source":  "it names the file that the value is from",
	"facts.KernelEvent.Source":     position,
	"facts.KernelEvent.Seconds":    byChance,
	"facts.KernelEvent.Message":    "it is a line of the log; the row of the catalogue, the code, the device and the fields are compared",
	"facts.UnnamedACS.Source":      position,
	"facts.GPU.MemoryUsedBytes":    byChance,
	"facts.GPU.UtilizationPercent": byChance,
	"facts.GPU.PerformanceState":   byChance,
	"facts.GPUProcess.UsedBytes":   byChance,
	"facts.FileSystem.FreeBytes":   byChance,
	"facts.RDMAPort.Source":        position,
	"facts.QoS.Source":             position,
	"facts.Interface.Source":       position,
	"facts.Bond.Source":            position,
	"facts.GDS.Source":             position,
	"facts.RAIDArray.SyncPercent":  byChance,
	"facts.Launch.Source":          position,
	"facts.Package.Source":         position,
	"facts.Run.Source":             position,
	"facts.Run.Text":               prose,
	"facts.Run.Why":                prose,
	"facts.Benchmark.Source":       position,
	"facts.BenchmarkPoint.Basis":   prose,
	"probe.Message.Source":         position,
	"probe.Message.Text":           "it is a line of a text; the row of the catalogue and the fields are compared",
	"facts.Communicator.ID":        byChance,
	"facts.Communicator.Source":    position,
	"facts.Transport.Source":       position,
	"facts.NetworkChoice.Source":   position,
	"facts.Affinity.Source":        position,
	"facts.Death.Source":           position,
	"facts.Progress.Source":        position,
	"facts.Progress.Text":          prose,
	"facts.Death.Text":             prose,
	"probe.Report.Reason":          prose,
	"probe.Stage.Milliseconds":     byChance,
	"probe.Device.Reason":          prose,
	"probe.Transfer.Reason":        prose,
	"probe.Transfer.Basis":         prose,
	"probe.Transfer.Fraction":      follows,
	"probe.User.UsedBytes":         byChance,
}

// noiseFields are the fields of messages that are left out, with the reason.
var noiseFields = map[string]string{
	"pid":  byChance,
	"port": "the system chooses it for each connection",
}

// ordered are the lists of which the order means something.
var ordered = []string{
	"facts.HostFacts.CommandLine", // A later parameter wins over an earlier one.
	"facts.PCIDevice.Ancestors",
	"facts.Pair.Bridges",
	"facts.NUMANode.Distances", // In order of node.
	"facts.Launch.Command",
	"facts.Death.Behind",
}

// measured are values of which two measurements of one thing differ.
var measured = []string{
	"probe.Transfer.GBps", "probe.Transfer.Microseconds", "probe.Operation.BusGBps",
	"facts.Run.GBps", "facts.BenchmarkPoint.GBps", "facts.BenchmarkPoint.Microseconds",
}

// kindTable says what the facts below a path are about; the longest path counts. All
// others are of kind Fact.
var kindTable = map[string]Kind{
	"gpus.devices[]":                           Fact,
	"gpus.devices[]/":                          Part, // The element itself.
	"gpus.devices[].in_pci":                    Part,
	"gpus.devices[].in_nvml":                   Part,
	"gpus.devices[].error":                     Part,
	"gpus.devices[].uuid":                      Part,
	"gpus.devices[].address":                   Part,
	"gpus.devices[].recovery_action":           Part,
	"gpus.devices[].fabric":                    Part,
	"gpus.devices[].nvlinks[]":                 Part,
	"gpus.devices[].pcie.width":                Part,
	"gpus.nvml":                                Part,
	"gpus.nvml_error":                          Part,
	"gpus.nvswitches":                          Part,
	"gpus.p2p[]":                               Part,
	"links.pairs[]":                            Part,
	"pci.devices[]/":                           Part,
	"pci.devices[].off_bus":                    Part,
	"pci.devices[].link.width":                 Part,
	"transfers.outcome":                        Part,
	"transfers.devices[]/":                     Part,
	"transfers.devices[].outcome":              Part,
	"transfers.peers[]":                        Part,
	"transfers.transfers[]":                    Part,
	"nics.rdma[]/":                             Part,
	"nics.rdma[].state":                        Part,
	"nics.rdma[].physical_state":               Part,
	"nics.rdma[].rate_gbps":                    Part,
	"nics.interfaces[].state":                  Part,
	"storage.drives[]/":                        Part,
	"storage.drives[].state":                   Part,
	"storage.arrays[].degraded":                Part,
	"storage.arrays[].state":                   Part,
	"storage.arrays[].members[]":               Part,
	"container.missing_nodes":                  Part,
	"container.device_nodes[]":                 Part,
	"host.kernel":                              Version,
	"host.distribution":                        Version,
	"host.bios":                                Version,
	"gpus.driver":                              Version,
	"gpus.amd.version":                         Version,
	"gpus.amd.rocm":                            Version,
	"gpus.devices[].vbios":                     Version,
	"gpus.devices[].name":                      Version,
	"libraries.files[]":                        Version,
	"libraries.packages[]":                     Version,
	"software[]":                               Version,
	"transfers.library":                        Version,
	"transfers.driver_version":                 Version,
	"nics.rdma[].firmware":                     Version,
	"storage.drives[].firmware":                Version,
	"storage.gds.version":                      Version,
	"host.command_line":                        Setting,
	"storage.gds":                              Setting,
	"iommu":                                    Setting,
	"numa.balancing":                           Setting,
	"numa.allowed_cpus":                        Setting,
	"numa.allowed_nodes":                       Setting,
	"env":                                      Setting,
	"container":                                Setting,
	"launches[]":                               Setting,
	"gpus.driver.parameters":                   Setting,
	"gpus.amd.parameters":                      Setting,
	"gpus.amd.kernel_config":                   Setting,
	"gpus.devices[].persistence":               Setting,
	"gpus.devices[].compute_mode":              Setting,
	"gpus.devices[].virtualization_mode":       Setting,
	"gpus.devices[].mig":                       Setting,
	"gpus.devices[].mig_pending":               Setting,
	"gpus.devices[].ecc.enabled":               Setting,
	"gpus.devices[].compute_partition":         Setting,
	"gpus.devices[].memory_partition":          Setting,
	"pci.devices[].acs":                        Setting,
	"pci.devices[].ats":                        Setting,
	"pci.devices[].driver":                     Setting,
	"pci.devices[].bars":                       Setting,
	"pci.devices[].resizable_bars":             Setting,
	"pci.devices[].relaxed_ordering":           Setting,
	"pci.devices[].max_payload_bytes":          Setting,
	"pci.devices[].read_request_bytes":         Setting,
	"gpus.devices[].ecc":                       Figure,
	"gpus.devices[].remapped_rows":             Figure,
	"gpus.devices[].retired_pages":             Figure,
	"gpus.devices[].xgmi_errors":               Figure,
	"gpus.devices[].ras[]":                     Figure,
	"gpus.devices[].pcie.replays":              Figure,
	"gpus.devices[].nvlinks[].replay_errors":   Figure,
	"gpus.devices[].nvlinks[].recovery_errors": Figure,
	"gpus.devices[].nvlinks[].crc_errors":      Figure,
	"pci.devices[].aer":                        Figure,
	"pci.devices[].link.speed_gts":             Figure,
	"kernel_log.events[].count":                Figure,
	"transfers.transfers[].gbps":               Figure,
	"transfers.transfers[].us":                 Figure,
	"transfers.transfers[].expected_gbps":      Fact,
	"transfers.transfers[].threshold":          Fact,
	"benchmarks[]":                             Figure,
	"runs[].gbps":                              Figure,
	"nics.rdma[].counters":                     Figure,
	"unknown":                                  Reading,
}

// kindOf is what a fact is about.
func kindOf(pattern string) Kind {
	if kind, ok := kindTable[pattern+"/"]; ok {
		return kind
	}
	for at := pattern; ; {
		if kind, ok := kindTable[at]; ok {
			return kind
		}
		short := strings.TrimSuffix(at, "[]")
		if short == at {
			cut := strings.LastIndexByte(at, '.')
			if cut < 0 {
				return Fact
			}
			short = at[:cut]
		}
		at = short
	}
}
