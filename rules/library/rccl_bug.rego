# METADATA
# title: This version of RCCL or ROCm has a bug that shows here
# description: >-
#   Some ROCm releases include RCCL versions with bugs that other releases do not have. A bug is reported if a text
#   shows the release, and the GPUs or messages match those that the bug affects.
# related_resources:
#   - ref: https://rocm.docs.amd.com/en/latest/about/release-notes.html
#     description: Known and fixed issues of each release of ROCm
# custom:
#   severity: high
#   confidence: likely
#   needs: [job-told-if-given, [software, libraries.files], [texts-given, "gpus.devices[].architecture"], [texts-given, gpus.amd.rocm]]
#   remedies: [nccl-proto, upgrade-rocm, downgrade-nccl, nccl-p2p-disable, fix-application]
#   explains: [crash > app-failure/signal]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.rccl_bug

import data.gpudoctor.lib.known_faults
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

findings contains known_faults.finding(f) if {
	some library in ["rccl", "rocm"]
	some f in known_faults.found[library]
}

missing contains {"fact": "software", "words": "no text shows the version of ROCm"} if {
	library_versions.on_amd
	logs.failed
	count(library_versions.used.rocm) + count(library_versions.used.rccl) == 0
}

not_applicable contains "the GPUs are NVIDIA's" if {
	surroundings.has_nvidia
	not library_versions.on_amd
}
