# METADATA
# title: RDMA devices missing from a container
# description: >-
#   Each element of found is a finding of rule container-caps, without the
#   fields that all of them share.
package gpudoctor.lib.container_rdma

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.surroundings

# InfiniBand NICs of the machine that a container cannot use.
found contains {
	"message": sprintf("The machine has %d InfiniBand NICs, but none of their device nodes was passed into this container: a job over several machines uses TCP", [count(surroundings.infiniband_nics)]),
	"severity": "low",
	"confidence": "possible",
	"evidence": [{"fact": "pci.devices", "value": sort(surroundings.infiniband_nics), "source": "/sys/bus/pci/devices"}],
	"remedies": ["pass-rdma-devices"],
} if {
	facts.in_container
	count(surroundings.usable) > 0
	count(surroundings.infiniband_nics) > 0
	count(surroundings.rdma_nodes) == 0
}

container_name := launches.title(sort(launches.without_rdma)[0])

# The same by the description of a container's start. NCCL finds no RDMA device, while
# one of the machine has a link, and the job asks for RDMA.
found contains {
	"id": "rdma-not-passed",
	"messages": {logs.first(unseen)},
	"severity": "high",
	"confidence": "likely",
	"remedies": ["pass-rdma-devices", "pass-device-nodes", "add-ipc-lock"],
	"evidence": launches.devices_evidence(launches.without_rdma),
	"message": sprintf("NCCL finds no RDMA device in %s: /dev/infiniband was not passed in. The machine has RDMA devices with a link (%s), and the job uses TCP instead", [container_name, concat(", ", sort(linked))]),
} if {
	unseen := logs.by_id["nccl-ib-no-device"]
	not facts.env.NCCL_IB_DISABLE == "1"
	rdma_asked
	linked := {p.device | some p in input.nics.rdma; p.state == "active"}
	count(linked) > 0
}

# NCCL was configured to use only InfiniBand or RoCE: the setting is right, and the nodes
# are missing.
found contains {
	"id": "rdma-not-passed",
	"messages": barred,
	"severity": "critical",
	"confidence": "confirmed",
	"remedies": ["pass-rdma-devices", "pass-device-nodes", "add-ipc-lock"],
	"evidence": launches.devices_evidence(launches.without_rdma),
	"message": sprintf("NCCL_NET=IB restricts NCCL to its own InfiniBand and RoCE transport, and NCCL finds no RDMA device in %s: /dev/infiniband was not passed in. So the job ends instead of falling back to TCP", [container_name]),
} if {
	barred := logs.by_id["nccl-network-not-found"]
	upper(facts.env.NCCL_NET) == "IB"
}

# fi_info finds no device in one place: the machine has them, as the same command
# outside, or what the job is told, shows.
found contains {
	"id": "efa-not-passed",
	"messages": {m},
	"severity": "high",
	"confidence": "likely",
	"remedies": ["pass-device-nodes", "pass-rdma-devices"],
	"evidence": launches.devices_evidence(launches.without_rdma),
	"message": sprintf("libfabric finds no device (%s), and %s was started without any of /dev/infiniband, so it cannot use EFA. Pass in --device=/dev/infiniband/uverbs0, one for each EFA interface, or request the resource vpc.amazonaws.com/efa", [logs.at(m), container_name]),
} if {
	m := logs.first(logs.messages({"ofi-fi-info-empty", "ofi-efa-list-empty"}))
	efa_elsewhere
}

# rdma_asked is true of a job over several machines, and of one whose variables speak
# of RDMA.
rdma_asked if networks.multi_node

rdma_asked if facts.env.NCCL_IB_HCA != ""

rdma_asked if upper(facts.env.NCCL_NET) == "IB"

rdma_asked if facts.env.NCCL_IB_DISABLE == "0"

efa_elsewhere if {
	some p in input.nics.providers
	startswith(p, "efa")
}

efa_elsewhere if facts.env.FI_PROVIDER == "efa"
