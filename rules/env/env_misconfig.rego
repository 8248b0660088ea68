# METADATA
# title: A variable is set wrongly or left over
# description: >-
#   Variables of NCCL, RCCL, PyTorch, UCX, libfabric, NVSHMEM, CUDA and HIP steer
#   how GPUs talk to each other. Settings that were made for another machine, as
#   a workaround for a fault that is gone, or for a library that has renamed
#   them, cost bandwidth or do nothing. They may also hide in /etc/nccl.conf or
#   ~/.nccl.conf.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
#     description: What each variable of NCCL does; those for tuning and debugging are not for production
#   - ref: https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html
#     description: Variables of PyTorch's process group
#   - ref: https://github.com/NVIDIA/nccl/blob/v2.30.7-1/src/misc/param.cc
#     description: How NCCL reads its variables
# schemas:
#   - input: schema.facts
# custom:
#   severity: low
#   confidence: likely
#   needs:
#     - env.variables
#   remedies: [unset-env, set-socket-ifname, set-ib-hca, set-net-gdr-level, nccl-p2p-level, install-ofi-plugin, pass-rdma-devices, disable-custom-all-reduce, other]
#   since: "0.1"
package gpudoctor.rules.env_misconfig

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.rdma
import data.gpudoctor.lib.surroundings
import data.tables.variables

# What the table says of a setting.
findings contains object.union(finding(name, v, row), when_said(row)) if {
	some name, v in facts.variable
	row := decisive(name)
	not row.silent
}

finding(name, v, row) := {
	"subject": name,
	"message": sprintf("%s=%s, set %s, %s%s%s", [name, shown(v.value), surroundings.where(v), why(row), figures(row), word_remark(row, v.value)]),
	"severity": weighed(row, v),
	"confidence": row.confidence,
	"evidence": array.concat([surroundings.variable_evidence(v)], array.concat(proofs(row), said(row))),
	"remedies": object.get(row, "remedies", ["unset-env"]),
	"params": object.union(
		{"variable": name, "source": object.get(row, "source", variables.guide)},
		object.union(object.filter(row, ["level"]), effect(row)),
	),
}

# why is what a setting does, with what that costs where the table says it.
why(row) := sprintf("%s: %s", [row.why, variables.losses[row.loss]]) if {
	row.loss
} else := row.why

# effect marks a setting that does nothing: those that do something come first.
effect(row) := {"effect": "none"} if {
	row.inert
} else := {}

# said are the messages that a row asks for, as evidence, and when_said is where
# the first of them stands.
said(row) := array.slice(logs.all_evidence(logs.messages(row.said)), 0, 3) if {
	row.said
} else := []

when_said(row) := {"order": logs.first(logs.messages(row.said)).order} if {
	row.said
} else := {}

# unmet are the messages that the store at MASTER_ADDR was not reached, where
# the job has one node: then that address is this machine's own.
unmet := {m |
	some m in logs.messages({"torch-store-connect-failed", "torch-store-timed-out"})
	some name in ["host", "any_host"]
	address := m.fields[name]
	not regex.match(`^(?:localhost|::1$|(?:::ffff:)?127\.\d)`, address)
	some l in input.launches
	l.kind in {"torchrun", "command"}
	l.nodes == 1
	not several_nodes
}

several_nodes if {
	some l in input.launches
	l.nodes > 1
}

findings contains {
	"subject": "MASTER_ADDR",
	"message": sprintf("The job has one node, and its ranks do not reach the address that they were given to meet at: %s. MASTER_ADDR (--master_addr, --rdzv_endpoint) must be one of this machine, as 127.0.0.1 is", [logs.first(unmet).text]),
	"severity": "critical",
	"confidence": "likely",
	"messages": {logs.first(unmet)},
	"remedies": ["unset-env"],
	"params": {"variable": "MASTER_ADDR", "source": "https://docs.pytorch.org/docs/stable/elastic/run.html"},
} if {
	count(unmet) > 0
}

# decisive is the first row that fits a variable.
decisive(name) := variables.rows[min(fitting[name])]

fitting[name] contains i if {
	some i, row in variables.rows
	some name in row.names
	value := trim_space(facts.variable[name].value)
	value != ""
	fits(row, value)
	every circumstance in object.get(row, "when", []) {
		holds(circumstance, value)
	}
	not excepted(row, value)
	not unsaid(row)
}

unsaid(row) if {
	row.said
	count(logs.messages(row.said)) == 0
}

excepted(row, value) if {
	some circumstance in row.unless
	holds(circumstance, value)
}

# fits compares the value.
fits(row, value) if number(value) in row.is

fits(row, value) if number(value) <= row.at_most

fits(row, value) if lower(value) in row.text

fits(row, value) if regex.match(row.like, value)

fits(row, value) if {
	row.lacks
	not startswith(value, "^")
	words := {trim_space(w) | some w in split(lower(value), ",")}
	count(words & {w | some w in row.lacks}) == 0
}

fits(row, _) if count(object.keys(row) & {"is", "at_most", "text", "like", "lacks"}) == 0

# number reads a value as strtoll does: as much of a number as it begins with,
# and 0 for a word (nccl src/misc/param.cc). Hexadecimal numbers are not
# compared.
number(value) := to_number(regex.replace(digits[0], `^\+?(-?)0*([0-9])`, "$1$2")) if {
	digits := regex.find_n(`^[+-]?[0-9]{1,15}`, value, 1)
	count(digits) == 1
	not regex.match(`^[+-]?0[xX]`, value)
} else := 0 if {
	regex.match(`^[^0-9+-]`, value)
}

# holds is true of a circumstance that is known to be so. Some look at the value.
holds("image", _) if surroundings.image

holds("one-gpu", _) if {
	count(surroundings.usable) == 1
	surroundings.on_host == 1
}

holds("p2p-proven", _) if surroundings.p2p_proven

holds("p2p-broken", _) if surroundings.p2p_broken

holds("p2p-slow", _) if surroundings.p2p_slow

holds("staged-slower", _) if surroundings.staged_slower

holds("staged-faster", _) if surroundings.staged_faster

holds("p2p-refused", _) if surroundings.p2p_refused

holds("p2p-off", _) if number(facts.env.NCCL_P2P_DISABLE) == 1

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

# libfabric's provider for Slingshot, by what the plugin says or is told.
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

holds("zero", value) if number(value) == 0

holds("unset-number", value) if number(value) <= 0

holds("level-known", value) if value in variables.levels

holds("level-excludes-all", value) if {
	count(facts.gpu_pairs) > 0
	every p in facts.gpu_pairs {
		beyond(p, place(value))
	}
}

holds("protocols-known", value) if words_known(value, variables.protocols)

holds("algorithms-known", value) if words_known(value, variables.algorithms)

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
	place(variables.path_levels[pair.path]) > level
}

# place is where a level stands in the order of distance.
place(value) := min([i | some i, level in variables.levels; level == value])

place(value) := place_of_number(value) if regex.match(`^[0-9]`, value)

place_of_number(value) := min([i |
	some i, level in variables.levels
	level == variables.old_levels[min([number(value), count(variables.old_levels) - 1])]
])

# words_known is true of a list as NCCL_ALGO takes it ("^tree", or
# "allreduce:ring,tree;broadcast:ring"), all of whose words are known.
words_known(value, known) if {
	every part in split(lower(value), ";") {
		list := regex.replace(part, `^[a-z]*:`, "")
		every word in split(trim_left(list, "^"), ",") {
			word in known
		}
	}
}

# weighed is a row's severity, but for a setting that a log or a listing shows
# and nothing complains of: somebody chose it for that run, which went well, and
# what it costs there is not known.
weighed(row, v) := "low" if {
	severity(row) in {"critical", "high", "medium"}
	chosen(row, v)
} else := severity(row)

chosen(row, v) if {
	not row.said
	some t in input.texts
	t.name == v.source
	count(logs.complaints) == 0
	count(slow) == 0
}

# slow are the values of benchmarks below what the links allow.
slow := {p |
	some b in input.benchmarks
	some p in b.points
	p.gbps < p.expected_gbps * p.threshold
}

# severity of a row; one that goes by loss is high where more than half of the
# bandwidth is lost, or what is lost was not measured.
severity(row) := row.severity if {
	row.severity != "by-loss"
} else := "medium" if {
	surroundings.share_lost <= 0.5
} else := "high"

figures(row) := sprintf(" (measured here: %s)", [surroundings.measured]) if {
	row.measured
} else := ""

# word_remark explains why a word is taken for 0.
word_remark(row, value) := " (NCCL reads a number here, and takes a word for 0)" if {
	row.is
	regex.match(`^[a-zA-Z]`, value)
} else := ""

proofs(row) := [{
	"fact": "transfers.transfers",
	"value": surroundings.measured,
	"source": "probe",
}] if {
	row.measured
} else := []

# shown is a value in a message; an empty or long one is made readable.
shown(value) := sprintf("%s...", [substring(value, 0, 60)]) if {
	count(value) > 60
} else := value

unequal := {m | some m in logs.by_id["nccl-diag-environment"]; m.fields.variable in variables.joint}

findings contains {
	"subject": facts.list({m.fields.variable | some m in unequal}),
	"message": sprintf("By NCCL's diagnostics the ranks of one job have different values of %s, by which they have to agree on how data moves: collectives can hang or fail", [facts.list({m.fields.variable | some m in unequal})]),
	"severity": "medium",
	"confidence": "likely",
	"evidence": array.slice(logs.all_evidence(unequal), 0, 6),
	"remedies": ["unset-env"],
	"params": {"variable": logs.first(unequal).fields.variable, "source": variables.guide},
	"order": logs.first(unequal).order,
} if {
	count(unequal) > 0
}

# The framework's own all-reduce failed with what expandable segments make it
# fail with, and the variable is not known.
findings contains {
	"subject": "PYTORCH_CUDA_ALLOC_CONF",
	"message": "The framework's own all-reduce could not share memory between processes. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True does that; whether it is set is not known here",
	"severity": "medium",
	"confidence": "possible",
	"messages": {m},
	"remedies": ["disable-custom-all-reduce", "unset-env"],
	"params": {"variable": "PYTORCH_CUDA_ALLOC_CONF", "source": "https://github.com/vllm-project/vllm/issues/42609"},
} if {
	m := logs.first({m | some m in logs.by_id["vllm-custom-all-reduce-failed"]; m.fields.error == "invalid argument"})
	every name in ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"] {
		not facts.env[name]
	}
}

# A word where NCCL reads a number counts as 0, whatever it says.
findings contains {
	"subject": name,
	"message": sprintf("%s=%s, set %s, is a word where NCCL reads a number: it counts as 0", [name, shown(v.value), surroundings.where(v)]),
	"severity": "low",
	"confidence": "likely",
	"evidence": [surroundings.variable_evidence(v)],
	"remedies": ["unset-env"],
	"params": {"variable": name, "source": variables.guide},
} if {
	some name, v in facts.variable
	a_number(name)
	lower(trim_space(v.value)) in {"true", "yes", "on", "y", "t", "enable", "enabled", "auto", "default"}
	not decided(name)
}

a_number(name) if variables.known[name] == "number"

a_number("NCCL_P2P_DISABLE")

decided(name) if fitting[name]

# A name that no library reads, and that looks like one that is read.
findings contains {
	"subject": name,
	"message": sprintf("%s=%s, set %s, is read by nothing; %s is meant, it seems", [name, shown(v.value), surroundings.where(v), meant]),
	"severity": "low",
	"confidence": "possible",
	"evidence": [surroundings.variable_evidence(v)],
	"remedies": ["unset-env"],
	"params": {"variable": name, "meant": meant, "effect": "none", "source": variables.guide},
} if {
	some name, v in facts.variable
	unknown_name(name)
	meant := meaning(name)
}

unknown_name(name) if {
	startswith(name, "NCCL_")
	not variables.known[name]
	not name in judged_names
}

judged_names := {name | some row in variables.rows; some name in row.names}

# meaning is the variable that a wrong name stands for: one of the table of
# misspellings, one with the same words in another order, or one that differs
# by one letter.
meaning(name) := variables.misspelt[name] if {
	true
} else := min(same_words(name)) if {
	count(same_words(name)) > 0
} else := min(one_letter_off(name)) if {
	count(one_letter_off(name)) > 0
}

same_words(name) := object.get(by_words, [sorted_words(name)], set())

by_words[sorted_words(k)] contains k if some k, _ in variables.known

sorted_words(name) := sort(split(name, "_"))

# Two names differ by one letter that is missing, added or wrong, when they
# share what is left after leaving out one letter, or one is what is left of
# the other.
one_letter_off(name) := {k |
	some length in numbers.range(count(name) - 1, count(name) + 1)
	some k in by_length[length]
	count((shortened(k) | {k}) & (shortened(name) | {name})) > 0
}

by_length[count(k)] contains k if some k, _ in variables.known

shortened(name) := {concat("", [substring(name, 0, i), substring(name, i + 1, -1)]) |
	some i in numbers.range(5, count(name) - 1)
}

missing contains {"fact": "env", "words": "variables were not read"} if {
	not input.env
	count(findings) == 0
}

missing contains {"fact": "gpus.devices[].compute_capability", "words": sprintf("whether there is NVLink multicast, which %s takes away, is not known", [name])} if {
	some row in variables.rows
	"multicast" in row.when
	some name in row.names
	fits(row, trim_space(facts.variable[name].value))
	not multicast_known
}

multicast_known if count(facts.gpus) == 0

multicast_known if facts.only_amd

multicast_known if {
	some g in facts.named
	g.compute_capability != ""
}

not_applicable contains "no variable of a communication library is set" if {
	is_array(input.env.variables)
	count(input.env.variables) == 0
}

# UCX finds no transport, and was told which it may use. UCX_NET_DEVICES holds
# for all networks, TCP included, and UCX needs one with messages even to reach
# itself (sgl-project/sglang pull 40641).
findings contains {
	"subject": name,
	"message": sprintf("%s=%s, and UCX finds no transport between two of its ends: the list leaves out what UCX needs for its messages (tcp with an interface such as lo or eth0, or a device that reaches the peer)", [name, shown(facts.env[name])]),
	"severity": "high",
	"confidence": "likely",
	"evidence": [surroundings.variable_evidence(facts.variable[name])],
	"messages": {m},
	"remedies": ["unset-env", "other"],
	"params": {"variable": name, "source": "https://openucx.readthedocs.io/en/master/faq.html"},
} if {
	m := logs.first({m | some m in logs.by_id["ucx-unreachable"]; m.fields.level == "ERROR"})
	some name in ["UCX_NET_DEVICES", "UCX_TLS"]
	not trim_space(facts.env[name]) in {"", "all"}
}

# Settings of RoCE on InfiniBand, whose queue pairs have no GRH to put them into
# unless a program asks for one (NVIDIA/nvshmem issue 45).
findings contains {
	"subject": name,
	"message": sprintf("%s=%s is a setting for RoCE, and only InfiniBand is here: a connection between two NICs could not be set up with it", [name, shown(facts.env[name])]),
	"severity": "high",
	"confidence": "possible",
	"evidence": [surroundings.variable_evidence(facts.variable[name])],
	"messages": {m},
	"remedies": ["unset-env"],
	"params": {"variable": name, "source": "https://github.com/NVIDIA/nvshmem/issues/45"},
} if {
	rdma.link == "infiniband"
	m := logs.first(logs.by_id["rdma-modify-qp-failed"])
	some name in ["NVSHMEM_IB_TRAFFIC_CLASS", "NVSHMEM_IB_GID_INDEX", "UCX_IB_GID_INDEX", "UCX_IB_TRAFFIC_CLASS", "MC_GID_INDEX"]
	number(trim_space(facts.env[name])) > 0
}
