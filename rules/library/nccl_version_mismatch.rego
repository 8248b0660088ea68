# METADATA
# title: Ranks have different versions of NCCL, or a program loads the wrong one
# description: >-
#   Ranks of a job exchange addresses and descriptions in a format that changes between NCCL versions. Ranks of
#   different versions read garbage: an address with no family, a message of the wrong size. Since 2.23, NCCL reports
#   this itself. A program that was built with one version but loads an older one lacks its newer functions.
# related_resources:
#   - ref: https://github.com/NVIDIA/nccl/issues/1267
#     description: Nodes with 2.20.5 and 2.19.3, and an address of family 0
#   - ref: https://github.com/NVIDIA/nccl/blob/v2.30.7-1/src/init.cc
#     description: Since 2.23, NCCL compares the versions at startup
# custom:
#   severity: critical
#   confidence: likely
#   needs: [job-told-if-given, [software, libraries.files], [texts-given, "libraries.files[].version"]]
#   remedies: [same-nccl-everywhere, upgrade-nccl, unset-env, remove-from-library-path, install-matching-wheels, other]
#   explains: [app-mismatch/rank-count]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     hosts:
#       remedies: [same-nccl-everywhere]
#       text: "The hosts of this job have different versions of NCCL ({kind}: {hosts:few})"
#     networks:
#       severity: high
#       remedies: [same-nccl-everywhere, unset-env]
#       text: >-
#         The hosts of this job use the network by different code ({hosts:few}), which does not connect: one loads a
#         network plugin that another lacks
#     garbage:
#       severity: high
#       confidence: possible
#       remedies: [same-nccl-everywhere, unset-env]
#       text: >-
#         What a rank read from another is not what it expects. The usual causes are different versions of NCCL, and
#         settings that differ between ranks (NCCL_ALGO, NCCL_PROTO, numbers of channels): NCCL_DEBUG=INFO on each rank
#         shows both
package gpudoctor.rules.nccl_version_mismatch

import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs

# versions are those of each host, by source: what was loaded ("log"), and each package.
versions[kind(p)][p.host] contains p if some p in input.software

kind(p) := "NCCL as loaded" if {
	p.name in {"nccl", "rccl"}
	p.manager in {"log", "torch"}
} else := p.name if library_versions.is_nccl_package(p.name)

# differing are the kinds of which the hosts have no version in common, with the versions of each.
differing[key] := by_host if {
	some key, hosts in versions
	by_host := {host: {p.version | some p in packages} | some host, packages in hosts}
	count(intersection({vs | some vs in by_host})) == 0
}

# garbage are messages as ranks of different versions read from each other.
garbage := logs.messages(["nccl-address-family-unknown", "nccl-message-truncated", "nccl-socket-wrong-magic"])

findings contains {
	"grade": "hosts",
	"subject": "nccl",
	"about": {"kind": key, "hosts": {sprintf("%s %s", [host, concat(" and ", sort(vs))]) | some host, vs in by_host}},
	"severity": grade[0],
	"confidence": grade[1],
	"messages": {m | m := logs.first(garbage)},
	"evidence": array.slice([library_versions.package_evidence(p) | some packages in versions[key]; some p in packages], 0, 8),
} if {
	some key, by_host in differing
	not logs.said("nccl-version-mismatch")
}

grade := ["critical", "likely"] if {
	count(garbage) > 0
} else := ["high", "likely"] if {
	logs.failed
} else := ["low", "possible"]

# Each host chose a network by code of its own. That some have none but TCP is of what they lack.
findings contains {
	"id": "networks",
	"grade": "networks",
	"subject": "nccl",
	"about": {"hosts": {sprintf("%s %s", [host, concat(" and ", sort(names))]) | some host, names in chosen}},
	"evidence": [{"fact": "logs.networks", "value": n.name, "source": logs.at(n)} | some n in array.slice(input.logs.networks, 0, 8)],
} if {
	count(chosen) > 1
	count(intersection({names | some names in chosen})) == 0
	not "Socket" in union({names | some names in chosen})
	count({c.id | some c in input.logs.communicators}) < 2 # One job.
}

chosen[n.host] contains n.name if some n in input.logs.networks

findings contains {
	"grade": "garbage",
	"subject": "nccl",
	"messages": {m},
} if {
	m := logs.first(logs.messages(["nccl-address-family-unknown", "nccl-message-truncated"]))
	count(differing) == 0
	not logs.said("nccl-version-mismatch")
}

not_applicable contains "no NCCL is installed here" if library_versions.no_nccl
