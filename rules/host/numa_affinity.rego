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
# custom:
#   severity: medium
#   confidence: likely
#   areas: [numa]
#   needs: ["numa.nodes[].allowed_cpus", numa.allowed_cpus, "pci.devices[].numa_node", [gpus.devices, transfers.devices]]
#   remedies: [bind-numa, ignore-cpu-affinity, disable-numa-balancing]
#   since: "0.1"
#   grades:
#     node: >-
#       NUMA node {node} has {gpus:GPU} ({gpus}), but this process cannot run on any CPU of that node ({cpus}), only on
#       {allowed}: host copies and NCCL's threads cross to another node
#     balancing: >-
#       Automatic NUMA balancing is on (kernel.numa_balancing={value}) with {nodes} NUMA nodes: it makes timings of host
#       copies vary
#     few-cpus: >-
#       NCCL used {cpus} CPUs for GPU {gpu}: the launcher binds its processes to few of the CPUs near the GPU (srun
#       --cpu-bind, mpirun --bind-to), and NCCL's threads share them with the program
package gpudoctor.rules.numa_affinity

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

# A GPU of which only nvidia-smi topo -m told has its node from there.
node_gpus := {node: gpus | some node, gpus in gpus_by_node}

gpus_by_node[d.numa_node] contains d.address if {
	some d in array.concat(object.get(input, ["pci", "devices"], []), object.get(input, ["gpus", "devices"], []))
	d.address in used
}

# used are the usable GPUs by address; where only device nodes are known, none can be placed.
used := surroundings.usable & facts.gpus

findings contains {
	"subject": sprintf("node%d", [n.id]),
	"affects": sort(node_gpus[n.id]),
	"grade": "node",
	"about": {"node": n.id, "gpus": node_gpus[n.id], "cpus": n.cpus, "allowed": input.numa.allowed_cpus},
	"evidence": [{"fact": sprintf("numa.nodes[%d].allowed_cpus", [n.id]), "value": 0, "source": "/proc/self/status (Cpus_allowed_list)"}],
	"params": {"node": n.id},
	"remedies": ["bind-numa", "ignore-cpu-affinity"],
} if {
	some n in surroundings.cpu_nodes
	n.allowed_cpus == 0
	count(node_gpus[n.id]) > 0
	max([other.allowed_cpus | some other in surroundings.cpu_nodes]) > 0
}

findings contains {
	"subject": "kernel.numa_balancing",
	"grade": "balancing",
	"about": {"value": input.numa.balancing, "nodes": count(surroundings.cpu_nodes)},
	# RCCL warns of it at each start (src/init.cc); NCCL does not.
	"severity": {true: "medium", false: "low"}[count(object.get(surroundings.of_vendor, "amd", set())) > 1],
	"evidence": [{"fact": "numa.balancing", "value": input.numa.balancing, "source": "/proc/sys/kernel/numa_balancing"}],
	"remedies": ["disable-numa-balancing"],
} if {
	input.numa.balancing % 2 == 1 # Bit 1 is the tiering of memory.
	count(surroundings.cpu_nodes) > 1
	count(surroundings.usable) > 0
}

missing contains {"fact": "gpus", "words": "it is not known which GPUs are used here"} if {
	count(surroundings.cpu_nodes) > 1
	not surroundings.usable
}

missing contains {"fact": "pci.devices[].numa_node", "words": "it is not known which NUMA nodes the GPUs belong to"} if {
	count(surroundings.cpu_nodes) > 1
	count(used) > 0
	count(node_gpus) == 0
}

not_applicable contains "one NUMA node" if count(surroundings.cpu_nodes) < 2
not_applicable contains "no GPU is visible here" if count(surroundings.usable) == 0

# masks are the CPUs that NCCL kept to for each GPU of each host, as its log shows them: those near the GPU, of those that
# the launcher gave to the process (src/graph/topo.cc, ncclTopoGetCpuAffinity).
masks[[object.get(a, "host", ""), a.gpu]] contains a if {
	some a in input.logs.affinities
	a.cpus > 0
}

# few are the GPUs for which NCCL had at most half of the CPUs of another run.
few[key] := min(cpus) if {
	some key, runs in masks
	cpus := {a.cpus | some a in runs}
	min(cpus) * 2 <= max(cpus)
}

findings contains {
	"grade": "few-cpus",
	"subject": "affinity",
	"about": {"cpus": few[key], "gpu": key[1]},
	"evidence": [{"fact": sprintf("logs.affinities[GPU%d]", [a.gpu]), "value": a.mask, "source": logs.at(a)} | some a in sort(masks[key])],
	"remedies": ["ignore-cpu-affinity", "bind-numa"],
} if key := min(object.keys(few))
