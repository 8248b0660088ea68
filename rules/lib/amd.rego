# AMD GPUs. Readings of the facts about AMD GPUs that rules share. The two families have different needs: Instinct
# accelerators need IOMMU pass-through, Radeon cards need remapping. None of this has been tested on AMD hardware.
package gpudoctor.lib.amd

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.tables.gpu_models as table

# gpus are the AMD GPUs that any text shows, including those with only a known index.
gpus := [g | some g in input.gpus.devices; g.vendor == "amd"]

# overrides are the variables by which GPUs, or one of them, report another architecture.
overrides := {name | some name, _ in facts.env; regex.match(`^HSA_OVERRIDE_GFX_VERSION(_[0-9]+)?$`, name)}

is_instinct(g) if contains(g.name, "Instinct")
is_instinct(g) if g.architecture in table.amd_instinct

# models are the names that benchmarks and logs also give the GPUs, and notes ("our R9700 need ...").
models := union({
	{name | some b in input.benchmarks; some name in b.gpu_names},
	{g.name | some g in gpus; g.name != ""},
	{m.fields.gpu | some m in logs.by_id["prose-p2p-off-needed"]},
})

instinct if {
	some name in models
	regex.match(`Instinct|^(?i:MI)`, name)
}

instinct if {
	some g in gpus
	g.architecture in table.amd_instinct
}

radeon if {
	some name in models
	regex.match(`Radeon|^(?i:R9700|RX|W ?[67])`, name)
	not contains(name, "Instinct")
}

radeon if {
	some g in gpus
	regex.match(`^gfx1[0-2]`, g.architecture)
}

# only_radeon and only_instinct are true where every GPU whose family is known is of that one.
only_radeon if {
	radeon
	not instinct
}

only_instinct if {
	instinct
	not radeon
}

# pairs are those of AMD GPUs, each unordered pair once.
pairs := {p | some p in input.links.pairs; p.kind == "gpu-gpu"; count({p.a, p.b} - addresses) == 0}

addresses := {g.address | some g in gpus}

over_pcie := {p | some p in pairs; p.link_type == "pcie"}

peer_access if {
	some p in over_pcie
	p.accessible == true
}

peer_access if count(offered) > 0

# offered are the ordered pairs of AMD GPUs for which HIP or the driver says that one reaches the memory of the other.
offered contains [p.a, p.b] if {
	some p in input.gpus.p2p
	p.read == "ok"
	p.a in addresses
	p.b in addresses
}

offered contains [p.source, p.destination] if {
	input.transfers.api == "hip"
	some p in input.transfers.peers
	p.access == true
}

offered contains direction if {
	some p in pairs
	p.accessible == true
	not p.dma == false
	some direction in [[p.a, p.b], [p.b, p.a]]
}

# small_bars are the GPUs of which the CPU, and therefore a peer, sees only part of the memory, with that part. The
# driver requires both sizes to be equal before it offers peer access over PCIe (amdgpu_device.c,
# amdgpu_device_is_peer_accessible: real_vram_size == visible_vram_size); a twentieth allows for rounded sizes.
small_bars[g.address] := g.visible_memory_bytes if {
	some g in gpus
	is_number(g.visible_memory_bytes)
	g.memory_bytes > 0
	g.visible_memory_bytes * 20 < g.memory_bytes * 19
	not g.integrated == true
}

large_bars := {g.address |
	some g in gpus
	is_number(g.visible_memory_bytes)
	g.memory_bytes > 0
	not small_bars[g.address]
}

# kernel_lacks are the options that the kernel must be built with (amdgpu-docs, docs/conceptual/iommu.rst) and is known to
# be without. CONFIG_HSA_AMD_P2P depends on the other two (drivers/gpu/drm/amd/amdkfd/Kconfig).
kernel_lacks := {option |
	some option in ["CONFIG_HSA_AMD_P2P", "CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY"]
	input.gpus.amd.kernel_config[option] == "n"
	not p2p_built
}

p2p_built if input.gpus.amd.kernel_config.CONFIG_HSA_AMD_P2P in {"y", "m"}

# p2p_switched_off is true where the driver was told to offer no peer access over
# PCIe (module parameter pcie_p2p of amdgpu, on by default).
p2p_switched_off if input.gpus.amd.parameters.pcie_p2p in {"N", "0", "n"}

p2p_switched_on if input.gpus.amd.parameters.pcie_p2p in {"Y", "1", "y"}

# errors are the counters of the blocks of each GPU, by block: those of the links
# of xGMI are amd-xgmi's, all others amd-gpu-fault's.
errors[g.address][b.block] := b if {
	some g in gpus
	some b in g.ras
}

hives := {g.kfd.hive | some g in gpus; g.kfd.hive != ""}

# kfd_lost are the GPUs that the compute driver does not list although it lists another of the same model: it was not
# started, or refused that one. Partitions of one accelerator are several functions, of which the first alone is a device.
kfd_lost := {d.address |
	input.gpus.amd.kfd == "ok"
	some d in input.pci.devices
	d.vendor == "0x1002"
	d.kind == "gpu"
	d.driver == "amdgpu"
	not d.virtual == true
	not d.address in listed
	d.device in {pci.device[address].device | some address in listed}
}

listed := {g.address | some g in gpus; g.kfd.node >= 0}

present if count(gpus) > 0
present if instinct
present if radeon

present if {
	some name in ["rocm", "rccl", "hip", "amdgpu"]
	logs.versions[name]
}

present if {
	some m in input.logs.messages
	m.program in {"rccl", "hip", "rocr", "rocblas"}
}

# discrete are the GPUs that are cards, integrated those in processors.
# An accelerator is no integrated GPU, whatever its memory: MI300A.
integrated := {g.address | some g in gpus; g.integrated == true; not is_instinct(g)}

discrete := {g.address | some g in gpus} - integrated

# crashes are messages that a program of AMD's software, or one under it, died or could not use a GPU.
crashes := logs.messages({
	"process-segmentation-fault", "rocr-memory-fault", "rocr-gpu-hang", "hsa-status-error", "rocblas-no-kernels", "hip-no-code-object",
	"hip-invalid-device", "hip-shared-object-failed",
})

# stuck is true when a log shows ranks that began a communicator and did not
# complete it, a benchmark that broke off, or a timeout.
stuck if {
	some c in input.logs.communicators
	c.completed < c.started
}

stuck if {
	some b in input.benchmarks
	b.tool in {"rccl-tests", "nccl-tests"}
	b.complete == false
}

stuck if {
	some m in logs.by_id["prose-p2p-off-needed"]
	m.fields.stands
}

stuck if count(logs.messages({
	"rocr-gpu-hang", "vllm-workers-stuck", "sglang-watchdog-timeout", "xla-collective-stuck", "nccl-timeout", "nccl-connect-timed-out",
	"nccl-connect-retries-exhausted", "nccl-socket-timed-out", "nccl-net-connect-timeout", "nccl-ib-modify-qp-timed-out", "socket-timed-out",
	"gloo-connect-failed", "torch-watchdog-timeout", "torch-watchdog-ended", "torch-work-status", "torch-heartbeat-timeout",
	"torch-desync-report", "torch-other-rank-failed", "torch-store-connect-failed", "torch-store-timed-out", "torch-store-clients-missing",
	"torch-store-barrier-timeout",
})) > 0

# absent is true where the GPUs are known and nothing shows one of AMD's, no_pair where
# fewer than two of them are AMD's.
absent if {
	is_array(input.gpus.devices)
	not present
}

no_pair if {
	is_array(input.gpus.devices)
	count(gpus) < 2
}
