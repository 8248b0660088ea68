# METADATA
# title: A job uses a network that does not reach its peers
# description: A container with a network of its own has other interfaces than its host, and a bridge reaches no other machines.
# related_resources:
#   - {ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html, description: NCCL_SOCKET_IFNAME and the default choice}
# custom:
#   severity: high
#   areas: [network]
#   remedies: [set-socket-ifname, unset-env, correct-launch]
#   cause: wrong-nic
#   since: "0.4"
#   grades:
#     interface:
#       remedies: [set-socket-ifname, unset-env]
#       text: "{subject}={value} names an interface of the host, but {title} has a network of its own ({lacking}): the job fails at startup"
#     bridge: {remedies: [correct-launch], text: "{opening} runs on {nodes} nodes but has the bridge of one machine. Use --network host"}
package gpudoctor.rules.job_network

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.networks
import data.tables.launch_files as words

# An RDMA or SR-IOV resource may move an interface of the host into the pod.
findings contains job.of_setting(l, "interface", name, [], {"lacking": words.lacking.network[l.kind]}) if {
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

findings contains job.finding(l, "bridge", "network", [job.fact(l, "network", "bridge")], {"bridge": "bridge"}, {}) if {
	some l in job.containers
	l.kind in {"docker-run", "compose"}
	job.own_network(l)
	object.get(l, "network", "bridge") == "bridge"
	l.nodes > 1
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"network", "networks", "resources", "nodes", "variables[NCCL_SOCKET_IFNAME]", "variables[GLOO_SOCKET_IFNAME]"})
