# METADATA
# title: The container lacks a device node or a capability
# description: >-
#   A container sees only the device nodes that were passed in, may use only
#   those that its user may open, and by default may not make the NUMA calls
#   with which NCCL places host memory. Without nvidia-uvm or nvidiactl CUDA
#   does not start; without NUMA calls NCCL 2.24 to 2.26.3 fails on its way
#   through host memory.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-cumem-host-enable
#     description: cuMem host memory, on by default since 2.24, and its fallback
#   - ref: https://docs.docker.com/engine/security/seccomp/
#     description: get_mempolicy and mbind need CAP_SYS_NICE
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
#     description: Which devices a container is given
#   - ref: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html
#     description: Devices and groups of a ROCm container
# schemas:
#   - input: schema.facts
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - container.inside
#     - container.device_nodes
#     - container.capabilities
#     - container.get_mempolicy
#     - [gpus.devices, container.driver_devices]
#   remedies: [pass-device-nodes, pass-amd-devices, pass-rdma-devices, grant-device-access, add-sys-nice, nccl-cumem-host-disable, upgrade-nccl, configure-container-runtime, add-sys-ptrace, add-ipc-lock, other]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.container_caps

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
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

# A listing that was sent shows the same, of a container or of a machine whose
# module nvidia_uvm is not loaded yet: nvidia-modprobe, which loads it and makes
# the node, may not do so inside of a container (apptainer/singularity issue 1441,
# NVIDIA/pyxis issue 81).
findings contains {
	"subject": "/dev/nvidia-uvm",
	"message": sprintf("%d GPU nodes are listed in /dev, but /dev/nvidia-uvm is not, and CUDA failed (%s): it needs that node for all memory. Load the module on the host before the container starts (nvidia-modprobe -u -c=0), and pass the node in", [count(surroundings.nvidia_nodes), logs.first(unstarted).text]),
	"severity": "critical",
	"confidence": "likely",
	"evidence": array.concat([{"fact": "container.device_nodes", "value": sort(surroundings.nvidia_nodes), "source": "/dev"}], array.slice(logs.all_evidence(unstarted), 0, 2)),
	"params": {"nodes": ["/dev/nvidia-uvm"]},
	"remedies": ["pass-device-nodes", "configure-container-runtime"],
	"order": logs.first(unstarted).order,
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

# A probe that CUDA refused to start bears it out.
certainty := "confirmed" if input.transfers.error_code > 0

# Nodes that are there and that this user may not open.
findings contains {
	"subject": "/dev",
	"message": sprintf("This process may not open %s: %s", [facts.list(closed), closed_hint]),
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

# What a listing does not tell is no refusal.
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

closed_hint := "add the container with --group-add to the groups render and video that own the nodes" if {
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
# explicit «none» means is for gpu-visibility to say.
findings contains {
	"subject": "/dev/nvidia*",
	"message": sprintf("The kernel driver of this machine knows %d GPUs, and none of them was passed into this container", [count(known)]),
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

# known are the GPUs of the kernel driver, without those that it leaves alone.
known := [d | some d in surroundings.driver_devices; not d.excluded]

# All GPUs were asked for, and some are not here: they came up after the
# container was started, or were left out.
findings contains {
	"subject": "/dev/nvidia*",
	"message": sprintf("NVIDIA_VISIBLE_DEVICES=all asks for every GPU, and %s of the kernel driver's %d GPUs have no node here", [facts.list(absent), count(known)]),
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

# InfiniBand NICs of the machine that a container cannot use.
findings contains {
	"subject": "/dev/infiniband",
	"message": sprintf("The machine has %d InfiniBand NICs, and none of their device nodes was passed into this container: a job over several machines goes over TCP", [count(surroundings.infiniband_nics)]),
	"severity": "low",
	"confidence": "possible",
	"evidence": [{"fact": "pci.devices", "value": sort(surroundings.infiniband_nics), "source": "/sys/bus/pci/devices"}],
	"params": {"nodes": ["/dev/infiniband"]},
	"remedies": ["pass-rdma-devices"],
} if {
	facts.in_container
	count(surroundings.usable) > 0
	count(surroundings.infiniband_nics) > 0
	count(surroundings.rdma_nodes) == 0
}

# NCCL sees an RDMA device in /sys and may not open its node. Outside of a
# container the node's permissions forbid it.
findings contains {
	"subject": "/dev/infiniband",
	"message": sprintf("%s: an RDMA device is seen and cannot be opened: its node (/dev/infiniband/uverbs*) was not passed into the container, or this user may not open it. The job goes on over TCP, or ends", [logs.who(first)]),
	"severity": "high",
	"confidence": unopened_confidence,
	"remedies": ["pass-rdma-devices", "pass-device-nodes"],
	"params": {"nodes": ["/dev/infiniband"]},
	"evidence": array.concat(array.slice(logs.all_evidence(unopened), 0, 3), unopened_launches),
	"order": first.order,
} if {
	count(unopened) > 0
	first := logs.first(unopened)
}

# wants_rdma is true of a job over several machines, and of one whose variables
# speak of RDMA.
wants_rdma if networks.multi_node

wants_rdma if facts.env.NCCL_IB_HCA != ""

wants_rdma if upper(facts.env.NCCL_NET) == "IB"

wants_rdma if facts.env.NCCL_IB_DISABLE == "0"

# NCCL finds no RDMA device in a container that was given none, while one of the
# machine has a link, and the job asks for RDMA.
findings contains {
	"subject": "/dev/infiniband",
	"message": sprintf("NCCL finds no RDMA device in %s, which was given none: /dev/infiniband was not passed in. The machine has some with a link (%s), and the job goes over TCP instead", [launches.title(l), concat(", ", sort(linked))]),
	"severity": "high",
	"confidence": "likely",
	"remedies": ["pass-rdma-devices", "pass-device-nodes", "add-ipc-lock"],
	"params": {"nodes": ["/dev/infiniband"]},
	"evidence": array.concat(array.slice(logs.all_evidence(logs.by_id["nccl-ib-no-device"]), 0, 1), unopened_launches),
	"order": logs.first(logs.by_id["nccl-ib-no-device"]).order,
} if {
	logs.said("nccl-ib-no-device")
	count(unopened) == 0
	not facts.env.NCCL_IB_DISABLE == "1"
	wants_rdma
	linked := {p.device | some p in input.nics.rdma; p.state == "active"}
	count(linked) > 0
	l := sort(without_rdma)[0]
}

# Memory that is shared by fabric handles (NVLink between machines) needs a channel of
# IMEX, a device node of its own, which an unprivileged container has only where it
# was passed in (NVIDIA/nccl issue 1925).
channels := logs.messages({"nccl-mnnvl-imex-channel"})

findings contains {
	"subject": "/dev/nvidia-caps-imex-channels",
	"message": sprintf("NCCL may not share memory over the NVLinks between machines (%s), and %s is not privileged: it lacks the IMEX channel, /dev/nvidia-caps-imex-channels/channel0. A ComputeDomain of NVIDIA's DRA driver, or --device, passes it in; NCCL_MNNVL_ENABLE=0 does without", [logs.at(first), launches.title(sort(unchannelled)[0])]),
	"severity": "critical",
	"confidence": "likely",
	"remedies": ["pass-device-nodes", "other"],
	"params": {"nodes": ["/dev/nvidia-caps-imex-channels/channel0"]},
	"evidence": logs.all_evidence(channels),
	"order": first.order,
} if {
	count(channels) > 0
	count(unchannelled) > 0
	first := logs.first(channels)
}

unchannelled contains l if {
	some l in launches.enclosed
	not l.privileged
	launches.with_gpu(l)
	count({p | some p in array.concat(object.get(l, "devices", []), object.get(l, "mounts", [])); contains(p, "imex")}) == 0
}

# NCCL was told to use InfiniBand or RoCE and nothing else, and finds no device of it
# in a container that was given none: what is told is right, and the nodes are
# missing.
findings contains {
	"subject": "/dev/infiniband",
	"message": sprintf("NCCL_NET=IB allows NCCL its own InfiniBand and RoCE transport alone, and NCCL finds no RDMA device in %s, which was given none: /dev/infiniband was not passed in. So the job ends, and does not go on over TCP", [launches.title(l)]),
	"severity": "critical",
	"confidence": "confirmed",
	"remedies": ["pass-rdma-devices", "pass-device-nodes", "add-ipc-lock"],
	"params": {"nodes": ["/dev/infiniband"]},
	"evidence": array.concat(logs.all_evidence(barred), unopened_launches),
	"order": logs.first(barred).order - 1,
} if {
	count(barred) > 0
	count(unopened) == 0
	upper(facts.env.NCCL_NET) == "IB"
	l := sort(without_rdma)[0]
}

barred := logs.messages({"nccl-network-not-found"})

unopened contains m if {
	some m in logs.by_id["nccl-ib-device-unusable"]
	m.fields.what == "open"
}

unopened contains m if {
	some m in logs.by_id["nccl-ib-call-failed"]
	m.fields.call == "ibv_open_device"
}

# fi_info finds no device in one place, and a container was started without any:
# the machine has them, as the same command outside, or what the job is told,
# shows.
findings contains {
	"subject": "/dev/infiniband",
	"message": sprintf("libfabric finds no device (%s), and the container was started without any of /dev/infiniband: EFA is not to be seen in it. --device=/dev/infiniband/uverbs0, one for each of EFA's interfaces, or the resource vpc.amazonaws.com/efa, passes them in", [logs.at(m)]),
	"severity": "high",
	"confidence": "likely",
	"remedies": ["pass-device-nodes", "pass-rdma-devices"],
	"params": {"nodes": ["/dev/infiniband"]},
	"evidence": array.concat([logs.evidence(m)], unopened_launches),
	"order": m.order,
} if {
	count(without_rdma) > 0
	m := logs.first(logs.messages({"ofi-fi-info-empty", "ofi-efa-list-empty"}))
	efa_elsewhere
}

efa_elsewhere if {
	some p in input.nics.providers
	startswith(p, "efa")
}

efa_elsewhere if facts.env.FI_PROVIDER == "efa"

# pyxis are containers that Slurm starts. A hook of enroot may bring the RDMA devices
# without a word, so that the finding needs NCCL's word that there is none.
pyxis contains l if {
	some l in launches.enclosed
	l.kind == "slurm"
}

# without_rdma are the containers that were given no RDMA device.
without_rdma contains l if {
	some l in (launches.containers | pyxis)
	not l.privileged
	count({d | some d in object.get(l, "devices", []); startswith(d, "/dev/infiniband")}) == 0
	count({m | some m in object.get(l, "mounts", []); startswith(m, "/dev")}) == 0
	count({r | some r, _ in object.get(l, "resources", {}); regex.match(`(?i)rdma|hca|infiniband|efa|sriov|mellanox|nic`, r)}) == 0
}

unopened_launches := [{"fact": sprintf("launches[%s].devices", [object.get(l, "name", l.kind)]), "value": object.get(l, "devices", "none"), "source": logs.at(l)} | some l in without_rdma]

unopened_confidence := "confirmed" if {
	count(without_rdma) > 0
} else := "likely"

# NUMA calls that a seccomp filter forbids.
findings contains {
	"subject": "SYS_NICE",
	"message": sprintf("NUMA calls are forbidden here (get_mempolicy gives EPERM), and NCCL %s takes host memory with them: transport through host memory fails (2.26.5 and newer fall back to /dev/shm)", [facts.list({l.version | some l in surroundings.nccl})]),
	"severity": numa_severity,
	"evidence": array.concat(numa_evidence, nccl_evidence),
	"remedies": ["add-sys-nice", "nccl-cumem-host-disable", "upgrade-nccl"],
	"params": {"capability": "SYS_NICE"},
} if {
	numa_forbidden
	count(surroundings.usable) > 1
	surroundings.nccl_at_least([2, 24])
	surroundings.nccl_below([2, 26, 5])
}

# Elsewhere it costs only the placement of memory, which matters where there is
# more than one node to place it on.
findings contains {
	"subject": "SYS_NICE",
	"message": "NUMA calls are forbidden here (get_mempolicy gives EPERM): memory cannot be bound to the node of its GPU, and NCCL keeps its host buffers in /dev/shm",
	"severity": "info",
	"evidence": numa_evidence,
	"remedies": ["add-sys-nice"],
	"params": {"capability": "SYS_NICE"},
} if {
	numa_forbidden
	count(surroundings.usable) > 1
	count(surroundings.cpu_nodes) > 1
	not affected_nccl
}

affected_nccl if {
	surroundings.nccl_at_least([2, 24])
	surroundings.nccl_below([2, 26, 5])
}

# Where GPUs reach each other directly host memory is the exception.
default numa_severity := "high"

numa_severity := "medium" if surroundings.p2p_proven

numa_severity := "medium" if surroundings.all_nvlinked

numa_forbidden if {
	input.container.get_mempolicy == "EPERM"
	not cumem_host_off
}

cumem_host_off if facts.env.NCCL_CUMEM_HOST_ENABLE == "0"

cumem_host_off if facts.env.NCCL_CUMEM_ENABLE == "0"

numa_evidence := [
	{"fact": "container.get_mempolicy", "value": "EPERM", "source": "get_mempolicy(2)"},
	{"fact": "container.seccomp", "value": object.get(input.container, "seccomp", ""), "source": "/proc/self/status"},
]

nccl_evidence := [{
	"fact": sprintf("libraries.files[%s].version", [l.path]),
	"value": l.version,
	"source": l.path,
} |
	some l in surroundings.nccl
]

# What programs say themselves.
findings contains {
	"subject": refusal.subject,
	"message": sprintf("%s: %s", [logs.who(first), refusal.message]),
	"severity": refusal.severity,
	"confidence": refusal.confidence,
	"remedies": refusal.remedies,
	"params": params(list),
	"evidence": logs.all_evidence(list),
	"order": first.order,
} if {
	some refusal in refusals
	list := said[refusal.name]
	first := logs.first(list)
}

# said are the messages of each refusal.
said[refusal.name] contains m if {
	some refusal in refusals
	some m in logs.messages(refusal.ids)
	applies(refusal.name, m)
}

# applies sorts what one row of the catalogue holds for several refusals. A
# query that is refused costs little: libnuma goes on without (numactl pull 232).
applies("numa-query", m) if m.fields.call == "get_mempolicy"

applies("numa", m) if {
	object.get(m.fields, "call", "") != "get_mempolicy"
}

applies(name, _) if not name in {"numa", "numa-query", "lost", "lost-in-container"}

applies("lost", _) if not held

applies("lost-in-container", _) if held

# held is true where the texts tell of a container.
held if facts.in_container

held if count(launches.containers) > 0

params(list) := {"nodes": sort({m.fields.node | some m in list; m.fields.node != ""})} if {
	some m in list
	m.fields.node
} else := {"capability": "SYS_NICE"}

refusals := [
	{
		"name": "numa", "ids": {"numa-call-refused", "numa-bind-refused"}, "subject": "SYS_NICE", "severity": "high", "confidence": "confirmed",
		"message": "the kernel refuses a NUMA call (Operation not permitted): memory cannot be bound to a node, and numactl ends before the program starts. The seccomp filter of containers lets these calls through only with CAP_SYS_NICE",
		"remedies": ["add-sys-nice", "other"],
	},
	{
		"name": "numa-query", "ids": {"numa-call-refused"}, "subject": "SYS_NICE", "severity": "low", "confidence": "confirmed",
		"message": "get_mempolicy is refused (Operation not permitted): memory is not bound to the node of its GPU. Programs mostly go on without",
		"remedies": ["add-sys-nice"],
	},
	{
		"name": "node", "ids": {"numa-node-refused"}, "subject": "NUMA", "severity": "high", "confidence": "likely",
		"message": "memory cannot be bound to the NUMA node that was asked for: the container's cpuset, or its seccomp filter, keeps the process from it, and numactl ends before the program starts",
		"remedies": ["add-sys-nice", "other"],
	},
	{
		"name": "call", "ids": {"seccomp-call-refused"}, "subject": "seccomp", "severity": "critical", "confidence": "likely",
		"message": "a seccomp filter refuses a call that the CUDA driver makes when it starts, so that CUDA fails with error 304 though the devices are there",
		"remedies": ["other", "add-sys-nice"],
	},
	{
		"name": "doorbell", "ids": {"ibgda-queue-refused"}, "subject": "/dev/infiniband", "severity": "critical", "confidence": "likely",
		"message": "NVSHMEM may not map the doorbell of a NIC for the GPU (IBGDA): the container lacks the RDMA devices or the capabilities that DevX wants (it works with --privileged)",
		"remedies": ["pass-device-nodes", "add-ipc-lock", "other"],
	},
	{
		"name": "capability", "ids": {"container-capability-refused"}, "subject": "container", "severity": "high", "confidence": "confirmed",
		"message": "the container's runtime may not change capabilities: a security module, the mount options of its files (nosuid) or a user namespace forbids it",
		"remedies": ["other", "configure-container-runtime"],
	},
	{
		"name": "gvisor", "ids": {"gvisor-call-unknown", "gvisor-driver-unsupported"}, "subject": "gVisor", "severity": "high", "confidence": "likely",
		"message": "gVisor (runsc with nvproxy) lets through only those calls, and only those versions, of the NVIDIA driver that its release knows, and refuses one here: programs for several GPUs then fail or hang. A newer gVisor, a driver that it supports (runsc nvproxy list-supported-drivers), or runc in its place helps",
		"remedies": ["other", "configure-container-runtime"],
	},
	{
		"name": "ptrace", "ids": {"ptrace-refused"}, "subject": "SYS_PTRACE", "severity": "high", "confidence": "confirmed",
		"message": "a process may not read the memory of another rank (Operation not permitted): CAP_SYS_PTRACE is missing, the ranks are in different user namespaces, or Yama forbids it",
		"remedies": ["add-sys-ptrace", "other"],
	},
	{
		"name": "seccomp", "ids": {"seccomp-killed"}, "subject": "seccomp", "severity": "low", "confidence": "possible",
		"message": "a seccomp filter or AppArmor stopped a system call",
		"remedies": ["other"],
	},
	{
		"name": "nodes", "ids": {"nvidia-devices-forbidden"}, "subject": "/dev/nvidia*", "severity": "high", "confidence": "confirmed",
		"message": "a device node of the NVIDIA driver is missing or may not be opened",
		"remedies": ["pass-device-nodes", "grant-device-access"],
	},
	{
		"name": "nvml-permission", "ids": {"nvml-init-forbidden"}, "subject": "/dev/nvidia*", "severity": "high", "confidence": "likely",
		"message": "NVML may not open the devices: their permissions, or a container's device control group, forbids it",
		"remedies": ["pass-device-nodes", "grant-device-access"],
	},
	{
		"name": "lost-in-container", "ids": {"nvml-init-unknown"}, "subject": "/dev/nvidia*", "severity": "high", "confidence": "likely",
		"message": "NVML fails in a container with an unknown error: the device control group does not let it open the GPUs. A reload of systemd's units takes them from containers that run; started anew they have them again",
		"remedies": ["pass-device-nodes", "other", "configure-container-runtime"],
	},
	{
		"name": "lost", "ids": {"nvml-init-unknown"}, "subject": "/dev/nvidia*", "severity": "medium", "confidence": "possible",
		"message": "NVML fails with an unknown error. In a container this is what it says once the device control group has lost the GPUs (systemctl daemon-reload does that)",
		"remedies": ["pass-device-nodes", "other", "configure-container-runtime"],
	},
	{
		"name": "cgroup", "ids": {"nvidia-cgroup-refused"}, "subject": "container", "severity": "high", "confidence": "confirmed",
		"message": "the NVIDIA runtime may not add the GPUs to the container's device control group, which an engine without root cannot",
		"remedies": ["configure-container-runtime", "other"],
	},
	{
		"name": "cli", "ids": {"nvidia-cli-failed"}, "subject": "container", "severity": "critical", "confidence": "likely",
		"message": "nvidia-container-cli could not put the driver's libraries and devices into the container, so that it does not start: look at what the line names (ldconfig of the image or of the container around it, GPUs that are asked for and not there, the rights to mount)",
		"remedies": ["configure-container-runtime", "pass-device-nodes", "other"],
	},
	{
		"name": "device-plugin", "ids": {"device-plugin-no-nvml"}, "subject": "container", "severity": "high", "confidence": "likely",
		"message": "the device plugin of Kubernetes finds no driver in its own container: the node's container engine does not start pods with the NVIDIA runtime (its default runtime, or the pod's runtimeClassName), so that no pod there gets GPUs",
		"remedies": ["configure-container-runtime", "pass-device-nodes", "other"],
	},
	{
		"name": "runtime", "ids": {"nvidia-runtime-missing"}, "subject": "container", "severity": "critical", "confidence": "confirmed",
		"message": "the container engine does not know how to give a container GPUs: the NVIDIA container toolkit is not installed, or not registered with it",
		"remedies": ["configure-container-runtime", "pass-device-nodes", "other"],
	},
	{
		"name": "kfd", "ids": {"kfd-not-accessible", "kfd-node-refused", "kfd-group-missing", "kfd-fails"}, "subject": "/dev/kfd", "severity": "high", "confidence": "confirmed",
		"message": "/dev/kfd cannot be opened, without which HIP finds no GPU: it was not passed in, or the user is not in the groups render and video that own it",
		"remedies": ["pass-amd-devices", "grant-device-access"],
	},
	{
		"name": "render", "ids": {"amd-node-refused"}, "subject": "/dev/dri", "severity": "high", "confidence": "likely",
		"message": "a system call on a node of an AMD GPU is refused: the container's device control group, or the node's permissions, keeps the process from it. A device plugin or --device has to allow it whole (rwm), and newer versions of PyTorch ask for render nodes that older ones did not",
		"remedies": ["pass-amd-devices", "grant-device-access"],
	},
	{
		"name": "scheduler", "ids": {"kubernetes-device-lacking"}, "subject": "kubelet", "severity": "medium", "confidence": "possible",
		"message": "Kubernetes finds no node that offers the devices that the pod asks for: they are in use, unhealthy, or their device plugin does not run",
		"remedies": ["other"],
	},
]

# blind are programs that find no driver, or no GPU, in a container that was
# started without GPUs.
blind := logs.messages({"cuda-insufficient-driver", "cuda-no-device", "torch-sees-no-gpu", "ngc-driver-not-detected"})

findings contains {
	"subject": "/dev/nvidia*",
	"message": sprintf("%s was started without GPUs (neither --gpus nor --runtime=nvidia), and a program in it finds no driver", [launches.title(sort(launches.without_gpus)[0])]),
	"severity": "critical",
	"confidence": "likely",
	"remedies": ["pass-device-nodes", "other"],
	"params": {},
	"evidence": array.concat(logs.all_evidence(blind), [launches.evidence(l) | some l in launches.without_gpus]),
	"order": logs.first(blind).order,
} if {
	count(blind) > 0
	count(launches.without_gpus) > 0
}

missing contains {"fact": "container", "words": "device nodes and capabilities were not read"} if not input.container

missing contains {"fact": "container.device_nodes", "words": "/dev could not be listed"} if {
	input.container
	not surroundings.rdma_nodes
}

missing contains {"fact": "libraries", "words": "which NCCL is used here is not known"} if {
	numa_forbidden
	count(surroundings.usable) > 1
	not input.libraries
}

missing contains {"fact": "libraries.files[].version", "words": "which NCCL is used here is not known"} if {
	numa_forbidden
	count(surroundings.usable) > 1
	some l in input.libraries.files
	l.kind == "libnccl"
	not l.version
}

not_applicable contains "no GPU and no GPU driver on this machine" if {
	count(facts.gpus) == 0
	count(known) == 0
}
