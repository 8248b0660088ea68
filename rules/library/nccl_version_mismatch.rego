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
#   needs:
#     - job-told-if-given
#     - [software, libraries.files]
#     - [texts-given, "libraries.files[].version"]
#   remedies: [same-nccl-everywhere, upgrade-nccl, unset-env, other]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.nccl_version_mismatch

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.thresholds

# The program and the library do not fit.
findings contains {
	"subject": "nccl",
	"message": sprintf("The program loaded a different NCCL than the one it was built with: %s", [m.text]),
	"severity": "critical",
	"confidence": "confirmed",
	"messages": {m},
	"evidence": array.concat(wheels, library_path),
	"remedies": ["same-nccl-everywhere", "upgrade-nccl"],
	"params": {"variable": "LD_LIBRARY_PATH"},
} if {
	m := logs.first(logs.messages(["nccl-symbol-missing", "nccl-older-than-application", "nccl-newer-than-application"]))
}

findings contains {
	"subject": "nccl",
	"message": sprintf("The program found no NCCL at all: %s", [m.text]),
	"severity": "high",
	"confidence": "likely",
	"messages": {m},
	"evidence": array.concat(wheels, library_path),
	"remedies": ["same-nccl-everywhere"],
} if {
	m := logs.first(logs.by_id["nccl-library-missing"])
}

# An NCCL that was built with CUDA before 11.3 cannot be captured in a graph, as the packages for CUDA 11
# (nvidia-nccl-cu11) were: whoever captures its calls (vLLM, SGLang) takes another build (vllm issues 3069, 5679).
findings contains {
	"subject": "nccl",
	"message": sprintf("NCCL%s cannot be captured in a CUDA graph: %s. NCCL packages for CUDA 11 are built this way; a package for CUDA 12, which the framework requires, works", [graph_versions, graph_reason]),
	"severity": "critical",
	"confidence": graph_confidence,
	"messages": {m},
	"evidence": wheels,
	"remedies": ["upgrade-nccl", "same-nccl-everywhere"],
} if {
	m := logs.first(logs.by_id["nccl-cuda-graphs-unsupported"])
	not before_graphs
}

before_graphs if driver_branch < thresholds.cuda_graphs_driver

driver_branch := surroundings.version(input.gpus.driver.version)[0]

graph_reason := sprintf("it was built with CUDA before 11.3, because the driver (%s) is new enough", [input.gpus.driver.version]) if {
	driver_branch >= thresholds.cuda_graphs_driver
} else := sprintf("it was built with CUDA before 11.3, or the driver is older than %d", [thresholds.cuda_graphs_driver])

default graph_confidence := "likely"

graph_confidence := "confirmed" if driver_branch >= thresholds.cuda_graphs_driver

default graph_versions := ""

graph_versions := sprintf(" %s", [concat(", ", sort({u.version | some u in library_versions.used.nccl}))]) if {
	count(library_versions.used.nccl) > 0
}

# wheels are the packages of NCCL that are installed together; they write to one
# directory, so the last one installed counts.
wheels := [library_versions.package_evidence(p) |
	some p in sort({p | some p in input.software; startswith(p.name, "nvidia-nccl-cu")})
]

library_path := [{"fact": sprintf("env.variables[%s]", [name]), "value": facts.env[name], "source": "environment"} |
	some name in ["LD_LIBRARY_PATH", "LD_PRELOAD", "VLLM_NCCL_SO_PATH"]
	facts.env[name]
]

# versions are those of each host, by source: what was loaded ("log"), and each package.
versions[key][p.host] contains p if {
	some p in input.software
	p.host != ""
	key := kind(p)
	key != ""
}

kind(p) := "NCCL as loaded" if {
	p.name in {"nccl", "rccl"}
	p.manager in {"log", "torch"}
} else := p.name if {
	library_versions.is_nccl_package(p.name)
} else := ""

# differing are the kinds of which two hosts have no version in common, with the
# versions of each. Of more than 32 different sets of versions the first tell.
differing[key] := by_host if {
	some key, hosts in versions
	by_host := {host: {p.version | some p in packages} | some host, packages in hosts}
	kinds_of_host := {one | some one in by_host}
	count(kinds_of_host) > 1
	first_kinds := array.slice(sort(kinds_of_host), 0, 32)
	some a in first_kinds
	some b in first_kinds
	count(a & b) == 0
}

# garbage are messages as ranks of different versions read from each other.
garbage := logs.messages(["nccl-address-family-unknown", "nccl-message-truncated", "nccl-socket-wrong-magic"])

findings contains object.union(
	{
		"subject": "nccl",
		"message": sprintf("The hosts of this job have different versions of NCCL (%s: %s)%s", [key, words(by_host), consequence]),
		"severity": severity,
		"confidence": confidence,
		"evidence": array.concat(
			[logs.evidence(m) | some m in [logs.first(garbage)]],
			array.slice([library_versions.package_evidence(p) | some p in sort({p | some packages in versions[key]; some p in packages})], 0, 8),
		),
		"remedies": ["same-nccl-everywhere"],
	},
	order,
) if {
	some key, by_host in differing
	count({m | some m in logs.by_id["nccl-version-mismatch"]}) == 0
}

words(by_host) := concat("; ", array.concat(
	array.slice([sprintf("%s %s", [host, concat(" and ", sort(vs))]) | some host, vs in by_host], 0, 8),
	[sprintf("and %d more hosts", [count(by_host) - 8]) | count(by_host) > 8],
))

default consequence := ""

consequence := ", so ranks read garbage from each other" if count(garbage) > 0

default severity := "low"

severity := "critical" if {
	count(garbage) > 0
} else := "high" if logs.failed

default confidence := "possible"

confidence := "likely" if logs.failed

default order := {}

order := {"order": logs.first(garbage).order} if {
	count(garbage) > 0
} else := {"order": logs.first(logs.complaints).order} if logs.failed

# A network plugin on a part of the hosts: the others fall back to what is built in, and the two do not understand each
# other's connections (NVIDIA/nccl issue 1634). Of one text, as the logs of two runs may well differ.
by_network[n.source][n.name] contains n.host if {
	some n in input.logs.networks
	n.host != ""
}

split_networks[source] := by_name if {
	some source, by_name in by_network
	some plugin, hosts in by_name
	not plugin in {"IB", "Socket", "RoCE"}
	some builtin in {"IB", "Socket"}
	count(by_name[builtin]) > 0
	count(hosts & by_name[builtin]) == 0
}

findings contains {
	"subject": "nccl",
	"message": sprintf("The hosts of this job use different network plugins (%s): only some of them find the plugin (LD_LIBRARY_PATH, loaded modules, or NCCL_NET_PLUGIN), and the two kinds cannot connect to each other", [
		concat("; ", sort({sprintf("%s: %s", [name, concat(", ", array.slice(sort(hosts), 0, 4))]) | some name, hosts in split_networks[source]})),
	]),
	"severity": "high",
	"confidence": "likely",
	"evidence": [{"fact": sprintf("logs.networks[%s]", [n.host]), "value": n.name, "source": logs.at(n)} | some n in sort({n | some n in input.logs.networks; n.source == source})],
	"remedies": ["same-nccl-everywhere", "unset-env"],
	"params": {"variable": "LD_LIBRARY_PATH"},
} if {
	source := sort(object.keys(split_networks))[0]
}

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
	count({v | some v in logs.by_id["nccl-version-mismatch"]}) == 0
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
	"evidence": [{"fact": sprintf("libraries.files[%s].version", [l.path]), "value": l.version, "source": l.path} | some l in [first, wheel]],
	"params": {"variable": loader_variable[first.found_by]},
	"remedies": ["same-nccl-everywhere", "unset-env"],
} if {
	not logs.given
	some first in input.libraries.files
	first.kind == "libnccl"
	first.loads
	loader_variable[first.found_by]
	newer := [l |
		some l in surroundings.python_nccl
		array.slice(surroundings.version(library_versions.core(first.version)), 0, 2) < array.slice(surroundings.version(library_versions.core(l.version)), 0, 2)
	]
	wheel := newer[0]
}

loader_variable := {"ld_library_path": "LD_LIBRARY_PATH", "ld_preload": "LD_PRELOAD"}

missing contains {"fact": "logs", "words": "no log of a job was given"} if {
	input.texts
	not input.logs
	count(versions) == 0
}

not_applicable contains "no NCCL is installed here" if library_versions.no_nccl

missing contains {"fact": "software", "words": "no text shows the versions of NCCL by host"} if {
	count(garbage) > 0
	count(versions) == 0
}
