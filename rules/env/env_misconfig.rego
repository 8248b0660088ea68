# METADATA
# title: A variable is misconfigured or left over
# description: >-
#   Variables of NCCL, RCCL, PyTorch, UCX, libfabric, NVSHMEM, CUDA and HIP
#   control how GPUs communicate. A setting made for another machine, for a
#   fault that is gone, or for a library that has since renamed it costs
#   bandwidth or has no effect. Settings may also come from /etc/nccl.conf or
#   ~/.nccl.conf.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
#     description: What each NCCL variable does; tuning and debugging variables are not for production
#   - ref: https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html
#     description: Variables of PyTorch's process group
#   - ref: https://github.com/NVIDIA/nccl/blob/v2.30.7-1/src/misc/param.cc
#     description: How NCCL reads its variables
# custom:
#   severity: low
#   confidence: likely
#   needs:
#     - env.variables
#   remedies: [unset-env, set-socket-ifname, set-ib-hca, set-net-gdr-level, nccl-p2p-level, install-ofi-plugin, pass-rdma-devices, disable-custom-all-reduce, other]
#   explains: [restricts > collective-slow]
#   since: "0.1"
package gpudoctor.rules.env_misconfig

import data.gpudoctor.lib.connections
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.nccl_values
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.peer_access
import data.gpudoctor.lib.rdma
import data.gpudoctor.lib.restricting_settings
import data.gpudoctor.lib.setting_costs
import data.gpudoctor.lib.setting_rows
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.variable_names
import data.tables.variables

# What the table says of a setting.
findings contains object.union(object.union(finding(name, v, row), when_said(row)), restricting_settings.kind(name, row)) if {
	some name, v in facts.variable
	row := setting_rows.decisive(name)
	not row.silent
	not setting_costs.told(name)
}

findings contains found if some found in setting_costs.measured

finding(name, v, row) := {
	"subject": name,
	"message": sprintf("%s=%s, set %s, %s%s%s", [name, setting_costs.shown(v.value), surroundings.where(v), why(row), figures(row), setting_rows.word_remark(row, v.value)]),
	"severity": setting_rows.weighed(row, v),
	"confidence": row.confidence,
	"evidence": array.concat([surroundings.variable_evidence(v)], array.concat(proofs(row), said(row))),
	"remedies": object.get(row, "remedies", ["unset-env"]),
	"params": object.union(
		{"variable": name, "source": object.get(row, "source", variables.guide)},
		object.union(object.filter(row, ["level"]), effect(row)),
	),
}

# why is the effect of a setting, with its cost if the table has one.
why(row) := sprintf("%s: %s", [row.why, variables.losses[row.loss]]) if {
	row.loss
} else := row.why

# effect marks a setting that does nothing: those that do something come first.
effect(row) := {"effect": "none"} if {
	row.inert
} else := {}

# said are the messages that a row asks for, as evidence, and when_said is the position of
# the first of them.
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
	not networks.multi_node
}

# alone are the connections of a job over several machines to a rendezvous address on the
# machine itself: each machine reaches only its own ranks there.
alone := {f | some f in connections.at_meeting; networks.loopback(f.remote)}

findings contains {
	"subject": variable,
	"message": sprintf("The job runs on several machines, but ranks try to connect to %s, which on each machine is the machine itself: %s. The address must be one that the other machines can reach. A host name may resolve to it through /etc/hosts, as 127.0.1.1 does on Debian and Ubuntu", [f.remote, f.message.text]),
	"severity": "critical",
	"confidence": "possible",
	"messages": {f.message},
	"remedies": ["unset-env"],
	"params": {"variable": variable, "source": "https://docs.pytorch.org/docs/stable/elastic/run.html"},
} if {
	f := connections.earliest(alone)
	variable := {"pytorch": "MASTER_ADDR", "ray": "RAY_ADDRESS"}[f.message.program]
}

findings contains {
	"subject": "MASTER_ADDR",
	"message": sprintf("The job has one node, but its ranks cannot reach the rendezvous address: %s. MASTER_ADDR (--master_addr, --rdzv_endpoint) must be an address of this machine, such as 127.0.0.1", [logs.first(unmet).text]),
	"severity": "critical",
	"confidence": "likely",
	"messages": {logs.first(unmet)},
	"remedies": ["unset-env"],
	"params": {"variable": "MASTER_ADDR", "source": "https://docs.pytorch.org/docs/stable/elastic/run.html"},
} if {
	count(unmet) > 0
}

figures(row) := sprintf(" (measured here: %s)", [peer_access.measured]) if {
	row.measured
} else := ""

proofs(row) := [{
	"fact": "transfers.transfers",
	"value": peer_access.measured,
	"source": "probe",
}] if {
	row.measured
} else := []

unequal := {m | some m in logs.by_id["nccl-diag-environment"]; m.fields.variable in variables.joint}

findings contains {
	"subject": facts.list({m.fields.variable | some m in unequal}),
	"message": sprintf("NCCL's diagnostics report that the ranks of one job have different values of %s, but they must agree on it: otherwise collectives can hang or fail", [facts.list({m.fields.variable | some m in unequal})]),
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
	"message": "The framework's custom all-reduce could not share memory between processes. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True causes this; it is not known whether it is set here",
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

# about has the fields that all findings share on a setting that no row of the table
# judges.
about(name, params) := {
	"subject": name,
	"evidence": [surroundings.variable_evidence(facts.variable[name])],
	"remedies": ["unset-env"],
	"params": object.union({"variable": name, "source": variables.guide}, params),
}

# A word where NCCL reads a number counts as 0, whatever its meaning.
findings contains object.union(about(name, {}), {
	"message": sprintf("%s=%s, set %s, is a word, but NCCL reads a number: the value counts as 0", [name, setting_costs.shown(v.value), surroundings.where(v)]),
	"severity": "low",
	"confidence": "likely",
}) if {
	some name, v in facts.variable
	a_number(name)
	lower(trim_space(v.value)) in {"true", "yes", "on", "y", "t", "enable", "enabled", "auto", "default"}
	not decided(name)
}

a_number(name) if variables.known[name] == "number"

a_number("NCCL_P2P_DISABLE")

decided(name) if setting_rows.fitting[name]

# A name that no library reads, and that looks like one that is read.
findings contains object.union(about(name, {"meant": meant, "effect": "none"}), {
	"message": sprintf("%s=%s, set %s, is not a known variable; did you mean %s?", [name, setting_costs.shown(v.value), surroundings.where(v), meant]),
	"severity": "low",
	"confidence": "possible",
}) if {
	some name, v in facts.variable
	variable_names.unknown(name)
	meant := variable_names.meaning(name)
}

# UCX finds no transport, and was told which it may use. UCX_NET_DEVICES holds
# for all networks, TCP included, and UCX needs one with messages even to reach
# itself (sgl-project/sglang pull 40641).
findings contains object.union(about(name, {"source": "https://openucx.readthedocs.io/en/master/faq.html"}), {
	"message": sprintf("%s=%s, and UCX finds no transport between two of its endpoints: the list excludes what UCX needs for its messages (tcp with an interface such as lo or eth0, or a device that reaches the peer)", [name, setting_costs.shown(facts.env[name])]),
	"severity": "high",
	"confidence": "likely",
	"messages": {m},
	"remedies": ["unset-env", "other"],
}) if {
	m := logs.first({m | some m in logs.by_id["ucx-unreachable"]; m.fields.level == "ERROR"})
	some name in ["UCX_NET_DEVICES", "UCX_TLS"]
	not trim_space(facts.env[name]) in {"", "all"}
}

# Settings of RoCE on InfiniBand, whose queue pairs have no GRH to put them into
# unless a program asks for one (NVIDIA/nvshmem issue 45).
findings contains object.union(about(name, {"source": "https://github.com/NVIDIA/nvshmem/issues/45"}), {
	"message": sprintf("%s=%s is a setting for RoCE, but only InfiniBand is here: a connection between two NICs could not be set up with it", [name, setting_costs.shown(facts.env[name])]),
	"severity": "high",
	"confidence": "possible",
	"messages": {m},
}) if {
	rdma.link == "infiniband"
	m := logs.first(logs.by_id["rdma-modify-qp-failed"])
	some name in ["NVSHMEM_IB_TRAFFIC_CLASS", "NVSHMEM_IB_GID_INDEX", "UCX_IB_GID_INDEX", "UCX_IB_TRAFFIC_CLASS", "MC_GID_INDEX"]
	nccl_values.number(trim_space(facts.env[name])) > 0
}

missing contains {"fact": "env", "words": "variables were not read"} if {
	not input.env
	count(findings) == 0
}

missing contains {"fact": "gpus.devices[].compute_capability", "words": sprintf("it is not known whether there is NVLink multicast, which %s disables", [name])} if {
	some row in variables.rows
	"multicast" in row.when
	some name in row.names
	setting_rows.fits(row, trim_space(facts.variable[name].value))
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
