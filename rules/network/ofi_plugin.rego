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
# custom:
#   severity: high
#   confidence: likely
#   needs: [[job-connected, libraries.files]]
#   remedies: [fix-ofi-plugin, install-ofi-plugin, pass-rdma-devices, unset-env, nccl-cumem-disable]
#   explains: [collective-hang/between-hosts, failure-area, description > sys-not-mounted]
#   first_of:
#     - stated > library-broken > other-provider > tcp
#     - stated > not-found > tcp
#     - stated > no-efa
#     - stated > call-unknown > call-failed
#   since: "0.1"
#   grades:
#     no-efa:
#       confidence: confirmed
#       remedies: [fix-ofi-plugin, pass-rdma-devices, install-ofi-plugin]
#       text: >-
#         fi_info finds no EFA device: the devices (/dev/infiniband) are not passed into the container, the instance has
#         none, or the EFA driver is not loaded
#     other-provider:
#       remedies: [fix-ofi-plugin, pass-rdma-devices, unset-env]
#       text: >-
#         The plugin uses the provider {provider}, not efa: EFA's devices (/dev/infiniband) are not passed into the
#         container, or FI_PROVIDER excludes them
#     not-found:
#       severity: critical
#       confidence: confirmed
#       remedies: [install-ofi-plugin, fix-ofi-plugin, unset-env]
#       text: >-
#         NCCL was configured to use the network "{network}", but does not find it: the plugin that provides it is not on
#         the library path, or did not load
#     tcp:
#       remedies: [install-ofi-plugin, fix-ofi-plugin]
#       text: >-
#         NCCL used the network {network} instead of EFA: the plugin (libnccl-net.so of aws-ofi-nccl) was not found or not
#         loaded, or the instance has none
#     description:
#       severity: critical
#       remedies: [fix-ofi-plugin, install-ofi-plugin]
#       text: >-
#         The plugin had NCCL read its own description of the machine (NCCL_TOPO_FILE), which lacks a value ({attribute} of
#         {node}): it is of another release of the plugin, or for another instance type
#     not-installed:
#       severity: low
#       confidence: possible
#       remedies: [install-ofi-plugin]
#       text: >-
#         The machine has {n:EFA device}, and the plugin aws-ofi-nccl was not found in any of the usual folders: NCCL uses
#         TCP here. A job in a container brings its own
package gpudoctor.rules.ofi_plugin

import data.gpudoctor.lib.efa
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.surroundings

findings contains {
	"id": "no-efa",
	"subject": "network",
	"evidence": [{"fact": "nics.providers", "value": input.nics.providers, "source": "fi_info"}],
} if {
	count({p | some p in input.nics.providers; startswith(p, "efa")}) == 0
	wanted
}

wanted if count(input.nics.providers) == 0
wanted if efa.expected

findings contains {
	"id": "description",
	"subject": "NCCL_TOPO_FILE",
	"about": {"attribute": m.fields.attribute, "node": m.fields.node},
	"messages": {m, named},
} if {
	m := logs.first(logs.by_id["nccl-topo-attribute-missing"])
	some named in logs.by_id["ofi-platform"]
	contains(named.text, "Setting NCCL_TOPO_FILE")
	named.source == m.source
}

findings contains {
	"id": "other-provider",
	"subject": "network",
	"about": {"provider": m.fields.provider},
	"params": {"variable": "FI_PROVIDER"},
	"messages": [m],
} if {
	intended
	m := logs.first({m | some m in logs.by_id["ofi-provider"]; strings.any_prefix_match(m.fields.provider, ["tcp", "sockets", "udp"])})
}

# EFA's own settings, or AWS's plugin on several nodes.
intended if efa.expected
intended if networks.multi_node

findings contains {
	"id": "not-found",
	"subject": "network",
	"about": {"network": network(m)},
	"params": {"variable": "NCCL_NET"},
	"messages": [m],
} if m := logs.first({m | some m in logs.by_id["nccl-network-not-found"]; regex.match(`(?i)libfabric|ofi`, network(m))})

network(m) := object.get(m, ["fields", "network"], concat(", ", {facts.env[name] | some name in ["NCCL_NET", "NCCL_NET_PLUGIN"]}))

# EFA is meant, and NCCL took TCP. AWS instances with the GPUs that come with EFA can also be started without it.
findings contains {
	"id": "tcp",
	"subject": "network",
	"about": {"network": n.name},
	"severity": tcp_grade[0],
	"confidence": tcp_grade[1],
	"evidence": [{"fact": "logs.networks", "value": n.name, "source": logs.at(n)}],
} if n := min({n | some n in input.logs.networks; n.name in {"Socket", "IB"}})

tcp_grade := ["high", "likely"] if {
	efa.expected
	networks.multi_node
} else := ["medium", "likely"] if {
	efa.expected
	not networks.single_node
} else := ["medium", "possible"] if {
	networks.multi_node
	efa.on_aws
	gpu_models.model[_].efa # Those of p4, p5 and p6 instances.
	{n.name | some n in input.logs.networks} == {"Socket"}
}

# This machine has EFA, and no plugin for it that a program here would find. A job may bring its own, in a container.
findings contains {
	"id": "not-installed",
	"subject": "aws-ofi-nccl",
	"about": {"n": count(surroundings.efa_devices)},
	"evidence": [{"fact": "pci.devices", "value": sort({d.address | some d in surroundings.efa_devices}), "source": "/sys/bus/pci/devices"}],
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
