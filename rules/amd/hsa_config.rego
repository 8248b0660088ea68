# METADATA
# title: A variable of AMD's runtime is missing or wrong
# description: >-
#   Variables control the HSA runtime, HIP and RCCL. Some versions of RCCL refuse to start without a variable that they
#   name. Others, left over or set by an image, break programs. A fake architecture (HSA_OVERRIDE_GFX_VERSION) applies
#   to every GPU of the process, and the legacy way to share memory (HSA_ENABLE_IPC_MODE_LEGACY) fails with newer
#   drivers. This rule has not been tested on AMD hardware.
# related_resources:
#   - ref: https://rocm.docs.amd.com/projects/ROCR-Runtime/en/latest/environment_variables.html
#     description: Variables of ROCr
#   - ref: https://github.com/ROCm/rocm-systems/blob/develop/projects/rccl/src/init.cc
#     description: checkHsaEnvSetting, which requires HSA_NO_SCRATCH_RECLAIM=1
#   - ref: https://github.com/ROCm/rocm-systems/blob/develop/projects/rccl/docs/how-to/rccl-usage-tips.rst
#     description: HSA_NO_SCRATCH_RECLAIM=1 on MI200 with ROCm 7.13 and newer
#   - ref: https://github.com/ROCm/rocm-systems/issues/2209
#     description: HSA_ENABLE_IPC_MODE_LEGACY=1 makes hipIpcGetMemHandle fail
#   - ref: https://github.com/ROCm/ROCR-Runtime/issues/270
#     description: The legacy mode needs calls that the mainline kernel lacks; use HSA_ENABLE_IPC_MODE_LEGACY=0 there
#   - ref: https://github.com/ROCm/ROCm/issues/5238
#     description: HSA_OVERRIDE_GFX_VERSION of another GPU causes a memory access fault
# custom:
#   severity: high
#   confidence: likely
#   areas: [environment]
#   needs: [[env, job-told], [gpus.devices, job-told]]
#   explains: [build-unsupported/no-kernels, override > app-failure]
#   remedies: [hsa-env, unset-env, nccl-p2p-disable, upgrade-rocm]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     demanded:
#       severity: critical
#       confidence: confirmed
#       remedies: [hsa-env]
#       text: "The program requires {subject}={value} and exited without it"
#     advised:
#       severity: low
#       confidence: possible
#       remedies: [hsa-env]
#       text: "RCCL recommends {subject}={value} for peer access over PCIe and for speed, and it is not set"
#     override:
#       remedies: [unset-env]
#       text: >-
#         {subject}={value} makes {whose} report another architecture[, including {misfits}]: programs
#         then run code that is not for it, and fail or crash
#     legacy: >-
#       HIP could not share a GPU's memory between processes ({at}), and RCCL, which does not test this first, fails with
#       it. ROCr has two ways. The first needs AMD's own kernel driver (amdgpu-dkms): the kernel's own amdgpu lacks it, and
#       newer drivers refuse it. The second is DMA-BUF, which {subject}=0 selects. Check the variable where the job runs,
#       because images set it to 1. NCCL_P2P_DISABLE=1 avoids the problem
#     unbuilt:
#       remedies: [hsa-env]
#       text: >-
#         The ROCm libraries have no code for {subject}. HSA_OVERRIDE_GFX_VERSION={value} makes it report as a card of its
#         generation that they may support; it applies to every GPU of the process
package gpudoctor.rules.hsa_config

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.gpu_models

on(grade, variable, value, messages, rest) := object.union(
	{
		"grade": grade, "subject": variable, "about": {"value": value}, "messages": messages,
		"evidence": [surroundings.variable_evidence(facts.variable[variable]) | facts.variable[variable]],
		"params": {"variable": variable, "value": value},
	},
	rest,
)

# named are the messages that name a variable without which a program exits, or that a library misses and does without,
# by the variable. RCCL's older advice is in its own row.
named.demanded[m.fields.variable] contains [m.order, m, m.fields.value] if {
	some m in logs.messages({"hsa-variable-required", "hsa-variable-please-set"})
	m.fields.variable != ""
}

named.advised[m.fields.variable] contains [m.order, m, m.fields.value] if {
	some m in logs.by_id["hsa-variable-advised"]
	m.fields.variable != ""
}

named.advised.HSA_FORCE_FINE_GRAIN_PCIE contains [m.order, m, "1"] if some m in logs.by_id["rccl-fine-grain-pcie-missing"]

findings contains on(grade, variable, value, {m | some [_, m, _] in ms}, {}) if {
	some grade, variables in named
	some variable, ms in variables
	value := sort(ms)[0][2]
	not needless(grade, variable, value)
}

needless("advised", variable, _) if named.demanded[variable]
needless("advised", variable, value) if facts.env[variable] == value

# overrides are the architectures that variables give to all GPUs or, with the number of a node of KFD (libhsakmt,
# src/topology.c), to one: "10.3.0" is gfx1030, "9.0.10" gfx90a.
overrides[name] := sprintf("gfx%s%s%s", [parts[0], hex(parts[1]), hex(parts[2])]) if {
	some name in amd.overrides
	parts := split(facts.env[name], ".")
	count(parts) == 3
	every part in parts {
		regex.match(`^[0-9]{1,2}$`, part)
	}
}

hex(digits) := sprintf("%x", [to_number(regex.replace(digits, `^0+([0-9])`, "$1"))])

# misfits are the GPUs that the faked architecture does not fit: their own has
# another major number, or their model is of the other family.
misfits[name] contains g.address if {
	some name, override in overrides
	some g in amd.gpus
	generation(g.architecture) != generation(override)
}

misfits[name] contains g.address if {
	some name, override in overrides
	some g in amd.gpus
	contains(g.name, "Instinct")
	generation(override) != "gfx9"
}

# wrong are the GPUs that a variable fits badly. Which GPU a number means is not known: it may be one that fits.
wrong(name) := misfits[name] if {
	name == "HSA_OVERRIDE_GFX_VERSION"
} else := misfits[name] if {
	count(misfits[name]) == count(amd.gpus)
} else := set()

# generation is an architecture without its last two digits: gfx9, gfx10.
generation(name) := substring(name, 0, count(name) - 2)

findings contains on("override", name, facts.env[name], amd.crashes | failures, {
	"id": "override",
	"affects": sort(wrong(name)),
	"about": {
		"value": facts.env[name], "misfits": {g | name == "HSA_OVERRIDE_GFX_VERSION"; some g in wrong(name)},
		"whose": object.get({"HSA_OVERRIDE_GFX_VERSION": "every GPU of the process"}, name, "one GPU"),
	},
	"severity": {true: "critical", false: "medium"}[count(amd.crashes | failures) > 0],
}) if {
	some name in amd.overrides
	count(wrong(name)) + count(failures) > 0
}

failures := logs.messages({"rocr-memory-fault", "hip-no-code-object", "rocblas-no-kernels"}) | {m |
	some m in logs.by_id["hsa-status-error"]
	m.fields.status == "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION"
}

# unshared are failures of HIP, or of RCCL in its transport, to share memory between processes. ROCr has two ways, the
# kernel driver's own (KFD, the default of ROCm 6.3), which the kernel of kernel.org does not have, and DMA-BUF; an image
# may choose one for the other (ROCR-Runtime issue 270, rccl issue 1454, rocm-systems issue 2209). RCCL does not try
# before it uses it (rocm-systems pull 7864).
unshared := logs.messages({"hip-ipc-failed"}) | {m |
	some m in logs.by_id["nccl-cuda-invalid-argument"]
	m.fields.runtime in {"HIP", "Hip"}
	endswith(m.fields.file, "transport/p2p.cc")
}

findings contains on("legacy", "HSA_ENABLE_IPC_MODE_LEGACY", "0", unshared, {
	"about": {"at": logs.at(logs.first(unshared))},
	"severity": {true: "critical", false: "high"}[set_to == "1"],
	"confidence": {true: "likely", false: "possible"}[set_to == "1"],
	"remedies": {true: ["unset-env"], false: ["hsa-env", "nccl-p2p-disable", "upgrade-rocm"]}[set_to == "1"],
}) if {
	set_to := object.get(facts.env, "HSA_ENABLE_IPC_MODE_LEGACY", "")
	set_to in {"", "1"}
}

# A card whose architecture the libraries were not built for, as rocBLAS says, or HIP where there is one such card. They
# are built for gfx1030 and gfx1100, not for the smaller cards of their generations, which run the same code
# (https://llvm.org/docs/AMDGPUUsage.html#processors lists them by generation). If the architecture is that of an
# integrated GPU, gpu-visibility reports it.
findings contains on("unbuilt", architecture, value, ms, {"severity": severity, "params": {"variable": "HSA_OVERRIDE_GFX_VERSION"}}) if {
	count(amd.overrides) == 0
	some [architecture, severity, ms] in unbuilt
	not architecture in gpu_models.amd_integrated
	regex.match(`^gfx1[0-2]`, architecture)
	value := {true: "10.3.0", false: sprintf("%s.%s.0", [substring(architecture, 3, 2), substring(architecture, 5, 1)])}[startswith(architecture, "gfx101")]
	architecture != concat("", array.concat(["gfx"], split(value, "."))) # It would change nothing.
}

unbuilt contains [m.fields.architecture, "medium", {m}] if some m in logs.by_id["rocblas-no-kernels"]

unbuilt contains [architecture, "high", logs.by_id["hip-no-code-object"]] if {
	cards := {g.architecture | some g in amd.gpus; g.architecture != ""} - {name | some name in gpu_models.amd_integrated}
	count(cards) == 1
	some architecture in cards
}

missing contains {"fact": "logs", "words": "neither messages of AMD's runtime nor its settings are available"} if {
	not logs.given
	not input.env
	not amd.absent
}

not_applicable contains "no AMD GPU" if amd.absent
