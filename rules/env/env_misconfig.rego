# METADATA
# title: A variable is misconfigured or left over
# description: >-
#   Variables of NCCL, RCCL, PyTorch, UCX, libfabric, NVSHMEM, CUDA and HIP control how GPUs communicate. A setting made
#   for another machine, for a fault that is gone, or for a library that has since renamed it costs bandwidth or has no
#   effect. Settings may also come from /etc/nccl.conf or ~/.nccl.conf.
# related_resources:
#   - {ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html, description: What each NCCL variable does}
#   - {ref: https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html, description: Variables of PyTorch's process group}
#   - {ref: https://github.com/NVIDIA/nccl/blob/v2.30.7-1/src/misc/param.cc, description: How NCCL reads its variables}
# custom:
#   severity: low
#   confidence: likely
#   needs: [env.variables]
#   remedies: [unset-env, set-socket-ifname, set-ib-hca, set-net-gdr-level, nccl-p2p-level, install-ofi-plugin, pass-rdma-devices, disable-custom-all-reduce, correct-launch, fix-application, other]
#   explains: [restricts > collective-slow, differs > nccl-version-mismatch, differs > wrong-nic/intruder,
#     differs > collective-hang, differs > app-mismatch/waited, differs > failure-area, differs > job-failed,
#     ucx-differs > ipc-namespace, ucx-differs > wrong-nic, ucx-differs > job-failed]
#   since: "0.1"
#   grades:
#     setting: "{subject}={value}, set {where}, {why}[: {loss}][ (measured here: {measured})][ (NCCL reads a number here, and treats {word} as 0)]"
#     measured: >-
#       {settings:comma}: all-reduce runs at {gbps} GB/s as the environment is configured, and at {without} GB/s
#       without, measured here
#     loopback:
#       severity: critical
#       confidence: possible
#       remedies: [unset-env]
#       text: >-
#         The job runs on several machines, but ranks try to connect to {address}, which the others cannot reach: {said}.
#         A host name may resolve to it through /etc/hosts, as 127.0.1.1 does on Debian and Ubuntu
#     unmet:
#       severity: critical
#       remedies: [unset-env]
#       text: >-
#         The job has one node, but its ranks cannot reach the rendezvous address: {said}. MASTER_ADDR (--master_addr,
#         --rdzv_endpoint) must be an address of this machine, such as 127.0.0.1
#     differs:
#       severity: critical
#       remedies: [unset-env]
#       text: >-
#         The ranks of one communicator differ in {values:comma}, but they must agree on it
#     ucx-differs:
#       severity: critical
#       remedies: [unset-env, correct-launch]
#       text: >-
#         The ranks were started with different lists in {subject} ({values}), and UCX finds no transport between two of them: they
#         need one in common
#     word: "{subject}={value}, set {where}, is a word, but NCCL reads a number: the value counts as 0"
#     misspelt: {confidence: possible, text: "{subject}={value|}, set {where}, is not a known variable; did you mean {meant}?"}
package gpudoctor.rules.env_misconfig

import data.gpudoctor.lib.collective_cost
import data.gpudoctor.lib.connections
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.peer_access
import data.gpudoctor.lib.restricting_settings
import data.gpudoctor.lib.setting_rows
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.variable_names
import data.tables.variables

finding(grade, name, fields) := object.union(
	{
		"grade": grade,
		"subject": name,
		"about": {"value": setting_rows.shown(v.value), "where": surroundings.where(v)},
		"evidence": [surroundings.variable_evidence(v)],
		"remedies": ["unset-env"],
		"params": {"variable": name, "source": variables.guide},
	},
	fields,
) if v := facts.variable[name]

findings contains object.union_n([
	finding("setting", name, {
		"about": {
			"why": row.why,
			"loss": [loss | loss := variables.losses[row.loss]],
			"measured": [peer_access.measured | row.measured],
			"word": [v.value | row.is; regex.match(`^[a-zA-Z]`, v.value)],
		},
		"severity": setting_rows.weighed(row, v),
		"confidence": row.confidence,
		"evidence": array.concat(
			[surroundings.variable_evidence(v)],
			[{"fact": "transfers.transfers", "value": peer_access.measured, "source": "probe"} | row.measured],
		),
		"messages": logs.messages(object.get(row, "said", [])),
		"remedies": object.get(row, "remedies", ["unset-env"]),
		"params": object.filter(row, ["source", "level"]),
	}),
	{"id": "restricts" | name in restricting_settings.in_force; not row.inert},
	{"params": {"effect": "none"} | row.inert},
]) if {
	some name, v in facts.variable
	row := setting_rows.decisive(name)
	not row.silent
	not costed(name)
}

# costed is true of a variable that the measurement of collectives speaks about, where the table does not weigh it by
# what transfers lose.
costed(name) if {
	name in collective_cost.slower.variables
	not by_loss(name)
}

by_loss(name) if setting_rows.decisive(name).severity == "by-loss"

# What is set for a reason costs what it costs.
meant(name) if setting_rows.decisive(name).silent

findings contains {
	"id": "restricts",
	"grade": "measured",
	"subject": facts.list({name | some name in slower.variables}),
	"about": {
		"settings": [sprintf("%s=%s", [name, setting_rows.shown(facts.env[name])]) | some name in slower.variables],
		"gbps": peer_access.rate(slower.gbps),
		"without": peer_access.rate(slower.without_gbps),
	},
	"evidence": array.flatten([
		[surroundings.variable_evidence(facts.variable[name]) | some name in slower.variables],
		{"fact": "collectives.arms", "value": object.remove(slower, ["lost"]), "source": "probe"},
	]),
	"severity": {true: "high", false: "medium"}[slower.lost > 0.5],
	"confidence": "confirmed",
	"remedies": ["unset-env"],
	"params": {"variables": slower.variables, "source": variables.guide},
} if {
	slower := collective_cost.slower
	every name in slower.variables {
		facts.variable[name]
		not by_loss(name)
		not meant(name)
	}
}

findings contains {
	"grade": grade,
	"subject": variable,
	"about": {"address": address, "said": m.text},
	"messages": {m},
	"params": {"variable": variable, "source": "https://docs.pytorch.org/docs/stable/elastic/run.html"},
} if some [grade, variable, address, m] in unmet

# Connections of a job over several machines to a rendezvous address on the machine itself: each machine reaches only
# its own ranks there.
unmet contains ["loopback", {"pytorch": "MASTER_ADDR", "ray": "RAY_ADDRESS"}[f.message.program], f.remote, f.message] if {
	f := connections.earliest({f | some f in connections.at_meeting; networks.loopback(f.remote)})
}

# The store at MASTER_ADDR was not reached, where the job has one node: then that address is this machine's own.
unmet contains ["unmet", "MASTER_ADDR", "", logs.first(elsewhere)] if {
	not networks.multi_node
	some l in input.launches
	l.kind in {"torchrun", "command"}
	l.nodes == 1
	elsewhere := {m |
		some m in logs.messages({"torch-store-connect-failed", "torch-store-timed-out"})
		some name in ["host", "any_host"]
		address := m.fields[name]
		not regex.match(`^(?:localhost|::1$|(?:::ffff:)?127\.\d)`, address)
	}
}

# Ranks whose logs show that they were started with other settings, where the job failed and no rank died of its own.
findings contains {
	"id": "differs",
	"grade": "differs",
	"subject": facts.list({u.name | some u in differing}),
	"about": {"values": [of_ranks(u) | some u in differing]},
	"evidence": [{"fact": "logs.unequal", "value": sprintf("%s=%s", [u.name, v.value]), "source": logs.at(v)} | some u in differing; some v in u.values; v.set],
	"params": {"variables": [u.name | some u in differing], "source": variables.guide},
	"order": logs.first(logs.complaints).order,
} if {
	count(differing) > 0
	logs.failed
	not logs.rank_failed
	not "timed-out" in {f.kind | some f in connections.hard_failures} # A host answers whatever NCCL's settings are.
}

# What UCX read differs between processes, and two of them have no transport in common.
findings contains {
	"id": "ucx-differs",
	"grade": "ucx-differs",
	"subject": name,
	"about": {"values": concat("; ", sort(lists))},
	"messages": (logs.by_id["ucx-variables"] | unreached),
	"params": {"variable": name, "source": variables.guide},
} if {
	some name in ["UCX_TLS", "UCX_NET_DEVICES"]
	lists := {value |
		some m in logs.by_id["ucx-variables"]
		some part in split(m.fields.list, " ")
		startswith(part, sprintf("%s=", [name]))
		value := substring(part, count(name) + 1, -1)
	}
	count(lists) > 1
	unreached := logs.messages({"ucx-unreachable", "ucx-local-only", "openmpi-unreachable"})
	count(unreached) > 0
}

differing := [u | some u in input.logs.unequal; u.name in variables.joint]

of_ranks(u) := sprintf("%s (%s)", [u.name, concat(", ", [sprintf("%s on rank %d", [object.get(v, "value", "not set"), v.rank]) |
	some v in u.values
])])

findings contains finding("word", name, {}) if {
	some name in ({name | some name, "number" in variables.known} | {"NCCL_P2P_DISABLE"})
	setting_rows.word(facts.env[name])
	not setting_rows.fitting[name]
}

findings contains finding("misspelt", name, {"about": {"meant": meant}, "params": {"meant": meant, "effect": "none"}}) if {
	some name, _ in facts.variable
	variable_names.unknown(name)
	meant := variable_names.meaning(name)
}

# It decides whether there is NVLink multicast, which the variable disables.
asks contains "gpus.devices[].compute_capability" if {
	some row in variables.rows
	"multicast" in row.when
	some name in row.names
	setting_rows.fits(row, trim_space(facts.variable[name].value))
	not facts.only_amd
}

not_applicable contains "no variable of a communication library is set" if count(input.env.variables) == 0
