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
#   - ref: https://github.com/aws/aws-ofi-nccl/issues/803
#     description: A plugin that uses tcp if EFA's devices are not passed in
# custom:
#   severity: high
#   confidence: likely
#   needs: [[job-connected, libraries.files]]
#   remedies: [fix-ofi-plugin, install-ofi-plugin, pass-rdma-devices, unset-env]
#   explains: [collective-hang/between-hosts]
#   first_of:
#     - stated > library-broken > other-provider > tcp
#     - stated > not-found > tcp
#     - stated > no-efa
#     - stated > call-unknown > call-failed
#   since: "0.1"
package gpudoctor.rules.ofi_plugin

import data.gpudoctor.lib.efa
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.surroundings

findings contains {
	"id": "no-efa",
	"subject": "network",
	"message": "fi_info finds no EFA device: the devices (/dev/infiniband) are not passed into the container, the instance has none, or the EFA driver is not loaded",
	"severity": "high",
	"confidence": "likely",
	"remedies": ["fix-ofi-plugin", "pass-rdma-devices", "install-ofi-plugin"],
	"evidence": [{"fact": "nics.providers", "value": input.nics.providers, "source": "fi_info"}],
} if lacking

lacking if {
	is_array(input.nics.providers)
	count(input.nics.providers) == 0
}

lacking if {
	efa.expected
	count(input.nics.providers) > 0
	count({p | some p in input.nics.providers; startswith(p, "efa")}) == 0
}

# The plugin took another provider than that of the fabric.
findings contains {
	"id": "other-provider",
	"subject": "network",
	"message": sprintf("The plugin uses the provider %s, not efa: EFA's devices (/dev/infiniband) are not passed into the container, or FI_PROVIDER excludes them", [m.fields.provider]),
	"remedies": ["fix-ofi-plugin", "pass-rdma-devices", "unset-env"],
	"params": {"variable": "FI_PROVIDER"},
	"messages": [m],
} if {
	intended
	m := logs.first({m | some m in logs.by_id["ofi-provider"]; strings.any_prefix_match(m.fields.provider, ["tcp", "sockets", "udp"])})
}

# EFA's own settings, or AWS's plugin on a GPU machine with several nodes.
intended if efa.expected
intended if networks.multi_node

# The plugin is asked for by name and is not there.
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
	[_, name, m] := sort({[m.order, name, m] |
		some m in logs.by_id["nccl-network-not-found"]
		some name in asked_networks(m)
		regex.match(`(?i)libfabric|ofi`, name)
	})[0]
}

asked_networks(m) := {m.fields.network} if {
	m.fields.network
} else := {facts.env[variable] | some variable in ["NCCL_NET", "NCCL_NET_PLUGIN"]}

# EFA is meant, and NCCL took TCP. Its words for a plugin that it does not find are no complaint where none is needed.
findings contains {
	"id": "tcp",
	"subject": "network",
	"message": sprintf("NCCL used the network %s instead of EFA: the plugin (libnccl-net.so of aws-ofi-nccl) was not found or not loaded, or the instance has none", [n.name]),
	"severity": tcp_severity,
	"remedies": ["install-ofi-plugin", "fix-ofi-plugin"],
	"evidence": array.concat(
		[{"fact": "logs.networks", "value": n.name, "source": logs.at(n)}],
		logs.all_evidence(logs.messages({"nccl-net-plugin-not-found"})),
	),
} if {
	efa.expected
	not networks.single_node
	n := min({n | some n in input.logs.networks; n.name in {"Socket", "IB"}})
}

default tcp_severity := "medium"

tcp_severity := "high" if networks.multi_node

not_applicable contains "no EFA device is here" if {
	count(surroundings.efa_devices) == 0
	is_array(input.pci.devices)
	not input.logs
}
