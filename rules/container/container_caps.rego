# METADATA
# title: A device node, a permission or a capability is missing
# description: >-
#   A container sees only the device nodes that are passed in, can use only
#   those that its user can open, and by default cannot make the NUMA calls that
#   NCCL uses to place host memory. Without nvidia-uvm or nvidiactl, CUDA does
#   not start. Without NUMA calls, NCCL 2.24 to 2.26.3 fails when it uses host
#   memory.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-cumem-host-enable
#     description: cuMem host memory, on by default since 2.24, and its fallback
#   - ref: https://docs.docker.com/engine/security/seccomp/
#     description: get_mempolicy and mbind need CAP_SYS_NICE
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
#     description: Devices that are passed to a container
#   - ref: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html
#     description: Devices and groups of a ROCm container
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - container.inside
#     - container.device_nodes
#     - container.capabilities
#     - container.get_mempolicy
#     - [gpus.devices, container.driver_devices]
#   remedies: [pass-device-nodes, pass-amd-devices, pass-rdma-devices, grant-device-access, add-sys-nice, nccl-cumem-host-disable, upgrade-nccl, configure-container-runtime, add-sys-ptrace, add-ipc-lock, reload-amd-driver, upgrade-amd-driver, other]
#   first_of: [rdma-device-closed, rdma-not-passed]
#   explains: ["without-gpus > gpu-visibility/no-gpu", "without-gpus > driver-library-mismatch/nvml-missing"]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.container_caps

import data.gpudoctor.lib.container_rdma
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.numa_calls
import data.gpudoctor.lib.surroundings

# A GPU's node without the nodes of the driver itself.
findings contains {
	"subject": path,
	"message": sprintf("%d GPU nodes are in /dev, but %s is not: %s", [count(surroundings.nvidia_nodes), path, why]),
	"confidence": confidence,
	"evidence": [{
		"fact": "container.device_nodes",
		"value": sort(surroundings.nvidia_nodes),
		"source": "/dev",
	}],
	"accounts_for": [{"probe": true} | input.transfers.error_code > 0],
	"params": {"nodes": [path]},
	"remedies": ["pass-device-nodes"],
} if {
	facts.in_container
	count(surroundings.nvidia_nodes) > 0
	some path, why in {
		"/dev/nvidiactl": "no NVIDIA library can open the driver without it",
		"/dev/nvidia-uvm": "CUDA needs it for all memory and fails to start",
	}
	not surroundings.node_access[path]
	not started
	confidence := certainty
}

# A listing shows the same, of a container or of a machine whose module nvidia_uvm is
# not loaded yet: nvidia-modprobe, which loads it and makes the node, may not do so in
# a container (apptainer/singularity issue 1441, NVIDIA/pyxis issue 81).
findings contains {
	"subject": "/dev/nvidia-uvm",
	"message": sprintf("%d GPU nodes are in /dev, but /dev/nvidia-uvm is not, and CUDA failed (%s): it needs that node for all memory. Load the module on the host before the container starts (nvidia-modprobe -u -c=0), and pass the node in", [count(surroundings.nvidia_nodes), logs.first(unstarted).text]),
	"severity": "critical",
	"confidence": "likely",
	"messages": {logs.first(unstarted)},
	"evidence": [{"fact": "container.device_nodes", "value": sort(surroundings.nvidia_nodes), "source": "/dev"}],
	"params": {"nodes": ["/dev/nvidia-uvm"]},
	"remedies": ["pass-device-nodes", "configure-container-runtime"],
} if {
	not facts.in_container
	count(surroundings.nvidia_nodes) > 0
	not uvm_listed
	count(unstarted) > 0
}

uvm_listed if "/dev/nvidia-uvm" in object.keys(surroundings.node_access)

# unstarted are the words of programs for which CUDA did not start.
unstarted := logs.messages({"cuda-unknown-error", "cuda-init-error", "cuda-no-device"})

# started is true when CUDA offered a GPU, whatever /dev looks like.
started if count(surroundings.offered) > 0

default certainty := "likely"

# A probe that CUDA refused to start confirms it.
certainty := "confirmed" if input.transfers.error_code > 0

# Nodes that are there and that this user may not open.
findings contains {
	"subject": "/dev",
	"message": sprintf("This process cannot open %s: %s", [facts.list(closed), closed_hint]),
	"evidence": [{
		"fact": sprintf("container.device_nodes[%s].access", [path]),
		"value": surroundings.node_access[path],
		"source": "access(2)",
	} |
		some path in sort(closed)
	],
	"params": {"nodes": sort(closed)},
	"remedies": closed_remedies,
} if {
	count(closed) > 0
}

# A permission that a listing does not show is not a refusal.
closed contains path if {
	some path, access in surroundings.node_access
	access in {"r", "w", "none"}
	wanted_node(path)
}

wanted_node(path) if {
	surroundings.has_nvidia
	regex.match(`^/dev/(nvidia[0-9]+|nvidiactl|nvidia-uvm)$`, path)
}

wanted_node("/dev/kfd") if surroundings.has_amd

wanted_node("/dev/kfd") if logs.said("hip-no-device")

wanted_node(path) if {
	surroundings.has_amd
	not surroundings.has_nvidia
	startswith(path, "/dev/dri/renderD")
}

closed_hint := "run the container with --group-add for the groups render and video that own the nodes" if {
	closed_amd
	facts.in_container
} else := "the user is not in the groups render and video that own the nodes" if {
	closed_amd
} else := "the nodes' permissions, a device cgroup or a user namespace forbids it"

closed_amd if {
	some path in closed
	not startswith(path, "/dev/nvidia")
}

closed_remedies := ["pass-amd-devices"] if {
	closed_amd
	facts.in_container
} else := ["pass-device-nodes"] if {
	facts.in_container
} else := ["grant-device-access"]

# AMD: both the compute node and the render nodes are needed.
findings contains {
	"subject": lacking,
	"message": sprintf("%d AMD GPUs are in this machine, and %s is in /dev, but no %s: HIP finds no GPU", [count(surroundings.of_vendor.amd), given, lacking]),
	"evidence": [{"fact": "container.device_nodes", "value": sort(object.keys(surroundings.node_access)), "source": "/dev"}],
	"params": {"nodes": [trim_suffix(lacking, "/renderD*")]},
	"remedies": ["pass-amd-devices"],
} if {
	facts.in_container
	surroundings.has_amd
	some [given, lacking] in amd_halves
}

amd_halves contains ["/dev/kfd", "/dev/dri/renderD*"] if {
	surroundings.node_access["/dev/kfd"]
	count(surroundings.render_nodes) == 0
}

amd_halves contains ["/dev/dri/renderD*", "/dev/kfd"] if {
	count(surroundings.render_nodes) > 0
	not surroundings.has_nvidia
	not surroundings.node_access["/dev/kfd"]
}

# The kernel driver knows GPUs and none of them was passed in. What an
# explicit "none" means is for gpu-visibility to say.
findings contains {
	"subject": "/dev/nvidia*",
	"message": sprintf("The kernel driver of this machine has %d GPUs, but none of them was passed into this container", [count(known)]),
	"confidence": "possible",
	"evidence": [{
		"fact": "container.driver_devices",
		"value": [d.address | some d in known],
		"source": "/proc/driver/nvidia/gpus",
	}],
	"params": {"nodes": [sprintf("/dev/nvidia%d", [d.minor]) | some d in known]},
	"remedies": ["pass-device-nodes"],
} if {
	facts.in_container
	count(surroundings.nvidia_nodes) == 0
	count(known) > 0
	not none_wanted
	not started
}

none_wanted if lower(facts.env.NVIDIA_VISIBLE_DEVICES) in {"none", "void"}

# known are the GPUs of the kernel driver, without those that it does not bind.
known := [d | some d in surroundings.driver_devices; not d.excluded]

# All GPUs were asked for, and some are not here: they came up after the
# container was started, or were left out.
findings contains {
	"subject": "/dev/nvidia*",
	"message": sprintf("NVIDIA_VISIBLE_DEVICES=all requests every GPU, but %s of the kernel driver's %d GPUs have no node here", [facts.list(absent), count(known)]),
	"severity": "medium",
	"evidence": [
		{"fact": "container.missing_nodes", "value": sort(absent), "source": "/proc/driver/nvidia/gpus, /dev"},
		surroundings.variable_evidence(facts.variable.NVIDIA_VISIBLE_DEVICES),
	],
	"params": {"nodes": sort(absent)},
	"remedies": ["pass-device-nodes"],
} if {
	facts.in_container
	count(surroundings.nvidia_nodes) > 0
	lower(facts.env.NVIDIA_VISIBLE_DEVICES) == "all"
	count(absent) > 0
}

absent contains path if {
	some path in input.container.missing_nodes
	regex.match(`^/dev/nvidia[0-9]+$`, path)
}

# RDMA devices that the container lacks.
findings contains object.union({"subject": "/dev/infiniband", "params": {"nodes": ["/dev/infiniband"]}}, found) if {
	some found in container_rdma.found
}

# NUMA calls that a seccomp filter forbids.
findings contains object.union({"subject": "SYS_NICE", "params": {"capability": "SYS_NICE"}}, found) if {
	some found in numa_calls.found
}

# blind are programs that find no driver, or no GPU, in a container that was
# started without GPUs.
blind := logs.messages({"cuda-insufficient-driver", "cuda-no-device", "torch-sees-no-gpu", "ngc-driver-not-detected"})

findings contains {
	"id": "without-gpus",
	"subject": "/dev/nvidia*",
	"message": sprintf("%s was started without GPUs (neither --gpus nor --runtime=nvidia), and a program in it finds no driver", [launches.title(sort(launches.without_gpus)[0])]),
	"severity": "critical",
	"confidence": "likely",
	"remedies": ["pass-device-nodes", "other"],
	"messages": blind,
	"evidence": [launches.evidence(l) | some l in launches.without_gpus],
} if {
	count(blind) > 0
	count(launches.without_gpus) > 0
}

missing contains {"fact": "container", "words": "device nodes and capabilities were not read"} if not input.container

missing contains {"fact": "container.device_nodes", "words": "/dev could not be listed"} if {
	input.container
	not surroundings.rdma_nodes
}

missing contains {"fact": "libraries", "words": "it is not known which NCCL is used here"} if {
	numa_calls.forbidden
	count(surroundings.usable) > 1
	not input.libraries
}

missing contains {"fact": "libraries.files[].version", "words": "it is not known which NCCL is used here"} if {
	numa_calls.forbidden
	count(surroundings.usable) > 1
	some l in input.libraries.files
	l.kind == "libnccl"
	not l.version
}

not_applicable contains "no GPU and no GPU driver on this machine" if {
	count(facts.gpus) == 0
	count(known) == 0
}
