# METADATA
# title: The CPUs that ranks can use
# description: >-
#   What NCCL, Open MPI and programs log about the CPUs that a process can run
#   on. Each element of found is a finding of rule numa-affinity, without the
#   fields that all of them share.
package gpudoctor.lib.cpu_affinity

import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

# masks are the CPUs that NCCL kept to for each GPU of each host, as its log shows
# them ("Setting affinity for GPU 0 to ff", src/init.cc): those near the GPU, of
# those that the launcher gave to the process (src/graph/topo.cc,
# ncclTopoGetCpuAffinity). So more than one for the same GPU is the launchers'
# doing, and the fewest CPUs are what one of them left.
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

# narrowed are the GPUs for which one run kept to half of the CPUs of another, or
# fewer.
narrowed contains key if {
	some key, least in fewest
	least * 2 <= most[key]
}

found contains {
	"id": "narrowed",
	"message": sprintf("NCCL used %d CPUs near GPU %d in one run and %d in another: the launcher of the first binds its processes to only some of the CPUs near the GPU, and NCCL's threads share them%s", [
		fewest[key], key[1], most[key], launcher_words,
	]),
	"evidence": shown({a | some k in narrowed; some a in masks[k]; a.cpus in {fewest[k], most[k]}}),
	"severity": "medium",
	"remedies": by_launcher,
} if {
	key := sort(narrowed)[0]
}

default launcher_words := ""

launcher_words := " (srun --cpu-bind, mpirun --bind-to)." if count({l | some l in logs.launches; l.kind in {"slurm", "mpirun"}}) > 0

# pinned are the GPUs for which NCCL had one core, or the two threads of one,
# while another GPU of the host had another: the launcher binds each rank to a
# core (mpirun does so for two ranks, and with --bind-to core). NCCL's threads and
# the program's then share it.
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

found contains {
	"id": "pinned",
	"message": sprintf("NCCL uses only %d CPU for GPU %d%s: the launcher binds each rank to a core (mpirun --bind-to core, srun --cpu-bind=cores), which NCCL's threads share with the program", [
		most[key], key[1], more_pinned,
	]),
	"evidence": shown({a | some k in pinned; some a in masks[k]}),
	"severity": "medium",
	"remedies": by_launcher,
} if {
	key := sort(pinned)[0]
}

more_pinned := sprintf(", and for %d others", [count(pinned) - 1]) if {
	count(pinned) > 1
} else := ""

# A small part of the CPUs of a NUMA node. A job that was given few CPUs must look so; it
# is worth knowing.
found contains {
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

# refused are the words of a program that tried to keep to the CPUs near its GPU,
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

# apart is NCCL's message that no CPU near a GPU is among those of the process. A virtual
# machine that reports no CPUs near a GPU gets no finding.
apart := {m |
	some m in logs.messages({"nccl-affinity-empty"})
	trim_space(m.fields.near) != ""
	trim_space(m.fields.allowed) != ""
}

# spoken are all messages that by themselves show the CPUs of a process.
spoken := (core_bound | refused) | apart

found contains {
	"id": "few-cpus",
	"message": "mpirun binds a rank to one core, its default for up to two ranks: NCCL's threads for all GPUs of that rank share it with the program, and host memory is on that core's node. Use --bind-to none, or --bind-to numa",
	"messages": core_bound,
	"severity": "medium",
	"remedies": ["bind-numa", "ignore-cpu-affinity"],
} if {
	count(core_bound) > 0
	on_gpus
}

on_gpus if count(input.benchmarks) > 0

on_gpus if count(input.logs.communicators) > 0

found contains {
	"message": "A program failed to bind to the CPUs near its GPU: none of them is available to this job (a scheduler's cpuset, a container's --cpuset-cpus), or NVML reports none. Request CPUs of the GPU's socket, or do not set the affinity",
	"messages": refused,
	"severity": "high",
	"remedies": ["bind-numa", "ignore-cpu-affinity"],
} if {
	count(refused) > 0
}

found contains {
	"message": "NCCL found none of the CPUs near a GPU among those that the process can use: its threads, and copies over the host, cross to another node",
	"messages": apart,
	"severity": "medium",
	"remedies": ["bind-numa", "ignore-cpu-affinity"],
} if {
	count(apart) > 0
}
