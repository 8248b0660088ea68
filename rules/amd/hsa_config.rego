# METADATA
# title: A variable of AMD's runtime is missing or wrong
# description: >-
#   Variables control the HSA runtime, HIP and RCCL. Some versions of RCCL refuse to start without a variable that they
#   name. Others, left over or set by an image, break programs: a fake architecture (HSA_OVERRIDE_GFX_VERSION) applies to
#   every GPU of the process, and the legacy way to share memory (HSA_ENABLE_IPC_MODE_LEGACY) fails with newer drivers.
#   This rule has not been tested on AMD hardware.
# related_resources:
#   - ref: https://rocm.docs.amd.com/projects/ROCR-Runtime/en/latest/environment_variables.html
#     description: Variables of ROCr
#   - ref: https://github.com/ROCm/ROCR-Runtime/issues/270
#     description: The legacy mode needs calls that the mainline kernel lacks; use HSA_ENABLE_IPC_MODE_LEGACY=0 there
#   - ref: https://github.com/ROCm/ROCm/issues/5238
#     description: HSA_OVERRIDE_GFX_VERSION of another GPU causes a memory access fault
# custom:
#   severity: high
#   confidence: likely
#   areas: [environment]
#   needs: [[env, job-told], [gpus.devices, job-told]]
#   explains: [override > build-unsupported/no-kernels, override > app-failure, disguised > app-failure]
#   remedies: [hsa-env, unset-env, nccl-p2p-disable, upgrade-rocm]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     override:
#       remedies: [unset-env]
#       text: >-
#         {subject}={value} makes every GPU of the process report another architecture[, including {misfits}]: programs
#         then run code that is not for it, and fail or crash
#     disguised:
#       severity: critical
#       remedies: [unset-env]
#       text: >-
#         {name} reports the architecture {reported}, and is {architecture}: HSA_OVERRIDE_GFX_VERSION is set where its
#         programs run. They load code for another architecture, and fail or crash
#     legacy:
#       remedies: [hsa-env, nccl-p2p-disable, upgrade-rocm]
#       text: >-
#         HIP could not share a GPU's memory between processes ({at}), and RCCL, which does not test this first, fails
#         with it. ROCr has two ways. The first needs AMD's own kernel driver (amdgpu-dkms): the kernel's own amdgpu lacks
#         it, and newer drivers refuse it. The second is DMA-BUF, which {subject}=0 selects. Check the variable where the
#         job runs, because images set it to 1. NCCL_P2P_DISABLE=1 avoids the problem
package gpudoctor.rules.hsa_config

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

override := facts.variable.HSA_OVERRIDE_GFX_VERSION

# misfits are the GPUs of another generation than the architecture that they report: "10.3.0" is gfx1030, "9.0.10" gfx90a.
misfits := {g.address |
	some g in amd.gpus
	not startswith(g.architecture, sprintf("gfx%s", [regex.find_n(`^[0-9]+`, override.value, 1)[0]]))
}

failures := logs.messages({"rocr-memory-fault", "hip-no-code-object", "rocblas-no-kernels"}) | {m |
	some m in logs.by_id["hsa-status-error"]
	m.fields.status == "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION"
}

findings contains {
	"id": "override",
	"subject": override.name,
	"affects": sort(misfits),
	"about": {"value": override.value, "misfits": misfits},
	"severity": {true: "critical", false: "medium"}[count(amd.crashes) > 0],
	"messages": amd.crashes,
	"evidence": [surroundings.variable_evidence(override)],
	"params": {"variable": override.name, "value": override.value},
} if count(misfits) + count(failures) > 0

# A GPU whose name shows that it is of another architecture than the runtime reports: nothing but the variable makes that.
findings contains {
	"id": "disguised",
	"subject": "HSA_OVERRIDE_GFX_VERSION",
	"about": {"name": g.name, "reported": reported, "architecture": architecture},
	"messages": failures,
	"evidence": facts.gpu_evidence({g}, "architecture", "rocminfo"),
	"params": {"variable": "HSA_OVERRIDE_GFX_VERSION"},
} if {
	not override
	count(failures) > 0
	some g in amd.gpus
	architecture := gpu_models.of(g.name).architecture
	reported := regex.find_n(`^gfx[0-9a-f]+`, g.architecture, 1)[0]
	reported != architecture
}

# unshared are failures of HIP, or of RCCL in its transport, to share memory between processes (rccl issue 1454,
# rocm-systems issue 2209).
unshared := logs.messages({"hip-ipc-failed"}) | {m |
	some m in logs.by_id["nccl-cuda-invalid-argument"]
	m.fields.runtime in {"HIP", "Hip"}
	endswith(m.fields.file, "transport/p2p.cc")
}

legacy := object.get(facts.env, "HSA_ENABLE_IPC_MODE_LEGACY", "")

findings contains {
	"grade": "legacy",
	"subject": "HSA_ENABLE_IPC_MODE_LEGACY",
	"about": {"at": logs.at(logs.first(unshared))},
	"confidence": {"1": "likely", "": "possible"}[legacy],
	"messages": unshared,
	"evidence": [surroundings.variable_evidence(v) | v := facts.variable.HSA_ENABLE_IPC_MODE_LEGACY],
	"params": {"variable": "HSA_ENABLE_IPC_MODE_LEGACY", "value": "0"},
}

not_applicable contains "no AMD GPU" if amd.absent
