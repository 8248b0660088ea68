# METADATA
# title: Processes may not run near their GPU
# description: >-
#   Each GPU hangs on one NUMA node. A process that may only run on another
#   reaches its GPU over the link between the sockets, which costs bandwidth
#   and latency of host copies and of everything that goes through host memory.
#   Automatic NUMA balancing unmaps pages to see who uses them and moves them,
#   which makes times vary.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ignore-cpu-affinity
#     description: NCCL keeps to the affinity that the job gives, unless told otherwise
#   - ref: https://rocm.docs.amd.com/projects/rccl/en/latest/how-to/troubleshooting-rccl.html
#     description: RCCL asks for numa_balancing=0
#   - ref: https://docs.kernel.org/admin-guide/sysctl/kernel.html#numa-balancing
#     description: What automatic NUMA balancing does, and its modes
# schemas:
#   - input: schema.facts
# custom:
#   severity: medium
#   confidence: likely
#   needs:
#     - numa.nodes[].allowed_cpus
#     - numa.allowed_cpus
#     - pci.devices[].numa_node
#     - [gpus.devices, transfers.devices]
#   remedies: [bind-numa, ignore-cpu-affinity, disable-numa-balancing]
#   profiles: [training]
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

# used are the usable GPUs by address; where only device nodes are known, none
# can be placed.
used := surroundings.usable & facts.gpus

findings contains {
	"subject": sprintf("node%d", [n.id]),
	"affects": sort(node_gpus[n.id]),
	"message": sprintf("%s on NUMA node %d, and this process may run on no CPU of that node (%s), only on %s: host copies and NCCL's threads cross to another node%s", [
		subjects(node_gpus[n.id]),
		n.id, n.cpus, input.numa.allowed_cpus, distance_remark(n),
	]),
	"evidence": [
		{"fact": sprintf("numa.nodes[%d].allowed_cpus", [n.id]), "value": 0, "source": "/proc/self/status (Cpus_allowed_list)"},
		{"fact": sprintf("numa.nodes[%d].cpus", [n.id]), "value": n.cpus, "source": sprintf("/sys/devices/system/node/node%d/cpulist", [n.id])},
	],
	"params": {"node": n.id, "gpus": sort(node_gpus[n.id])},
	"remedies": ["bind-numa", "ignore-cpu-affinity"],
} if {
	some n in surroundings.cpu_nodes
	n.allowed_cpus == 0
	count(node_gpus[n.id]) > 0
	allowed_elsewhere
}

# allowed_elsewhere is true where the process may run on some node.
allowed_elsewhere if {
	some n in surroundings.cpu_nodes
	n.allowed_cpus > 0
}

subjects(gpus) := sprintf("GPU %s is", [facts.list(gpus)]) if {
	count(gpus) == 1
} else := sprintf("%d GPUs (%s) are", [count(gpus), facts.list(gpus)])

# distance_remark says how far the nearest node is on which it may run; 10
# means local (ACPI SLIT).
distance_remark(n) := sprintf(" (distance %d, local is 10)", [nearest]) if {
	nearest := min([distance |
		some i, distance in n.distances
		input.numa.nodes[i].allowed_cpus > 0
	])
} else := ""

findings contains {
	"subject": "kernel.numa_balancing",
	"message": sprintf("Automatic NUMA balancing is on (kernel.numa_balancing=%d) with %d NUMA nodes: %s", [input.numa.balancing, count(surroundings.cpu_nodes), opinion]),
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

opinion := "RCCL warns of it at each start, because its times vary with it" if {
	surroundings.has_amd
} else := "times of host copies may vary with it"

# masks are the CPUs that NCCL kept to for each GPU of each host, as its log shows
# them («Setting affinity for GPU 0 to ff», src/init.cc): those near the GPU, of
# those that the launcher gave to the process (src/graph/topo.cc,
# ncclTopoGetCpuAffinity). So more than one for the same GPU is the launchers'
# doing, and the fewest CPUs are what one of them left.
masks[[object.get(a, "host", ""), a.gpu]] contains a if {
	some a in input.logs.affinities
	a.cpus > 0
}

# narrowed are the GPUs for which one run kept to half of the CPUs of another, or
# fewer.
narrowed[key] := {"fewest": fewest, "most": most} if {
	some key, runs in masks
	fewest := min({a.cpus | some a in runs})
	most := max({a.cpus | some a in runs})
	fewest * 2 <= most
}

narrow_runs := {a |
	some key, range in narrowed
	some a in masks[key]
	a.cpus in {range.fewest, range.most}
}

findings contains {
	"subject": "affinity",
	"message": sprintf("NCCL kept to %d CPUs near GPU %d in one run and to %d in another: the launcher of the first binds its processes to a part of the CPUs that are near the GPU, and NCCL's threads share it%s", [
		narrowed[first_key].fewest, first_key[1], narrowed[first_key].most, launcher_words,
	]),
	"evidence": [{"fact": sprintf("logs.affinities[GPU%d]", [a.gpu]), "value": a.mask, "source": logs.at(a)} | some a in sort(narrow_runs)],
	"severity": "medium",
	"confidence": "likely",
	"remedies": ["ignore-cpu-affinity", "bind-numa"],
} if {
	count(narrowed) > 0
}

first_key := sort(object.keys(narrowed))[0]

default launcher_words := ""

launcher_words := " (srun --cpu-bind, mpirun --bind-to)." if count({l | some l in logs.launches; l.kind in {"slurm", "mpirun"}}) > 0

# pinned are the GPUs for which NCCL had one core, or the two threads of one,
# while another GPU of the host had another: the launcher binds each rank to a
# core (mpirun does so for two ranks, and with --bind-to core). NCCL's threads and
# the program's then share it.
pinned contains key if {
	some key, runs in masks
	not narrowed[key]
	max({a.cpus | some a in runs}) <= 2
	some other, others in masks
	other[0] == key[0]
	other[1] != key[1]
	max({a.cpus | some a in others}) <= 2
	{a.mask | some a in others} != {a.mask | some a in runs}
}

findings contains {
	"subject": "affinity",
	"message": sprintf("NCCL keeps to %d CPU for GPU %d%s: the launcher binds each rank to a core (mpirun --bind-to core, srun --cpu-bind=cores), which NCCL's threads and the program's share", [
		max({a.cpus | some a in masks[key]}), key[1], more_pinned,
	]),
	"evidence": [{"fact": sprintf("logs.affinities[GPU%d]", [a.gpu]), "value": a.mask, "source": logs.at(a)} | some k in sort(pinned); some a in sort(masks[k])],
	"severity": "medium",
	"confidence": "likely",
	"remedies": ["ignore-cpu-affinity", "bind-numa"],
} if {
	count(pinned) > 0
	count(narrowed) == 0
	key := sort(pinned)[0]
}

more_pinned := sprintf(", and so for %d others", [count(pinned) - 1]) if {
	count(pinned) > 1
} else := ""

# crowded are the GPUs for which NCCL had a small part of the CPUs of a NUMA
# node. A job that was given few CPUs must look so; it is worth knowing.
crowded := {key |
	some key, runs in masks
	not narrowed[key]
	count(pinned) == 0
	max({a.cpus | some a in runs}) * 8 <= fewest_node_cpus
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

findings contains {
	"subject": "affinity",
	"message": sprintf("NCCL keeps to %d CPUs for GPU %d, while its NUMA node has %d: the launcher binds the process to few CPUs, which NCCL's threads and the program share.", [
		max({a.cpus | some a in masks[key]}), key[1], fewest_node_cpus,
	]),
	"evidence": [{"fact": sprintf("logs.affinities[GPU%d]", [a.gpu]), "value": a.mask, "source": logs.at(a)} | some a in sort(masks[key])],
	"severity": "low",
	"confidence": "possible",
	"remedies": ["ignore-cpu-affinity", "bind-numa"],
} if {
	count(crowded) > 0
	count(narrowed) == 0
	key := sort(crowded)[0]
}

# core_bound are Open MPI's own words (--report-bindings) that a rank may run on one
# core. Up to two ranks it binds so unless told otherwise, and NCCL's threads for all
# GPUs of the rank then share that core (mpirun(1), NVIDIA/nccl issue 644).
core_bound := logs.messages({"mpi-rank-bound-core"})

findings contains {
	"subject": "affinity",
	"message": "mpirun binds a rank to one core, which is its default for up to two ranks: NCCL's threads for all GPUs of that rank share it with the program, and host memory is of that core's node. Give it --bind-to none, or --bind-to numa",
	"evidence": array.slice(logs.all_evidence(core_bound), 0, 4),
	"severity": "medium",
	"confidence": "likely",
	"remedies": ["bind-numa", "ignore-cpu-affinity"],
	"order": logs.first(core_bound).order,
} if {
	count(core_bound) > 0
	count(narrowed) + count(pinned) == 0
	on_gpus
}

on_gpus if count(input.benchmarks) > 0

on_gpus if count(input.logs.communicators) > 0

# refused are the words of a program that wanted to keep to the CPUs near its GPU,
# and may run on none of them: the kernel answers EINVAL where no CPU of the set is
# in the cpuset of the process (sched_setaffinity(2)). Programs that set what NVML
# says of a GPU end there (dask-cuda, NeMo, cosmos-predict1).
refused := logs.messages({"affinity-refused", "nccl-affinity-failed"}) | {m |
	some m in logs.messages({"python-sets-affinity"})
	some error in logs.messages({"python-invalid-argument"})
	error.source == m.source
	error.line > m.line
	error.line - m.line <= 4
}

findings contains {
	"subject": "affinity",
	"message": "A program wanted to run on the CPUs near its GPU and was refused: none of them is among those that this job was given (a scheduler's cpuset, a container's --cpuset-cpus), or NVML tells of none. Ask for CPUs of the GPU's socket, or leave the affinity alone",
	"evidence": logs.all_evidence(refused),
	"order": logs.first(refused).order,
	"severity": "high",
	"confidence": "likely",
	"remedies": ["bind-numa", "ignore-cpu-affinity"],
} if {
	count(refused) > 0
}

# apart is what NCCL says where no CPU near a GPU is among those of the process. In
# a virtual machine that tells of no CPUs near a GPU there is nothing to say.
apart := {m |
	some m in logs.messages({"nccl-affinity-empty"})
	trim_space(m.fields.near) != ""
	trim_space(m.fields.allowed) != ""
}

findings contains {
	"subject": "affinity",
	"message": "NCCL found none of the CPUs near a GPU among those that the process may run on: its threads, and copies over the host, cross to another node",
	"evidence": logs.all_evidence(apart),
	"order": logs.first(apart).order,
	"severity": "medium",
	"confidence": "likely",
	"remedies": ["bind-numa", "ignore-cpu-affinity"],
} if {
	count(apart) > 0
}

# RCCL looks at the setting itself (src/init.cc).
balanced := logs.messages({"rccl-numa-balancing"})

findings contains {
	"subject": "kernel.numa_balancing",
	"message": "RCCL finds automatic NUMA balancing on: its times vary with it",
	"evidence": logs.all_evidence(balanced),
	"order": logs.first(balanced).order,
	"severity": "low",
	"confidence": "confirmed",
	"remedies": ["disable-numa-balancing"],
} if {
	count(balanced) > 0
	not balancing_read
}

balancing_read if is_number(input.numa.balancing)

told if count((((refused | apart) | balanced) | core_bound)) > 0

missing contains {"fact": "numa", "words": "the NUMA topology was not read"} if {
	not numa_read
	not told
}

numa_read if is_object(input.numa)

missing contains {"fact": "gpus", "words": "it is not known which GPUs are used here"} if {
	not single_node
	not told
	not surroundings.usable
}

missing contains {"fact": "numa.nodes[].allowed_cpus", "words": "the affinity of this process is not known"} if {
	not single_node
	count(surroundings.usable) > 0
	count([n | some n in surroundings.cpu_nodes; is_number(n.allowed_cpus)]) < count(surroundings.cpu_nodes)
}

missing contains {"fact": "pci.devices[].numa_node", "words": "the firmware does not say on which node the GPUs are"} if {
	not single_node
	count(used) > 0
	count(node_gpus) == 0
}

single_node if count(surroundings.cpu_nodes) < 2

not_applicable contains "one NUMA node" if single_node

not_applicable contains "no GPU is visible here" if count(surroundings.usable) == 0
