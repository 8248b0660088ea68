# METADATA
# title: MIG is enabled, and MIG instances have no peer access
# description: >-
#   A GPU in MIG mode is split into instances that cannot access each other or any other GPU directly, over PCIe or
#   NVLink. This may be intended, but a job over several GPUs needs MIG disabled.
# related_resources:
#   - {ref: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/, description: MIG mode has no peer-to-peer access}
# custom:
#   severity: low
#   confidence: likely
#   needs:
#     - gpus.devices
#   remedies: [disable-mig, separate-mig-instances]
#   explains: [p2p-unsupported-gpu, gpu-visibility]
#   since: "0.1"
#   grades:
#     enabled:
#       remedies: [disable-mig]
#       text: >-
#         MIG is enabled on {on} of {of} GPUs. A job over several of them has no peer access on these, and expects whole
#         GPUs that do not exist; separate small jobs are fine.
#     spanned: >-
#       The job needs whole GPUs, or several of them, but there are MIG instances. CUDA shows a process one instance, or
#       none if none was created, and NCCL does not communicate between instances; it requires whole GPUs, with MIG disabled.
package gpudoctor.rules.mig_mode

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.peers

on := {g.address | some g in facts.named; g.mig == true}

off := {g.address | some g in facts.named; g.mig == false}

# All GPUs alike look intended, as for a machine that serves many small models. One odd GPU among others looks left
# over, and a job that takes all of them fails on it.
findings contains {
	"grade": "enabled",
	"subject": {true: "host", false: peers.shorten(on)}[count(off) == 0],
	"affects": sort(on),
	"about": {"on": count(on), "of": count(on | off)},
	"evidence": facts.gpu_evidence(on | off, "mig", "nvmlDeviceGetMigMode"),
	"severity": {true: "low", false: "medium"}[count(off) == 0],
} if {
	count(on) > 0
	count(facts.gpus) > 1
}

# slices are the lists of several MIG devices that a job was given by name.
slices contains {"fact": sprintf("env.variables[%s]", [v.name]), "value": v.value, "source": v.source} if {
	some v in input.env.variables
	v.name in {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"}
	count(regex.find_n(`MIG-`, v.value, -1)) > 1
}

only_instances if count(slices) > 0

only_instances if {
	count(on) > 0
	count(off) == 0
}

# said is what programs say where a job runs over several instances: CUDA enumerates one for each process (MIG user guide,
# "CUDA device enumeration"), and NCCL takes two of one GPU for the same GPU, or before 2.13 says "invalid usage".
said contains m if some m in logs.messages({"mig-name-refused"})

said contains m if {
	only_instances
	not facts.env.NCCL_MULTI_RANK_GPU_ENABLE == "1" # With it NCCL takes several instances of one GPU.
	some m in logs.messages({
		"nccl-duplicate-gpu", "nccl-invalid-usage",
		"cuda-invalid-device", "too-few-gpus", "cuda-no-device", "torch-sees-no-gpu",
	})
}

findings contains {
	"grade": "spanned",
	"subject": "host",
	"affects": sort(on),
	"messages": said,
	"evidence": array.concat(sort(slices), facts.gpu_evidence(on, "mig", "nvidia-smi")),
	"severity": {true: "critical", false: "medium"}[count(said) > 0],
} if count(slices | said) > 0

asks contains "gpus.devices[].mig" if input.gpus.nvml != "ok"

not_applicable contains "no GPU" if count(facts.gpus) == 0
not_applicable contains "no NVIDIA GPU" if facts.only_amd

not_applicable contains "no GPU here supports MIG" if {
	input.gpus.nvml == "ok"
	count(on | off) == 0
}
