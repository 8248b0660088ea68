package gpudoctor.rules.numa_affinity_test

import data.gpudoctor.rules.numa_affinity

# machine has two nodes, of which this process may use so many CPUs, and a GPU on each.
machine(first, second) := {
	"gpus": {"nvml": "ok", "devices": [{"address": x, "vendor": "nvidia", "in_pci": true, "in_nvml": true} |
		some x in ["0000:01:00.0", "0000:81:00.0"]
	]},
	"pci": {"devices": functions({"numa_node": 1})},
	"numa": {"balancing": 0, "allowed_cpus": "0-15", "nodes": [
		{"id": 0, "cpus": "0-15", "allowed_cpus": first, "distances": [10, 32]},
		{"id": 1, "cpus": "16-31", "allowed_cpus": second, "distances": [32, 10]},
	]},
}

functions(second) := [{"address": "0000:01:00.0", "kind": "gpu", "numa_node": 0}, object.union({"address": "0000:81:00.0", "kind": "gpu"}, second)]
second_gpu(facts) := object.union(machine(16, 16), {"pci": {"devices": functions(facts)}})

# What NCCL's log shows of the CPUs that it keeps to.
kept(gpu, mask, cpus, source) := {"host": "n1", "gpu": gpu, "mask": mask, "cpus": cpus, "source": source, "line": 4}
log(affinities) := {"logs": {"messages": [], "affinities": affinities}}
launchers := log([kept(0, "f", 8, "srun.log"), kept(0, "f", 24, "mpirun.log"), kept(1, "f", 24, "mpirun.log")])

test_findings if {
	every row in [
		[second_gpu({}), set()],
		[launchers, {["affinity", "few-cpus"]}],
	] {
		found := numa_affinity.findings with input as row[0]
		{[f.subject, f.grade] | some f in found} == row[1]
	}
}

test_what_is_said if {
	some g in numa_affinity.findings with input as object.union(machine(0, 16), {"pci": {"devices": functions({"numa_node": 0})}})
	g.about.gpus == {"0000:01:00.0", "0000:81:00.0"}
	some h in numa_affinity.findings with input as launchers
	[e.source | some e in h.evidence] == ["srun.log:4", "mpirun.log:4"]
}

test_masks if {
	every row in [
		[[kept(0, "ff", 8, "a.log"), kept(0, "ffffff", 24, "a.log")], 1],
		[[kept(0, "03", 2, "a.log"), kept(1, "03", 2, "a.log")], 0],
	] {
		count(numa_affinity.findings) == row[1] with input as log(row[0])
	}
}

test_unresolvable if {
	unplaced := object.union(machine(16, 16), {"pci": {"devices": []}})
	{m.fact | some m in numa_affinity.missing} == {"pci.devices[].numa_node"} with input as unplaced
}
