# METADATA
# title: A device node, a permission or a capability is missing
# description: >-
#   A container sees only the device nodes that are passed in, can use only those that its user can open, and by default
#   cannot make the NUMA calls that NCCL uses to place host memory. Without nvidia-uvm or nvidiactl, CUDA does not
#   start. Without NUMA calls, NCCL 2.24 to 2.26.3 fails when it uses host memory.
# related_resources:
#   - {ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-cumem-host-enable, description: cuMem host memory}
#   - {ref: https://docs.docker.com/engine/security/seccomp/, description: get_mempolicy and mbind need CAP_SYS_NICE}
#   - ref: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html
#     description: Devices and groups of a ROCm container
# custom:
#   severity: high
#   confidence: likely
#   needs: [container.inside, container.device_nodes, container.get_mempolicy, [gpus.devices, container.driver_devices]]
#   remedies: [pass-device-nodes, pass-amd-devices, pass-rdma-devices, pass-imex-channel, nccl-mnnvl-disable, enable-ibgda, unset-env, grant-device-access, add-sys-nice, nccl-cumem-host-disable, upgrade-nccl, configure-container-runtime, add-sys-ptrace, add-ipc-lock, reload-amd-driver, upgrade-amd-driver, other]
#   first_of: [rdma-device-closed, rdma-not-passed]
#   explains: ["without-gpus > gpu-visibility/no-gpu", "without-gpus > driver-library-mismatch/nvml-missing", "few-nodes > gpu-visibility/said", "closed > gpu-visibility/no-gpu", rdma-not-passed > ofi-plugin]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     node:
#       remedies: [pass-device-nodes]
#       text: "{given} is in /dev, but {subject} is not: CUDA cannot start without it"
#     half:
#       remedies: [pass-amd-devices]
#       text: "{given} is in /dev, but {subject} is not: HIP finds no GPU"
#     unlisted:
#       severity: critical
#       remedies: [pass-device-nodes, configure-container-runtime]
#       text: >-
#         {given} is in /dev, but {subject} is not, and CUDA failed ({said}). Load the module on the host before the
#         container starts (nvidia-modprobe -u -c=0), and pass the node in
#     closed: "This process cannot open {closed}: the nodes' permissions, a device cgroup or a user namespace forbids it"
#     none-passed:
#       confidence: possible
#       remedies: [pass-device-nodes]
#       text: "The kernel driver of this machine has {gpus} GPUs, but none of them was passed into this container"
#     infiniband:
#       severity: low
#       confidence: possible
#       remedies: [pass-rdma-devices]
#       text: >-
#         The machine has {nics:InfiniBand NIC}, but none of their device nodes was passed into this container: a job
#         over several machines uses TCP
#     rdma-not-passed:
#       remedies: [pass-rdma-devices, add-ipc-lock]
#       text: "NCCL finds no RDMA device in {container}: /dev/infiniband was not passed in. The job fails, or uses TCP instead"
#     numa-nccl:
#       remedies: [add-sys-nice, nccl-cumem-host-disable, upgrade-nccl]
#       text: >-
#         NUMA calls are blocked here ({blocked}), and NCCL {versions} allocates host memory with them: transport through
#         host memory fails (2.26.5 and newer fall back to /dev/shm)
#     numa:
#       severity: info
#       confidence: confirmed
#       remedies: [add-sys-nice]
#       text: "NUMA calls are blocked here ({blocked}): memory cannot be bound to the node of its GPU, and NCCL keeps its host buffers in /dev/shm"
#     without-gpus:
#       severity: critical
#       remedies: [pass-device-nodes, other]
#       text: "{container} was started without GPUs (neither --gpus nor --runtime=nvidia), and a program in it finds no driver"
#     without-amd-gpus:
#       severity: critical
#       remedies: [pass-amd-devices, other]
#       text: "{container} was started without GPUs (neither --device=/dev/kfd nor --device=/dev/dri), and HIP finds none in it"
#     few-nodes:
#       severity: critical
#       remedies: [pass-amd-devices, other]
#       text: >-
#         A program selects a GPU that {container} does not have: of the nodes in /dev/dri, only {nodes} was passed in.
#         Each GPU has its own; --device=/dev/dri passes in all of them
package gpudoctor.rules.container_caps

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.rdma
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.visible_devices as visible

# Of the nodes that programs need together, some are here and one is not.
findings contains {
	"grade": grade,
	"subject": lacked,
	"about": {"given": given},
	"evidence": [{"fact": "container.device_nodes", "value": sort(object.keys(surroundings.node_access)), "source": "/dev"}],
	"params": {"nodes": [trim_suffix(lacked, "/renderD*")]},
	"accounts_for": [{"probe": true} | input.transfers.error_code > 0],
} if {
	facts.in_container
	count(surroundings.offered) == 0
	some [grade, given, lacked] in halves
}

halves contains ["node", min(surroundings.nvidia_nodes), path] if {
	some path in ["/dev/nvidiactl", "/dev/nvidia-uvm"]
	not surroundings.node_access[path]
}

halves contains ["half", "/dev/kfd", "/dev/dri/renderD*"] if {
	surroundings.has_amd
	surroundings.node_access["/dev/kfd"]
	count(surroundings.render_nodes) == 0
}

halves contains ["half", min(surroundings.render_nodes), "/dev/kfd"] if {
	surroundings.has_amd
	not surroundings.has_nvidia
	not surroundings.node_access["/dev/kfd"]
}

# A listing shows the same of a container, or of a machine whose module nvidia_uvm is not loaded yet: nvidia-modprobe, which
# makes the node, may not do so in a container (apptainer/singularity issue 1441, NVIDIA/pyxis issue 81).
findings contains {
	"grade": "unlisted",
	"subject": "/dev/nvidia-uvm",
	"about": {"given": min(surroundings.nvidia_nodes), "said": m.text},
	"messages": {m},
	"evidence": [{"fact": "container.device_nodes", "value": sort(surroundings.nvidia_nodes), "source": "/dev"}],
	"params": {"nodes": ["/dev/nvidia-uvm"]},
} if {
	not facts.in_container
	count(surroundings.nvidia_nodes) > 0
	not surroundings.node_access["/dev/nvidia-uvm"]
	m := logs.first(logs.messages({"cuda-unknown-error", "cuda-init-error", "cuda-no-device"}))
}

findings contains {
	"id": "closed",
	"subject": "/dev",
	"about": {"closed": closed},
	"evidence": [{"fact": sprintf("container.device_nodes[%s].access", [path]), "value": surroundings.node_access[path], "source": "access(2)"} |
		some path in sort(closed)
	],
	"messages": blind_to_amd,
	"params": {"nodes": sort(closed)},
	"remedies": [opening],
} if count(closed) > 0

# A permission that a listing does not show is not a refusal.
closed contains path if {
	some path, access in surroundings.node_access
	access in {"r", "w", "none"}
	some pattern in needed
	regex.match(pattern, path)
}

needed contains `^/dev/(nvidia[0-9]+|nvidiactl|nvidia-uvm)$` if surroundings.has_nvidia
needed contains "^/dev/kfd$" if count(blind_to_amd) > 0

# A program that says so where /dev/kfd may not be opened was built for HIP.
blind_to_amd contains m if {
	surroundings.node_access["/dev/kfd"] in {"r", "w", "none"}
	not surroundings.has_nvidia
	some m in logs.messages({"hip-no-device", "torch-sees-no-gpu"})
}

needed contains "^/dev/(kfd$|dri/renderD)" if {
	surroundings.has_amd
	not surroundings.has_nvidia
}

opening := "grant-device-access" if {
	not facts.in_container
} else := "pass-device-nodes" if {
	surroundings.has_nvidia
} else := "pass-amd-devices"

# The kernel driver knows GPUs and none of them was passed in, although that was not asked for.
findings contains {
	"grade": "none-passed",
	"subject": "/dev/nvidia*",
	"about": {"gpus": count(known)},
	"evidence": [{"fact": "container.driver_devices", "value": [d.address | some d in known], "source": "/proc/driver/nvidia/gpus"}],
	"params": {"nodes": [sprintf("/dev/nvidia%d", [d.minor]) | some d in known]},
} if {
	facts.in_container
	count(surroundings.nvidia_nodes) == 0
	count(known) > 0
	not none_wanted
	count(surroundings.offered) == 0
}

none_wanted if lower(facts.env.NVIDIA_VISIBLE_DEVICES) in {"none", "void"}

# known are the GPUs of the kernel driver, without those that it does not bind.
known := [d | some d in surroundings.driver_devices; not d.excluded]

findings contains {
	"grade": "infiniband",
	"subject": "/dev/infiniband",
	"about": {"nics": count(surroundings.infiniband_nics)},
	"evidence": [{"fact": "pci.devices", "value": sort(surroundings.infiniband_nics), "source": "/sys/bus/pci/devices"}],
	"params": {"nodes": ["/dev/infiniband"]},
} if {
	facts.in_container
	count(surroundings.usable) > 0
	count(surroundings.infiniband_nics) > 0
	count(surroundings.rdma_nodes) == 0
}

findings contains {
	"id": "rdma-not-passed",
	"subject": "/dev/infiniband",
	"about": {"container": launches.title(sort(launches.without_rdma)[0])},
	"messages": {logs.first(logs.messages({"nccl-ib-no-device", "ofi-getinfo-failed"}))},
	"evidence": launches.devices_evidence(launches.without_rdma),
	"params": {"nodes": ["/dev/infiniband"]},
} if {
	not facts.env.NCCL_IB_DISABLE == "1"
	rdma_asked
}

# Somebody looked for the nodes and found none.
findings contains {
	"id": "rdma-not-passed",
	"subject": "/dev/infiniband",
	"about": {"container": "the container"},
	"messages": (logs.by_id["rdma-nodes-not-listed"] | {m}),
	"params": {"nodes": ["/dev/infiniband"]},
} if {
	not facts.env.NCCL_IB_DISABLE == "1"
	rdma.nodes_hidden
	m := logs.first(logs.messages({"nccl-ib-no-device", "ofi-getinfo-failed"}))
	rdma_missed
}

rdma_missed if rdma_asked
rdma_missed if logs.said("nccl-network-not-found")

rdma_asked if regex.match(`^[^^]`, facts.env.NCCL_IB_HCA)
rdma_asked if logs.said("ofi-getinfo-failed")

rdma_asked if {
	networks.multi_node
	"active" in {p.state | some p in input.nics.rdma}
}

# NUMA calls that a seccomp filter or a security module forbids. NCCL 2.24 to 2.26.3 allocates host memory with them;
# elsewhere only the placement of memory suffers.
findings contains {
	"grade": numa_grade,
	"subject": "SYS_NICE",
	"about": {
		"blocked": sprintf("get_mempolicy: %s", [denied]),
		"versions": {l.version | some l in surroundings.nccl},
	},
	"evidence": [{"fact": "container.get_mempolicy", "value": denied, "source": "get_mempolicy(2)"}],
	"params": {"capability": "SYS_NICE"},
} if {
	denied
	not library_versions.cumem_host_off
}

numa_grade := "numa-nccl" if {
	surroundings.nccl_at_least([2, 24])
	surroundings.nccl_below([2, 26, 5])
	count(surroundings.usable) > 1
} else := "numa" if {
	count(surroundings.usable) > 0
	input.container.attempts # Without the probe it is not worth a note.
}

# denied is what a filter answers, which denies NCCL's and CUDA's other NUMA calls as well. ENOSYS is the answer of a kernel
# without NUMA.
denied := input.container.get_mempolicy if input.container.get_mempolicy in denials

denials := {"EPERM", "EACCES", "SIGSYS"}

findings contains {
	"id": "without-gpus",
	"grade": grade,
	"subject": subject,
	"about": {"container": launches.title(sort(launches.without_gpus)[0])},
	"messages": blind,
	"evidence": [launches.evidence(l) | some l in launches.without_gpus],
} if {
	some [grade, subject, rows] in [
		["without-gpus", "/dev/nvidia*", ({"cuda-insufficient-driver", "cuda-no-device", "ngc-driver-not-detected"} | {"torch-sees-no-gpu" | not amd.present})],
		["without-amd-gpus", "/dev/kfd", ({"hip-no-device"} | {"torch-sees-no-gpu" | amd.present})],
	]
	blind := logs.messages(rows)
	count(blind) > 0
}

# Each AMD GPU has a render node of its own.
findings contains {
	"id": "few-nodes",
	"subject": "/dev/dri",
	"about": {"container": launches.title(l), "nodes": concat(", ", nodes)},
	"params": {"nodes": ["/dev/dri"]},
	"messages": logs.by_id["hip-invalid-device"],
	"evidence": launches.devices_evidence({l}),
} if {
	count(logs.by_id["hip-invalid-device"]) > 0
	count(visible.chosen) == 0
	l := sort({l | some l in launches.containers; launches.lacks(l, {"privileged"})})[_]
	nodes := [d | some d in l.devices; startswith(d, "/dev/dri/renderD")]
	count(nodes) > 0
}

asks contains "libraries" if {
	denied
	count(surroundings.usable) > 1
}

missing contains {"fact": "libraries.files[].version", "words": "it is not known which NCCL is used here"} if {
	denied
	count(surroundings.usable) > 1
	some l in input.libraries.files
	l.kind == "libnccl"
	not l.version
}

not_applicable contains "no GPU and no GPU driver on this machine" if {
	input.container.device_nodes
	count(facts.gpus) == 0
	count(known) == 0
}
