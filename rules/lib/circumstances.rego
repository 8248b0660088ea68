# METADATA
# title: Circumstances in the table of variables
# description: >-
#   The circumstances that rows of the table of variables name in when and
#   unless, where they are known to hold.
package gpudoctor.lib.circumstances

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.nccl_values
import data.gpudoctor.lib.peer_access
import data.gpudoctor.lib.surroundings
import data.tables.variables

# holds is true of a circumstance that is known to be so. Some look at the value.
holds("image", _) if surroundings.image

holds("image", _) if dockerfile

holds("image-judged", _) if dockerfile

holds("image-configured", _) if dockerfile

# dockerfile is true where a stage of one is judged: its settings are the image's own.
dockerfile if {
	input.profile == "launch"
	some l in input.launches
	l.kind == "dockerfile"
}

# image-judged is true only where it was asked for: a container without GPUs may have
# its variables from its launch, and one with GPUs was launched.
holds("image-judged", _) if {
	input.profile == "image"
	input.image
}

holds("image-judged", _) if {
	input.profile == "image"
	surroundings.no_gpu
}

# image-configured is true where a variable is the image's own: on a machine with GPUs, the
# container runtime sets some while an image is built.
holds("image-configured", _) if {
	input.profile == "image"
	input.image
}

holds("image-configured", _) if {
	input.profile == "image"
	not gpus_on_host
}

gpus_on_host if surroundings.on_host > 0

holds("launch", _) if input.profile == "launch"

holds("one-gpu", _) if {
	count(surroundings.usable) == 1
	surroundings.on_host == 1
}

holds("p2p-proven", _) if peer_access.proven

holds("p2p-broken", _) if peer_access.broken

holds("p2p-slow", _) if peer_access.slow

holds("staged-slower", _) if peer_access.staged_slower

holds("staged-faster", _) if peer_access.staged_faster

holds("p2p-refused", _) if peer_access.refused

holds("p2p-off", _) if nccl_values.number(facts.env.NCCL_P2P_DISABLE) == 1

holds("p2p-off", _) if facts.env.NCCL_P2P_LEVEL in {"LOC", "0"}

holds("nvlink", _) if surroundings.nvlinked

holds("all-nvlink", _) if surroundings.all_nvlinked

holds("multicast", _) if surroundings.multicast

holds("rdma", _) if count(surroundings.rdma_nics) > 0

holds("rdma", _) if count(surroundings.rdma_nodes) > 0

# A port that a text shows as up is as good as its adapter in the PCI tree.
holds("rdma", _) if {
	some p in input.nics.rdma
	rdma_up(p)
}

rdma_up(p) if p.netdev_up == true

rdma_up(p) if p.state == "active"

holds("over-sockets", _) if {
	some t in input.logs.transports
	t.network == "Socket"
}

holds("infiniband", _) if count(surroundings.infiniband_nics) > 0

holds("many-nics", _) if count(surroundings.rdma_nics) > 10

holds("efa", _) if count(surroundings.efa_devices) > 0

# libfabric's provider for Slingshot, from the plugin's messages or settings.
holds("cxi", _) if {
	some m in logs.by_id["ofi-provider"]
	startswith(m.fields.provider, "cxi")
}

holds("cxi", _) if startswith(facts.env.FI_PROVIDER, "cxi")

holds("cxi", _) if {
	some p in input.nics.providers
	startswith(p, "cxi")
}

holds("nvidia", _) if surroundings.has_nvidia

holds("amd", _) if surroundings.has_amd

holds("guest", _) if facts.is_guest

# cause-said is true where a program stated what is wrong.
holds("cause-said", _) if {
	some m in input.logs.messages
	m.role == "cause"
}

holds("virtual-topology", _) if input.links.virtual_topology

holds("no-plugin", _) if {
	is_array(input.libraries.files)
	count([l | some l in input.libraries.files; l.kind == "nccl-net"]) == 0
}

holds("zero", value) if nccl_values.number(value) == 0

holds("unset-number", value) if nccl_values.number(value) <= 0

holds("level-known", value) if value in variables.levels

holds("level-excludes-all", value) if {
	count(facts.gpu_pairs) > 0
	every p in facts.gpu_pairs {
		beyond(p, nccl_values.place(value))
	}
}

holds("protocols-known", value) if nccl_values.words_known(value, variables.protocols)

holds("algorithms-known", value) if nccl_values.words_known(value, variables.algorithms)

holds(comparison, _) if {
	startswith(comparison, "nccl>=")
	surroundings.nccl_at_least(surroundings.version(substring(comparison, 6, -1)))
}

holds(comparison, _) if {
	startswith(comparison, "nccl<")
	surroundings.nccl_below(surroundings.version(substring(comparison, 5, -1)))
}

# beyond is true of a pair of GPUs that is farther apart than a level.
beyond(pair, level) if {
	pair.nvlinks == 0
	nccl_values.place(variables.path_levels[pair.path]) > level
}
