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
#   explains: [build-unsupported/no-kernels]
#   remedies: [hsa-env, unset-env, nccl-p2p-disable, upgrade-rocm]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.hsa_config

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.gpu_models

# on is a finding on a variable.
on(variable, grade, message, rest) := object.union(
	{"subject": variable, "severity": grade[0], "confidence": grade[1], "message": message, "params": {"variable": variable}},
	rest,
)

# as_set names a variable with its value and where it was set.
as_set(variable) := sprintf("%s=%s, set %s,", [variable, facts.env[variable], surroundings.where(facts.variable[variable])])

# setting is the evidence for a variable's value, where it has one.
setting(variable) := [surroundings.variable_evidence(facts.variable[variable]) | facts.variable[variable]]

# demanded are the messages that name a variable without which a program exits, by the variable.
demanded[m.fields.variable] contains m if {
	some m in logs.messages({"hsa-variable-required", "hsa-variable-please-set"})
	m.fields.variable != ""
	m.fields.value
}

findings contains on(variable, ["critical", "confirmed"], message, {
	"messages": ms,
	"evidence": setting(variable),
	"params": {"variable": variable, "value": wanted},
	"remedies": ["hsa-env"],
}) if {
	some variable, ms in demanded
	wanted := logs.first(ms).fields.value
	message := sprintf("The program requires %s=%s and exited without it%s", [variable, wanted, standing(variable)])
}

standing(variable) := sprintf("; it is set to %s %s", [facts.env[variable], surroundings.where(facts.variable[variable])])

default standing(_) := ""

# advised are variables that a library misses and does without: the messages, and the value that they ask for. RCCL's
# older advice is in its own rows.
advised[m.fields.variable] contains [m, m.fields.value] if {
	some m in logs.by_id["hsa-variable-advised"]
	m.fields.variable != ""
}

advised.HSA_FORCE_FINE_GRAIN_PCIE contains [m, "1"] if some m in logs.by_id["rccl-fine-grain-pcie-missing"]

findings contains on(variable, [advised_severity(variable), "possible"], message, {
	"messages": ms,
	"params": {"variable": variable, "value": wanted},
	"remedies": ["hsa-env"],
}) if {
	some variable, all in advised
	not demanded[variable]
	ms := {m | some [m, _] in all}
	some [m, wanted] in all
	m == logs.first(ms)
	object.get(facts.env, variable, "") != wanted
	message := sprintf("RCCL recommends %s=%s for peer access over PCIe and for speed, and it is not set", [variable, wanted])
}

# Without fine-grained memory peer access over PCIe fails or hangs before ROCm 5.7 (rccl issue 1026): where a job failed
# and nothing says why, that is the first suspect.
advised_severity(variable) := "medium" if {
	variable == "HSA_FORCE_FINE_GRAIN_PCIE"
	logs.failed
	count({m | some m in logs.complaints; m.role == "cause"}) == 0
} else := "low"

# override is the architecture that HSA_OVERRIDE_GFX_VERSION gives to all GPUs: "10.3.0" is gfx1030, "9.0.10" gfx90a.
override := sprintf("gfx%s%s%s", [parts[0], hex(parts[1]), hex(parts[2])]) if {
	parts := split(facts.env.HSA_OVERRIDE_GFX_VERSION, ".")
	count(parts) == 3
	every part in parts {
		regex.match(`^[0-9]{1,2}$`, part)
	}
}

hex(digits) := sprintf("%x", [to_number(regex.replace(digits, `^0+([0-9])`, "$1"))])

# misfits are the GPUs that the faked architecture does not fit: their own has
# another major number, or their model is of the other family.
misfits[g.address] contains g.architecture if {
	some g in amd.gpus
	generation(g.architecture) != generation(override)
}

misfits[g.address] contains g.name if {
	some g in amd.gpus
	contains(g.name, "Instinct")
	generation(override) != "gfx9"
}

# generation is an architecture without its last two digits: gfx9, gfx10.
generation(name) := substring(name, 0, count(name) - 2)

findings contains on("HSA_OVERRIDE_GFX_VERSION", override_grade, message, {
	"affects": sort(object.keys(misfits)),
	"messages": (amd.crashes | failures),
	"evidence": setting("HSA_OVERRIDE_GFX_VERSION"),
	"remedies": ["unset-env"],
}) if {
	count(misfits) + count(failures) > 0
	message := sprintf("%s makes every GPU of the process report another architecture%s: programs then run code that is not for it, and fail or crash", [
		as_set("HSA_OVERRIDE_GFX_VERSION"), concat("", [sprintf(" (%s), including %s", [override, facts.list(object.keys(misfits))]) | count(misfits) > 0]),
	])
}

override_grade := ["critical", "likely"] if {
	count(misfits) > 0
	count(amd.crashes) > 0
} else := ["medium", "likely"] if {
	count(misfits) > 0
} else := ["high", "possible"]

failures := logs.messages({"rocr-memory-fault", "hip-no-code-object", "rocblas-no-kernels"})

# The older way to share memory between processes.
findings contains on("HSA_ENABLE_IPC_MODE_LEGACY", ["critical", "likely"], message, {
	"messages": unshared,
	"evidence": setting("HSA_ENABLE_IPC_MODE_LEGACY"),
	"remedies": ["unset-env"],
}) if {
	facts.env.HSA_ENABLE_IPC_MODE_LEGACY == "1"
	count(unshared) > 0
	message := sprintf("%s selects the legacy way to share a GPU's memory between processes, which newer drivers refuse, and HIP could not share it", [as_set("HSA_ENABLE_IPC_MODE_LEGACY")])
}

unshared := logs.messages({"hip-ipc-failed"}) | unmapped

# unmapped are failures of RCCL to map a peer's memory.
unmapped := {m |
	some m in logs.by_id["nccl-cuda-invalid-argument"]
	m.fields.runtime in {"HIP", "Hip"}
	endswith(m.fields.file, "transport/p2p.cc")
}

# The same where no text tells how the variable is set. ROCr has two ways, the kernel driver's own (KFD, the default of
# ROCm 6.3), which the kernel of kernel.org does not have, and DMA-BUF; an image may choose one for the other
# (ROCR-Runtime issue 270, rccl issue 1454, rocm-systems issue 2209). RCCL does not try before it uses it (rocm-systems
# pull 7864).
findings contains on("HSA_ENABLE_IPC_MODE_LEGACY", ["high", "possible"], message, {
	"messages": unshared,
	"params": {"variable": "HSA_ENABLE_IPC_MODE_LEGACY", "value": "0"},
	"remedies": ["hsa-env", "nccl-p2p-disable", "upgrade-rocm"],
}) if {
	count(unshared) > 0
	not facts.env.HSA_ENABLE_IPC_MODE_LEGACY
	message := sprintf("HIP could not share a GPU's memory between processes (%s), and RCCL, which does not test this first, fails with it. ROCr has two ways. The first needs AMD's own kernel driver (amdgpu-dkms): the kernel's own amdgpu lacks it, and newer drivers refuse it. The second is DMA-BUF, which HSA_ENABLE_IPC_MODE_LEGACY=0 selects. Check the variable where the job runs, because images set it to 1. NCCL_P2P_DISABLE=1 avoids the problem", [logs.at(logs.first(unshared))])
}

# A card whose architecture the libraries were not built for, as rocBLAS says, or HIP where there is one such card. They
# are built for gfx1030 and gfx1100, not for the smaller cards of their generations, which run the same code
# (https://llvm.org/docs/AMDGPUUsage.html#processors lists them by generation). If the architecture is that of an
# integrated GPU, gpu-visibility reports it.
findings contains on(architecture, grade, message, {
	"messages": ms,
	"params": {"variable": "HSA_OVERRIDE_GFX_VERSION", "value": value},
	"remedies": ["hsa-env"],
}) if {
	not facts.env.HSA_OVERRIDE_GFX_VERSION
	some [architecture, grade, ms] in unbuilt
	not architecture in gpu_models.amd_integrated
	regex.match(`^gfx1[0-2]`, architecture)
	value := {true: "10.3.0", false: sprintf("%s.%s.0", [substring(architecture, 3, 2), substring(architecture, 5, 1)])}[startswith(architecture, "gfx101")]
	message := sprintf("The ROCm libraries have no code for %s. HSA_OVERRIDE_GFX_VERSION=%s makes it report as a card of its generation that they may support; it applies to every GPU of the process", [architecture, value])
}

unbuilt contains [m.fields.architecture, ["medium", "possible"], {m}] if some m in logs.by_id["rocblas-no-kernels"]

unbuilt contains [architecture, ["high", "likely"], logs.by_id["hip-no-code-object"]] if {
	cards := {g.architecture | some g in amd.gpus; g.architecture != ""} - {name | some name in gpu_models.amd_integrated}
	count(cards) == 1
	some architecture in cards
}

# From ROCm 7.13 on the runtime gives scratch memory back after each launch on MI200, which makes collectives of small
# messages several times slower (RCCL's CHANGELOG, known issues; docs/how-to/rccl-usage-tips.rst).
findings contains on("HSA_NO_SCRATCH_RECLAIM", ["low", "likely"], message, {
	"evidence": [use.evidence],
	"params": {"variable": "HSA_NO_SCRATCH_RECLAIM", "value": "1"},
	"remedies": ["hsa-env"],
}) if {
	some use in library_versions.used.rocm
	library_versions.in_range({"since": "7.13.0"}, use.version)
	amd.mi200
	not facts.env.HSA_NO_SCRATCH_RECLAIM == "1"
	not "HSA_NO_SCRATCH_RECLAIM" in object.keys(demanded)
	message := sprintf("ROCm %s frees scratch memory after each launch on MI200 (gfx90a), which makes collectives below 16 MB several times slower; RCCL's guide recommends HSA_NO_SCRATCH_RECLAIM=1 there", [use.version])
}

missing contains {"fact": "logs", "words": "neither messages of AMD's runtime nor its settings are available"} if {
	not logs.given
	not input.env
	not amd.absent
}

not_applicable contains "no AMD GPU" if amd.absent
