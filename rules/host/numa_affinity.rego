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
#   first_of: [narrowed, pinned, few-cpus]
#   since: "0.1"
package gpudoctor.rules.numa_affinity

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

# node_gpus are the usable GPUs of each NUMA node.
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
	"message": sprintf("NUMA node %d has %s (%s), but this process cannot run on any CPU of that node (%s), only on %s: host copies and NCCL's threads cross to another node", [
		n.id, facts.counted(count(node_gpus[n.id]), "GPU"), facts.list(node_gpus[n.id]), n.cpus, input.numa.allowed_cpus,
	]),
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
	count([other | some other in surroundings.cpu_nodes; other.allowed_cpus > 0]) > 0
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
	"message": sprintf("The firmware does not report a NUMA node for GPU %s (numa_node is -1), and the machine has %d nodes: neither the kernel nor NCCL can place threads and memory near it%s", [
		facts.list(nodeless), count(surroundings.cpu_nodes), of_guest,
	]),
	"severity": "low",
	"confidence": "confirmed",
	"remedies": [r | some r in ["update-bios"]; of_guest == ""],
	"evidence": [{"fact": sprintf("pci.devices[%s].no_numa_node", [address]), "value": true, "source": sprintf("/sys/bus/pci/devices/%s/numa_node", [address])} | some address in sort(nodeless)],
} if {
	count(nodeless) > 0
	not single_node
}

default of_guest := ""

of_guest := ". In a virtual machine, the hypervisor sets it" if facts.is_guest == true

findings contains {
	"subject": "kernel.numa_balancing",
	"message": sprintf("Automatic NUMA balancing is on (kernel.numa_balancing=%d) with %d NUMA nodes: it makes timings of host copies vary", [input.numa.balancing, count(surroundings.cpu_nodes)]),
	"severity": balancing_severity,
	"remedies": ["disable-numa-balancing"],
	"evidence": [{
		"fact": "numa.balancing",
		"value": input.numa.balancing,
		"source": "/proc/sys/kernel/numa_balancing",
	}],
} if {
	# Bit 0 is the balancing of pages among nodes, bit 1 the tiering of memory.
	input.numa.balancing % 2 == 1
	count(surroundings.cpu_nodes) > 1
	count(surroundings.usable) > 0
}

# RCCL warns of it at each start (src/init.cc); NCCL does not.
default balancing_severity := "low"

balancing_severity := "medium" if count(surroundings.of_vendor.amd) > 1

# What logs show of the CPUs that ranks keep to.
findings contains object.union({"subject": "affinity", "confidence": "likely"}, found) if {
	some found in told_by_logs
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

# What NCCL, Open MPI and programs log about the CPUs that a process can run on. Each element of found is a
# finding of rule numa-affinity, without the fields that all of them share.

# masks are the CPUs that NCCL kept to for each GPU of each host, as its log shows them ("Setting affinity for GPU 0 to
# ff", src/init.cc): those near the GPU, of those that the launcher gave to the process (src/graph/topo.cc,
# ncclTopoGetCpuAffinity). So more than one for the same GPU is the launchers' doing, and the fewest CPUs are what one
# of them left.
masks[[object.get(a, "host", ""), a.gpu]] contains a if {
	some a in input.logs.affinities
	a.cpus > 0
}

fewest[key] := min({a.cpus | some a in runs}) if some key, runs in masks

most[key] := max({a.cpus | some a in runs}) if some key, runs in masks

# shown are runs as evidence.
shown(runs) := [{"fact": sprintf("logs.affinities[GPU%d]", [a.gpu]), "value": a.mask, "source": logs.at(a)} | some a in sort(runs)]

# The launcher's CPUs are the reason first, which NCCL can be told to ignore.
by_launcher := ["ignore-cpu-affinity", "bind-numa"]

# narrowed are the GPUs for which one run kept to half of the CPUs of another, or fewer.
narrowed contains key if {
	some key, least in fewest
	least * 2 <= most[key]
}

told_by_logs contains {
	"id": "narrowed",
	"message": sprintf("NCCL used %d CPUs near GPU %d in one run and %d in another: the launcher of the first binds its processes to only some of the CPUs near the GPU, and NCCL's threads share them (srun --cpu-bind, mpirun --bind-to)", [
		fewest[key], key[1], most[key],
	]),
	"evidence": shown({a | some k in narrowed; some a in masks[k]; a.cpus in {fewest[k], most[k]}}),
	"remedies": by_launcher,
} if {
	key := sort(narrowed)[0]
}

# pinned are the GPUs for which NCCL had one core, or the two threads of one, while another GPU of the host had another:
# the launcher binds each rank to a core (mpirun does so for two ranks, and with --bind-to core). NCCL's threads and the
# program's then share it.
pinned contains key if {
	some key, runs in masks
	not key in narrowed
	most[key] <= 2
	some other, others in masks
	other[0] == key[0]
	other[1] != key[1]
	most[other] <= 2
	{a.mask | some a in others} != {a.mask | some a in runs}
}

told_by_logs contains {
	"id": "pinned",
	"message": sprintf("NCCL uses only %d CPU for GPU %d: the launcher binds each rank to a core (mpirun --bind-to core, srun --cpu-bind=cores), which NCCL's threads share with the program", [
		most[key], key[1],
	]),
	"evidence": shown({a | some k in pinned; some a in masks[k]}),
	"remedies": by_launcher,
} if {
	key := sort(pinned)[0]
}

# A small part of the CPUs of a NUMA node. A job that was given few CPUs must look so; it is worth knowing.
told_by_logs contains {
	"id": "few-cpus",
	"message": sprintf("NCCL uses %d CPUs for GPU %d, but its NUMA node has %d: the launcher binds the process to few CPUs, which NCCL's threads share with the program.", [
		most[key], key[1], fewest_node_cpus,
	]),
	"evidence": shown(masks[key]),
	"severity": "low",
	"confidence": "possible",
	"remedies": by_launcher,
} if {
	key := sort({k | some k, n in most; n * 8 <= fewest_node_cpus})[0]
}

fewest_node_cpus := min({n |
	some node in surroundings.cpu_nodes
	n := sum([length |
		some part in split(node.cpus, ",")
		ends := split(part, "-")
		length := (to_number(ends[count(ends) - 1]) - to_number(ends[0])) + 1
	])
}) if {
	count(surroundings.cpu_nodes) > 0
}

# core_bound are Open MPI's own words (--report-bindings) that a rank may run on one
# core. Up to two ranks it binds so unless told otherwise, and NCCL's threads for all
# GPUs of the rank then share that core (mpirun(1), NVIDIA/nccl issue 644).
core_bound := logs.messages({"mpi-rank-bound-core"})

# refused are the words of a program that tried to keep to the CPUs near its GPU, and may run on none of them: the
# kernel answers EINVAL where no CPU of the set is in the cpuset of the process (sched_setaffinity(2)). Programs that
# set what NVML says of a GPU end there (dask-cuda, NeMo, cosmos-predict1).
refused := logs.messages({"affinity-refused", "nccl-affinity-failed"}) | {m |
	some m in logs.messages({"python-sets-affinity"})
	some error in logs.messages({"python-invalid-argument"})
	error.source == m.source
	error.line > m.line
	error.line - m.line <= 4
}

# apart is NCCL's message that no CPU near a GPU is among those of the process. A virtual
# machine that reports no CPUs near a GPU gets no finding.
apart := {m |
	some m in logs.messages({"nccl-affinity-empty"})
	trim_space(m.fields.near) != ""
	trim_space(m.fields.allowed) != ""
}

told_by_logs contains {
	"id": "few-cpus",
	"message": "mpirun binds a rank to one core, its default for up to two ranks: NCCL's threads for all GPUs of that rank share it with the program, and host memory is on that core's node. Use --bind-to none, or --bind-to numa",
	"messages": core_bound,
	"remedies": ["bind-numa", "ignore-cpu-affinity"],
} if {
	count(core_bound) > 0
	on_gpus
}

on_gpus if count(input.benchmarks) > 0

on_gpus if count(input.logs.communicators) > 0

told_by_logs contains {"messages": messages, "message": words, "severity": severity, "remedies": ["bind-numa", "ignore-cpu-affinity"]} if {
	some [messages, severity, words] in [
		[refused, "high", "A program failed to bind to the CPUs near its GPU: none of them is available to this job (a scheduler's cpuset, a container's --cpuset-cpus), or NVML reports none. Request CPUs of the GPU's socket, or do not set the affinity"],
		[apart, "medium", "NCCL found none of the CPUs near a GPU among those that the process can use: its threads, and copies over the host, cross to another node"],
	]
	count(messages) > 0
}
