# METADATA
# title: This version of RCCL or ROCm has a bug that shows here
# description: >-
#   Some ROCm releases include RCCL versions with bugs that other releases do not have. A bug is reported if a text
#   shows the release, and the GPUs or messages match those that the bug affects.
# related_resources:
#   - ref: https://rocm.docs.amd.com/en/latest/about/release-notes.html
#     description: Known and fixed issues of each release of ROCm
#   - ref: https://github.com/ROCm/rccl/blob/develop/CHANGELOG.md
#     description: RCCL changes by release
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - job-told-if-given
#     - [software, libraries.files]
#     - [texts-given, "gpus.devices[].architecture"]
#     - [texts-given, gpus.amd.rocm]
#   remedies: [nccl-proto, upgrade-rocm, downgrade-nccl, nccl-p2p-disable, fix-visible-devices, fix-application]
#   explains: [crash > app-failure/signal, codeless > build-unsupported/no-kernels]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.rccl_bug

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.known_faults
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

findings contains object.union(known_faults.finding(f), doubt(f)) if {
	some library in ["rccl", "rocm"]
	some f in known_faults.reported[library]
	concerns(f)
}

# A bug that shows only by its circumstances affects those who run RCCL: several GPUs of
# one kind and a program of several ranks.
concerns(f) if f.row.said
concerns(f) if f.row.symptom

concerns(_) if {
	several_ranks
	not workaround_set
}

several_ranks if {
	some p in input.software
	p.name in {"nccl", "rccl"}
	p.manager == "log"
}

several_ranks if input.logs.communicators[_].ranks > 1
several_ranks if input.launches[_].tensor_parallel > 1

workaround_set if lower(facts.env.NCCL_PROTO) == "simple"

# If neither the bug's own message nor a hanging job was seen, it is the next thing to check.
doubt(f) := {} if {
	shows(f)
} else := {"severity": "medium", "confidence": "possible"}

# shows is true where the fault's own symptom was seen, or the GPUs bring it about.
shows(f) if f.certain
shows(f) if count(f.messages) > 0
shows(_) if count(known_faults.symptoms.hang) > 0
shows(f) if f.row.symptom == "stall"

# codeless are messages of RCCL, or of a job over it, that the library holds no code for a GPU (HIP 98 and 209, HIP's
# hipErrorInvalidDeviceFunction and hipErrorNoBinaryForGpu): RCCL's own kernels are compiled for a list of
# architectures, which each release and each wheel chooses.
codeless := {m | some m in logs.by_id["hip-no-code-object"]; of_rccl(m)}

of_rccl(m) if m.fields.caller
of_rccl(_) if logs.said("nccl-unhandled-cuda-error")
of_rccl(_) if logs.by_id["xla-nccl-failed"][_].fields.error == "unhandled cuda error"

findings contains {
	"id": "codeless",
	"subject": "rccl",
	"message": "RCCL has no code for a GPU here (\"invalid device function\", HIP 98 and 209): it was built for other architectures, or one of the selected GPUs differs from the rest. Use a build of RCCL that lists the architecture (roc-obj-ls librccl.so), or exclude that GPU",
	"confidence": "possible",
	"messages": codeless,
	"params": {"variable": "HIP_VISIBLE_DEVICES"},
	"remedies": ["upgrade-rocm", "fix-visible-devices"],
} if count(codeless) > 0

missing contains {"fact": "software", "words": "no text shows the version of ROCm"} if {
	library_versions.on_amd
	logs.failed
	count(library_versions.used.rocm) + count(library_versions.used.rccl) == 0
}

not_applicable contains "the GPUs are NVIDIA's" if {
	surroundings.has_nvidia
	not library_versions.on_amd
}
