package gpudoctor.lib.cpu_affinity_test

import data.gpudoctor.lib.cpu_affinity

kept(gpu, mask, cpus) := {"host": "n1", "gpu": gpu, "mask": mask, "cpus": cpus, "source": "a.log", "line": gpu + 1}

log(affinities) := {"logs": {"messages": [], "affinities": affinities}}

kinds(document) := {f.id | some f in found} if found := cpu_affinity.found with input as document

test_found if {
	kinds(log([kept(0, "ff", 8), kept(0, "ffffff", 24)])) == {"narrowed"}
	kinds(log([kept(0, "01", 1), kept(1, "02", 1)])) == {"pinned"}
	kinds(log([kept(0, "03", 2), kept(1, "03", 2)])) == set()
	kinds(log([kept(0, "ff", 8), kept(0, "fff", 12)])) == set()
}
