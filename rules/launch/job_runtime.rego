# METADATA
# title: A job's container gets other GPUs or libraries than it asks for
# description: Variables of the container runtime take the place of the GPUs that a scheduler chose, or leave out libcuda or NVML.
# related_resources:
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
# custom:
#   severity: high
#   areas: [gpus, environment]
#   remedies: [fix-visible-devices, set-driver-capabilities]
#   cause: gpu-visibility
#   since: "0.4"
#   grades:
#     hidden: {severity: critical, remedies: [fix-visible-devices], text: "{subject}={value} hides all GPUs that {title} requests"}
#     chosen: {remedies: [fix-visible-devices], text: "{subject}={value} of {title} replaces the GPUs that the cluster chose"}
#     all: {severity: medium, remedies: [fix-visible-devices], text: "{subject}=all gives {title}, which requests none, GPUs of other pods"}
#     compute: {remedies: [set-driver-capabilities], text: "{subject}={value} of {title} omits compute: CUDA then finds no driver"}
#     utility: {remedies: [set-driver-capabilities], text: "{subject}={value} of {title} omits utility: NCCL then does not start"}
package gpudoctor.rules.job_runtime

import data.gpudoctor.lib.job
import data.gpudoctor.lib.visible_devices as visible
import data.tables.launch_files as words

# Docker's --gpus overrides NVIDIA_VISIBLE_DEVICES.
findings contains job.of_setting(l, choice(l, lower(s.value)), "NVIDIA_VISIBLE_DEVICES", [], {}) if {
	some l in job.parts
	s := job.settings(l).NVIDIA_VISIBLE_DEVICES
}

choice(l, value) := "hidden" if {
	value in {"none", "void"}
	job.asks(l)
	by_variable(l)
} else := "chosen" if {
	regex.match(`^(\d|gpu-)`, value)
	by_variable(l)
	replaces(l, value)
} else := "all" if {
	value == "all"
	l in job.deviceless
	not startswith(object.get(l, "object", ""), "DaemonSet/")
	not job.settings(l).NVIDIA_DRIVER_CAPABILITIES.value == "utility"
	not serves(l)
}

replaces(l, _) if l.resources["nvidia.com/gpu"] != "0"

replaces(l, value) if {
	l.kind == "slurm"
	count(visible.list_of(value)) < job.gpus(l)
}

by_variable(l) if l.runtime == "nvidia"

by_variable(l) if {
	l.kind in {"kubernetes", "slurm"}
	l.image
}

# serves is true of a service on each node, which looks at all GPUs by right.
serves(l) if job.matches(words.node_services, l.image)

findings contains job.of_setting(l, capability, "NVIDIA_DRIVER_CAPABILITIES", [], {}) if {
	some l in job.containers
	job.asks(l)
	not serves(l)
	given := {trim_space(c) | some c in split(lower(job.settings(l).NVIDIA_DRIVER_CAPABILITIES.value), ",")} - {""}
	count(given) > 0
	count(given & {"all", "video", "graphics", "display"}) == 0
	some capability in (({"compute"} | {"utility" | job.several(l)}) - given)
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"gpus", "runtime", "resources", "variables[NVIDIA_VISIBLE_DEVICES]", "variables[NVIDIA_DRIVER_CAPABILITIES]"})
