# METADATA
# title: A job uses a network that does not reach its peers
# description: >-
#   A container with a network of its own has other interfaces than its host. Where none matches what a variable names,
#   NCCL or Gloo fails at startup, and the bridge of an engine does not reach other machines.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
#     description: NCCL_SOCKET_IFNAME, NCCL_IB_HCA and the default choice
# custom:
#   severity: high
#   confidence: likely
#   areas: [network]
#   remedies: [set-socket-ifname, correct-launch, set-ib-hca, unset-env]
#   cause: wrong-nic
#   since: "0.4"
package gpudoctor.rules.job_network

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.networks
import data.tables.launch_files as words

# named are the values of variables that name interfaces, by description and variable.
named[l][name] := value if {
	some l, all in job.judged
	some name in ["NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"]
	value := all[name].value
	value != ""
	not networks.excludes(value)
}

astray(l, name, message, remedies, more) := job.of_setting(l, name, {
	"remedies": remedies, "message": message, "evidence": array.concat([job.setting_fact(l, name)], more),
})

# An interface of the host in a container that has none of them. An RDMA or SR-IOV resource may move one of the host into
# the pod.
findings contains astray(l, name, sprintf("%s=%s names an interface of the host, but %s has a network of its own (%s), with eth0: NCCL and Gloo find no such interface, and the job fails at startup", [name, value, job.title(l), words.lacking.network[l.kind]]), ["set-socket-ifname", "unset-env"], []) if {
	some l, of in named
	some name, value in of
	job.own_network(l)
	every interface in networks.patterns(value) {
		job.matches(words.host_interfaces, interface)
	}
	launches.shows(l, {"resources"})
	count({f | some f in job.rdma(l); contains(f.fact, ".resources")}) == 0
}

# on_host is true of what has the interfaces of the target.
on_host(l) if l.network == "host"
on_host(l) if not l.kind in job.boxes

absent(l, name, value, what, there) := sprintf("%s=%s of %s matches no %s of the target: there are %s", [name, value, job.title(l), what, facts.list(there)]) if {
	on_host(l)
	every word in there {
		not networks.selects(value, word)
	}
}

findings contains astray(l, name, absent(l, name, value, "interface", there), ["unset-env", "set-socket-ifname"], [{"fact": "nics.interfaces", "value": sort(there), "source": "--target"}]) if {
	some l, of in named
	some name, value in of
	some interfaces in networks.listed
	there := {n.name | some n in interfaces}
}

findings contains astray(l, "NCCL_IB_HCA", absent(l, "NCCL_IB_HCA", value, "RDMA device", there), ["set-ib-hca", "unset-env"], [{"fact": "nics.rdma", "value": sort(there), "source": "--target"}]) if {
	some l, all in job.judged
	value := all.NCCL_IB_HCA.value
	value != ""
	there := {p.device | some p in input.nics.rdma}
	count(there) > 0
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
