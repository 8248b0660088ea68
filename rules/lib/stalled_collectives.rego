# METADATA
# title: Collectives that do not start or do not end
# description: >-
#   What logs, benchmarks and trials show about them, on one machine where the
#   path between the GPUs is PCIe, and what rules out peer access as the cause.
package gpudoctor.lib.stalled_collectives

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.trials as control_runs
import data.tables.limits

# compared are two runs of one benchmark: the one does not end, and the other, with
# peer access disabled, does. That is the check that NVIDIA recommends first. If runs are
# distinguished, the rule control-experiment judges them.
compared contains b if {
	not input.runs
	some b in benchmarks.of.collective
	b.complete == false
	count(benchmarks.points(b)) == 0
	b.ranks > 1
	count(moved) > 0
	count(switched_off) > 0
}

# on_pcie is true on one machine of NVIDIA GPUs where a matrix shows PCIe between
# them, or the model is a card, and nothing shows an NVLink.
on_pcie if {
	over_pcie
	not networks.multi_node
	not amd.present
	not nvlink_shown
}

over_pcie if peers.over_pcie

over_pcie if {
	some m in gpu_models.model
	m.form == "card"
	not m.nvlink == "pair"
}

nvlink_shown if {
	some p in facts.gpu_pairs
	peers.joined(p) == "nvlink"
}

nvlink_shown if {
	some g in input.gpus.devices
	count(object.get(g, "nvlinks", [])) > 0
}

# ended_early are the communicators between GeForce cards whose log ends with them, as
# when a collective never ends. Drivers 525 to 535 offered peer access between Ada cards
# that does not work (NVIDIA/nccl-tests issue 117), and modified drivers offer it on
# platforms that lose data.
ended_early contains c if {
	some c in input.logs.communicators
	c.library == "nccl"
	count(newer_geforce) > 1
	not excluded
	count(switched_off) == 0
}

newer_geforce := {g |
	some g in input.gpus.devices
	model := gpu_models.model[g.name]
	model.geforce
	model.architecture in {"ada", "blackwell"}
}

# excluded is true where a log states a cause, collectives ran (a table with values), a
# transport shows that peer access is not used, or a job fails just as well without it.
excluded if {
	some m in logs.complaints
	m.role == "cause"
}

excluded if count(moved) > 0

excluded if "p2p-broken-platform" in control_runs.cleared

excluded if {
	some t in input.logs.transports
	t.kind in {"shm", "net", "collnet"}
}

moved contains b if {
	some b in benchmarks.of.collective
	count(benchmarks.points(b)) > 0
}

switched_off := {v |
	some v in input.env.variables
	v.name == "NCCL_P2P_DISABLE"
	v.value == "1"
}

# unmoved are the signs that a job's very first collective never ended: the first
# number of a process group at the watchdog, none completed when it gave up, or
# vLLM's workers that do not answer while their GPUs compute without end.
unmoved contains m if {
	some [id, field, value] in [["torch-watchdog-timeout", "seq", "1"], ["torch-work-status", "completed", "-1"]]
	some m in logs.by_id[id]
	m.fields[field] == value
}

unmoved contains m if {
	some m in logs.by_id["vllm-workers-stuck"]
	spinning
}

# spinning is true where all GPUs are shown busy: the kernels of a collective wait
# in a loop, so that its ranks have come to it, and none is late or still loads.
spinning if {
	count(input.gpus.devices) > 1
	every g in input.gpus.devices {
		g.utilization_percent >= limits.spinning_percent
	}
}

# trials are command lines that disable peer access, with no complaint after them in their
# text: a user tested the difference.
trials contains l if {
	some l in input.launches
	l.variables.NCCL_P2P_DISABLE == "1"
	count({m | some m in logs.complaints; m.source == l.source; m.line > l.line}) == 0
}

# served_then is true where such a trial came as far as to answer.
served_then if {
	some l in trials
	some m in logs.by_id["server-ready"]
	m.source == l.source
	m.line > l.line
}

# kept_off is true if peer access was also off in the run that failed.
kept_off if {
	some v in input.env.variables
	v.name in {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"}
	v.value in {"1", "LOC"}
	count({l | some l in trials; l.source == v.source; l.line == v.line}) == 0
}
