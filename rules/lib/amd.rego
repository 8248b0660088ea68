# AMD GPUs. Readings of the facts about AMD GPUs that rules share. The two families have different needs: Instinct
# accelerators need IOMMU pass-through, Radeon cards need remapping. None of this has been tested on AMD hardware.
package gpudoctor.lib.amd

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.tables.gpu_models as table

# gpus are the AMD GPUs that any text shows, including those with only a known index.
gpus := [g | some g in input.gpus.devices; g.vendor == "amd"]

addresses := {g.address | some g in gpus}

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

instinct if regex.match(`Instinct|^(?i:MI)`, models[_])
instinct if is_instinct(gpus[_])

radeon if regex.match(`Radeon|^(?i:R9700|RX|W ?[67])`, models[_])
radeon if regex.match(`^gfx1[0-2]`, gpus[_].architecture)

# only_radeon is true where every GPU whose family is known is a Radeon card.
only_radeon if {
	radeon
	not instinct
}

# pairs are those of AMD GPUs, each unordered pair once.
pairs := {p | some p in input.links.pairs; p.kind == "gpu-gpu"; count({p.a, p.b} - addresses) == 0}

over_pcie := {p | some p in pairs; p.link_type == "pcie"}
over_xgmi := {p | some p in pairs; p.link_type == "xgmi"}

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
	some direction in [[p.a, p.b], [p.b, p.a]]
}

# small_bars are the GPUs of which the CPU, and therefore a peer, sees only part of the memory, with that part: the driver
# then offers no peer access over PCIe (amdgpu_device_is_peer_accessible). A twentieth allows for rounded sizes.
small_bars := {g.address: g.visible_memory_bytes |
	some g in gpus
	is_number(g.visible_memory_bytes)
	g.memory_bytes > 0
	g.visible_memory_bytes * 20 < g.memory_bytes * 19
	not g.integrated == true
}

large_bars := {g.address | some g in gpus; is_number(g.visible_memory_bytes); g.memory_bytes > 0; not small_bars[g.address]}

present if count(gpus) > 0
present if instinct
present if radeon
present if input.software[_].name in {"rocm", "rccl", "hip"}
present if input.logs.messages[_].program in {"rccl", "hip", "rocr", "rocblas"}

# absent is true where the GPUs are known and nothing shows one of AMD's, no_pair where fewer than two are AMD's.
absent if {
	is_array(input.gpus.devices)
	not present
}

no_pair if {
	is_array(input.gpus.devices)
	count(gpus) < 2
}

# discrete are the GPUs that are cards, integrated those in processors. An accelerator is no integrated GPU, whatever its
# memory: MI300A.
integrated := {g.address | some g in gpus; g.integrated == true; not is_instinct(g)}

discrete := addresses - integrated

# crashes are messages that a program of AMD's software, or one under it, died or could not use a GPU.
crashes := logs.messages({
	"process-segmentation-fault", "rocr-memory-fault", "rocr-gpu-hang", "hsa-status-error", "rocblas-no-kernels", "hip-no-code-object",
	"hip-invalid-device", "hip-shared-object-failed",
})

# stuck is true where ranks began a communicator and did not complete it, a benchmark broke off, or something timed out.
stuck if {
	some c in input.logs.communicators
	c.completed < c.started
}

stuck if {
	some b in input.benchmarks
	b.tool in {"rccl-tests", "nccl-tests"}
	b.complete == false
	not logs.goes_on_below(b)
}

stuck if count(logs.stalled) > 0

stuck if count(logs.messages({
	"rocr-gpu-hang", "vllm-workers-stuck", "sglang-watchdog-timeout", "xla-collective-stuck", "nccl-timeout", "torch-watchdog-timeout",
	"torch-heartbeat-timeout", "torch-desync-report",
})) > 0
