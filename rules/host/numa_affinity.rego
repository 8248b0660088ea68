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
#     core: >-
#       mpirun binds a rank to one core, its default for up to two ranks: NCCL's threads for all GPUs of that rank share
#       it with the program, and host memory is on that core's node. Use --bind-to none, or --bind-to numa
#     refused: >-
#       A program failed to bind to the CPUs near its GPU: none of them is available to this job (a scheduler's cpuset, a
#       container's --cpuset-cpus), or NVML reports none. Request CPUs of the GPU's socket, or do not set the affinity
#     apart: >-
#       NCCL found none of the CPUs near a GPU among those that the process can use: its threads, and copies over the
#       host, cross to another node
package gpudoctor.rules.numa_affinity

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

# A GPU of which only nvidia-smi topo -m told has its node from there.
node_gpus[d.numa_node] contains d.address if {
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
	"remedies": binding,
} if {
	some n in surroundings.cpu_nodes
	n.allowed_cpus == 0
	count(node_gpus[n.id]) > 0
	max([other.allowed_cpus | some other in surroundings.cpu_nodes]) > 0
}

binding := ["bind-numa", "ignore-cpu-affinity"]

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
	not surroundings.usable
}

missing contains {"fact": "pci.devices[].numa_node", "words": "it is not known which NUMA nodes the GPUs belong to"} if {
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

# words are what programs log. Open MPI binds up to two ranks to a core and says so with --report-bindings (mpirun(1)):
# that counts in a job on GPUs.
words.core := logs.messages({"mpi-rank-bound-core"}) if count(object.get(input, "benchmarks", [])) + count(object.get(input, ["logs", "communicators"], [])) > 0

# The kernel answers EINVAL where no CPU of the set is in the cpuset of the process (sched_setaffinity(2)).
words.refused := logs.messages({"affinity-refused", "nccl-affinity-failed"}) | {m |
	some m in logs.messages({"python-sets-affinity"})
	some error in logs.messages({"python-invalid-argument"})
	error.source == m.source
	(error.line - m.line) in {1, 2, 3, 4}
}

# A virtual machine that reports no CPUs near a GPU gets no finding.
words.apart := {m |
	some m in logs.messages({"nccl-affinity-empty"})
	trim_space(m.fields.near) != ""
	trim_space(m.fields.allowed) != ""
}

findings contains {
	"grade": grade,
	"subject": "affinity",
	"messages": messages,
	"severity": object.get({"refused": "high"}, grade, "medium"),
	"remedies": binding,
} if {
	some grade, messages in words
	count(messages) > 0
}
