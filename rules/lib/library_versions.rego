# Versions of NCCL, RCCL and ROCm. The versions in the texts or on this machine, and how they compare.
package gpudoctor.lib.library_versions

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.surroundings

in_range(row, version) if {
	numbers := surroundings.version(version)
	numbers >= surroundings.version(object.get(row, "since", "0"))
	numbers < surroundings.version(object.get(row, "fixed", "9999"))
}

# on_amd is true where the job runs on AMD's GPUs: RCCL answers there to NCCL's names.
on_amd if input.software[_].name in {"rccl", "rocm", "hip"}
on_amd if input.logs.messages[_].program in {"rccl", "hip"}

# used are the versions of a library that count: those that a log states, which were loaded, else those of packages and
# of this machine's files where all of them say the same.
used.nccl := object.get(stated, "nccl", of_one_version(installed_nccl)) if not on_amd
used.rccl := object.get(stated, "rccl", of_one_version(installed_rccl))
used.rocm := object.get(stated, "rocm", installed_rocm)

of_one_version(uses) := {u | some u in uses; count({v.version | some v in uses}) == 1}

stated[p.name] contains {"version": p.version, "evidence": package_evidence(p)} if {
	some p in input.software
	p.name in {"nccl", "rccl", "rocm"}
	not packaged(p)
}

# packaged is true of NCCL in a list of packages, under any name of it, which a program need not have loaded.
packaged(p) if {
	is_nccl_package(p.name)
	not p.manager in {"log", "torch"}
}

installed_nccl contains {"version": core(p.version), "evidence": package_evidence(p)} if {
	some p in input.software
	packaged(p)
}

installed_nccl contains {"version": core(l.version), "evidence": file_evidence(l)} if some l in surroundings.nccl

# The file name of RCCL has the version of its interface (librccl.so.1.0.60102), not RCCL's own.
installed_rccl contains {"version": l.version, "evidence": file_evidence(l)} if {
	some l in input.libraries.files
	l.kind == "librccl"
	startswith(l.version, "2.")
}

installed_rocm contains {"version": rocm, "evidence": {"fact": "gpus.amd.rocm", "value": rocm, "source": "/opt/rocm/.info/version"}} if {
	rocm := input.gpus.amd.rocm
	regex.match(`^[0-9]`, rocm)
}

# is_nccl_package is true of the names under which managers of packages know NCCL.
is_nccl_package(name) if regex.match(`^(nvidia-nccl-cu[0-9]+|libnccl2?|nccl|vllm-nccl-cu[0-9]+)$`, name)

# core is a version without what a packager adds: "2.27.7-1+cuda12.9" and "2.19.3.1" are 2.27.7 and 2.19.3.
core(version) := regex.find_n(`^[0-9]+(?:\.[0-9]+){0,2}`, version, 1)[0]

package_evidence(p) := {"fact": sprintf("software[%s]", [p.name]), "value": p.version, "source": sprintf("%s:%d", [p.source, p.line])}

file_evidence(l) := {"fact": "libraries.files", "value": l.version, "source": l.path}

version_known[library] if {
	some library, uses in used
	count(uses) > 0
}

# cumem_untested are the versions in use that allocate host memory through cuMem without trying it first.
cumem_untested contains use if {
	some use in used.nccl
	in_range({"since": "2.24.3", "fixed": "2.26.3"}, use.version)
}

cumem_host_off if facts.env.NCCL_CUMEM_HOST_ENABLE == "0"
cumem_host_off if facts.env.NCCL_CUMEM_ENABLE == "0"

# no_nccl is true of a machine without NCCL, where no text was given.
no_nccl if {
	not input.texts
	not input.logs
	not input.software
	input.libraries
	count({l | some l in input.libraries.files; l.kind == "libnccl"}) == 0
}
