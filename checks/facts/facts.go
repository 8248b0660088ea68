// Package facts is the facts document: what is known about one machine, from the machine or from
// texts. It holds only types: nothing here reads a machine or judges.
package facts

import "github.com/gpudoctor/gpudoctor/checks/probe"

// FactsSchema is the version of the facts document. It changes when a field
// changes its meaning or goes away; a new optional field does not change it.
const FactsSchema = "gpudoctor.facts/v1"

// Facts is what is known about one machine: one document, with a section for each check. A section that is nil was not
// read, and Unknown says why. Inside a section a pointer that is nil, or a list that is nil, is not known: a missing
// fact is never a false fact. Field names include the units. GPUs and NICs are identified by their PCI address
// ("0000:3b:00.0", lower case).
type Facts struct {
	// Schema is always FactsSchema.
	Schema string `json:"schema"`
	// Profile is what the facts are judged for, "training" or "image". It is not a fact: gpudoctor sets it for the
	// rules, and a document that was gathered has none.
	Profile   string          `json:"profile,omitempty"`
	Host      *HostFacts      `json:"host,omitempty"`
	PCI       *PCIFacts       `json:"pci,omitempty"`
	IOMMU     *IOMMUFacts     `json:"iommu,omitempty"`
	NUMA      *NUMAFacts      `json:"numa,omitempty"`
	GPUs      *GPUFacts       `json:"gpus,omitempty"`
	Links     *LinkFacts      `json:"links,omitempty"`
	Container *ContainerFacts `json:"container,omitempty"`
	Env       *EnvFacts       `json:"env,omitempty"`
	Libraries *LibraryFacts   `json:"libraries,omitempty"`
	// Image is what a container image says about itself, where one is examined.
	Image *ImageFacts `json:"image,omitempty"`
	// Target is the machine that an image is meant for, if it was named.
	Target    *TargetFacts    `json:"target,omitempty"`
	KernelLog *KernelLogFacts `json:"kernel_log,omitempty"`
	// Transfers is what the probe measured.
	Transfers *probe.Report   `json:"transfers,omitempty"`
	GPUDirect *GPUDirectFacts `json:"gpudirect,omitempty"`
	// Collectives is what collectives of NCCL or RCCL did; nil if they were not requested.
	Collectives *probe.Collectives `json:"collectives,omitempty"`
	NICs        *NICFacts          `json:"nics,omitempty"`
	Storage     *StorageFacts      `json:"storage,omitempty"`
	// Launches, Software, Benchmarks and Logs are read from texts that users give.
	Launches   []Launch    `json:"launches,omitempty"`
	Software   []Package   `json:"software,omitempty"`
	Benchmarks []Benchmark `json:"benchmarks,omitempty"`
	Logs       *LogFacts   `json:"logs,omitempty"`
	// Runs are the runs that texts distinguish, if there are several, and Comparisons
	// pairs of them that differ in one thing.
	Runs        []Run        `json:"runs,omitempty"`
	Comparisons []Comparison `json:"comparisons,omitempty"`
	// Fleet is what the reports of many nodes say; a machine has none.
	Fleet *FleetFacts `json:"fleet,omitempty"`
	// Texts are the texts that were examined, and Origins says which line of which text a fact comes from.
	Texts   []Text   `json:"texts,omitempty"`
	Origins []Origin `json:"origins,omitempty"`
	// Unknown lists what could not be read, in order of section and fact.
	Unknown []Unknown `json:"unknown,omitempty"`
}

// Unknown is a fact that could not be established, and the reason.
type Unknown struct {
	// Section is the section of the facts that lacks it: "pci".
	Section string `json:"section"`
	// Fact is the path inside the section, or empty for the whole section: "devices.acs".
	Fact string `json:"fact,omitempty"`
	// Reason says in words why: "config space beyond 64 bytes needs root".
	Reason string `json:"reason"`
	// Hint says how to obtain it: "run as root".
	Hint string `json:"hint,omitempty"`
	// Kind is set if nothing failed; empty for all others.
	Kind UnknownKind `json:"kind,omitempty"`
}

// UnknownKind says why a fact is not known although nothing failed.
type UnknownKind string

// The kinds.
const (
	// NotAsked means that it was not requested (--probe off).
	NotAsked UnknownKind = "not-asked"
	// NotRecorded means that the recording does not hold it.
	NotRecorded UnknownKind = "not-recorded"
)

// HostFacts is the machine, its kernel and its processors.
type HostFacts struct {
	// Hostname is the node name (uname); redacted in snapshots.
	Hostname string `json:"hostname,omitempty"`
	// Kernel is the kernel release, from /proc/sys/kernel/osrelease.
	Kernel string `json:"kernel,omitempty"`
	// Arch is the machine architecture as Go names it ("amd64", "arm64").
	Arch string `json:"arch,omitempty"`
	// Distribution is PRETTY_NAME of /etc/os-release.
	Distribution string `json:"distribution,omitempty"`
	// CommandLine is that of the kernel, split at spaces, from /proc/cmdline.
	CommandLine []string `json:"command_line,omitempty"`
	// Virtualization is what this kernel runs on; nil if undecided.
	Virtualization *Virtualization `json:"virtualization,omitempty"`
	// BIOS is DMI's bios_vendor, bios_version and bios_date.
	BIOS string `json:"bios,omitempty"`
	// CPU is the processor, from /proc/cpuinfo.
	CPU *CPU `json:"cpu,omitempty"`
	// MemoryBytes is MemTotal of /proc/meminfo.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	// UptimeSeconds is how long this kernel has been running, from /proc/uptime.
	UptimeSeconds *float64 `json:"uptime_seconds,omitempty"`
	// Clock is what the kernel says of its clock (adjtimex).
	Clock *Clock `json:"clock,omitempty"`
	// Root is true when this process has effective user id 0.
	Root *bool `json:"root,omitempty"`
}

// Clock is the state of the kernel's clock, which all containers of a machine share.
type Clock struct {
	// Synchronized is true if a program (chronyd, ntpd, phc2sys) has told the kernel that it keeps the clock right.
	Synchronized bool `json:"synchronized"`
}

// Virtualization is the hypervisor below this kernel, or none.
type Virtualization struct {
	// Kind is "none", "kvm", "vmware", "hyperv", "xen", "firecracker",
	// "gvisor", "wsl", "other". "none" requires evidence.
	Kind string `json:"kind"`
	// Guest is true in a virtual machine, and under gVisor, whose kernel is also not the one that drives the devices.
	Guest bool `json:"guest"`
	// PassthroughHost is true when a device here is bound to vfio-pci or a
	// vendor's vGPU manager: this kernel gives devices to guests.
	PassthroughHost *bool `json:"passthrough_host,omitempty"`
	// Source names the file that decided it.
	Source string `json:"source"`
}

// CPU is the processor, from /proc/cpuinfo.
type CPU struct {
	// Vendor is vendor_id: "GenuineIntel", "AuthenticAMD".
	Vendor string `json:"vendor,omitempty"`
	// Model is "model name".
	Model string `json:"model,omitempty"`
	// Sockets counts the distinct "physical id"s.
	Sockets int `json:"sockets,omitempty"`
}

// PCIFacts is the tree of PCI devices.
type PCIFacts struct {
	// Devices are all functions of /sys/bus/pci/devices, by address.
	Devices []PCIDevice `json:"devices"`
	// Partial is true when a text showed some of the functions only: one that is not listed may still exist.
	Partial bool `json:"partial,omitempty"`
	// UnnamedACS are ACS controls that a text shows without naming the function
	// ("lspci -vvv | grep ACSCtl"). Equal ones in a text are counted.
	UnnamedACS []UnnamedACS `json:"unnamed_acs,omitempty"`
}

// All are the devices; none of a tree that is not known.
func (f *PCIFacts) All() []PCIDevice {
	if f == nil {
		return nil
	}
	return f.Devices
}

// UnnamedACS is the ACS control of functions that a text does not name.
type UnnamedACS struct {
	// Control lists the controls that are switched on, as ACS.Control does.
	Control []string `json:"control"`
	// Count is how many functions have this control.
	Count int `json:"count"`
	// Source is the text's name, Line the first such line.
	Source string `json:"source"`
	Line   int    `json:"line"`
}

// PCIDevice is one function of a PCI device.
type PCIDevice struct {
	// Address is domain:bus:device.function, the folder's name.
	Address string `json:"address"`
	// Class is the 24-bit class code as "0x030200", from class.
	Class string `json:"class"`
	// Vendor and Device are the ids as "0x10de", from vendor and device.
	Vendor string `json:"vendor"`
	Device string `json:"device"`
	// Kind is the kind of device by its class code: "gpu", "nic", "nvswitch", "bridge", "host-bridge", "nvme", "audio",
	// "display" (a console or graphics inside the processor), "other"; empty if the class is not known.
	Kind string `json:"kind"`
	// Driver is the name of the bound driver, from the link driver.
	Driver string `json:"driver,omitempty"`
	// NUMANode is from numa_node; nil if the firmware gives none, or if it is not known.
	NUMANode *int `json:"numa_node,omitempty"`
	// NoNUMANode is true if the firmware assigns none: numa_node is -1.
	NoNUMANode bool `json:"no_numa_node,omitempty"`
	// IOMMUGroup is the group's number, from the link iommu_group.
	IOMMUGroup *int `json:"iommu_group,omitempty"`
	// RootBus is the first component of the real path: "pci0000:00".
	RootBus string `json:"root_bus,omitempty"`
	// Ancestors are the bridges above, the root port first, from the real path of the device.
	Ancestors []string `json:"ancestors,omitempty"`
	// Virtual is true for an SR-IOV virtual function (link physfn).
	Virtual bool `json:"virtual,omitempty"`

	// OffBus is true when config space reads as all ones: the device has
	// fallen off the bus or has no power. Its ids are those that the kernel remembers.
	OffBus bool `json:"off_bus,omitempty"`
	// PortType is the PCIe capability's port type: "endpoint", "legacy-endpoint", "root-port", "upstream-port",
	// "downstream-port", "pcie-to-pci", "pci-to-pcie", "integrated-endpoint", "event-collector". It, the link, the BARs
	// and the capabilities are read for GPUs, NICs, NVSwitches, NVMe drives and bridges only.
	PortType string `json:"port_type,omitempty"`
	// Link is the PCIe link at this function, its current and its maximum rate.
	Link *PCIeLink `json:"link,omitempty"`
	// Extended is true when the whole list of extended capabilities was read and a hypervisor hides none of them, so
	// that a capability that is missing is really missing.
	Extended bool `json:"extended"`
	// ACS is the Access Control Services capability (0x000d).
	ACS *ACS `json:"acs,omitempty"`
	// ATS is the Address Translation Services capability (0x000f).
	ATS *ATS `json:"ats,omitempty"`
	// ResizableBARs is the Resizable BAR capability (0x0015).
	ResizableBARs []ResizableBAR `json:"resizable_bars,omitempty"`
	// BARs are the memory and I/O windows, from resource.
	BARs []BAR `json:"bars,omitempty"`
}

// PCIeLink is one PCIe link as the function at its lower end, or the port at its upper end, reports it.
type PCIeLink struct {
	// SpeedGTs and Width are the negotiated ones (Link Status). An idle GPU may show 2.5 and be healthy.
	SpeedGTs float64 `json:"speed_gts,omitempty"`
	Width    int     `json:"width,omitempty"`
	// MaxSpeedGTs and MaxWidth are what the function can do (Link Capabilities).
	MaxSpeedGTs float64 `json:"max_speed_gts,omitempty"`
	MaxWidth    int     `json:"max_width,omitempty"`
	// Source is "config" or "sysfs", or the text that shows it, with the line.
	Source string `json:"source"`
}

// ACS is the Access Control Services capability.
type ACS struct {
	// Control lists the controls that are switched on, by the names lspci uses: "SrcValid", "TransBlk", "ReqRedir",
	// "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans".
	Control []string `json:"control"`
}

// ATS is the Address Translation Services capability.
type ATS struct {
	// Enabled is Control bit 15.
	Enabled bool `json:"enabled"`
}

// ResizableBAR is one entry of the Resizable BAR capability.
type ResizableBAR struct {
	// Index is the BAR's number.
	Index int `json:"index"`
	// SizeBytes is the size in force, MaxBytes the largest supported.
	SizeBytes int64 `json:"size_bytes"`
	MaxBytes  int64 `json:"max_bytes"`
}

// BAR is one base address register, from the file resource.
type BAR struct {
	// Index is the BAR's number, 0 to 5.
	Index int `json:"index"`
	// SizeBytes is end - start + 1.
	SizeBytes int64 `json:"size_bytes"`
	// Unassigned is true when the kernel found no room for it.
	Unassigned bool `json:"unassigned,omitempty"`
	// IO is true for a window of I/O ports.
	IO bool `json:"io,omitempty"`
}

// IOMMUFacts is the mode of DMA translation in force.
type IOMMUFacts struct {
	// Units are the names in /sys/class/iommu: "dmar0", "ivhd0". An empty
	// list means that no IOMMU is active; nil that this is not known.
	Units []string `json:"units"`
	// Vendor is "intel", "amd", "arm", "virtio", "other" or empty.
	Vendor string `json:"vendor,omitempty"`
	// Groups are those of /sys/kernel/iommu_groups.
	Groups []IOMMUGroup `json:"groups"`
	// Mode is "off" (no unit and no group), "passthrough" (every group of a GPU or NIC, or every group if there is
	// neither, is identity), "translated" (none is) or "mixed"; empty when it is not known. A GPU or NIC that is in no
	// group counts as identity.
	Mode string `json:"mode,omitempty"`
	// DefaultDomain is the type that the kernel gives to a group by default, "translated" or "passthrough", from the
	// kernel log: the groups themselves may differ, and it is also stated when there is no IOMMU. Only texts state it;
	// empty is not known.
	DefaultDomain string `json:"default_domain,omitempty"`
	// CommandLine are the kernel parameters that affect it. They say what was requested, not what is in force.
	CommandLine []string `json:"command_line,omitempty"`
}

// IOMMUGroup is one group of devices that share a translation.
type IOMMUGroup struct {
	ID int `json:"id"`
	// Type is from the file type: "identity", "DMA", "DMA-FQ", "auto",
	// "unmanaged"; empty if the kernel does not say (before 5.11).
	Type string `json:"type,omitempty"`
	// Devices are PCI addresses.
	Devices []string `json:"devices"`
}

// NUMAFacts is the memory topology.
type NUMAFacts struct {
	Nodes []NUMANode `json:"nodes"`
	// Balancing is /proc/sys/kernel/numa_balancing: 0 off, 1 normal, 2 memory tiering; nil when not shown.
	Balancing *int `json:"balancing,omitempty"`
	// AllowedCPUs are those that this process may use, from Cpus_allowed_list of /proc/self/status.
	AllowedCPUs string `json:"allowed_cpus,omitempty"`
}

// NUMANode is one node of /sys/devices/system/node.
type NUMANode struct {
	ID int `json:"id"`
	// CPUs is cpulist: "0-15,64-79"; empty for a node with only memory.
	CPUs string `json:"cpus"`
	// AllowedCPUs counts the CPUs of this node on which this process may run; nil if the affinity is not known.
	AllowedCPUs *int `json:"allowed_cpus,omitempty"`
	// MemoryBytes is MemTotal of meminfo.
	MemoryBytes int64 `json:"memory_bytes"`
}

// GPUFacts is what the vendors' management libraries report about the GPUs.
type GPUFacts struct {
	// Driver is the GPU driver.
	Driver GPUDriver `json:"driver"`
	// Devices are the GPUs, by PCI address: all that the PCI tree or the management library shows, so that one that is
	// missing in either is seen.
	Devices []GPU `json:"devices"`
	// NVSwitches counts the NVSwitches that the PCI tree shows, or that NVLinks lead to; nil when not known.
	NVSwitches *int `json:"nvswitches,omitempty"`
	// NVML says how the management library answered: "ok", "hang", "crashed", "ended" (its process, and not by the
	// library), "not-found", "not-built", "error", "not-asked".
	NVML string `json:"nvml"`
	// NVMLError is the name of the library's error code, if there is one.
	NVMLError string `json:"nvml_error,omitempty"`
	// P2P is what NVML reports about peer access for each pair, once; nil when it was not asked.
	P2P []GPUPeer `json:"p2p"`
	// AMD is AMD's driver and what it needs from the kernel; nil if there is neither an AMD GPU nor its driver.
	AMD *AMDDriver `json:"amd,omitempty"`
}

// All are the GPUs; none where they are not known.
func (f *GPUFacts) All() []GPU {
	if f == nil {
		return nil
	}
	return f.Devices
}

// At is the GPU at an address; nil where none is known.
func (f *GPUFacts) At(address string) *GPU {
	return Find(f.All(), func(g *GPU) bool { return g.Address == address })
}

// Find is the first element of a list that meets a condition, or nil.
func Find[T any](list []T, holds func(*T) bool) *T {
	for i := range list {
		if holds(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// Put sets an entry of a map, which is new if need be.
func Put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[key] = value
}

// AMDDriver is the kernel driver amdgpu, and what is needed around it. All of it is read from files: see docs/amd.md.
type AMDDriver struct {
	// Loaded is true when the module amdgpu is there (/sys/module/amdgpu).
	Loaded *bool `json:"loaded,omitempty"`
	// Version is that of a driver which was built beside the kernel (AMD's DKMS package); empty for the kernel's own.
	Version string `json:"version,omitempty"`
	// Parameters are those of /sys/module/amdgpu/parameters that affect
	// communication: "pcie_p2p": "Y", "noretry": "-1".
	Parameters map[string]string `json:"parameters,omitempty"`
	// KernelConfig are the options that peer access and DMA-BUF need, with their values "y", "m" or "n":
	// "CONFIG_HSA_AMD_P2P"; nil if the kernel's configuration cannot be read.
	KernelConfig map[string]string `json:"kernel_config,omitempty"`
	// KFD says how the compute driver's topology (/sys/class/kfd) was found: "ok", "absent", "unreadable", "partial".
	KFD string `json:"kfd"`
	// ROCm is the version of the ROCm installation, from its file .info/version.
	ROCm string `json:"rocm,omitempty"`
}

// GPUPeer is NVML's nvmlDeviceGetP2PStatus of one pair, in the words of Pair.P2P.
type GPUPeer struct {
	// A drives the transfer, B owns the memory; both are PCI addresses.
	A string `json:"a"`
	B string `json:"b"`
	// Read, Write and NVLink are the status by capability index.
	Read   string `json:"read,omitempty"`
	Write  string `json:"write,omitempty"`
	NVLink string `json:"nvlink,omitempty"`
}

// GPUDriver is the kernel driver and its user-space counterpart.
type GPUDriver struct {
	// Version is NVML's driver version.
	Version string `json:"version,omitempty"`
	// KernelVersion is from /proc/driver/nvidia/version: what is loaded.
	KernelVersion string `json:"kernel_version,omitempty"`
	// Open is true for the open kernel modules (same file).
	Open *bool `json:"open,omitempty"`
	// CUDAVersion is the newest CUDA that the driver serves, as 13.0.
	CUDAVersion string `json:"cuda_version,omitempty"`
	// Parameters are those of /proc/driver/nvidia/params.
	Parameters map[string]string `json:"parameters,omitempty"`
	// FabricManager is what of the fabric manager can be seen here.
	FabricManager *FabricManager `json:"fabric_manager,omitempty"`
}

// FabricManager is what can be seen of nvidia-fabricmanager on this machine.
// In a virtual machine it may run on the host, so absence is not a fault.
type FabricManager struct {
	// Running is true when a process named nv-fabricmanager is seen in /proc; nil when other processes cannot be seen.
	Running *bool `json:"running,omitempty"`
	// Version is the installed one, from its library or binary; empty if not found.
	Version string `json:"version,omitempty"`
}

// GPU is one GPU, or what can be said of it.
type GPU struct {
	// Address is its PCI address; empty for a GPU that NVML counts and that does not answer, where it cannot be told
	// which one that is. A GPU of which a text tells the index alone is called "GPU3".
	Address string `json:"address"`
	// Vendor is "nvidia" or "amd".
	Vendor string `json:"vendor"`
	// InPCI and InNVML say who shows it. They mean something only if the PCI tree was read, and if NVML answered to the
	// end (GPUFacts.NVML is "ok").
	InPCI  bool `json:"in_pci"`
	InNVML bool `json:"in_nvml"`
	// Error is NVML's error for this GPU: "GPU_IS_LOST".
	Error string `json:"error,omitempty"`
	// Index is NVML's index; CUDA's ordinal may differ (see transfers).
	Index *int `json:"index,omitempty"`
	// UUID is redacted in snapshots.
	UUID string `json:"uuid,omitempty"`
	// NUMANode is its node where a text tells it of the GPU itself
	// (nvidia-smi topo -m); that of the PCI device is in pci.devices.
	NUMANode *int `json:"numa_node,omitempty"`
	// Name is the model.
	Name string `json:"name,omitempty"`
	// Architecture is "ampere", "hopper", ...; of an AMD GPU "gfx942".
	Architecture string `json:"architecture,omitempty"`
	// Integrated is true for a GPU inside a processor, false for a card; nil
	// where it is unknown. On a live machine it is only known for AMD GPUs.
	Integrated *bool `json:"integrated,omitempty"`
	// ComputeCapability is "9.0".
	ComputeCapability string `json:"compute_capability,omitempty"`
	// MemoryBytes and MemoryUsedBytes are of the frame buffer.
	MemoryBytes     int64  `json:"memory_bytes,omitempty"`
	MemoryUsedBytes *int64 `json:"memory_used_bytes,omitempty"`
	// BAR1Bytes is the window through which others reach the memory; nil on coherent platforms that have none.
	BAR1Bytes *int64 `json:"bar1_bytes,omitempty"`
	// PCIe is the link as NVML sees it.
	PCIe *GPULink `json:"pcie,omitempty"`
	// PerformanceState is 0 (fastest) to 15.
	PerformanceState *int `json:"performance_state,omitempty"`
	// UtilizationPercent is how much of the last moment kernels ran, if a text
	// says so: a link may be idle only while the GPU is.
	UtilizationPercent *int `json:"utilization_percent,omitempty"`
	// Persistence is persistence mode.
	Persistence *bool `json:"persistence,omitempty"`
	// VirtualizationMode is "none", "passthrough", "vgpu", "host-vgpu", "host-vsga".
	VirtualizationMode string `json:"virtualization_mode,omitempty"`
	// MIG is true when MIG mode is on now.
	MIG *bool `json:"mig,omitempty"`
	// ECC is the state of memory protection.
	ECC *ECC `json:"ecc,omitempty"`
	// RetiredPages counts the memory pages that AMD's driver took out of use; nil if no text says.
	RetiredPages *int `json:"retired_pages,omitempty"`
	// XGMIErrors counts errors of the GPU's xGMI links: the uncorrectable ones that amd-smi counts for the block
	// XGMI_WAFL, or rocm-smi's status, 0 none, 1 one, 2 several (rsmi_xgmi_status_t); nil if no text says.
	XGMIErrors *int `json:"xgmi_errors,omitempty"`
	// VisibleMemoryBytes is how much of an AMD GPU's memory the processor, and thereby a peer, can reach
	// (mem_info_vis_vram_total). Less than MemoryBytes means that the BAR is small.
	VisibleMemoryBytes *int64 `json:"visible_memory_bytes,omitempty"`
	// KFD is the GPU in the topology of AMD's compute driver; nil if that does not list it.
	KFD *KFDNode `json:"kfd,omitempty"`
	// RAS are the error counters of the blocks of an AMD GPU.
	RAS []RASBlock `json:"ras,omitempty"`
	// VBIOS is the version of the card's firmware.
	VBIOS string `json:"vbios,omitempty"`
	// RemappedRows is the state of row remapping (Ampere and newer).
	RemappedRows *RemappedRows `json:"remapped_rows,omitempty"`
	// RecoveryAction is what NVML asks for: "none", "gpu-reset",
	// "node-reboot", "drain-p2p", "drain-and-reset", "recover-imex-domain".
	RecoveryAction string `json:"recovery_action,omitempty"`
	// NVLinks are its NVLinks; an empty list means it has none.
	NVLinks []NVLink `json:"nvlinks"`
	// Fabric is its membership in an NVSwitch fabric.
	Fabric *Fabric `json:"fabric,omitempty"`
	// Processes are those that hold memory on it.
	Processes []GPUProcess `json:"processes"`
}

// KFDNode is a GPU, or a partition of one, in the topology of AMD's compute driver (/sys/class/kfd/kfd/topology/nodes).
type KFDNode struct {
	// Node is its number.
	Node int `json:"node"`
	// Nodes are all nodes of a GPU that is partitioned, this one among them.
	Nodes []int `json:"nodes,omitempty"`
}

// RASBlock is the error counters of one block of an AMD GPU, since the driver was loaded (ras/umc_err_count).
type RASBlock struct {
	// Block is "umc", "gfx", "sdma", "xgmi_wafl", "pcie_bif", ...
	Block         string `json:"block"`
	Uncorrectable int64  `json:"uncorrectable"`
	Deferred      int64  `json:"deferred,omitempty"`
}

// GPULink is a GPU's PCIe link as NVML sees it.
type GPULink struct {
	Generation    int `json:"generation,omitempty"`
	Width         int `json:"width,omitempty"`
	MaxGeneration int `json:"max_generation,omitempty"`
	MaxWidth      int `json:"max_width,omitempty"`
}

// ECC is the state of memory protection. Volatile counts are since the driver was loaded.
type ECC struct {
	Enabled                bool   `json:"enabled"`
	VolatileUncorrected    *int64 `json:"volatile_uncorrected,omitempty"`
	RetiredPagesPending    *bool  `json:"retired_pages_pending,omitempty"`
	SRAMThresholdExceeded  *bool  `json:"sram_threshold_exceeded,omitempty"`
	UnrepairableMemory     *bool  `json:"unrepairable_memory,omitempty"`
	ChannelRepairIsPending *bool  `json:"channel_repair_pending,omitempty"`
}

// RemappedRows is the state of row remapping.
type RemappedRows struct {
	Pending bool `json:"pending"`
	Failed  bool `json:"failed"`
}

// NVLink is one NVLink of a GPU.
type NVLink struct {
	Link int `json:"link"`
	// Active is the link's state.
	Active bool `json:"active"`
	// Version is the NVLink generation (4 for Hopper).
	Version int `json:"version,omitempty"`
	// RemoteType is "gpu", "switch", "cpu" (IBM) or empty if hidden.
	RemoteType string `json:"remote_type,omitempty"`
	// RemoteAddress is the PCI address of the other end; hidden in a VM.
	RemoteAddress string `json:"remote_address,omitempty"`
	// SpeedMBps is the raw rate of one direction (26562 for NVLink 4).
	SpeedMBps int `json:"speed_mbps,omitempty"`
}

// Fabric is a GPU's membership in an NVSwitch fabric.
type Fabric struct {
	// State is "not-supported", "not-started", "in-progress", "completed".
	State string `json:"state"`
	// Status is the NVML error name once the state is completed; "SUCCESS".
	Status string `json:"status,omitempty"`
	// Unhealthy names the parts of the health mask that are bad:
	// "degraded-bandwidth", "route-recovery", "route-unhealthy",
	// "access-timeout-recovery", "incorrect-configuration".
	Unhealthy []string `json:"unhealthy,omitempty"`
}

// GPUProcess is a process that holds memory on a GPU.
type GPUProcess struct {
	PID int `json:"pid"`
	// Name is from /proc/PID/comm, empty when not visible.
	Name string `json:"name,omitempty"`
}

// LinkFacts is the path between each pair of GPUs, of GPU and NIC, and of GPU and NVMe
// drive, and between each GPU and its processor.
type LinkFacts struct {
	Pairs []Pair `json:"pairs"`
	// Hosts are the ways between GPUs and their processors; one with a link that is not known,
	// or that a hypervisor makes up, is left out.
	Hosts []HostPath `json:"hosts,omitempty"`
	// VirtualTopology is true when the tree shows no bridge above any of several
	// GPUs: a VM or container whose PCI paths are not the real ones.
	VirtualTopology *bool `json:"virtual_topology,omitempty"`
}

// All are the paths; none of links that are not known.
func (l *LinkFacts) All() []Pair {
	if l == nil {
		return nil
	}
	return l.Pairs
}

// Between returns the path between two devices, named in either order, or nil if there is no path.
func (l *LinkFacts) Between(a, b string) *Pair {
	return Find(l.All(), func(p *Pair) bool { return p.A == a && p.B == b || p.A == b && p.B == a })
}

// Pair is the path between two devices. Each unordered pair is listed once, the
// lower address first; of a GPU and another device the GPU is A.
type Pair struct {
	A string `json:"a"`
	B string `json:"b"`
	// Kind is "gpu-gpu", "gpu-nic" or "gpu-nvme".
	Kind string `json:"kind"`
	// Path is the PCIe path as nvidia-smi names it: PIX, PXB, PHB, NODE,
	// SYS; empty when the NUMA nodes that would decide are not known.
	Path string `json:"path,omitempty"`
	// Bridges are the bridges that traffic between the two crosses, from A up to the turning point and down to B. It
	// turns at CommonBridge, or in the root complex when that is empty.
	Bridges      []string `json:"bridges"`
	CommonBridge string   `json:"common_bridge,omitempty"`
	// Narrowest is the slowest PCIe link of the whole path; nil when a link of it is not known.
	Narrowest *NarrowestLink `json:"narrowest,omitempty"`
	// LinkType is how the two are connected according to AMD's driver or tools: "xgmi" or "pcie"; empty if neither was
	// queried. Hops counts the links on the path, as amd-smi and rocm-smi print them.
	LinkType string `json:"link_type,omitempty"`
	Hops     *int   `json:"hops,omitempty"`
	// XGMIGBps is what the xGMI links between the two carry in one direction.
	XGMIGBps float64 `json:"xgmi_gbps,omitempty"`
	// Accessible is what AMD's driver (p2p_links and io_links of its topology) or
	// its tools report about peer access between the two.
	Accessible *bool `json:"accessible,omitempty"`
	// NVLinks counts the active NVLinks that connect the two: directly, or, on an NVSwitch fabric, those of the end
	// that has fewer. 0 means none; nil that it is not known.
	NVLinks *int `json:"nvlinks,omitempty"`
	// NVSwitch is true when those NVLinks go through NVSwitches.
	NVSwitch bool `json:"nvswitch,omitempty"`
	// NVLinkGBps is what those links carry in one direction, usable, not raw: links times 25 (NVLink 4) and so on.
	NVLinkGBps float64 `json:"nvlink_gbps,omitempty"`
	// P2P is NVML's status of peer access between the two: "ok", "chipset-not-supported", "gpu-not-supported",
	// "topology-not-supported", "disabled-by-regkey", "not-supported", "unknown".
	P2P *P2PStatus `json:"p2p,omitempty"`
}

// NarrowestLink is the slowest PCIe link between two devices, at the speed
// that both its ends can do and at the one in force.
type NarrowestLink struct {
	// At is the device at the lower end of that link.
	At string `json:"at"`
	// SpeedGTs and Width are negotiated; GBps is their rate in one direction after line encoding.
	SpeedGTs float64 `json:"speed_gts"`
	Width    int     `json:"width"`
	GBps     float64 `json:"gbps"`
	// BestGBps is the rate of the path's narrowest link if each link ran at the best that both its ends can do. An idle
	// GPU lowers its speed, so this is the value to compare a probe under load with, unless the width is short.
	BestGBps float64 `json:"best_gbps"`
}

// HostPath is the narrowest PCIe link between a GPU and its processor, at the best that both ends of each link can do.
type HostPath struct {
	GPU string `json:"gpu"`
	// At is the device at the lower end of that link: the GPU itself, or the upstream port of a switch.
	At       string  `json:"at"`
	SpeedGTs float64 `json:"speed_gts"`
	Width    int     `json:"width"`
	GBps     float64 `json:"gbps"`
}

// Host returns the way between a GPU and its processor, or nil if it is not known.
func (l *LinkFacts) Host(gpu string) *HostPath {
	if l == nil {
		return nil
	}
	return Find(l.Hosts, func(h *HostPath) bool { return h.GPU == gpu })
}

// P2PStatus is NVML's nvmlDeviceGetP2PStatus by capability index.
type P2PStatus struct {
	Read   string `json:"read,omitempty"`
	Write  string `json:"write,omitempty"`
	NVLink string `json:"nvlink,omitempty"`
}

// ContainerFacts is the environment of this process.
type ContainerFacts struct {
	// Inside is true in a container; nil if undecided.
	Inside *bool `json:"inside,omitempty"`
	// Runtime is "docker", "podman", "kubernetes", "apptainer", "enroot",
	// "lxc", "containerd", "crio", "systemd-nspawn", "gvisor", "other" or empty.
	Runtime string `json:"runtime,omitempty"`
	// Evidence lists the files and variables that show it.
	Evidence []string `json:"evidence,omitempty"`
	// SHM is the file system at /dev/shm; nil when it is not mounted, which SHMMounted then says.
	SHM        *FileSystem `json:"shm,omitempty"`
	SHMMounted *bool       `json:"shm_mounted,omitempty"`
	// MemlockSoftBytes and MemlockHardBytes are RLIMIT_MEMLOCK; -1 is unlimited.
	MemlockSoftBytes *int64 `json:"memlock_soft_bytes,omitempty"`
	MemlockHardBytes *int64 `json:"memlock_hard_bytes,omitempty"`
	// NOFILESoft is RLIMIT_NOFILE, which counts file descriptors.
	NOFILESoft *int64 `json:"nofile_soft,omitempty"`
	// AddressSpaceSoftBytes is RLIMIT_AS; -1 is unlimited.
	AddressSpaceSoftBytes *int64 `json:"address_space_soft_bytes,omitempty"`
	// Capabilities are the effective ones by name ("SYS_NICE"), from CapEff of /proc/self/status; nil when not shown.
	Capabilities []string `json:"capabilities"`
	// GetMempolicy and Mlock, of one page, are the outcome of really calling
	// them: "ok" or an errno name ("EPERM", "ENOSYS").
	GetMempolicy string `json:"get_mempolicy,omitempty"`
	Mlock        string `json:"mlock,omitempty"`
	// Attempts are what else was really tried, where the probe was requested.
	Attempts *Attempts `json:"attempts,omitempty"`
	// Memory and Tasks are the limits of the control groups of this process and of those above that are visible
	// with the least left: memory.max and memory.current without the inactive page cache, pids.max and pids.current
	// (/sys/fs/cgroup; in version 1 memory.limit_in_bytes and memory.usage_in_bytes). Nil means that none is seen.
	Memory *GroupMemory `json:"memory,omitempty"`
	Tasks  *GroupTasks  `json:"tasks,omitempty"`
	// SysMounted and PCIVisible describe /sys: PCIVisible is true when /sys/bus/pci/devices lists devices.
	SysMounted *bool `json:"sys_mounted,omitempty"`
	PCIVisible *bool `json:"pci_visible,omitempty"`
	// DeviceNodes are the GPU and RDMA nodes below /dev.
	DeviceNodes []DeviceNode `json:"device_nodes"`
	// DriverDevices are the GPUs that the loaded kernel driver knows, from
	// /proc/driver/nvidia/gpus: a node for each should be in /dev.
	DriverDevices []DriverDevice `json:"driver_devices,omitempty"`
	// PrivateIPC, PrivatePID and PrivateUser are true when the namespace is not the initial one; nil if undecided.
	PrivateIPC  *bool `json:"private_ipc,omitempty"`
	PrivatePID  *bool `json:"private_pid,omitempty"`
	PrivateUser *bool `json:"private_user,omitempty"`
}

// GroupMemory is a limit of a control group on memory.
type GroupMemory struct {
	LimitBytes int64 `json:"limit_bytes"`
	InUseBytes int64 `json:"in_use_bytes"`
}

// GroupTasks is one on processes and threads.
type GroupTasks struct {
	Limit int64 `json:"limit"`
	Used  int64 `json:"used"`
}

// FileSystem is a mounted file system.
type FileSystem struct {
	// Path is the mount point, Type the file system ("tmpfs").
	Path string `json:"path"`
	Type string `json:"type,omitempty"`
	// SizeBytes and FreeBytes are from statfs.
	SizeBytes int64 `json:"size_bytes"`
	FreeBytes int64 `json:"free_bytes"`
	// ReadOnly is true when it cannot be written.
	ReadOnly bool `json:"read_only,omitempty"`
}

// DeviceNode is a file below /dev.
type DeviceNode struct {
	Path string `json:"path"`
	// Access is "rw", "r", "w" or "none": what this process may do, by access(2); empty if that could not be tried.
	Access string `json:"access"`
}

// DriverDevice is a GPU that the loaded kernel driver knows.
type DriverDevice struct {
	// Address is its PCI address.
	Address string `json:"address"`
	// Minor is the number of its node, /dev/nvidiaN.
	Minor *int `json:"minor,omitempty"`
	// Model is the driver's name for it.
	Model string `json:"model,omitempty"`
	// Excluded is true when the driver was told to leave it alone.
	Excluded bool `json:"excluded,omitempty"`
}

// EnvFacts is every communication variable.
type EnvFacts struct {
	// Variables are sorted by name, then source. A variable that is set in several places is listed several times;
	// Effective marks the one that the library takes.
	Variables []Variable `json:"variables"`
}

// Variable is one setting.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Source is "environment" or the file that holds it.
	Source string `json:"source"`
	// Line is the line in that file, from 1.
	Line int `json:"line,omitempty"`
	// Effective is true when this setting wins. NCCL lets the environment win over its files.
	Effective bool `json:"effective"`
	// Trial is true if it was set only for some of several runs of a program: somebody
	// tested its effect. It is not in force then.
	Trial bool `json:"trial,omitempty"`
}

// LibraryFacts is every GPU library that a program here could load.
type LibraryFacts struct {
	Files []Library `json:"files"`
	// Packages are the Python packages of GPU libraries and PyTorch, by folder and name, where an image is judged.
	Packages []PythonPackage `json:"packages,omitempty"`
	// Truncated is true when a search was cut short at its bound.
	Truncated bool `json:"truncated,omitempty"`
}

// PythonPackage is a Python package as its dist-info folder names it.
type PythonPackage struct {
	// Name is normalized: "torch", "nvidia-nccl-cu12".
	Name    string `json:"name"`
	Version string `json:"version"`
	// Path is the dist-info folder.
	Path string `json:"path"`
	// Layer is the layer of the image that added it.
	Layer *ImageLayer `json:"layer,omitempty"`
}

// Library is one shared library file.
type Library struct {
	// Kind is "libcuda", "libnvidia-ml", "libcudart", "libnccl", "librccl", "libamdhip64", "libhiprtc",
	// "libhsa-runtime64", "libhsakmt", "libamd_smi", "librocm_smi64", "librocprofiler-register", "nccl-net" (any
	// libnccl-net*.so, the OFI plugin among them), "libibverbs", "rdma-provider" (of libibverbs: libmlx5-rdmav34.so),
	// "libfabric", "libucp", "libuct", "libgdrapi", "libcudnn", "libnvidia-ptxjitcompiler",
	// "libnvidia-fatbinaryloader".
	Kind string `json:"kind"`
	// Path is where it was found, RealPath what it leads to.
	Path     string `json:"path"`
	RealPath string `json:"real_path,omitempty"`
	// Version is from the file's name or content; empty if neither states it.
	Version string `json:"version,omitempty"`
	// FoundBy is "ld_library_path", "ld_cache", "default_path", "python", "toolkit" (a folder that the loader does not
	// know, among them those of ld.so.conf where no cache was made of it) or "ld_preload".
	FoundBy string `json:"found_by"`
	// Stub is true for a link-time stub of the CUDA toolkit, which does not work at run time.
	Stub bool `json:"stub,omitempty"`
	// Compat is true for a forward-compatibility libcuda (a folder compat).
	Compat bool `json:"compat,omitempty"`
	// Mounted is true when the file is a mount of its own: the container
	// runtime put it in. Baked-in driver libraries are not.
	Mounted bool `json:"mounted,omitempty"`
	// Loads is true when this is the file that the loader uses for the plain name of its kind.
	Loads bool `json:"loads,omitempty"`
	// Empty is true for a file of no bytes: a mount point left over in a container image.
	Empty bool `json:"empty,omitempty"`
	// Layer is the layer of the image that the file comes from; nil outside of
	// images, and for images whose layers are not known.
	Layer *ImageLayer `json:"layer,omitempty"`
}

// ImageFacts is what a container image says about itself.
type ImageFacts struct {
	// Form is what was read: "oci-layout", "oci-archive", "docker-archive" or "root-folder".
	Form string `json:"form"`
	// Name is how the image calls itself, or the file.
	Name string `json:"name,omitempty"`
	// Platform is "linux/amd64"; empty if the image does not say.
	Platform string `json:"platform,omitempty"`
	// Environment is where the image's variables were read: "configuration" or "enroot"
	// (/etc/environment); empty where they are unknown, since a root folder has no configuration.
	Environment string `json:"environment,omitempty"`
	// User is the user that programs run as, as the configuration has it.
	User string `json:"user,omitempty"`
	// Layers are the layers from the lowest; a root folder has none.
	Layers []ImageLayer `json:"layers,omitempty"`
	// Files counts the files of all layers.
	Files int `json:"files"`
	// Unread are files and folders whose content is not known.
	Unread []string `json:"unread,omitempty"`
}

// TargetFacts are what an image needs to know of the machine that it is meant for.
type TargetFacts struct {
	// Source is the file that describes it, or "--driver".
	Source string `json:"source"`
	// Driver is the version of its NVIDIA driver, CUDA the release that this supports.
	Driver string `json:"driver,omitempty"`
	CUDA   string `json:"cuda,omitempty"`
	// GPUs are its models, each once.
	GPUs []string `json:"gpus,omitempty"`
	// RDMA are the drivers of its RDMA devices, as their names begin: "mlx5", "efa", "bnxt_re", "irdma".
	RDMA []string `json:"rdma,omitempty"`
}

// ImageLayer is a layer of an image.
type ImageLayer struct {
	// Index counts from 1, the lowest layer.
	Index int `json:"index"`
	// Digest is the name of the layer's blob.
	Digest string `json:"digest,omitempty"`
	// Command is the line of the Dockerfile that made it, or what the builder noted.
	Command string `json:"command,omitempty"`
}

// KernelLogFacts is every event of the kernel log that affects GPUs or PCIe.
type KernelLogFacts struct {
	// Source is "/dev/kmsg" or the file.
	Source string `json:"source"`
	// Events are sorted by time; equal ones are counted, not repeated.
	Events []KernelEvent `json:"events"`
}

// KernelEvent is one event of the kernel log.
type KernelEvent struct {
	// ID is the row of the catalogue that matches the line (checks/message/kernel.yaml):
	// "kernel-xid", "amdgpu-reset-failed".
	ID string `json:"id"`
	// Kind is "xid", "sxid", "aer", "dmar-fault", "amd-vi-fault", "nvrm", "pcie-link", "iommu-mode", "acs-disabled",
	// "bar", "bridge-window", "amdgpu", "oom".
	Kind string `json:"kind"`
	// Code is the Xid or SXid number.
	Code *int `json:"code,omitempty"`
	// Address is the PCI address that the line names.
	Address string `json:"address,omitempty"`
	// Fatal is what the line itself says about it (SXid, AER).
	Fatal *bool `json:"fatal,omitempty"`
	// BAR is the number of the BAR that could not be assigned, SizeBytes how much was
	// requested; nil and 0 if the line does not say.
	BAR       *int  `json:"bar,omitempty"`
	SizeBytes int64 `json:"size_bytes,omitempty"`
	// Fields are what else the row extracts from the line, and driver: the driver, or
	// the bus, that the kernel puts before the address of the device.
	Fields map[string]string `json:"fields,omitempty"`
	// Message is the line without its time, at most 300 bytes.
	Message string `json:"message"`
	// Seconds is the time since boot of the first such line.
	Seconds float64 `json:"seconds"`
	// Count is how often it occurred.
	Count int `json:"count"`
	// Host is the machine that the line names, Source the text that holds the
	// first such line, and Line its number; all are empty on a live machine.
	Host   string `json:"host,omitempty"`
	Source string `json:"source,omitempty"`
	Line   int    `json:"line,omitempty"`
}
