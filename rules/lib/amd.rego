# METADATA
# title: GPUs of AMD
# description: >-
#   Readings of the facts about AMD's GPUs that the rules share. The two
#   families differ in what they need: Instinct accelerators want DMA passed
#   through, Radeon cards want it remapped. None of it was tried on AMD
#   hardware.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.amd

import data.gpudoctor.lib.logs

# gpus are the AMD GPUs that any text shows, also those of which the index
# alone is known.
gpus := [g | some g in input.gpus.devices; g.vendor == "amd"]

# instinct_architectures are those of the CDNA accelerators (LLVM, AMDGPUUsage):
# gfx906 is of MI50 and MI60, and of Radeon VII.
instinct_architectures := {"gfx908", "gfx90a", "gfx940", "gfx941", "gfx942", "gfx950"}

# is_instinct and is_radeon say which family a GPU is of, where that is known.
is_instinct(g) if contains(g.name, "Instinct")

is_instinct(g) if g.architecture in instinct_architectures

is_radeon(g) if {
	contains(g.name, "Radeon")
	not contains(g.name, "Instinct")
}

is_radeon(g) if regex.match(`^gfx1[0-2]`, g.architecture)

# models are the names that benchmarks and logs give the GPUs, too.
models := {name | some b in input.benchmarks; some name in b.gpu_names} | {g.name | some g in gpus; g.name != ""}

instinct if {
	some g in gpus
	is_instinct(g)
}

instinct if {
	some name in models
	contains(name, "Instinct")
}

radeon if {
	some g in gpus
	is_radeon(g)
}

radeon if {
	some name in models
	contains(name, "Radeon")
	not contains(name, "Instinct")
}

# present is true where anything tells of AMD GPUs or of their software.
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

# discrete are the GPUs that are cards, integrated those inside of processors.
# An accelerator is no integrated GPU, whatever its memory: MI300A.
integrated := {g.address |
	some g in gpus
	g.integrated == true
	not is_instinct(g)
}

discrete := {g.address |
	some g in gpus
	not g.address in integrated
}

# crashes are messages that a program of AMD's software, or one under it, died
# or could not use a GPU.
crash_ids := {
	"process-segmentation-fault", "rocr-memory-fault", "rocr-gpu-hang", "hsa-status-error", "rocblas-no-kernels", "hip-no-code-object",
	"hip-invalid-device",
}

crashes := logs.messages(crash_ids)

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
	some m in logs.complaints
	regex.match(`(?i)\btime(d )?[ -]?out|watchdog|\bhang|\bhung\b|No available shared memory broadcast block`, m.text)
}
