# METADATA
# title: NCCL's plugin for EFA and libfabric is missing or does not work
# description: >-
#   On EFA, NCCL needs a plugin, aws-ofi-nccl, which in turn needs libfabric and the devices. If the plugin is not
#   found, finds no device, or does not match libfabric, NCCL exits or falls back to TCP, which is several times slower.
# related_resources:
#   - ref: https://github.com/aws/aws-ofi-nccl
#     description: The plugin and its requirements
#   - ref: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start-nccl.html
#     description: How to set up EFA and NCCL
#   - ref: https://github.com/aws/aws-ofi-nccl/issues/1020
#     description: fi_getinfo finds nothing if the container lacks /dev/infiniband
#   - ref: https://github.com/olcf/olcf-user-docs/issues/947
#     description: The libfabric settings with which RCCL over Slingshot (cxi) does not hang
# custom:
#   severity: high
#   confidence: likely
#   needs: [[job-connected, libraries.files]]
#   remedies: [fix-ofi-plugin, install-ofi-plugin, pass-rdma-devices, unset-env]
#   explains: [collective-hang/between-hosts]
#   first_of:
#     - stated > library-broken > other-provider > tcp
#     - stated > not-found > tcp
#     - stated > hung
#     - stated > no-efa
#     - stated > call-unknown > call-failed
#   since: "0.1"
package gpudoctor.rules.ofi_plugin

import data.gpudoctor.lib.efa
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.surroundings

versions := [{"fact": sprintf("software[%s]", [p.name]), "value": p.version, "source": logs.at(p)} |
	some p in input.software
	p.name in {"aws-ofi-nccl", "libfabric"}
]

# A collective that does not end over Slingshot. The logs of such a job contain only its watchdog's message. libfabric's
# default memory monitor is one known cause, and a libfabric other than the system's is the next.
findings contains {
	"id": "hung",
	"subject": "network",
	"message": "A collective did not end over libfabric's Slingshot provider (cxi). If no rank failed or got out of step before, check FI_MR_CACHE_MONITOR: with memhooks, the default of many versions, NCCL and RCCL can hang there; with userfaultfd or kdreg2 they do not. Then check libfabric itself, which should be the system's, in the version that its cxi provider was built for",
	"severity": "medium",
	"confidence": "possible",
	"remedies": ["fix-ofi-plugin"],
	"messages": [hung],
	"evidence": array.concat([logs.evidence(m)], versions),
} if {
	hung := logs.first(logs.messages({"torch-watchdog-timeout", "torch-heartbeat-timeout"}))
	m := logs.first({m | some m in logs.by_id["ofi-provider"]; startswith(m.fields.provider, "cxi")})
	not facts.env.FI_MR_CACHE_MONITOR
}

findings contains {
	"id": "no-efa",
	"subject": "network",
	"message": "fi_info finds no EFA device: the devices (/dev/infiniband) are not passed into the container, the instance has none, or the EFA driver is not loaded",
	"severity": "high",
	"confidence": fi_info_confidence,
	"remedies": ["fix-ofi-plugin", "pass-rdma-devices", "install-ofi-plugin"],
	"evidence": [{"fact": "nics.providers", "value": input.nics.providers, "source": "fi_info"}],
} if {
	count({p | some p in input.nics.providers; startswith(p, "efa")}) == 0
	wanted
}

wanted if count(input.nics.providers) == 0
wanted if efa.expected

default fi_info_confidence := "likely"

fi_info_confidence := "confirmed" if efa.expected

findings contains {
	"id": "other-provider",
	"subject": "network",
	"message": sprintf("The plugin uses the provider %s, not efa: EFA's devices (/dev/infiniband) are not passed into the container, or FI_PROVIDER excludes them", [m.fields.provider]),
	"remedies": ["fix-ofi-plugin", "pass-rdma-devices", "unset-env"],
	"params": {"variable": "FI_PROVIDER"},
	"messages": [m],
	"evidence": versions,
} if {
	intended
	m := logs.first({m | some m in logs.by_id["ofi-provider"]; strings.any_prefix_match(m.fields.provider, ["tcp", "sockets", "udp"])})
}

# EFA's own settings, or AWS's plugin on a GPU machine with several nodes.
intended if efa.expected
intended if networks.multi_node

findings contains {
	"id": "not-found",
	"subject": "network",
	"message": sprintf("NCCL was configured to use the network %q, but does not find it: the plugin that provides it is not on the library path, or did not load", [name]),
	"severity": "critical",
	"confidence": "confirmed",
	"remedies": ["install-ofi-plugin", "fix-ofi-plugin", "unset-env"],
	"params": {"variable": "NCCL_NET"},
	"messages": [m],
} if {
	m := logs.first({m | some m in logs.by_id["nccl-network-not-found"]; regex.match(`(?i)libfabric|ofi`, network(m))})
	name := network(m)
}

network(m) := object.get(m, ["fields", "network"], concat(", ", {facts.env[name] | some name in ["NCCL_NET", "NCCL_NET_PLUGIN"]}))

# EFA is meant, and NCCL took TCP. AWS instances with the GPUs that come with EFA can also be started without it.
findings contains {
	"id": "tcp",
	"subject": "network",
	"message": sprintf("NCCL used the network %s instead of EFA: the plugin (libnccl-net.so of aws-ofi-nccl) was not found or not loaded, or the instance has none", [n.name]),
	"severity": tcp_grade[0],
	"confidence": tcp_grade[1],
	"remedies": ["install-ofi-plugin", "fix-ofi-plugin"],
	"evidence": array.concat(
		[{"fact": "logs.networks", "value": n.name, "source": logs.at(n)}],
		# They are no complaint where no plugin is needed.
		logs.all_evidence(logs.messages({"nccl-net-plugin-not-found"})),
	),
} if n := min({n | some n in input.logs.networks; n.name in {"Socket", "IB"}})

tcp_grade := ["high", "likely"] if {
	efa.expected
	networks.multi_node
} else := ["medium", "likely"] if {
	efa.expected
	not networks.single_node
} else := ["medium", "possible"] if {
	networks.multi_node
	not efa.expected
	efa.on_aws
	gpu_models.model[_].efa # Those of p4, p5 and p6 instances.
	{n.name | some n in input.logs.networks} == {"Socket"}
}

# Up to 1.10 the plugin sets NCCL_TOPO_FILE to a file that it brings for the type of instance. With a part of the GPUs,
# or with another version of NCCL, that file does not fit; from 1.11 on the plugin writes one of what is there
# (aws-ofi-nccl issue 785).
findings contains {
	"subject": "network",
	"message": sprintf("The topology file of aws-ofi-nccl (%s) does not fit this container or this NCCL, which fails because of it. Versions since 1.11 write one for the actual devices", [facts.env.NCCL_TOPO_FILE]),
	"severity": "critical",
	"remedies": ["fix-ofi-plugin", "install-ofi-plugin", "unset-env"],
	"params": {"variable": "NCCL_TOPO_FILE"},
	"messages": [m],
	"evidence": versions,
} if {
	contains(facts.env.NCCL_TOPO_FILE, "aws-ofi-nccl/")
	logs.said("ofi-platform")
	m := logs.first(logs.messages({"nccl-topo-file-invalid", "nccl-topo-attribute-missing", "nccl-topo-file-missing"}))
}

# This machine has EFA, and no plugin for it that a program here would find. A job may bring its own, in a container.
findings contains {
	"id": "not-installed",
	"subject": "aws-ofi-nccl",
	"message": sprintf("The machine has %s, and the plugin aws-ofi-nccl was not found in any of the usual folders: NCCL uses TCP here. A job in a container brings its own", [facts.counted(count(surroundings.efa_devices), "EFA device")]),
	"evidence": [{"fact": "pci.devices", "value": sort({d.address | some d in surroundings.efa_devices}), "source": "/sys/bus/pci/devices"}],
	"severity": "low",
	"confidence": "possible",
	"remedies": ["install-ofi-plugin"],
} if {
	not logs.given
	count(surroundings.efa_devices) > 0
	count(surroundings.usable) > 0
	is_array(input.libraries.files)
	count({l | some l in input.libraries.files; l.kind == "nccl-net"}) == 0
}

missing contains {"fact": "logs", "words": "no log of a job was given"} if {
	not input.logs
	not input.nics
	not input.libraries
}

not_applicable contains "no EFA device is here" if {
	count(surroundings.efa_devices) == 0
	is_array(input.pci.devices)
	not input.logs
}
