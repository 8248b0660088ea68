# METADATA
# title: A variable hides GPUs
# description: >-
#   CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES select
#   the GPUs that a program sees. NVIDIA_VISIBLE_DEVICES and
#   NVIDIA_DRIVER_CAPABILITIES select the GPUs and libraries of a container. An
#   invalid entry silently ends the list, so programs run with fewer GPUs than
#   intended, or with none. In logs, this shows as "invalid device ordinal", as
#   a missing GPU, or as two ranks on one GPU. The parts about AMD GPUs have not
#   been tested on AMD hardware.
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
#   needs:
#     - env.variables
#     - container.inside
#     - libraries.files
#     - [gpus.devices, container.device_nodes]
#   explains: [build-unsupported/no-kernels]
#   remedies: [fix-visible-devices, correct-launch, unset-env, fix-application, pass-device-nodes, set-driver-capabilities, update-bios, nccl-p2p-disable]
#   first_of: [list-ends, said, no-gpu]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.gpu_visibility

import data.gpudoctor.lib.container_gpus
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.integrated_gpu
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.rank_gpus
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.visible_devices as visible

# The GPUs that a list leaves visible, judged only by the variables.
findings contains object.union(
	{
		"subject": name,
		"message": sprintf("%s=%s, set %s, %s", [name, visible.shown(name), surroundings.where(facts.variable[name]), judged.words]),
		"evidence": array.concat([surroundings.variable_evidence(facts.variable[name])], object.get(judged, "proof", [])),
		"params": {"variable": name},
		"remedies": ["fix-visible-devices"],
	},
	object.filter(judged, ["severity", "confidence"]),
) if {
	some name, all in visible.judged
	some judged in all
}

# The container was started without GPUs. If nodes exist anyway, CDI or a device plugin
# added them, and the value has no effect.
findings contains {
	"subject": "NVIDIA_VISIBLE_DEVICES",
	"message": sprintf("NVIDIA_VISIBLE_DEVICES=%q, set %s, requests no GPU from the container toolkit; this machine has %d", [facts.env.NVIDIA_VISIBLE_DEVICES, surroundings.where(facts.variable.NVIDIA_VISIBLE_DEVICES), surroundings.on_host]),
	"evidence": [
		surroundings.variable_evidence(facts.variable.NVIDIA_VISIBLE_DEVICES),
		{"fact": "container.device_nodes", "value": [], "source": "/dev"},
	],
	"params": {"variable": "NVIDIA_VISIBLE_DEVICES"},
	"remedies": ["pass-device-nodes"],
} if {
	container_gpus.none_asked_for
}

# Capabilities that leave out what CUDA and NVML need.
findings contains {
	"subject": "NVIDIA_DRIVER_CAPABILITIES",
	"message": sprintf("NVIDIA_DRIVER_CAPABILITIES=%s, set %s, omits %s: the container toolkit then does not mount %s, and there is none here", [
		facts.env.NVIDIA_DRIVER_CAPABILITIES,
		surroundings.where(facts.variable.NVIDIA_DRIVER_CAPABILITIES), capability, library,
	]),
	"evidence": [
		surroundings.variable_evidence(facts.variable.NVIDIA_DRIVER_CAPABILITIES),
		{"fact": "libraries.files", "value": [], "source": sprintf("search for %s", [library])},
	],
	"params": {"variable": "NVIDIA_DRIVER_CAPABILITIES"},
	"remedies": ["set-driver-capabilities"],
} if {
	some capability, library in container_gpus.left_out
}

# NVML shows GPUs, CUDA offers none, and no variable explains it.
findings contains {
	"subject": "CUDA",
	"message": sprintf("NVML shows %s but CUDA offers none, although no variable hides them. The usual cause is a missing /dev/nvidia-uvm, a library of another driver or a device cgroup", [facts.counted(visible.nvidia_before, "GPU")]),
	"confidence": "confirmed",
	"evidence": array.concat([{"fact": "gpus.devices", "value": visible.nvidia_before, "source": "NVML"}], visible.probe_evidence),
	"remedies": ["pass-device-nodes", "fix-visible-devices"],
	"params": {"variable": "CUDA_VISIBLE_DEVICES", "nodes": ["/dev/nvidia-uvm"]},
} if {
	input.gpus.nvml == "ok"
	visible.nvidia_before > 0
	count(visible.probe_evidence) > 0
	not facts.env.CUDA_VISIBLE_DEVICES
}

# refused are messages that a program could not use a GPU that it asked for, or
# found none.
refused := logs.messages({
	"hip-invalid-device", "cuda-invalid-device", "hip-no-device", "cuda-no-device", "torch-sees-no-gpu", "visible-devices-conflict", "too-few-gpus",
})

# A list that chooses once more among the GPUs that ROCr's list left, and names a number
# that is not among them.
findings contains {
	"id": "list-ends",
	"subject": name,
	"message": sprintf("ROCR_VISIBLE_DEVICES=%s leaves %s, numbered from 0 from then on, and %s=%s selects among those: %s does not exist%s. Set only one of the two variables.", [
		facts.env.ROCR_VISIBLE_DEVICES, facts.counted(visible.rocr_count, "GPU"), name, facts.env[name], facts.list(beyond), told_refusal,
	]),
	"severity": stacked_severity,
	"confidence": "likely",
	"messages": refused,
	"evidence": [surroundings.variable_evidence(facts.variable[n]) | some n in ["ROCR_VISIBLE_DEVICES", name]],
	"params": {"variable": visible.redundant(name)},
	"remedies": ["fix-visible-devices", "unset-env"],
} if {
	some name, beyond in visible.beyond_rocr
	count(beyond) > 0
}

default told_refusal := ""

told_refusal := ", and a program failed to open one" if count(refused) > 0

default stacked_severity := "high"

stacked_severity := "critical" if count(refused) > 0

# A program was refused a GPU, and a list in force hides some: the two belong
# together.
findings contains {
	"id": "list-ends",
	"subject": "GPUs",
	"message": sprintf("The GPU that a program selected does not exist (%s): %s=%s, set %s, lists fewer GPUs", [words(refused), name, facts.env[name], surroundings.where(facts.variable[name])]),
	"severity": "critical",
	"confidence": "likely",
	"messages": refused,
	"evidence": [surroundings.variable_evidence(facts.variable[name])],
	"params": {"variable": name},
	"remedies": ["fix-visible-devices", "unset-env"],
} if {
	count(refused) > 0
	name := min({n | some n, _ in visible.ends})
}

# words are as much of the first of some messages as fits into a sentence.
words(set_) := trim_suffix(substring(logs.first(set_).text, 0, 120), ".")

# NCCL or Open MPI opens the memory of a GPU that its process does not see.
findings contains {
	"id": "gpu-of-another",
	"subject": "GPUs",
	"message": sprintf("A rank accesses the GPU of another (%s) that its process does not see, as when each task or container gets only one GPU (--gpus-per-task, --gpu-bind, a list with one GPU). Let the ranks of a machine see all of its GPUs, and select by local rank", [words(rank_gpus.beyond_sight)]),
	"severity": "critical",
	"confidence": "likely",
	"messages": rank_gpus.beyond_sight,
	"evidence": visible.evidence,
	"params": {"variable": visible.chooser},
	"remedies": ["fix-visible-devices", "nccl-p2p-disable", "fix-application"],
} if {
	count(rank_gpus.beyond_sight) > 0
}

# In a container no driver means that the container toolkit brought no libraries: it does
# so for images that set NVIDIA_VISIBLE_DEVICES, as NVIDIA's do, or where the launch sets it
# (enroot doc/standard-hooks.md, 98-nvidia.sh; Docker's --gpus sets it, Apptainer's --nv
# stands for it). Outside of one the row has the verdict of driver-not-loaded.
findings contains {
	"subject": "GPUs",
	"message": sprintf("The container of %s has no driver: its libraries are mounted only if NVIDIA_VISIBLE_DEVICES is set, in the image or at launch, and NVIDIA_DRIVER_CAPABILITIES includes compute", [object.get(l, "image", "the job")]),
	"severity": "critical",
	"confidence": "likely",
	"messages": logs.by_id["torch-no-driver"],
	"evidence": [launches.evidence(l)],
	"params": {"variable": "NVIDIA_VISIBLE_DEVICES"},
	"remedies": ["fix-visible-devices", "set-driver-capabilities", "pass-device-nodes"],
} if {
	logs.said("torch-no-driver")
	count(launches.without_gpus) == 0
	l := sort(launches.enclosed)[0]
}

# A pod's own value takes the place of what the device plugin chose: the kubelet
# adds the pod's variables behind the plugin's (pkg/kubelet/kubelet_pods.go,
# GenerateRunContainerOptions).
findings contains {
	"subject": "NVIDIA_VISIBLE_DEVICES",
	"message": sprintf("%s requests %s GPUs from Kubernetes and sets NVIDIA_VISIBLE_DEVICES=%s itself. This overrides the GPUs that the device plugin chose, so pods share one GPU while others are idle", [launches.title(l), l.resources["nvidia.com/gpu"], value]),
	"severity": "high",
	"confidence": "likely",
	"evidence": [{"fact": "launches[].variables.NVIDIA_VISIBLE_DEVICES", "value": value, "source": launches.place_of(l, "variables[NVIDIA_VISIBLE_DEVICES]")}],
	"params": {"variable": "NVIDIA_VISIBLE_DEVICES"},
	"remedies": ["fix-visible-devices", "unset-env"],
} if {
	some l in container_gpus.choosing_pods
	value := l.variables.NVIDIA_VISIBLE_DEVICES
}

# A pod that asks for fewer GPUs than there are and runs privileged: the device plugin's
# choice is then without effect, as a privileged container gets every device of its node
# (kubernetes issue 81256, k8s-device-plugin issue 1294).
findings contains {
	"subject": "GPUs",
	"message": sprintf("%s requests %d of %d GPUs and is privileged, so it sees all GPUs of the node, including those of other pods, and programs use the first ones. Remove privileged and add only the capabilities it needs, or set NVIDIA_VISIBLE_DEVICES to what the device plugin chose", [launches.title(l), l.gpus, total]),
	"severity": "medium",
	"confidence": "likely",
	"evidence": [{"fact": "launches[].privileged", "value": true, "source": logs.at(l)}, {"fact": "gpus.devices", "value": total, "source": "NVML"}],
	"params": {"variable": "NVIDIA_VISIBLE_DEVICES"},
	"remedies": ["fix-visible-devices"],
} if {
	total := count(surroundings.nvml_gpus)
	l := sort({pod | some pod in container_gpus.privileged_pods; pod.gpus < total})[0]
}

# Two ranks that chose the same GPU are fine if each sees a different GPU only; if their
# first collective does not end, they share one.
findings contains {
	"subject": "GPUs",
	"message": sprintf("Ranks %s did not select a GPU and all use GPU %s, and their first collective did not end: call torch.cuda.set_device(local_rank), or pass a device_id to init_process_group, before the first barrier", [concat(" and ", sort(who)), gpu]),
	"severity": "high",
	"confidence": "likely",
	"evidence": array.concat(array.slice(logs.all_evidence(ms), 0, 2), [logs.evidence(stuck)]),
	"order": stuck.order,
	"params": {"variable": visible.chooser},
	"remedies": ["fix-application", "fix-visible-devices"],
} if {
	some gpu, ms in rank_gpus.guessed
	who := {m.fields.who | some m in ms}
	count(who) > 1
	not logs.said("nccl-duplicate-gpu")
	stuck := logs.first({m |
		some m in logs.by_id["torch-watchdog-timeout"]
		m.fields.seq in {"0", "1", "2"}
	})
	rank_gpus.neighbours(who)
}

# An integrated GPU next to cards: programs take it for one more, though it is
# slow, has no memory of its own and is not supported by ROCm's libraries.
findings contains object.union({"subject": "GPUs", "params": {"variable": "HIP_VISIBLE_DEVICES"}, "remedies": ["fix-visible-devices"]}, found) if {
	some found in integrated_gpu.found
}

missing contains {"fact": "env", "words": "variables were not read"} if {
	not input.env
	count(findings) == 0
}

missing contains {"fact": "gpus", "words": "it is not known whether there are GPUs"} if {
	count(findings) == 0
	not input.gpus
	not input.container
}

not_applicable contains "no GPU on this machine" if {
	count(facts.gpus) == 0
	count(findings) == 0
	count(surroundings.driver_devices) == 0
}
