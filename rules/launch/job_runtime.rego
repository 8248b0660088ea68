# METADATA
# title: A job's container gets other GPUs or libraries than it asks for
# description: NVIDIA_VISIBLE_DEVICES takes the place of what the device plugin of Kubernetes or Slurm chose. Without compute in
#   NVIDIA_DRIVER_CAPABILITIES there is no libcuda, without utility no NVML; NCCL needs both.
# related_resources:
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
#     description: NVIDIA_VISIBLE_DEVICES and NVIDIA_DRIVER_CAPABILITIES
#   - ref: https://github.com/NVIDIA/enroot/blob/master/doc/standard-hooks.md
#     description: Enroot's hook 98-nvidia.sh, which pyxis uses, obeys NVIDIA_VISIBLE_DEVICES
# custom:
#   severity: high
#   areas: [gpus, environment]
#   remedies: [fix-visible-devices, set-driver-capabilities]
#   cause: gpu-visibility
#   since: "0.4"
package gpudoctor.rules.job_runtime

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.visible_devices as visible
import data.tables.launch_files as words

# What NVIDIA_VISIBLE_DEVICES does where it counts. Docker's --gpus overrides it.
findings contains job.of_setting(l, "NVIDIA_VISIBLE_DEVICES", {
	"severity": told[0], "remedies": ["fix-visible-devices"], "message": sprintf("NVIDIA_VISIBLE_DEVICES=%s %s", [value, told[1]]),
	"evidence": array.concat([job.setting_fact(l, "NVIDIA_VISIBLE_DEVICES")], [job.fact(l, "gpus", l.gpus) | l.gpus]),
}) if {
	some l in job.parts
	value := job.settings(l).NVIDIA_VISIBLE_DEVICES.value
	told := choice(l, lower(value))
}

choice(l, value) := ["critical", sprintf("hides all GPUs that %s requests: the container runtime then passes in none", [launches.title(l)])] if {
	value in {"none", "void"}
	job.asks(l)
	by_variable(l)
} else := ["high", sprintf("of %s takes the place of the GPUs that the device plugin chose: pods share one GPU while others are idle", [launches.title(l)])] if {
	l.kind == "kubernetes"
	l.resources["nvidia.com/gpu"] != "0"
	regex.match(`^(\d|gpu-)`, value)
} else := ["high", sprintf("passes %d of the %d GPUs that the job requests into the container of %s", [count(visible.list_of(value)), job.gpus(l), launches.title(l)])] if {
	by_variable(l)
	l.kind == "slurm"
	regex.match(`^(\d|gpu-)`, value)
	count(visible.list_of(value)) < job.gpus(l)
} else := ["medium", sprintf("passes all GPUs of the node into %s, which requests none: Kubernetes gives them to other pods as well", [launches.title(l)])] if {
	value == "all"
	bypasses(l)
}

by_variable(l) if l.kind == "kubernetes"
by_variable(l) if l.runtime == "nvidia"

by_variable(l) if {
	l.kind == "slurm"
	l.image
}

# serves is true of a service on each node, which looks at all GPUs by right, and bypasses of a pod that asks for none.
serves(l) if job.matches(words.node_services, l.image)

bypasses(l) if {
	l in job.deviceless
	not startswith(object.get(l, "object", ""), "DaemonSet/")
	not job.settings(l).NVIDIA_DRIVER_CAPABILITIES.value == "utility"
	not serves(l)
}

findings contains job.of_setting(l, "NVIDIA_DRIVER_CAPABILITIES", {
	"remedies": ["set-driver-capabilities"],
	"message": sprintf("NVIDIA_DRIVER_CAPABILITIES=%s of %s omits %s: the container toolkit then does not mount %s", [value, launches.title(l), capability, libraries[capability]]),
}) if {
	some l in job.containers
	job.asks(l)
	not serves(l)
	value := job.settings(l).NVIDIA_DRIVER_CAPABILITIES.value
	given := {trim_space(c) | some c in split(lower(value), ",")} - {""}
	count(given) > 0
	count(given & {"all", "video", "graphics", "display"}) == 0
	some capability in (({"compute"} | {"utility" | job.several(l)}) - given)
}

libraries := {"compute": "libcuda, without which CUDA finds no driver", "utility": "libnvidia-ml, without which NCCL does not start"}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"gpus", "runtime", "resources", "variables[NVIDIA_VISIBLE_DEVICES]", "variables[NVIDIA_DRIVER_CAPABILITIES]"})
