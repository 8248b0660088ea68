# Facts about containers, libraries, variables and probes. Each is undefined if the section that it reads is not known.
package gpudoctor.lib.surroundings

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs

# node_access is what this process may do with each device node, by its path.
node_access := {n.path: n.access | some n in input.container.device_nodes}

# render_nodes are those of AMD and other GPUs, and rdma_nodes the verbs nodes, through which programs reach RDMA NICs.
nvidia_nodes := nodes(`^/dev/nvidia[0-9]+$`)
render_nodes := nodes("^/dev/dri/renderD")
rdma_nodes := nodes("^/dev/infiniband/uverbs")

nodes(pattern) := {n.path | some n in input.container.device_nodes; regex.match(pattern, n.path)} if is_array(input.container.device_nodes)

of_vendor[g.vendor] contains g.address if some g in input.gpus.devices

has_nvidia if count(of_vendor.nvidia) > 0
has_amd if count(of_vendor.amd) > 0

# offered are the GPUs that CUDA or HIP offered to the probe; offers_none is true when they were asked and offered none.
offered := {d.address | some d in input.transfers.devices}

offers_none if {
	facts.probed
	is_array(input.transfers.devices)
	count(offered) == 0
}

# usable are the GPUs that a program here may use, as addresses where a library answered, else as device nodes. In a
# container /sys shows all GPUs of the machine.
usable := offered if {
	count(offered) > 0
} else := nvml_gpus | usable_amd if {
	input.gpus.nvml == "ok"
} else := nvidia_nodes | usable_amd if {
	facts.in_container
} else := facts.gpus

nvml_gpus := {g.address | some g in input.gpus.devices; g.vendor == "nvidia"; g.in_nvml} if is_array(input.gpus.devices)

# usable_amd are the AMD GPUs of a machine, or of a container the render nodes that it was given, where those are fewer.
usable_amd := render_nodes if {
	facts.in_container
	count(render_nodes) < count(of_vendor.amd)
} else := object.get(of_vendor, "amd", set())

# on_host counts the GPUs that the machine has, whether usable here or not.
on_host := max([count(facts.gpus), count(driver_devices)])
driver_devices := [d | some d in input.container.driver_devices]

# image is true where an image is judged: when that was asked for, and in a container that has no GPU.
image if input.profile == "image"

image if {
	facts.in_container
	no_gpu
}

no_gpu if count(usable) == 0

no_gpu if {
	not usable
	not input.pci
}

# isolated is true in a container with a /dev/shm and limits of its own. Apptainer and enroot hand on the host's.
isolated if {
	facts.in_container
	not handed_on
}

handed_on if input.container.runtime in {"apptainer", "enroot"}

nvlinked if facts.gpu_pairs[_].nvlinks > 0

all_nvlinked if min({object.get(p, "nvlinks", 0) | some p in facts.gpu_pairs}) > 0

nvswitch if input.gpus.nvswitches > 0
nvswitch if facts.gpu_pairs[_].nvswitch

# multicast is true where the GPUs can do NVLink SHARP: NVSwitch 3 with Hopper or newer.
multicast if {
	nvswitch
	version(input.gpus.devices[_].compute_capability) >= [9, 0]
}

# rdma_nics are the NICs that can do RDMA: InfiniBand controllers (class 0207), Mellanox and NVIDIA adapters (vendor
# 15b3) and EFA (1d0f:efa0 and on).
rdma_nics := (infiniband_nics | {d.address | some d in efa_devices}) | {d.address |
	some d in input.pci.devices
	d.kind == "nic"
	d.vendor == "0x15b3"
}

infiniband_nics := {d.address | some d in input.pci.devices; startswith(d.class, "0x0207")}
efa_devices := {d | some d in input.pci.devices; d.vendor == "0x1d0f"; startswith(d.device, "0xefa")}

no_rdma_nic if {
	is_array(input.pci.devices)
	not input.pci.partial == true
	count(rdma_nics) == 0
}

# cpu_nodes are the NUMA nodes that have CPUs; nodes with only memory, as on Grace Hopper, do not count.
cpu_nodes := [n | some n in input.numa.nodes; n.cpus != ""] if is_array(input.numa.nodes)

# version reads a dotted version as a list of numbers, which compares as versions do: "2.28.9+cuda13.0" is [2, 28, 9].
version(text) := [to_number(n) | some n in regex.find_n(`[0-9]+`, clean, -1)] if {
	clean := regex.replace(regex.replace(text, `[^0-9.].*$`, ""), `\b0+([0-9])`, "$1")
	regex.match(`^[0-9]`, clean)
}

# nccl are the NCCL libraries that a program here takes: those of Python packages, else the one that the loader takes.
nccl := python_nccl if {
	count(python_nccl) > 0
} else := loaded if {
	loaded := {l | some l in nccl_files; l.loads}
	count(loaded) > 0
} else := nccl_files

python_nccl := {l | some l in nccl_files; l.found_by == "python"}

nccl_files contains l if {
	some l in input.libraries.files
	l.kind == "libnccl"
	l.path != ""
	version(l.version)
}

# nccl_at_least and nccl_below compare all of them; neither holds when no version is known.
nccl_at_least(wanted) if min({version(l.version) | some l in nccl}) >= wanted
nccl_below(wanted) if max({version(l.version) | some l in nccl}) < wanted

# where says where a variable is set, for people: "in the environment", "in the image's file /etc/nccl.conf:3".
where(v) := sprintf("in %s %s%s", [whose, {true: "", false: "file "}[logs.at(v) == "environment"], logs.at(v)])

default whose := "the"

whose := "the image's" if image

variable_evidence(v) := {"fact": sprintf("env.variables[%s]", [v.name]), "value": v.value, "source": logs.at(v)}

no_nvidia if {
	is_array(input.gpus.devices)
	not has_nvidia
}
