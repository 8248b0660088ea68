# The first row of the table of variables that matches the setting in force, its severity on this machine, and how
# NCCL reads values.
package gpudoctor.lib.setting_rows

import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.peer_access
import data.gpudoctor.lib.rdma
import data.gpudoctor.lib.surroundings
import data.tables.variables

# decisive is the first row that fits a variable.
decisive(name) := variables.rows[min(fitting[name])]

fitting[name] := {i | some i in matching(name, trim_space(v.value)); not unsaid(variables.rows[i])} if {
	some name, v in facts.variable
	trim_space(v.value) != ""
}

# decisive_for is the first row that fits another value of a variable than the one in force, which one of several
# containers sets. Rows that need a message do not fit it.
decisive_for(name, value) := variables.rows[min({i | some i in matching(name, value); not variables.rows[i].said})]

matching(name, value) := {i | some i in variables.of[name]; applies(variables.rows[i], value)}

applies(row, value) if {
	fits(row, value)
	every circumstance in object.get(row, "when", []) {
		holds(circumstance, value)
	}
	count([c | some c in row.unless; holds(c, value)]) == 0
}

unsaid(row) if count(logs.messages(row.said)) == 0

fits(row, value) if number(value) in row.is
fits(row, value) if number(value) <= row.at_most
fits(row, value) if lower(value) in row.text
fits(row, value) if regex.match(row.like, value)

fits(row, value) if {
	not startswith(value, "^")
	count({trim_space(word) | some word in split(lower(value), ",")} & {word | some word in row.lacks}) == 0
	row.lacks
}

fits(row, _) if count(object.keys(row) & {"is", "at_most", "text", "like", "lacks"}) == 0

# weighed is a row's severity, except for a setting that a log or a listing shows without any complaint: it was chosen
# for that run, which succeeded, and its cost there is not known.
weighed(row, v) := "low" if {
	severity(row) in {"critical", "high", "medium"}
	chosen(row, v)
} else := severity(row)

chosen(row, v) if {
	not input.profile == "launch"
	not row.said
	some t in input.texts
	t.name == v.source
	count(logs.complaints) == 0
	count(benchmarks.low) == 0
}

# severity of a row; one that goes by loss is high where more than half of the bandwidth is lost, or what is lost was
# not measured.
severity(row) := row.severity if {
	row.severity != "by-loss"
} else := "medium" if {
	peer_access.share_lost <= 0.5
} else := "high"

# shown is a value as messages write it: a long one is cut.
shown(value) := regex.replace(value, "(?s)^(.{60}).+", "$1...")

# word is true of a value that stands where NCCL reads a number, which it takes for 0.
word(value) if lower(trim_space(value)) in {"true", "yes", "on", "y", "t", "enable", "enabled", "auto", "default"}

# number reads a value as strtoll does: as much of a number as it begins with, and 0 for a word (nccl
# src/misc/param.cc). Hexadecimal numbers are not compared.
number(value) := to_number(regex.replace(digits[0], `^\+?(-?)0*([0-9])`, "$1$2")) if {
	digits := regex.find_n(`^[+-]?[0-9]{1,15}`, value, 1)
	count(digits) == 1
	not regex.match(`^[+-]?0[xX]`, value)
} else := 0 if regex.match("^[^0-9+-]", value)

# place is the position of a level in the order of distance.
place(value) := min([i | some i, level in variables.levels; level == value])

# words_known is true of a list as NCCL_ALGO takes it ("^tree", or "allreduce:ring,tree;broadcast:ring"), all of whose
# words are known.
words_known(value, known) if {
	every word in regex.split(`[;,]`, regex.replace(lower(value), `(^|;)[a-z]*:`, "$1")) {
		trim_left(word, "^") in known
	}
}

# holds is true of a circumstance that a row names in when or unless and that is known to be so. Some look at the value.
holds("image", _) if surroundings.image

# A stage of a Dockerfile is judged: its settings are the image's own.
holds(name, _) if {
	name in {"image", "image-judged"}
	input.profile == "launch"
	some l in input.launches
	l.kind == "dockerfile"
}

# image-judged is true only where it was asked for, and a variable is the image's own: a container without GPUs may have
# its variables from its launch, and on a machine with GPUs, the container runtime sets some while an image is built.
holds("image-judged", _) if {
	input.profile == "image"
	input.image
}

holds("image-judged", _) if {
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
holds("p2p-off", _) if number(facts.env.NCCL_P2P_DISABLE) == 1
holds("p2p-off", _) if facts.env.NCCL_P2P_LEVEL in {"LOC", "0"}
holds("nvlink", _) if surroundings.nvlinked

# A benchmark between GPUs that NVLinks join, by their model, and that are far below what these carry.
holds("nvlink", _) if startswith(benchmarks.low[_][_].basis, "the NVLinks of ")
holds("all-nvlink", _) if surroundings.all_nvlinked
holds("multicast", _) if surroundings.multicast
holds("rdma", _) if count(surroundings.rdma_nics) > 0
holds("rdma", _) if count(surroundings.rdma_nodes) > 0

# A port that a text shows as up is as good as its adapter in the PCI tree.
holds("rdma", _) if true in {p.netdev_up | some p in input.nics.rdma}
holds("rdma", _) if "active" in {p.state | some p in input.nics.rdma}
holds("rdma-nodes-hidden", _) if rdma.nodes_hidden
holds("over-sockets", _) if "Socket" in {t.network | some t in input.logs.transports}
holds("infiniband", _) if count(surroundings.infiniband_nics) > 0
holds("many-nics", _) if count(surroundings.rdma_nics) > 10
holds("efa", _) if count(surroundings.efa_devices) > 0

# libfabric's provider for Slingshot, from the plugin's messages or settings.
holds("cxi", _) if strings.any_prefix_match({m.fields.provider | some m in logs.by_id["ofi-provider"]}, "cxi")
holds("cxi", _) if strings.any_prefix_match(input.nics.providers, "cxi")
holds("cxi", _) if startswith(facts.env.FI_PROVIDER, "cxi")
holds("nvidia", _) if surroundings.has_nvidia
holds("amd", _) if surroundings.has_amd
holds("guest", _) if facts.is_guest
holds("cause-said", _) if logs.cause_said
holds("virtual-topology", _) if input.links.virtual_topology

holds("no-plugin", _) if {
	is_array(input.libraries.files)
	not "nccl-net" in {l.kind | some l in input.libraries.files}
}

holds("zero", value) if number(value) == 0
holds("unset-number", value) if number(value) <= 0
holds("level-known", value) if value in variables.levels

holds("level-excludes-all", value) if {
	count(facts.gpu_pairs) > 0
	every p in facts.gpu_pairs {
		p.nvlinks == 0
		place(variables.path_levels[p.path]) > place(value)
	}
}

holds("protocols-known", value) if words_known(value, variables.protocols)
holds("algorithms-known", value) if words_known(value, variables.algorithms)

holds(comparison, _) if surroundings.nccl_at_least(surroundings.version(trim_prefix(comparison, "nccl>=")))
holds(comparison, _) if surroundings.nccl_below(surroundings.version(trim_prefix(comparison, "nccl<")))
