package gpudoctor.rules.numa_affinity_test

import data.gpudoctor.rules.numa_affinity

# machine has two nodes with a GPU each, of which this process may use so many CPUs.
machine(first, second, balancing) := {
	"gpus": {"nvml": "ok", "devices": [
		{"address": "0000:01:00.0", "vendor": "nvidia", "in_pci": true, "in_nvml": true},
		{"address": "0000:81:00.0", "vendor": "nvidia", "in_pci": true, "in_nvml": true},
	]},
	"pci": {"devices": [
		{"address": "0000:01:00.0", "kind": "gpu", "numa_node": 0},
		{"address": "0000:81:00.0", "kind": "gpu", "numa_node": 1},
	]},
	"numa": {
		"balancing": balancing,
		"allowed_cpus": "0-15",
		"nodes": [
			{"id": 0, "cpus": "0-15", "allowed_cpus": first, "distances": [10, 32]},
			{"id": 1, "cpus": "16-31", "allowed_cpus": second, "distances": [32, 10]},
		],
	},
}

found(document) := {[f.subject, f.severity] | some f in numa_affinity.findings with input as document}

# nodeless is the machine whose second GPU has no node.
nodeless := object.union(machine(16, 16, 0), {"pci": {"devices": [
	{"address": "0000:01:00.0", "kind": "gpu", "numa_node": 0},
	{"address": "0000:81:00.0", "kind": "gpu", "no_numa_node": true},
]}})

test_fires_without_a_node if {
	some g in numa_affinity.findings with input as object.union(nodeless, {"host": {"virtualization": {"guest": true}}})
	g.remedies == []
}

test_silent_without_a_node if {
	one_node := object.union(nodeless, {"numa": {"nodes": [{"id": 0, "cpus": "0-31", "allowed_cpus": 32, "distances": [10]}]}})
	found(one_node) == set()
	not_known := object.union(nodeless, {"pci": {"devices": [{"address": "0000:01:00.0", "kind": "gpu", "numa_node": 0}, {"address": "0000:81:00.0", "kind": "gpu"}]}})
	found(not_known) == set()
	told_by_text := json.patch(nodeless, [{"op": "add", "path": "/gpus/devices/1/numa_node", "value": 1}])
	found(told_by_text) == set()
}

test_fires_for_several if {
	document := object.union(machine(0, 16, 0), {"pci": {"devices": [
		{"address": "0000:01:00.0", "kind": "gpu", "numa_node": 0},
		{"address": "0000:81:00.0", "kind": "gpu", "numa_node": 0},
	]}})
	some f in numa_affinity.findings with input as document
	contains(f.message, "2 GPUs (0000:01:00.0 and 0000:81:00.0) are on NUMA node 0")
}

test_unresolvable_without_numa if count(numa_affinity.missing) == 2 with input as {}

test_unresolvable_without_affinity if {
	document := object.union(machine(16, 16, 0), {"numa": {"nodes": [
		{"id": 0, "cpus": "0-15", "distances": [10, 32]},
		{"id": 1, "cpus": "16-31", "distances": [32, 10]},
	]}})
	count(numa_affinity.missing) == 1 with input as document
}

# What NCCL's log shows of the CPUs that it keeps to.

kept(host, gpu, cpus, source) := {"host": host, "gpu": gpu, "mask": "f", "cpus": cpus, "source": source, "line": 4}

test_fires_where_one_launcher_leaves_fewer_cpus if {
	log := {"logs": {"messages": [], "affinities": [kept("n1", 0, 8, "srun.log"), kept("n1", 0, 24, "mpirun.log"), kept("n1", 1, 24, "mpirun.log")]}}
	found(log) == {["affinity", "medium"]}
	some f in numa_affinity.findings with input as log
	f.remedies == ["ignore-cpu-affinity", "bind-numa"]
	[e.source | some e in f.evidence] == ["srun.log:4", "mpirun.log:4"]
	launched := object.union(log, {"launches": [{"kind": "slurm", "source": "srun.log", "line": 1}]})
	some g in numa_affinity.findings with input as launched
	contains(g.message, "srun")
}

test_a_small_part_of_a_node_is_worth_knowing if {
	log := {
		"logs": {"messages": [], "affinities": [kept("n1", 0, 4, "a.log")]},
		"numa": {"nodes": [{"id": 0, "cpus": "0-31,64-95", "memory_bytes": 1, "distances": [10]}]},
	}
	found(log) == {["affinity", "low"]}
}

# Each rank bound to a core of its own.

bound(gpu, mask, cpus) := {"host": "n1", "gpu": gpu, "mask": mask, "cpus": cpus, "source": "a.log", "line": gpu + 1}

# What programs and libraries say of the CPUs that they may run on.

said(id, line, fields) := {"id": id, "program": "x", "role": "cause", "text": id, "source": "job.log", "line": line, "order": line, "fields": fields}
spoke(messages) := {"logs": {"messages": messages}}

test_fires_on_a_refused_affinity if {
	found(spoke([said("nccl-affinity-failed", 1, {})])) == {["affinity", "high"]}
	found(spoke([said("python-sets-affinity", 4, {}), said("python-invalid-argument", 5, {})])) == {["affinity", "high"]}
	count(numa_affinity.missing) == 0 with input as spoke([said("affinity-refused", 1, {})])
	found(spoke([said("python-invalid-argument", 4, {}), said("python-sets-affinity", 40, {})])) == set()
}

test_fires_on_no_cpu_near_the_gpu if {
	found(spoke([said("nccl-affinity-empty", 1, {"near": "48-95", "allowed": "0-7"})])) == {["affinity", "medium"]}
}

test_low_on_the_word_of_rccl_of_balancing if {
	found(spoke([said("rccl-numa-balancing", 1, {})])) == {["kernel.numa_balancing", "low"]}
}

test_fires_on_a_rank_bound_to_one_core if {
	bound_message := object.union(said("mpi-rank-bound-core", 1, {"rank": "0", "core": "0"}), {"role": "setting"})
	document := object.union(spoke([bound_message]), {"benchmarks": [{"tool": "nccl-tests", "what": "collective", "source": "a.log", "line": 3}]})
	found(document) == {["affinity", "medium"]}
	found(spoke([bound_message])) == set()
	started := {"logs": {"messages": [bound_message], "communicators": [{"started": 1, "completed": 1}]}}
	found(started) == {["affinity", "medium"]}
}

cpu_affinity_kept(gpu, mask, cpus) := {"host": "n1", "gpu": gpu, "mask": mask, "cpus": cpus, "source": "a.log", "line": gpu + 1}
log(affinities) := {"logs": {"messages": [], "affinities": affinities}}
kinds(document) := {f.id | some f in found} if found := numa_affinity.told_by_logs with input as document

test_found if {
	kinds(log([cpu_affinity_kept(0, "ff", 8), cpu_affinity_kept(0, "ffffff", 24)])) == {"narrowed"}
	kinds(log([cpu_affinity_kept(0, "01", 1), cpu_affinity_kept(1, "02", 1)])) == {"pinned"}
	kinds(log([cpu_affinity_kept(0, "03", 2), cpu_affinity_kept(1, "03", 2)])) == set()
}
