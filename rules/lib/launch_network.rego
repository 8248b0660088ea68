# METADATA
# title: Networks and libraries in files that describe a job
# description: >-
#   Interfaces that a container does not have, addresses that other nodes do not
#   reach, numbers of nodes that disagree, variables that disable what the file
#   requests, and libraries that belong to the host. Each element is a finding of
#   the rule that imports it, without the fields that all of them share.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.launch_network

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launch_files as lf
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.nccl_values
import data.tables.launch_files as words

# own_network is true of a container with a network namespace of its own.
own_network(l) if {
	l in lf.contained
	launches.shows(l, {"network"})
	not l.network == "host"
	not startswith(object.get(l, "network", ""), "container:")
}

# interfaces are variables that name an interface of the host in a container that has
# none of them.
interfaces contains {
	"subject": name,
	"message": sprintf("%s=%s names an interface of the host, but %s has a network of its own%s, with eth0: NCCL and Gloo find no such interface, and the job fails at startup", [name, s.value, lf.title(l), how[l.kind]]),
	"severity": "high",
	"params": {"variable": name},
	"remedies": ["set-socket-ifname", "unset-env"],
	"evidence": [lf.setting_fact(l, name)],
} if {
	some l in lf.contained
	own_network(l)
	some name in ["NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"]
	s := lf.settings(l)[name]
	names := {trim_left(trim_space(n), "=") | some n in split(s.value, ",")}
	not startswith(s.value, "^")
	every n in names {
		lf.matches(words.host_interfaces, n)
	}
	launches.shows(l, {"resources"})
	not attached(l)
}

how := {"kubernetes": " (no hostNetwork)", "docker-run": " (no --network host)", "compose": " (no network_mode: host)", "docker-inspect": ""}

# An RDMA or SR-IOV resource may move an interface of the host into the pod.
attached(l) if {
	some r in lf.rdma[l]
	startswith(r.part, "resources")
}

# Containers of an engine without a network between hosts: their addresses hold on one
# machine only.
interfaces contains {
	"subject": "network",
	"message": sprintf("%s runs on %d nodes but has the network of one machine's bridge: NCCL gives other nodes an address that they do not reach. Start it with --network host", [lf.opening(l), l.nodes]),
	"severity": "high",
	"params": {"variable": "NCCL_SOCKET_IFNAME", "bridge": object.get(l, "network", "bridge")},
	"remedies": ["correct-launch"],
	"evidence": [lf.fact(l, "network", object.get(l, "network", "bridge"))],
} if {
	some l in lf.contained
	l.kind in {"docker-run", "compose"}
	own_network(l)
	object.get(l, "network", "bridge") == "bridge"
	lf.multi_node(l)
}

# rendezvous are addresses of the machine itself in a job over several nodes.
rendezvous contains {
	"subject": "MASTER_ADDR",
	"message": sprintf("%s runs on %d nodes with the rendezvous address %s, which on each node is the node itself: the ranks wait for each other until the timeout", [lf.opening(l), l.nodes, address]),
	"severity": "high",
	"params": {"variable": "MASTER_ADDR"},
	"remedies": ["unset-env"],
	"evidence": [lf.fact(l, "command", address)],
} if {
	some l in lf.files
	lf.multi_node(l)
	some i, word in l.command
	address := endpoint(l.command, i, word)
	lf.matches(words.loopback, address)
}

# endpoint is the value of an option that names the rendezvous, joined by = or the next
# word.
endpoint(_, _, word) := split(word, "=")[1] if regex.match(`^--(master[_-]addr|rdzv[_-]endpoint)=`, word)

endpoint(command, i, word) := command[i + 1] if regex.match(`^--(master[_-]addr|rdzv[_-]endpoint)$`, word)

# disabled are variables that switch off the RDMA that the file itself requests.
disabled contains {
	"subject": name,
	"message": sprintf("%s=%s, but %s gets RDMA devices (%s): traffic between nodes uses TCP, at a fraction of the bandwidth", [name, s.value, lf.title(l), facts.list({r.value | some r in lf.rdma[l]})]),
	"severity": "medium",
	"params": {"variable": name},
	"remedies": ["unset-env"],
	"evidence": array.concat([lf.setting_fact(l, name)], lf.rdma_facts(l)),
} if {
	not lf.target_rdma
	some l in lf.contained
	count(lf.rdma[l]) > 0
	some name, s in lf.settings(l)
	switches_off(name, s.value)
}

switches_off("NCCL_IB_DISABLE", value) if nccl_values.number(value) == 1

switches_off("NCCL_NET", value) if lower(value) == "socket"

# nodes are numbers of nodes that a batch script and its launcher disagree on.
nodes contains {
	"subject": "nodes",
	"message": sprintf("The batch job has %d nodes, and its launcher waits for %d (%s): the rendezvous never completes", [batch.nodes, run.nodes, launches.place_of(run, "nodes")]),
	"severity": "high",
	"confidence": "likely",
	"params": {"launcher": regex.replace(run.command[0], `^.*/`, "")},
	"remedies": ["correct-launch"],
	"evidence": [lf.fact(batch, "nodes", batch.nodes), lf.fact(run, "nodes", run.nodes)],
} if {
	some source, batches in batch_of
	some batch in batches
	some run in runs_of[source]
	run.nodes > batch.nodes
}

batch_of[l.source] contains l if {
	some l in lf.files
	l.kind == "slurm"
	count(object.get(l, "command", [])) == 0
	l.nodes
}

runs_of[l.source] contains l if {
	some l in lf.files
	l.kind in {"slurm", "torchrun"}
	some word in l.command
	regex.match(`^--(nnodes|num_machines|num_nodes)`, word)
}

# packages are those of the driver that an image installs.
packages contains {
	"subject": name,
	"message": sprintf("%s installs %s, a part of the NVIDIA driver. The driver's libraries must come from the host: those of an image match only one version of the kernel driver, and elsewhere CUDA or NVML fail to start", [lf.title(l), name]),
	"severity": "high",
	"confidence": "likely",
	"remedies": ["remove-driver-libraries"],
	"params": {"library": name},
	"evidence": [lf.fact(l, sprintf("packages[%s]", [name]), name)],
} if {
	some l in lf.files
	some name in l.packages
	lf.matches(words.driver_packages, name)
}

# stubs are folders for linking on the path that the loader searches.
stubs contains {
	"subject": folder,
	"message": sprintf("%s puts CUDA's stubs on LD_LIBRARY_PATH (%s): programs load the stub instead of the driver's libcuda, and CUDA fails with error 34. LIBRARY_PATH is the variable for linking", [lf.title(l), folder]),
	"severity": "high",
	"confidence": "likely",
	"remedies": [object.get({"dockerfile": "remove-from-image-path"}, l.kind, "remove-from-library-path")],
	"params": {"folder": folder},
	"evidence": [lf.setting_fact(l, "LD_LIBRARY_PATH")],
} if {
	some l in lf.files
	value := lf.settings(l).LD_LIBRARY_PATH.value
	some folder in split(value, ":")
	lf.matches(words.stub_folders, folder)
}

# interfaces_open are the parts that decide about interfaces whose value the files do not show.
interfaces_open := lf.undecided({"network", "resources", "nodes", "variables[NCCL_SOCKET_IFNAME]", "variables[GLOO_SOCKET_IFNAME]"})
