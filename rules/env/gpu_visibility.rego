# METADATA
# title: A variable hides GPUs
# description: >-
#   CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES select the GPUs that a program sees, and
#   NVIDIA_VISIBLE_DEVICES and NVIDIA_DRIVER_CAPABILITIES the GPUs and libraries of a container. An invalid entry
#   silently ends the list, so programs run with fewer GPUs than intended, or with none. The parts about AMD GPUs have
#   not been tested on AMD hardware.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables
#     description: CUDA_VISIBLE_DEVICES and the effect of an invalid entry
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
#     description: NVIDIA_VISIBLE_DEVICES and NVIDIA_DRIVER_CAPABILITIES
#   - ref: https://rocm.docs.amd.com/en/docs-6.1.2/conceptual/gpu-isolation.html
#     description: ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES, and how they combine
# custom:
#   severity: high
#   confidence: likely
#   areas: [gpus, environment]
#   needs: [env.variables, container.inside, libraries.files, [gpus.devices, container.device_nodes]]
#   explains: [app-mismatch/missing, build-unsupported/no-kernels, gpu-of-another > ipc-namespace/unopened, gpu-of-another > ipc-namespace/memory-of-another, ranks-on-one > oom, same-gpu > env-misconfig/port-taken]
#   remedies: [fix-visible-devices, share-ipc, correct-launch, unset-env, fix-application, pass-device-nodes, set-driver-capabilities, nccl-p2p-disable]
#   first_of: [list-ends, said, no-gpu]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     hides: >-
#       {subject}="{value|}", set {where}, hides {total:GPU}, so none is left: its first entry, "{entry|}", matches no GPU
#       here (indices start at 0; an empty value, -1 and NoDevFiles mean none)
#     cut:
#       severity: medium
#       text: >-
#         {subject}={value}, set {where}, has the entry "{entry|}", which matches none of {total:GPU} here (indices
#         start at 0), so that entry and all after it are dropped: {kept} of {listed} remain
#     capabilities: >-
#       {subject}={value}, set {where}, omits {capability}: the container toolkit then does not mount {library}, and
#       there is none here
#     cuda-none:
#       confidence: confirmed
#       text: >-
#         NVML shows {total:GPU} but CUDA offers none, although no variable hides them. The usual cause is a missing
#         /dev/nvidia-uvm, a library of another driver or a device cgroup
#     ranks-on-one: >-
#       Ranks {ranks} on {host} use the same GPU: each says that it takes device {device} of the list {list}. Each
#       must select its own by local rank, or be given a list of its own
#     crowded: >-
#       The job starts {ranks} ranks on a node, and all use the one GPU that {subject}={value} leaves them: its memory is
#       not enough. Each must select its own by local rank
#     no-driver:
#       severity: critical
#       remedies: [fix-visible-devices, set-driver-capabilities, pass-device-nodes]
#       text: >-
#         The container of {image|the job} has no driver: its libraries are mounted only if NVIDIA_VISIBLE_DEVICES is
#         set, in the image or at launch, and NVIDIA_DRIVER_CAPABILITIES includes compute
#     gpu-of-another:
#       severity: critical
#       remedies: [fix-visible-devices, share-ipc, nccl-p2p-disable, fix-application]
#       text: >-
#         A rank cannot open the memory of another's GPU ({said}), which its process does not see, as when each task or
#         container gets only one (--gpus-per-task, --gpu-bind). Let the ranks of a machine see all of its GPUs
#     too-many: >-
#       The job starts {ranks} ranks on a machine, and the text says that it has {told} GPUs: start one rank for each
#     integrated: >-
#       Programs use the integrated GPU[ ({integrated:comma})] as well as the cards unless *_VISIBLE_DEVICES excludes it: it
#       is slow, and ROCm's libraries do not support it, so programs may crash on it. Set HIP_VISIBLE_DEVICES to the
#       indices of only the cards
package gpudoctor.rules.gpu_visibility

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.visible_devices as visible
import data.tables.gpu_models

# setting is about a variable that is set, which is the first of the evidence.
setting(grade, name, fields) := object.union_n([
	{"grade": grade, "subject": name, "params": {"variable": name}, "remedies": ["fix-visible-devices"]},
	{"about": {"value": v.value, "where": surroundings.where(v), "total": object.get(visible.filters, name, 0)}},
	fields,
	{"evidence": array.concat([surroundings.variable_evidence(v)], object.get(fields, "evidence", []))},
]) if v := facts.variable[name]

findings contains setting("hides", name, {
	"id": "list-ends",
	"about": {"entry": visible.entries[name][0]},
	"confidence": {true: "confirmed", false: "likely"}[count(probe_evidence) > 0],
	"evidence": probe_evidence,
	"messages": refused,
}) if {
	some name, left in visible.kept
	count(left) == 0
}

# A bad entry hides those behind it. A list that ends in -1 was cut on purpose.
findings contains setting("cut", name, {
	"id": "list-ends",
	"about": {"entry": list[end], "kept": end, "listed": count(list)},
	"messages": refused,
}) if {
	some name, left in visible.kept
	end := count(left)
	end > 0
	list := visible.entries[name]
	array.slice(list, end, count(list)) != ["-1"]
	end < count(list)
}

# refused are messages that a program could not use a GPU that it asked for, or found none.
refused := logs.messages({
	"hip-invalid-device", "cuda-invalid-device", "hip-no-device", "cuda-no-device", "torch-sees-no-gpu", "visible-devices-conflict", "too-few-gpus",
})

probe_evidence := array.concat(
	[{"fact": "transfers.error_name", "value": "CUDA_ERROR_NO_DEVICE", "source": "cuInit"} |
		input.transfers.error_code == driver_errors.code.NO_DEVICE
	],
	[{"fact": "transfers.devices", "value": [], "source": "cuDeviceGetCount"} | surroundings.offers_none],
)

# mates are what ranks of one host say that take the same entry of the same list.
mates[[m.fields.on, m.fields.list, m.fields.local]] contains m if some m in logs.by_id["rank-chooses-gpu"]

findings contains {
	"id": "ranks-on-one",
	"subject": host,
	"about": {"ranks": ranks, "host": host, "device": device, "list": list},
	"severity": {true: "high", false: "medium"}[logs.failed],
	"messages": ms,
	"params": {"variable": visible.chooser},
	"remedies": ["fix-visible-devices"],
} if {
	not logs.said("nccl-duplicate-gpu")
	some [host, list, device], ms in mates
	ranks := {m.fields.of | some m in ms}
	count(ranks) > 1
}

findings contains setting("crowded", visible.alone, {
	"id": "ranks-on-one",
	"about": {"ranks": visible.ranks},
	"messages": full,
}) if {
	visible.ranks > 1
	full := {m | some m in logs.by_id["torch-out-of-memory"]; count(regex.find_n(`Process \d+ has`, m.text, -1)) > 1}
	count(full) > 0
}

# The toolkit does not mount the library of a capability that the variable omits: it is not in the container, or a
# program in it does not find it.
findings contains setting("capabilities", "NVIDIA_DRIVER_CAPABILITIES", {
	"about": {"capability": capability, "library": library},
	"severity": {true: "critical", false: "high"}[count(messages) > 0],
	"evidence": [{"fact": "libraries.files", "value": [], "source": sprintf("search for %s", [library])} | absent[library]],
	"messages": messages,
	"remedies": ["set-driver-capabilities"],
}) if {
	some capability, library in omitted
	messages := logs.messages({"compute": {"torch-no-driver"}, "utility": {"nvml-library-missing", "nvidia-smi-missing"}}[capability])
	count(messages) + count({l | some l in absent; l == library}) > 0
}

absent contains library if {
	facts.in_container
	count(surroundings.nvidia_nodes) > 0
	some library in ["libcuda", "libnvidia-ml"]
	is_array(input.libraries.files)
	count({l | some l in input.libraries.files; l.kind == library; not l.stub; not l.empty; not l.compat}) == 0
}

# omitted are the libraries that the toolkit does not mount, by the capability that the variable omits.
omitted[capability] := library if {
	given := {trim_space(c) | some c in split(lower(facts.env.NVIDIA_DRIVER_CAPABILITIES), ",")} - {""}
	count(given) > 0
	some capability, library in {"compute": "libcuda", "utility": "libnvidia-ml"}
	count(given & {capability, "all"}) == 0
}

findings contains {
	"grade": "cuda-none",
	"subject": "CUDA",
	"about": {"total": visible.nvidia_before},
	"evidence": array.concat([{"fact": "gpus.devices", "value": visible.nvidia_before, "source": "NVML"}], probe_evidence),
	"params": {"variable": "CUDA_VISIBLE_DEVICES", "nodes": ["/dev/nvidia-uvm"]},
	"remedies": ["pass-device-nodes", "fix-visible-devices"],
} if {
	input.gpus.nvml == "ok"
	visible.nvidia_before > 0
	count(probe_evidence) > 0
	not facts.env.CUDA_VISIBLE_DEVICES
}

# In a container no driver means that the container toolkit brought no libraries: it does so for images that set
# NVIDIA_VISIBLE_DEVICES, or where the launch sets it (enroot doc/standard-hooks.md, 98-nvidia.sh; Docker's --gpus sets
# it, Apptainer's --nv stands for it). Outside of one the row has the verdict of driver-not-loaded.
findings contains {
	"grade": "no-driver",
	"subject": "GPUs",
	"about": l,
	"messages": logs.by_id["torch-no-driver"],
	"evidence": [launches.evidence(l)],
	"params": {"variable": "NVIDIA_VISIBLE_DEVICES"},
} if {
	not omitted.compute
	count(launches.without_gpus) == 0
	l := sort(launches.enclosed)[0]
}

# A GPU of a peer that this process does not see: errors 10, and 101 before CUDA 10.1, say so (cuda.h). Older drivers call
# it an invalid argument, where each process sees one GPU, as under Slurm's control groups.
findings contains {
	"id": "gpu-of-another",
	"subject": "GPUs",
	"about": {"said": logs.first(unopened).text},
	"messages": unopened,
	"evidence": visible.evidence,
	"params": {"variable": visible.chooser},
} if count(unopened) > 0

unopened contains m if {
	some m in logs.messages({"nccl-ipc-open-failed", "openmpi-cuda-ipc-failed"})
	m.fields.error in {"10", "101"}
}

unopened contains m if {
	one_visible
	some m in logs.messages({"nccl-ipc-open-failed", "openmpi-cuda-ipc-failed", "ucx-ipc-open-failed"})
}

# Cray MPICH runs under Slurm, whose usual binding is one GPU for each task.
unopened contains m if some m in logs.by_id["cray-gpu-ipc-failed"]

one_visible if visible.alone

one_visible if {
	some l in launches.containers
	l.gpus == 1
}

one_visible if {
	some l in logs.launches
	l.gpus == 1
	l.processes > 1
}

one_visible if {
	binds := logs.by_id["slurm-binds-gpus"]
	not "none" in {m.fields.bind | some m in binds}
}

# More ranks than somebody says that the machine has GPUs.
findings contains {
	"id": "told",
	"subject": "GPUs",
	"grade": "too-many",
	"about": {"ranks": l.processes, "told": told.fields.gpus},
	"severity": {true: "critical", false: "medium"}[logs.failed],
	"messages": {told},
	"evidence": [{"fact": "launches[].processes", "value": l.processes, "source": logs.at(l)}],
	"remedies": ["correct-launch", "fix-visible-devices"],
} if {
	some l in logs.launches
	l.kind == "torchrun"
	some told in logs.by_id["prose-gpus"]
	told.source == l.source
	l.processes > max({to_number(m.fields.gpus) | some m in logs.by_id["prose-gpus"]})
}

# An integrated GPU next to cards: a program shows that it took it for one more or, without a list in force, crashed.
findings contains {
	"grade": "integrated",
	"subject": "GPUs",
	"about": {"integrated": {m.fields.architecture | some m in taken}},
	"severity": severity,
	"confidence": {true: "likely", false: "possible"}[count(taken) > 0],
	"messages": (taken | amd.crashes),
	"evidence": facts.gpu_evidence(amd.integrated, "architecture", "rocminfo"),
	"params": {"variable": "HIP_VISIBLE_DEVICES"},
	"remedies": ["fix-visible-devices"],
} if some severity in integrated_use

taken := {m | some m in logs.messages({"ggml-rocm-device", "rocblas-no-kernels"}); m.fields.architecture in gpu_models.amd_integrated}

integrated_use contains {true: "critical", false: "low"}[count(amd.crashes) > 0] if {
	count(taken) > 0
	count(logs.messages({"ggml-rocm-device"}) - taken) + count(amd.discrete) > 0
}

integrated_use contains "high" if {
	count(taken) == 0
	min([count(amd.integrated), count(amd.discrete), count(amd.crashes)]) > 0
	count(visible.chosen) == 0
}

not_applicable contains "no GPU on this machine" if {
	count(facts.gpus) == 0
	count(surroundings.driver_devices) == 0
}
