# METADATA
# title: A job uses a network that does not reach its peers
# description: A container with a network of its own has other interfaces than its host. Where none matches what a variable names,
#   NCCL or Gloo fails at startup, and the bridge of an engine does not reach other machines.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
#     description: NCCL_SOCKET_IFNAME, NCCL_IB_HCA and the default choice
# custom:
#   severity: high
#   areas: [network]
#   remedies: [set-socket-ifname, correct-launch, set-ib-hca, unset-env]
#   cause: wrong-nic
#   since: "0.4"
package gpudoctor.rules.job_network

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.networks
import data.tables.launch_files as words

# An interface of the host in a container that has none of them. An RDMA or SR-IOV resource may move one of the host into
# the pod.
findings contains job.of_setting(l, name, {
	"remedies": ["set-socket-ifname", "unset-env"],
	"message": sprintf("%s=%s names an interface of the host, but %s has a network of its own (%s), with eth0: NCCL and Gloo find no such interface, and the job fails at startup", [name, value, launches.title(l), words.lacking.network[l.kind]]),
}) if {
	some l, all in job.judged
	some name in ["NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"]
	value := all[name].value
	value != ""
	not networks.excludes(value)
	job.own_network(l)
	every interface in networks.patterns(value) {
		job.matches(words.host_interfaces, interface)
	}
	launches.shows(l, {"resources"})
	count({f | some f in job.rdma(l); contains(f.fact, ".resources")}) == 0
}

# Containers of an engine without a network between hosts: their addresses hold on one machine only.
findings contains {
	"subject": "network", "remedies": ["correct-launch"], "evidence": [job.fact(l, "network", "bridge")],
	"message": sprintf("%s runs on %d nodes but has the network of one machine's bridge: NCCL gives other nodes an address that they do not reach. Start it with --network host", [job.opening(l), l.nodes]),
	"params": {"variable": "NCCL_SOCKET_IFNAME", "bridge": "bridge"},
} if {
	some l in job.containers
	l.kind in {"docker-run", "compose"}
	job.own_network(l)
	object.get(l, "network", "bridge") == "bridge"
	l.nodes > 1
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"network", "networks", "resources", "nodes", "variables[NCCL_SOCKET_IFNAME]", "variables[GLOO_SOCKET_IFNAME]"})
