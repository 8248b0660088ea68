# METADATA
# title: A device node, a permission or a capability is missing
# description: >-
#   A container sees only the device nodes that are passed in, can use only those that its user can open, and by default
#   cannot make the NUMA calls that NCCL uses to place host memory. Without nvidia-uvm or nvidiactl, CUDA does not
#   start. Without NUMA calls, NCCL 2.24 to 2.26.3 fails when it uses host memory.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-cumem-host-enable
#     description: cuMem host memory, on by default since 2.24, and its fallback
#   - {ref: https://docs.docker.com/engine/security/seccomp/, description: get_mempolicy and mbind need CAP_SYS_NICE}
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
#   remedies: [pass-device-nodes, pass-amd-devices, pass-rdma-devices, pass-imex-channel, nccl-mnnvl-disable, enable-ibgda, unset-env, grant-device-access, add-sys-nice, nccl-cumem-host-disable, upgrade-nccl, configure-container-runtime, add-sys-ptrace, add-ipc-lock, reload-amd-driver, upgrade-amd-driver, other]
#   first_of: [rdma-device-closed, rdma-not-passed]
#   explains: ["without-gpus > gpu-visibility/no-gpu", "without-gpus > driver-library-mismatch/nvml-missing", "few-nodes > gpu-visibility/said"]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     node: "{gpus} GPU nodes are in /dev, but {subject} is not: CUDA cannot start without it"
#     unlisted:
#       severity: critical
#       text: >-
#         {gpus} GPU nodes are in /dev, but {subject} is not, and CUDA failed ({said}). Load the module on the host before
#         the container starts (nvidia-modprobe -u -c=0), and pass the node in
#     closed: >-
#       This process cannot open {closed}: the nodes' permissions, a device cgroup or a user namespace forbids it[. The
#       groups render and video own {amd}: a user must be in them, and --group-add adds them in a container]
#     half: "{gpus} AMD GPUs are in this machine, and {given} is in /dev, but no {subject}: HIP finds no GPU"
#     none-passed:
#       confidence: possible
#       text: "The kernel driver of this machine has {gpus} GPUs, but none of them was passed into this container"
#     absent:
#       severity: medium
#       text: "NVIDIA_VISIBLE_DEVICES=all requests every GPU, but {absent} of the kernel driver's {gpus} GPUs have no node here"
#     infiniband:
#       severity: low
#       confidence: possible
#       text: >-
#         The machine has {nics:InfiniBand NIC}, but none of their device nodes was passed into this container: a job
#         over several machines uses TCP
#     rdma-not-passed: >-
#       NCCL finds no RDMA device in {container}: /dev/infiniband was not passed in.[ The machine has RDMA devices with a
#       link ({linked:comma}).][ NCCL_IB_HCA={hca} asks for them.] The job uses TCP instead
#     rdma-barred:
#       severity: critical
#       confidence: confirmed
#       text: >-
#         NCCL_NET=IB restricts NCCL to InfiniBand and RoCE, and NCCL finds no RDMA device in {container}: /dev/infiniband
#         was not passed in
#     efa-not-passed: >-
#       libfabric finds no device ({at}), and {container} was started without any of /dev/infiniband, so it cannot use
#       EFA. Pass in --device=/dev/infiniband/uverbs0 for each EFA interface, or request vpc.amazonaws.com/efa
#     numa-nccl: >-
#       NUMA calls are blocked here ({blocked}), and NCCL {versions} allocates host memory with them: transport through
#       host memory fails (2.26.5 and newer fall back to /dev/shm)
#     numa:
#       severity: info
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
import data.gpudoctor.lib.attempts
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.image_files
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.peer_access
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.visible_devices as visible

lacking(grade, subject, nodes, fields) := object.union(
	{"grade": grade, "subject": subject, "params": {"nodes": nodes}, "remedies": ["pass-device-nodes"]},
	fields,
)

nodes_evidence := [{"fact": "container.device_nodes", "value": sort(surroundings.nvidia_nodes), "source": "/dev"}]

# A GPU's node without the nodes of the driver itself. A probe that CUDA refused to start confirms it.
findings contains lacking("node", path, [path], {
	"about": {"gpus": count(surroundings.nvidia_nodes)},
	"confidence": {true: "confirmed", false: "likely"}[count(refused) > 0],
	"evidence": nodes_evidence,
	"accounts_for": refused,
}) if {
	facts.in_container
	count(surroundings.nvidia_nodes) > 0
	some path in ["/dev/nvidiactl", "/dev/nvidia-uvm"]
	not surroundings.node_access[path]
	count(surroundings.offered) == 0
	refused := [{"probe": true} | input.transfers.error_code > 0]
}

# A listing shows the same, of a container or of a machine whose module nvidia_uvm is not loaded yet: nvidia-modprobe,
# which loads it and makes the node, may not do so in a container (apptainer/singularity issue 1441, NVIDIA/pyxis
# issue 81).
findings contains lacking("unlisted", "/dev/nvidia-uvm", ["/dev/nvidia-uvm"], {
	"about": {"gpus": count(surroundings.nvidia_nodes), "said": m.text},
	"messages": {m},
	"evidence": nodes_evidence,
	"remedies": ["pass-device-nodes", "configure-container-runtime"],
}) if {
	not facts.in_container
	count(surroundings.nvidia_nodes) > 0
	not surroundings.node_access["/dev/nvidia-uvm"]
	m := logs.first(logs.messages({"cuda-unknown-error", "cuda-init-error", "cuda-no-device"}))
}

findings contains lacking("closed", "/dev", sort(closed), {
	"about": {"closed": closed, "amd": closed_amd},
	"evidence": [{"fact": sprintf("container.device_nodes[%s].access", [path]), "value": surroundings.node_access[path], "source": "access(2)"} |
		some path in sort(closed)
	],
	"remedies": opening,
}) if count(closed) > 0

# A permission that a listing does not show is not a refusal.
closed contains path if {
	some path, access in surroundings.node_access
	access in {"r", "w", "none"}
	some pattern in needed
	regex.match(pattern, path)
}

needed contains `^/dev/(nvidia[0-9]+|nvidiactl|nvidia-uvm)$` if surroundings.has_nvidia
needed contains "^/dev/kfd$" if surroundings.has_amd
needed contains "^/dev/kfd$" if logs.said("hip-no-device")

needed contains "^/dev/dri/renderD" if {
	surroundings.has_amd
	not surroundings.has_nvidia
}

opening := {true: ["pass-device-nodes"], false: ["pass-amd-devices"]}[count(closed_amd) == 0] if {
	facts.in_container
} else := ["grant-device-access"]

closed_amd := {path | some path in closed; not startswith(path, "/dev/nvidia")}

# AMD: both the compute node and the render nodes are needed.
findings contains lacking("half", lacked, [trim_suffix(lacked, "/renderD*")], {
	"about": {"gpus": count(surroundings.of_vendor.amd), "given": given},
	"evidence": [{"fact": "container.device_nodes", "value": sort(object.keys(surroundings.node_access)), "source": "/dev"}],
	"remedies": ["pass-amd-devices"],
}) if {
	facts.in_container
	surroundings.has_amd
	some [given, lacked] in amd_halves
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

# The kernel driver knows GPUs and none of them was passed in. What an explicit "none" means is for gpu-visibility to
# say.
findings contains lacking("none-passed", "/dev/nvidia*", [sprintf("/dev/nvidia%d", [d.minor]) | some d in known], {
	"about": {"gpus": count(known)},
	"evidence": [{"fact": "container.driver_devices", "value": [d.address | some d in known], "source": "/proc/driver/nvidia/gpus"}],
}) if {
	facts.in_container
	count(surroundings.nvidia_nodes) == 0
	count(known) > 0
	not none_wanted
	count(surroundings.offered) == 0
}

none_wanted if lower(facts.env.NVIDIA_VISIBLE_DEVICES) in {"none", "void"}

# known are the GPUs of the kernel driver, without those that it does not bind.
known := [d | some d in surroundings.driver_devices; not d.excluded]

findings contains lacking("absent", "/dev/nvidia*", sort(absent), {
	"about": {"absent": absent, "gpus": count(known)},
	"evidence": [
		{"fact": "container.missing_nodes", "value": sort(absent), "source": "/proc/driver/nvidia/gpus, /dev"},
		surroundings.variable_evidence(facts.variable.NVIDIA_VISIBLE_DEVICES),
	],
}) if {
	facts.in_container
	count(surroundings.nvidia_nodes) > 0
	lower(facts.env.NVIDIA_VISIBLE_DEVICES) == "all"
	absent := {path | some path in input.container.missing_nodes; regex.match(`^/dev/nvidia[0-9]+$`, path)}
	count(absent) > 0
}

findings contains lacking("infiniband", "/dev/infiniband", ["/dev/infiniband"], {
	"about": {"nics": count(surroundings.infiniband_nics)},
	"evidence": [{"fact": "pci.devices", "value": sort(surroundings.infiniband_nics), "source": "/sys/bus/pci/devices"}],
	"remedies": ["pass-rdma-devices"],
}) if {
	facts.in_container
	count(surroundings.usable) > 0
	count(surroundings.infiniband_nics) > 0
	count(surroundings.rdma_nodes) == 0
}

unpassed(id, grade, messages, about) := {
	"id": id, "grade": grade, "subject": "/dev/infiniband",
	"about": object.union({"container": launches.title(sort(launches.without_rdma)[0])}, about),
	"messages": messages,
	"evidence": launches.devices_evidence(launches.without_rdma),
	"params": {"nodes": ["/dev/infiniband"]},
	"remedies": ["pass-rdma-devices", "add-ipc-lock"],
}

findings contains unpassed("rdma-not-passed", "rdma-not-passed", {logs.first(logs.by_id["nccl-ib-no-device"])}, {"linked": linked, "hca": hca}) if {
	not facts.env.NCCL_IB_DISABLE == "1"
	rdma_asked
	linked := {p.device | some p in input.nics.rdma; p.state == "active"}
	hca := [v | v := facts.env.NCCL_IB_HCA; not startswith(v, "^"); v != ""]
	count(linked) + count(hca) > 0
}

findings contains unpassed("rdma-not-passed", "rdma-barred", logs.by_id["nccl-network-not-found"], {}) if upper(facts.env.NCCL_NET) == "IB"

# fi_info finds no device in one place: the machine has them, as the same command outside, or what the job is told,
# shows.
findings contains unpassed("efa-not-passed", "efa-not-passed", {m}, {"at": logs.at(m)}) if {
	m := logs.first(logs.messages({"ofi-fi-info-empty", "ofi-efa-list-empty"}))
	efa_elsewhere
}

# rdma_asked is true of a job over several machines, and of one whose variables speak of RDMA.
rdma_asked if networks.multi_node
rdma_asked if facts.env.NCCL_IB_HCA != ""
rdma_asked if upper(facts.env.NCCL_NET) == "IB"
rdma_asked if facts.env.NCCL_IB_DISABLE == "0"

efa_elsewhere if strings.any_prefix_match(input.nics.providers, "efa")
efa_elsewhere if facts.env.FI_PROVIDER == "efa"

# numa is about NUMA calls that a seccomp filter forbids, unless a container has the capability SYS_NICE.
numa := {
	"subject": "SYS_NICE",
	"about": {
		"blocked": {sprintf("%s: %s", [name, errno]) | some name, errno in denied},
		"versions": {l.version | some l in surroundings.nccl},
	},
	"evidence": array.flatten([
		[{"fact": "container.get_mempolicy", "value": denied.get_mempolicy, "source": "get_mempolicy(2)"} | denied.get_mempolicy],
		[attempts.evidence(name) | some name, _ in tried],
		{"fact": "container.seccomp", "value": object.get(input.container, "seccomp", ""), "source": "/proc/self/status"},
	]),
	"params": {"capability": "SYS_NICE"},
	"remedies": allow,
} if {
	count(denied) > 0
	not library_versions.cumem_host_off
}

# NCCL 2.24 to 2.26.3 allocates host memory with them. Where GPUs reach each other directly host memory is the
# exception.
findings contains object.union(numa, {
	"grade": "numa-nccl",
	"severity": {true: "medium", false: "high"}[direct],
	"evidence": array.concat(numa.evidence, [image_files.evidence(l) | some l in surroundings.nccl]),
	"remedies": array.concat(allow, ["nccl-cumem-host-disable", "upgrade-nccl"]),
}) if affects_many

affects_many if {
	surroundings.nccl_at_least([2, 24])
	surroundings.nccl_below([2, 26, 5])
	count(surroundings.usable) > 1
}

default direct := false

direct if peer_access.proven
direct if surroundings.all_nvlinked

# Elsewhere only the placement of memory suffers, which matters where there is more than one node to place it on. If
# the calls were tried one by one, it is told anywhere.
findings contains object.union(numa, {
	"grade": "numa",
	"confidence": {true: "confirmed", false: "likely"}[count(tried) > 0],
}) if {
	not affects_many
	count(surroundings.usable) > 0
	noticed
}

noticed if count(tried) > 0

noticed if {
	count(surroundings.usable) > 1
	count(surroundings.cpu_nodes) > 1
}

# denials are what a seccomp filter or a security module answers. ENOSYS is the answer of a kernel without NUMA.
denials := {"EPERM", "EACCES", "SIGSYS"}

# denied are the calls that NCCL and CUDA make. Docker's filter allows them with the capability SYS_NICE, but never
# move_pages (moby/profiles, seccomp/default_linux.go).
denied["get_mempolicy"] := input.container.get_mempolicy if input.container.get_mempolicy in denials
denied[name] := tried[name].errno if some name in ["set_mempolicy", "mbind"]

tried[name] := a if {
	some name in ["set_mempolicy", "mbind", "move_pages"]
	a := attempts.refused[name]
	a.errno in denials
}

# allow is what lifts the filter of a container's runtime; where the capability is there, another filter is in force.
allow := ["other"] if {
	"SYS_NICE" in input.container.capabilities
} else := ["add-sys-nice"]

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
	numa
	count(surroundings.usable) > 1
}

missing contains {"fact": "libraries.files[].version", "words": "it is not known which NCCL is used here"} if {
	numa
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
