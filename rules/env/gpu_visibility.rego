# METADATA
# title: A variable hides GPUs
# description: >-
#   CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES select the GPUs that a program sees.
#   NVIDIA_VISIBLE_DEVICES and NVIDIA_DRIVER_CAPABILITIES select the GPUs and libraries of a container. An invalid entry
#   silently ends the list, so programs run with fewer GPUs than intended, or with none. In logs, this shows as "invalid
#   device ordinal", as a missing GPU, or as two ranks on one GPU. The parts about AMD GPUs have not been tested on AMD
#   hardware.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables
#     description: CUDA_VISIBLE_DEVICES and the effect of an invalid entry
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
#     description: NVIDIA_VISIBLE_DEVICES and NVIDIA_DRIVER_CAPABILITIES
#   - ref: https://rocm.docs.amd.com/en/docs-6.1.2/conceptual/gpu-isolation.html
#     description: ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES, and how they combine
#   - ref: https://github.com/vllm-project/vllm/issues/12572
#     description: 'CUDA_VISIBLE_DEVICES together with ROCR_VISIBLE_DEVICES: invalid device ordinal'
#   - ref: https://github.com/lemonade-sdk/llamacpp-rocm/issues/96
#     description: A program crashes on the integrated GPU of a machine with a discrete card
# custom:
#   severity: high
#   confidence: likely
#   areas: [gpus, environment]
#   needs: [env.variables, container.inside, libraries.files, [gpus.devices, container.device_nodes]]
#   explains: [app-mismatch/missing, build-unsupported/no-kernels, gpu-of-another > ipc-namespace/unopened, gpu-of-another > ipc-namespace/memory-of-another, ranks-on-one > oom]
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
#     part: {severity: info, text: "{subject}={value}, set {where}, leaves {kept} of {total:GPU}"}
#     capabilities: >-
#       {subject}={value}, set {where}, omits {capability}: the container toolkit then does not mount {library}, and
#       there is none here
#     cuda-none:
#       confidence: confirmed
#       text: >-
#         NVML shows {total:GPU} but CUDA offers none, although no variable hides them. The usual cause is a missing
#         /dev/nvidia-uvm, a library of another driver or a device cgroup
#     stacked: >-
#       ROCR_VISIBLE_DEVICES={rocr} leaves {left:GPU}, numbered from 0 from then on, and {subject}={value} selects among
#       those: {beyond} {beyond:does/do} not exist. Set only one of the two variables
#     refused:
#       severity: critical
#       text: "The GPU that a program selected does not exist ({said}): {variable}={value|}, set {where}, lists fewer GPUs"
#     gpu-of-another:
#       severity: critical
#       text: >-
#         A rank accesses the GPU of another ({said}) that its process does not see, as when each task or container gets
#         only one GPU (--gpus-per-task, --gpu-bind, a list with one GPU). Let the ranks of a machine see all of its
#         GPUs, and select by local rank
#     ranks-on-one: >-
#       Ranks {ranks} on {host} use the same GPU: each says that it takes device {device} of the list {list}. Each
#       must select its own by local rank, or be given a list of its own
#     crowded: >-
#       The job starts {ranks} ranks on a node, and all use the one GPU that {subject}={value} leaves them: its memory is
#       not enough. Each must select its own by local rank
#     no-driver:
#       severity: critical
#       text: >-
#         The container of {image|the job} has no driver: its libraries are mounted only if NVIDIA_VISIBLE_DEVICES is
#         set, in the image or at launch, and NVIDIA_DRIVER_CAPABILITIES includes compute
#     integrated: >-
#       Programs use the integrated GPU[ ({integrated:comma})] as well as {cards:card} unless *_VISIBLE_DEVICES excludes
#       it: it is slow, and ROCm's libraries do not support it, so programs may crash on it. Set HIP_VISIBLE_DEVICES to
#       the indices of only the cards
package gpudoctor.rules.gpu_visibility

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.visible_devices as visible
import data.tables.gpu_models

finding(grade, subject, variable, fields) := object.union(
	{"grade": grade, "subject": subject, "params": {"variable": variable}, "remedies": ["fix-visible-devices"]},
	fields,
)

# setting is about a variable that is set, which is the first of the evidence.
setting(grade, name, fields) := finding(grade, name, name, object.union_n([
	{"about": {"value": v.value, "where": surroundings.where(v), "total": object.get(visible.filters, name, 0)}},
	fields,
	{"evidence": array.concat([surroundings.variable_evidence(v)], object.get(fields, "evidence", []))},
])) if v := facts.variable[name]

findings contains setting("hides", name, {
	"about": {"entry": entry},
	"confidence": {true: "confirmed", false: "likely"}[count(probe_evidence) > 0],
	"evidence": probe_evidence,
}) if {
	some name, left in visible.kept
	count(left) == 0
	entry := visible.entries[name][0]
}

# mates are what ranks of one host say that take the same entry of the same list.
mates[[m.fields.on, m.fields.list, m.fields.local]] contains m if some m in logs.by_id["rank-chooses-gpu"]

findings contains finding("ranks-on-one", host, visible.chooser, {
	"id": "ranks-on-one",
	"about": {"ranks": ranks, "host": host, "device": device, "list": list},
	"severity": {true: "high", false: "medium"}[count(logs.complaints) > 0],
	"messages": ms,
}) if {
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

probe_evidence := array.concat(
	[{"fact": "transfers.error_name", "value": "CUDA_ERROR_NO_DEVICE", "source": "cuInit"} |
		input.transfers.error_code == driver_errors.code.NO_DEVICE
	],
	[{"fact": "transfers.devices", "value": [], "source": "cuDeviceGetCount"} | surroundings.offers_none],
)

# A bad entry hides those behind it. A list that ends in -1 was cut on purpose.
findings contains setting("cut", name, {
	"about": {"entry": list[end], "kept": end, "listed": count(list)},
	"severity": {true: "low", false: "medium"}[array.slice(list, end, count(list)) in [["-1"], [""]]],
}) if {
	some name, end in visible.ends
	end > 0
	list := visible.entries[name]
}

findings contains setting("part", name, {"about": {"kept": count(left)}}) if {
	some name, left in visible.kept
	count(left) > 0
	count(left) < visible.filters[name]
	not visible.ends[name]
	not startswith(left[0], "MIG-")
}

findings contains setting("capabilities", "NVIDIA_DRIVER_CAPABILITIES", {
	"about": {"capability": capability, "library": library},
	"evidence": [{"fact": "libraries.files", "value": [], "source": sprintf("search for %s", [library])}],
	"remedies": ["set-driver-capabilities"],
}) if {
	facts.in_container
	count(surroundings.nvidia_nodes) > 0
	some capability, library in omitted
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

# Of texts, a program says that it does not find the library.
findings contains setting("capabilities", "NVIDIA_DRIVER_CAPABILITIES", {
	"about": {"capability": capability, "library": omitted[capability]},
	"severity": "critical",
	"messages": messages,
	"remedies": ["set-driver-capabilities"],
}) if {
	not facts.in_container
	some capability, ids in {"compute": {"torch-no-driver"}, "utility": {"nvml-library-missing", "nvidia-smi-missing"}}
	omitted[capability]
	messages := logs.messages(ids)
	count(messages) > 0
}

findings contains finding("cuda-none", "CUDA", "CUDA_VISIBLE_DEVICES", {
	"about": {"total": visible.nvidia_before},
	"evidence": array.concat([{"fact": "gpus.devices", "value": visible.nvidia_before, "source": "NVML"}], probe_evidence),
	"params": {"nodes": ["/dev/nvidia-uvm"]},
	"remedies": ["pass-device-nodes", "fix-visible-devices"],
}) if {
	input.gpus.nvml == "ok"
	visible.nvidia_before > 0
	count(probe_evidence) > 0
	not facts.env.CUDA_VISIBLE_DEVICES
}

# refused are messages that a program could not use a GPU that it asked for, or found none.
refused := logs.messages({
	"hip-invalid-device", "cuda-invalid-device", "hip-no-device", "cuda-no-device", "torch-sees-no-gpu", "visible-devices-conflict", "too-few-gpus",
})

# A list that chooses once more among the GPUs that ROCr's list left, and names a number that is not among them.
findings contains setting("stacked", name, {
	"id": "list-ends",
	"about": {"rocr": facts.env.ROCR_VISIBLE_DEVICES, "left": visible.rocr_count, "beyond": beyond},
	"severity": {true: "critical", false: "high"}[count(refused) > 0],
	"messages": refused,
	"evidence": [surroundings.variable_evidence(facts.variable.ROCR_VISIBLE_DEVICES)],
	"params": {"variable": visible.redundant(name)},
	"remedies": ["fix-visible-devices", "unset-env"],
}) if {
	some name, beyond in visible.beyond_rocr
	count(beyond) > 0
}

# A program was refused a GPU, and a list in force hides some: the two belong together.
findings contains setting("refused", name, {
	"id": "list-ends",
	"subject": "GPUs",
	"about": {"said": logs.first(refused).text, "variable": name},
	"messages": refused,
	"remedies": ["fix-visible-devices", "unset-env"],
}) if {
	name := min({n | some n, _ in visible.ends})
}

findings contains finding("gpu-of-another", "GPUs", visible.chooser, {
	"id": "gpu-of-another",
	"about": {"said": logs.first(beyond_sight).text},
	"messages": beyond_sight,
	"evidence": visible.evidence,
	"remedies": array.concat(["share-ipc" | count(lone) > 0], ["fix-visible-devices", "nccl-p2p-disable", "fix-application"]),
}) if count(beyond_sight) > 0

# beyond_sight are GPUs that a peer named and this process does not see: NCCL opens the memory of a peer's GPU
# directly, which must be visible to both. From other files than these two NCCL's call is about the process's own GPU,
# or about host memory.
beyond_sight contains m if {
	some m in logs.by_id["nccl-cuda-invalid-device"]
	not regex.match(`(^|/)(shm\.cc|alloc\.h)$`, object.get(m, ["fields", "file"], ""))
}

# CUDA_ERROR_INVALID_DEVICE (cuda.h) and cudaErrorInvalidDevice before CUDA 10.1.
beyond_sight contains m if {
	some m in logs.messages({"nccl-ipc-open-failed", "openmpi-cuda-ipc-failed"})
	m.fields.error in {"10", "101"}
}

# With one visible GPU a process can open the memory of no other; older drivers call that an invalid argument.
beyond_sight contains m if {
	one_visible
	some m in logs.messages({"nccl-ipc-open-failed", "openmpi-cuda-ipc-failed", "ucx-ipc-open-failed"})
}

one_visible if visible.alone
one_visible if count(lone) > 0

# Slurm gives each task only one GPU, which its control group then hides from the others.
one_visible if {
	some l in logs.launches
	l.kind == "slurm"
	l.gpus == 1
	l.processes > 1
}

lone := {l | some l in launches.containers; l.gpus == 1}

# In a container no driver means that the container toolkit brought no libraries: it does so for images that set
# NVIDIA_VISIBLE_DEVICES, as NVIDIA's do, or where the launch sets it (enroot doc/standard-hooks.md, 98-nvidia.sh;
# Docker's --gpus sets it, Apptainer's --nv stands for it). Outside of one the row has the verdict of driver-not-loaded.
findings contains finding("no-driver", "GPUs", "NVIDIA_VISIBLE_DEVICES", {
	"about": l,
	"messages": logs.by_id["torch-no-driver"],
	"evidence": [launches.evidence(l)],
	"remedies": ["fix-visible-devices", "set-driver-capabilities", "pass-device-nodes"],
}) if {
	not omitted.compute
	count(launches.without_gpus) == 0
	l := sort(launches.enclosed)[0]
}

# An integrated GPU next to cards: programs take it for one more, though it is slow, has no memory of its own and is
# not supported by ROCm's libraries.
findings contains finding("integrated", "GPUs", "HIP_VISIBLE_DEVICES", {
	"affects": sort([address | some address in amd.integrated; facts.is_address(address)]),
	"about": {
		"integrated": ({sprintf("%s, %s", [m.fields.name, m.fields.architecture]) | some m in taken} | {m.fields.architecture | some m in unbuilt}),
		"cards": max([count(amd.discrete), count(cards)]),
	},
	"severity": integrated_severity,
	"confidence": {true: "likely", false: "possible"}[count(taken | unbuilt) > 0],
	"messages": ((taken | unbuilt) | amd.crashes),
	"evidence": facts.gpu_evidence(amd.integrated, "architecture", "rocminfo"),
}) if integrated_used

# taken are the lines with which a program lists it among the cards, and unbuilt those with which rocBLAS names it: a
# program did compute there.
taken := {m | some m in logs.by_id["ggml-rocm-device"]; m.fields.architecture in gpu_models.amd_integrated}

cards := logs.messages({"ggml-rocm-device"}) - taken

unbuilt := {m | some m in logs.by_id["rocblas-no-kernels"]; m.fields.architecture in gpu_models.amd_integrated}

# A program shows that it used it; without a list in force, one that crashed may have.
integrated_used if {
	count(taken) > 0
	count(cards) > 0
}

integrated_used if {
	count(unbuilt) > 0
	count(amd.discrete) > 0
}

integrated_used if {
	count(amd.integrated) > 0
	count(amd.discrete) > 0
	count(visible.chosen) == 0
	count(amd.crashes) > 0
}

integrated_severity := "low" if {
	count(amd.crashes) == 0
} else := {true: "critical", false: "high"}[count(taken | unbuilt) > 0]

not_applicable contains "no GPU on this machine" if {
	count(facts.gpus) == 0
	count(surroundings.driver_devices) == 0
}
