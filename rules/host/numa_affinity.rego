# METADATA
# title: Processes cannot run near their GPU
# description: >-
#   Each GPU is attached to one NUMA node. A process that can run only on another node reaches its GPU over the link
#   between the sockets. This reduces bandwidth and adds latency for host copies and for all traffic through host
#   memory. Automatic NUMA balancing unmaps pages to see who uses them and migrates them, which makes timings vary.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ignore-cpu-affinity
#     description: NCCL follows the job's CPU affinity by default
#   - ref: https://rocm.docs.amd.com/projects/rccl/en/latest/how-to/troubleshooting-rccl.html
#     description: RCCL recommends numa_balancing=0
#   - ref: https://docs.kernel.org/admin-guide/sysctl/kernel.html#numa-balancing
#     description: What automatic NUMA balancing does, and its modes
# custom:
#   severity: medium
#   confidence: likely
#   areas: [numa]
#   needs:
#     - numa.nodes[].allowed_cpus
#     - numa.allowed_cpus
#     - pci.devices[].numa_node
#     - [gpus.devices, transfers.devices]
#   remedies: [bind-numa, ignore-cpu-affinity, disable-numa-balancing, update-bios]
#   since: "0.1"
#   grades:
#     node: >-
#       NUMA node {node} has {gpus:GPU} ({gpus}), but this process cannot run on any CPU of that node ({cpus}), only on
#       {allowed}: host copies and NCCL's threads cross to another node
#     no-node:
#       severity: low
#       confidence: confirmed
#       text: >-
#         The firmware does not report a NUMA node for GPU {gpus} (numa_node is -1), and the machine has {nodes} nodes:
#         neither the kernel nor NCCL can place threads and memory near it. In a virtual machine, the hypervisor sets it
#     balancing:
#       remedies: [disable-numa-balancing]
#       text: >-
#         Automatic NUMA balancing is on (kernel.numa_balancing={value}) with {nodes} NUMA nodes: it makes timings of host
#         copies vary
#     few-cpus:
#       remedies: [ignore-cpu-affinity, bind-numa]
#       text: >-
#         NCCL used {cpus} CPUs for GPU {gpu}: the launcher binds its processes to few of the CPUs near the GPU (srun
#         --cpu-bind, mpirun --bind-to), and NCCL's threads share them with the program
#     core:
#       remedies: [bind-numa, ignore-cpu-affinity]
#       text: >-
#         mpirun binds a rank to one core, its default for up to two ranks: NCCL's threads for all GPUs of that rank share
#         it with the program, and host memory is on that core's node. Use --bind-to none, or --bind-to numa
#     refused:
#       severity: high
#       remedies: [bind-numa, ignore-cpu-affinity]
#       text: >-
#         A program failed to bind to the CPUs near its GPU: none of them is available to this job (a scheduler's cpuset, a
#         container's --cpuset-cpus), or NVML reports none. Request CPUs of the GPU's socket, or do not set the affinity
#     apart:
#       remedies: [bind-numa, ignore-cpu-affinity]
#       text: >-
#         NCCL found none of the CPUs near a GPU among those that the process can use: its threads, and copies over the
#         host, cross to another node
package gpudoctor.rules.numa_affinity

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

node_gpus[d.numa_node] contains d.address if {
	some d in input.pci.devices
	d.address in used
}

# A GPU of which only nvidia-smi topo -m told has its node from there.
node_gpus[g.numa_node] contains g.address if {
	some g in input.gpus.devices
	g.address in used
}

# used are the usable GPUs by address; where only device nodes are known, none can be placed.
used := surroundings.usable & facts.gpus

findings contains {
	"subject": sprintf("node%d", [n.id]),
	"affects": sort(node_gpus[n.id]),
	"grade": "node",
	"about": {"node": n.id, "gpus": node_gpus[n.id], "cpus": n.cpus, "allowed": input.numa.allowed_cpus},
	"evidence": [
		{"fact": sprintf("numa.nodes[%d].allowed_cpus", [n.id]), "value": 0, "source": "/proc/self/status (Cpus_allowed_list)"},
		{"fact": sprintf("numa.nodes[%d].cpus", [n.id]), "value": n.cpus, "source": sprintf("/sys/devices/system/node/node%d/cpulist", [n.id])},
	],
	"params": {"node": n.id},
	"remedies": ["bind-numa", "ignore-cpu-affinity"],
} if {
	some n in surroundings.cpu_nodes
	n.allowed_cpus == 0
	count(node_gpus[n.id]) > 0
	max([other.allowed_cpus | some other in surroundings.cpu_nodes]) > 0
}

# nodeless are the GPUs of which the firmware names no node, and no text does either.
nodeless := {d.address |
	some d in input.pci.devices
	d.address in used
	d.no_numa_node == true
} - {address | some gpus in node_gpus; some address in gpus}

findings contains {
	"subject": "host",
	"affects": sort(nodeless),
	"grade": "no-node",
	"about": {"gpus": nodeless, "nodes": count(surroundings.cpu_nodes)},
	"remedies": [r | some r in ["update-bios"]; not facts.is_guest == true],
	"evidence": [{"fact": sprintf("pci.devices[%s].no_numa_node", [address]), "value": true, "source": sprintf("/sys/bus/pci/devices/%s/numa_node", [address])} | some address in sort(nodeless)],
} if {
	count(nodeless) > 0
	not single_node
}

findings contains {
	"subject": "kernel.numa_balancing",
	"grade": "balancing",
	"about": {"value": input.numa.balancing, "nodes": count(surroundings.cpu_nodes)},
	# RCCL warns of it at each start (src/init.cc); NCCL does not.
	"severity": {true: "medium", false: "low"}[count(object.get(surroundings.of_vendor, "amd", set())) > 1],
	"evidence": [{"fact": "numa.balancing", "value": input.numa.balancing, "source": "/proc/sys/kernel/numa_balancing"}],
} if {
	# Bit 0 is the balancing of pages among nodes, bit 1 the tiering of memory.
	input.numa.balancing % 2 == 1
	count(surroundings.cpu_nodes) > 1
	count(surroundings.usable) > 0
}

missing contains {"fact": "gpus", "words": "it is not known which GPUs are used here"} if {
	not single_node
	not surroundings.usable
}

missing contains {"fact": "pci.devices[].numa_node", "words": "it is not known which NUMA nodes the GPUs belong to"} if {
	not single_node
	count(used) > 0
	count(node_gpus) == 0
}

single_node if count(surroundings.cpu_nodes) < 2

not_applicable contains "one NUMA node" if single_node
not_applicable contains "no GPU is visible here" if count(surroundings.usable) == 0

# masks are the CPUs that NCCL kept to for each GPU of each host, as its log shows them: those near the GPU, of those that
# the launcher gave to the process (src/graph/topo.cc, ncclTopoGetCpuAffinity).
masks[[object.get(a, "host", ""), a.gpu]] contains a if {
	some a in input.logs.affinities
	a.cpus > 0
}

fewest[key] := min({a.cpus | some a in runs}) if some key, runs in masks

most[key] := max({a.cpus | some a in runs}) if some key, runs in masks

# bound are the GPUs for which NCCL had few CPUs, and how many there were: half of those of another run, or fewer; one
# core, while another GPU of the host had another (mpirun binds each of two ranks to a core).
bound contains key if {
	some key, least in fewest
	least * 2 <= most[key]
}

bound contains key if {
	some key, n in most
	n <= 2
	some other, others in masks
	other[0] == key[0]
	other[1] != key[1]
	most[other] <= 2
	{a.mask | some a in others} != {a.mask | some a in masks[key]}
}

findings contains {
	"grade": "few-cpus",
	"subject": "affinity",
	"about": {"cpus": fewest[key], "gpu": key[1]},
	"evidence": [{"fact": sprintf("logs.affinities[GPU%d]", [a.gpu]), "value": a.mask, "source": logs.at(a)} | some a in sort(masks[key])],
} if key := min(bound)

# words are what programs log. Open MPI binds up to two ranks to a core unless told otherwise, and says so with
# --report-bindings (mpirun(1), NVIDIA/nccl issue 644): that counts in a job on GPUs.
words.core := logs.messages({"mpi-rank-bound-core"}) if count(object.get(input, "benchmarks", [])) + count(object.get(input, ["logs", "communicators"], [])) > 0

# A program tried to keep to the CPUs near its GPU, and may run on none of them: the kernel answers EINVAL where no CPU of
# the set is in the cpuset of the process (sched_setaffinity(2)). Programs that set what NVML says of a GPU end there
# (dask-cuda, NeMo, cosmos-predict1).
words.refused := logs.messages({"affinity-refused", "nccl-affinity-failed"}) | {m |
	some m in logs.messages({"python-sets-affinity"})
	some error in logs.messages({"python-invalid-argument"})
	error.source == m.source
	error.line > m.line
	error.line - m.line <= 4
}

# NCCL's message that no CPU near a GPU is among those of the process. A virtual
# machine that reports no CPUs near a GPU gets no finding.
words.apart := {m |
	some m in logs.messages({"nccl-affinity-empty"})
	trim_space(m.fields.near) != ""
	trim_space(m.fields.allowed) != ""
}

findings contains {"grade": grade, "subject": "affinity", "messages": messages} if {
	some grade, messages in words
	count(messages) > 0
}
