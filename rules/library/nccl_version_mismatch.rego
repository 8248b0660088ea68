# METADATA
# title: Ranks have different versions of NCCL, or a program loads the wrong one
# description: >-
#   Ranks of a job exchange addresses and descriptions in a format that changes between NCCL versions. Ranks of
#   different versions read garbage: an address with no family, a message of the wrong size. Since 2.23, NCCL reports
#   this itself. A program that was built with one version but loads an older one lacks its newer functions.
# related_resources:
#   - ref: https://github.com/NVIDIA/nccl/issues/1267
#     description: Nodes with 2.20.5 and 2.19.3, and an address of family 0
#   - ref: https://github.com/pytorch/pytorch/issues/119932
#     description: Another package's libnccl comes before PyTorch's
#   - ref: https://github.com/NVIDIA/nccl/blob/v2.30.7-1/src/misc/strongstream.cc
#     description: The message of an NCCL that cannot be captured in a graph
#   - ref: https://github.com/NVIDIA/nccl/blob/v2.30.7-1/src/init.cc
#     description: Since 2.23, NCCL compares the versions at startup
# custom:
#   severity: critical
#   confidence: likely
#   needs: [job-told-if-given, [software, libraries.files], [texts-given, "libraries.files[].version"]]
#   remedies: [same-nccl-everywhere, upgrade-nccl, unset-env, other]
#   explains: [app-mismatch/rank-count]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     hosts: "The hosts of this job have different versions of NCCL ({kind}: {hosts:few})"
package gpudoctor.rules.nccl_version_mismatch

import data.gpudoctor.lib.image_files
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

# versions are those of each host, by source: what was loaded ("log"), and each package.
versions[key][p.host] contains p if {
	some p in input.software
	key := kind(p)
}

kind(p) := "NCCL as loaded" if {
	p.name in {"nccl", "rccl"}
	p.manager in {"log", "torch"}
} else := p.name if library_versions.is_nccl_package(p.name)

# differing are the kinds of which two hosts have no version in common, with the
# versions of each. Of more than 32 different sets of versions the first tell.
differing[key] := by_host if {
	some key, hosts in versions
	by_host := {host: {p.version | some p in packages} | some host, packages in hosts}
	first_kinds := array.slice(sort({one | some one in by_host}), 0, 32)
	some a in first_kinds
	some b in first_kinds
	count(a & b) == 0
}

# garbage are messages as ranks of different versions read from each other.
garbage := logs.messages(["nccl-address-family-unknown", "nccl-message-truncated", "nccl-socket-wrong-magic"])

findings contains object.union(
	{
		"grade": "hosts",
		"subject": "nccl",
		"about": {"kind": key, "hosts": {sprintf("%s %s", [host, concat(" and ", sort(vs))]) | some host, vs in by_host}},
		"severity": grade[0],
		"confidence": grade[1],
		"messages": {m | m := logs.first(garbage)},
		"evidence": array.slice(
			[library_versions.package_evidence(p) | some p in sort({p | some packages in versions[key]; some p in packages})],
			0, 8,
		),
		"remedies": ["same-nccl-everywhere"],
	},
	{"order": logs.first(logs.complaints).order | logs.failed},
) if {
	some key, by_host in differing
	not logs.said("nccl-version-mismatch")
}

grade := ["critical", "likely"] if {
	count(garbage) > 0
} else := ["high", "likely"] if {
	logs.failed
} else := ["low", "possible"]

# Garbage only: different versions, or a foreign process at the port.
findings contains {
	"subject": "nccl",
	"message": "What a rank read from another is not what it expects. The usual causes are different versions of NCCL, and settings that differ between ranks (NCCL_ALGO, NCCL_PROTO, numbers of channels): NCCL_DEBUG=INFO on each rank shows both",
	"severity": "high",
	"confidence": "possible",
	"messages": {m},
	"remedies": ["same-nccl-everywhere", "unset-env"],
} if {
	m := logs.first(logs.messages(["nccl-address-family-unknown", "nccl-message-truncated"]))
	count(differing) == 0
	not logs.said("nccl-version-mismatch")
}

# A library that the loader takes for everybody, because a variable names its folder or itself, and that is older than
# the one of a Python package: PyTorch may take the one and another library of the process the other.
findings contains {
	"id": "shadowed",
	"subject": "nccl",
	"message": sprintf("%s puts NCCL %s (%s) before %s of the Python package (%s). Programs that load libnccl.so.2 by name, such as vLLM, get the older one, which may lack functions that PyTorch or they need", [
		loader_variable[first.found_by], library_versions.core(first.version), first.path, library_versions.core(wheel.version), wheel.path,
	]),
	"severity": "low",
	"confidence": "possible",
	"evidence": [image_files.evidence(l) | some l in [first, wheel]],
	"params": {"variable": loader_variable[first.found_by]},
	"remedies": ["same-nccl-everywhere", "unset-env"],
} if {
	not logs.given
	some first in input.libraries.files
	first.kind == "libnccl"
	first.loads
	loader_variable[first.found_by]
	wheel := [l | some l in surroundings.python_nccl; minor(first) < minor(l)][0]
}

minor(l) := array.slice(surroundings.version(l.version), 0, 2)

loader_variable := {"ld_library_path": "LD_LIBRARY_PATH", "ld_preload": "LD_PRELOAD"}

not_applicable contains "no NCCL is installed here" if library_versions.no_nccl
