# METADATA
# title: This version of NCCL has a bug that shows here
# description: >-
#   Some versions of NCCL have bugs that later ones fix: they do not support a newer GPU, hang in certain circumstances,
#   or crash instead of reporting what is missing. A bug is reported if the version is known and the bug's symptom
#   shows, if only versions with the bug print a message, or if the installed version does not support the GPUs.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/release-notes/index.html
#     description: What each version of NCCL fixes
# custom:
#   severity: high
#   confidence: likely
#   needs: [job-told-if-given, [software, libraries.files], [texts-given, "libraries.files[].version"],
#     [texts-given, "gpus.devices[].name"]]
#   remedies: [upgrade-nccl, downgrade-nccl, nccl-proto, nccl-algo, nccl-cumem-disable, nccl-nvls-disable, same-nccl-everywhere, unset-env, fix-application]
#   explains: [crash > app-failure/signal]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.nccl_bug

import data.gpudoctor.lib.known_faults
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

findings contains object.union(known_faults.finding(f), crashed(f)) if some f in known_faults.found.nccl

# crashed is the id of a fault that shows in the stack of a process that died.
crashed(f) := {"id": "crash"} if "stack-in-nccl" in {m.id | some m in f.messages}

else := {}

missing contains {"fact": "software", "words": "no text shows the version of NCCL"} if {
	logs.failed
	not library_versions.version_known.nccl
	not library_versions.on_amd
}

missing contains {"fact": "libraries.files[].version", "words": "which of the installed versions of NCCL a job loads is not known"} if {
	not logs.given
	not library_versions.version_known.nccl
	some row in known_faults.unsupported
	row.library == "nccl"
	library_versions.in_range(row, surroundings.nccl[_].version)
}

not_applicable contains "no NCCL is installed here" if library_versions.no_nccl
not_applicable contains "the GPUs are AMD's, which use RCCL instead of NCCL" if library_versions.on_amd
