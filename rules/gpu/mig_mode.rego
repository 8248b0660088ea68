# METADATA
# title: MIG is enabled, and MIG instances have no peer access
# description: >-
#   A GPU in MIG mode is split into instances that cannot access each other or any other GPU directly, over PCIe or
#   NVLink. This may be intended, but a job over several GPUs needs MIG disabled.
# related_resources:
#   - ref: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
#     description: NVIDIA lists peer-to-peer access, over PCIe or NVLink, as unsupported in MIG mode.
# custom:
#   severity: low
#   confidence: likely
#   needs:
#     - gpus.devices
#   remedies: [disable-mig, separate-mig-instances]
#   explains: [p2p-unsupported-gpu, gpu-visibility]
#   since: "0.1"
package gpudoctor.rules.mig_mode

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.peers

on := {g.address | some g in facts.named; g.mig == true}

off := {g.address | some g in facts.named; g.mig == false}

# All GPUs alike look intended, as for a machine that serves many small models. One odd GPU among others looks left
# over, and a job that takes all of them fails on it.
findings contains {
	"subject": {true: "host", false: peers.shorten(on)}[count(off) == 0],
	"affects": sort(on),
	"message": sprintf("MIG is enabled on %d of %d GPUs. A job over several of them has no peer access on these, and expects whole GPUs that do not exist; separate small jobs are fine.", [count(on), count(on | off)]),
	"evidence": facts.gpu_evidence(on | off, "mig", "nvmlDeviceGetMigMode"),
	"severity": {true: "medium", false: "low"}[count(off) > 0],
	"remedies": ["disable-mig"],
} if {
	count(on) > 0
	count(facts.gpus) > 1
}

# slices are what a job was given of GPUs in MIG mode, by whoever gave it: MIG
# devices of Kubernetes, or by name in a variable.
slices contains slice if {
	some l in input.launches
	some name, n in l.resources
	regex.match(`^nvidia\.com/mig-`, name)
	to_number(n) > 1
	slice := {"fact": sprintf("launches[%s].resources[%s]", [object.get(l, "name", l.kind), name]), "value": n, "source": logs.at(l)}
}

slices contains slice if {
	some v in input.env.variables
	v.name in {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"}
	count(regex.find_n(`MIG-`, v.value, -1)) > 1
	slice := {"fact": sprintf("env.variables[%s]", [v.name]), "value": v.value, "source": v.source}
}

# twice is NCCL's message for two ranks on one GPU, which also covers two of its
# instances. NCCL before 2.13, and PyTorch with it, only reports "invalid usage".
twice := logs.messages({"nccl-duplicate-gpu"}) | {m | some m in logs.by_id["nccl-invalid-usage"]; count(on) > 0}

unseen := logs.messages({"cuda-invalid-device", "too-few-gpus", "cuda-no-device", "torch-sees-no-gpu"})

# named_instance are errors of programs that take the list of GPUs for numbers, and were given the names of instances.
named_instance := logs.messages({"mig-name-refused"})

# A job over several instances fails, as it has here or will: CUDA enumerates one
# instance for each process, and NCCL takes two of one GPU for the same GPU.
findings contains {
	"subject": "host",
	"affects": sort(on),
	"message": "The job needs whole GPUs, or several of them, but there are MIG instances. CUDA shows a process one instance, or none if none was created, and NCCL does not communicate between instances; it requires whole GPUs, with MIG disabled.",
	"messages": said,
	"evidence": array.concat(sort(slices), facts.gpu_evidence(on, "mig", "nvidia-smi")),
	"severity": {true: "critical", false: "medium"}[count(said) > 0],
	"confidence": {true: "confirmed", false: "likely"}[count(named_instance) > 0], # The program's own words name the instance.
	"remedies": ["disable-mig", "separate-mig-instances"],
} if spans

said := (twice | unseen) | named_instance

spans if count(slices | named_instance) > 0

# A process sees only one instance, so a program that uses the next GPU by its number finds none. A GPU in MIG mode
# without instances offers CUDA nothing (MIG user guide, "CUDA device enumeration").
spans if {
	count(on) > 0
	count(off) == 0
	count(unseen) > 0
}

spans if {
	count(on) > 0
	count(twice) > 0
}

asks contains "gpus.devices[].mig" if input.gpus.nvml != "ok"

not_applicable contains "no GPU" if count(facts.gpus) == 0
not_applicable contains "no NVIDIA GPU" if facts.only_amd

not_applicable contains "no GPU here supports MIG" if {
	input.gpus.nvml == "ok"
	count(facts.gpus) > 0
	count(on | off) == 0
}
