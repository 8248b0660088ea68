# METADATA
# title: Ranks are out of step
# description: >-
#   All ranks of a communicator must run the same collectives in the same order with data of the same shape, agree on
#   the number of ranks, and each have a unique rank. Otherwise jobs hang, fail or corrupt data on a healthy machine.
# related_resources:
#   - ref: https://docs.pytorch.org/docs/stable/distributed.html#debugging-torch-distributed-applications
#     description: TORCH_DISTRIBUTED_DEBUG=DETAIL compares the collectives of the ranks
#   - {ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/collectives.html, description: Same count and type on each rank}
#   - {ref: https://github.com/NVIDIA/nccl/blob/v2.30.7-1/src/bootstrap.cc, description: Duplicate ranks}
# custom:
#   severity: critical
#   confidence: confirmed
#   texts_only: true
#   needs: [job-told]
#   remedies: [fix-application, correct-launch, nccl-timeout, open-firewall, install-matching-wheels, other]
#   explains: [meeting > firewall, meeting > wrong-nic, left > app-failure/lost, first-twice > env-misconfig/port-taken, launchers > env-misconfig/port-taken, not-started > launch-failed/ended, alone > app-failure]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     slower:
#       severity: high
#       confidence: likely
#       remedies: [fix-application, other]
#       text: >-
#         {who} spends {own_seconds:.3f} s of each step in {part}, which takes the others {others_seconds:.3f} s; they wait for it in
#         {wait} ({wait_seconds:.3f} s). Communication is not slow: that process is late
package gpudoctor.rules.app_mismatch

import data.gpudoctor.lib.collectives
import data.gpudoctor.lib.connections
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.tables.thresholds

# waiting are the operations on which the watchdogs of ranks gave up, by process group and number. Numbers count within
# a group, so that only equal groups are compared; where the line does not name the group, equal numbers may be of
# different ones. Point-to-point operations differ on their two sides as they should.
waiting[[object.get(m.fields, "group", ""), m.fields.seq]] contains m if {
	some m in logs.by_id["torch-watchdog-timeout"]
	m.fields.op in collectives.names
}

findings contains object.union({"subject": "job", "severity": "high", "remedies": ["fix-application"]}, sign) if {
	some sign in signs
}

# The steps of one rank take long in something that takes the others no time, and they wait for it.
findings contains {
	"id": "slower",
	"grade": "slower",
	"subject": "job",
	"about": {"who": who, "part": late.part, "own_seconds": late.own_seconds, "others_seconds": late.others_seconds, "wait": late.wait, "wait_seconds": late.wait_seconds},
	"evidence": [{"fact": "logs.late", "value": late.text, "source": logs.at(late)}],
} if late := input.logs.late

who := sprintf("Rank %d", [input.logs.late.rank]) if {
	is_number(input.logs.late.rank)
} else := sprintf("The process that writes %s", [input.logs.late.source])

signs contains {
	"message": sprintf("Ranks of %s wait in %s. If all are of one group, one has run a step or branch more than the others", [
		collectives.named(group), difference(group, seq, ms),
	]),
	"messages": ms,
	"severity": {true: "critical", false: "high"}[group != ""],
	"confidence": {true: "confirmed", false: "possible"}[group != ""],
	"params": {"out_of_step": "yes"},
} if some [group, seq], ms in waiting

difference(group, seq, ms) := sprintf("different operations at number %s: %s", [seq, facts.list(operations)]) if {
	operations := {m.fields.op | some m in ms}
	count(operations) > 1
} else := sprintf("%s number %s with different numbers of elements: %s", [operation, seq, facts.list(sizes)]) if {
	some operation in {m.fields.op | some m in ms}
	operation in collectives.even
	sizes := {m.fields.numel_in | some m in ms}
	count(sizes) > 1

	# Of one rank, a line without its group shows nothing by another size.
	true in {group != "", count({m.rank | some m in ms}) > 1}
}

# behind are pairs of a rank whose queue is empty and one that waits in the very
# next operation of the group: the first never called it.
behind contains {"idle": idle, "waits": waits} if {
	some idle in logs.by_id["torch-work-status"]
	idle.fields.enqueued == idle.fields.completed
	some waits in logs.by_id["torch-work-status"]
	waits.rank != idle.rank
	object.get(waits.fields, "group", "") == object.get(idle.fields, "group", "")
	waits.fields.completed == idle.fields.completed
	number(waits.fields.enqueued) > number(waits.fields.completed)
}

signs contains {
	"id": "behind",
	"message": sprintf("Rank %d has finished after operation %s of its process group, and rank %d waits in the next one: rank %d never called it. It ran one step or branch less than the others, or was busy or stuck elsewhere", [pair.idle.rank, pair.idle.fields.completed, pair.waits.rank, pair.idle.rank]),
	"confidence": "likely",
	"messages": {pair.idle, pair.waits},
	"params": {"late_rank": pair.idle.rank, "out_of_step": "yes"},
	"remedies": ["fix-application", "nccl-timeout"],
} if pair := sort(behind)[0]

signs contains {
	"id": "apart",
	"message": sprintf("In %s rank %d waits in %s and rank %d in %s. They call different collectives or pass data of different sizes, or, of two that follow each other, the last data of one never arrived. TORCH_DISTRIBUTED_DEBUG=DETAIL compares the calls", [
		collectives.named(pair.group), pair.early.rank, collectives.described(pair.early),
		pair.late.rank, collectives.described(pair.late),
	]),
	# A rank cannot finish a collective that another one has not begun. One collective may end
	# on one rank before it does on another, so that a distance of one has two readings.
	"confidence": {true: "likely", false: "possible"}[pair.distance > 1],
	"evidence": [collectives.evidence(p) | some p in [pair.early, pair.late]],
	"params": {"out_of_step": "yes"},
} if pair := sort(collectives.apart)[0]

signs contains {
	"id": "interleaved",
	"message": sprintf("All %d ranks wait in %s number %d, and they have more than one communicator for all ranks. Ranks that use two communicators in different orders block each other; a transport that stopped looks the same", [stuck.ranks, stuck.op, stuck.number]),
	"confidence": "possible",
	"evidence": [collectives.evidence(p) | some p in stuck.waiting],
} if {
	stuck := sort(collectives.standing)[0]
	collectives.interleaved(stuck)
}

# expired is the first collective that a watchdog aborted. Where every rank has come to it,
# or has come to another one, none is late.
expired := logs.first(logs.by_id["torch-watchdog-timeout"]) if {
	count(collectives.standing) == 0
	count(collectives.apart) == 0
}

# absent are the ranks of which nothing is known while most wait for them. Of a job with more of them the texts are
# those of some ranks.
absent := [rank |
	input.logs.job.size <= 2 * count(waiters)
	known := {m.rank | some m in input.logs.job.members; m.role != "silent"}
	some rank in numbers.range(0, input.logs.job.size - 1)
	not rank in known
]

names := {sprintf("%d", [rank]) | some rank in absent}

waiters := {m.rank | some m in input.logs.job.members; m.role == "waits"}

# absent_named is true where several wait for the same ranks: one alone may itself be the one that is wrong.
default absent_named := false

absent_named if {
	count(waiters) > 1
	count(absent) > 0
}

# One of the first ten operations of a job is a barrier before the training.
signs contains {
	"id": "preparing",
	"message": sprintf("The watchdog aborted operation %s, among the first of the job, while a process prepared the data: the others wait for it for as long as that takes. Prepare the data before the job, with more processes, or give the process group a longer timeout", [expired.fields.seq]),
	"confidence": "likely",
	"messages": {expired, preparing},
	"remedies": ["nccl-timeout", "fix-application"],
} if {
	preparing := logs.first(logs.by_id["rank-loads"])
	number(expired.fields.seq) <= thresholds.first_collectives
}

signs contains {
	"id": "preparing",
	"message": "A rank waited for another one until a timeout, while a process prepared the data: the others wait for it for as long as that takes. Prepare the data before the job, with more processes, or give the process group a longer timeout",
	"confidence": "likely",
	"messages": {waited, preparing},
	"remedies": ["nccl-timeout", "fix-application"],
} if {
	preparing := logs.first(logs.by_id["rank-loads"])
	waited := logs.first(logs.messages({"torch-store-silent", "torch-unique-id-late"}))
}

signs contains {
	"id": {true: "absent", false: "waited"}[absent_named],
	"message": sprintf("The watchdog aborted %s%s. A rank%s whose watchdog does not report it ended, is busy (loading, evaluating, saving) or stuck elsewhere, or its output is not here. py-spy dump --pid PID shows it. If none is missing, one is busy for longer than that", [
		expired.fields.op,
		concat("", [sprintf(" after %d s (the default is 600 s)", [round(ms / 1000)]) | ms := number(expired.fields.timeout_ms)]),
		concat("", [sprintf(" (%s)", [facts.few(names)]) | count(absent) > 0]),
	]),
	"confidence": "possible",
	"messages": {expired},
	"params": {"late_rank": rank | absent_named; rank := absent[0]},
	"remedies": {true: ["fix-application", "nccl-timeout"], false: ["nccl-timeout", "fix-application"]}[true in {absent_named, count(reporters) == 1}],
} if true in {absent_named, custom_timeout, under_way}

reporters := {m.rank | some m in logs.by_id["torch-watchdog-timeout"]}

# A job that came so far has connected its ranks.
default under_way := false

under_way if number(expired.fields.seq) > thresholds.first_collectives

default custom_timeout := false

custom_timeout if number(expired.fields.timeout_ms) < thresholds.watchdog_ms

# lost are the messages that another rank is gone, by the rank that says it.
lost[m.rank] contains m if some m in logs.messages({"nccl-remote-error", "nccl-closed-by-peer", "gloo-peer-closed"})

# left are the ranks that ended without a failure, as far as the texts show, before others lost them.
left contains {"words": sprintf("Rank %d", [w.rank]), "by": sprintf("rank %d", [rank]), "messages": ms, "confidence": "likely"} if {
	some w in logs.by_id["torch-not-destroyed"]
	count([d | some d in input.logs.deaths; d.rank == w.rank]) == 0
	some rank, ms in lost
	rank != w.rank
	logs.first(ms).order > w.order
}

# A launcher that saw one rank fail, which had lost another, saw no other fail.
left contains {"words": "A rank", "by": sprintf("rank %d", [m.rank]), "messages": {m}, "confidence": "possible"} if {
	some first in logs.by_id["torch-first-failure"]
	some rank, ms in lost
	sprintf("%d", [rank]) == first.fields.rank
	count({d.rank | some d in input.logs.deaths}) == 1
	m := logs.first(ms)
}

# A process of JAX waits at its end for others, which wait in a collective.
left contains {"words": "A process", "by": "another", "messages": {ended, stuck}, "confidence": "likely"} if {
	some ended in logs.by_id["jax-shutdown-alone"]
	some stuck in logs.by_id["xla-collective-stuck"]
	stuck.source != ended.source
}

signs contains {
	"id": "left",
	"message": sprintf("%s ended, without a failure that the texts show, while %s was still in a collective: ranks that do not run the same number of steps, as with uneven data or a rank that stops early, leave others waiting", [l.words, l.by]),
	"confidence": l.confidence,
	"messages": l.messages,
	"remedies": ["fix-application", "other"],
} if {
	l := sort(left)[0]
	not logs.rank_failed
}

# Nothing listens at the address of the own machine to which NCCL's bootstrap connects.
signs contains {
	"id": "root-gone",
	"message": sprintf("This machine itself refuses the connection to %s, the address of another rank that NCCL's unique id or its bootstrap gives: no firewall is in between, and no process listens there. That rank has not started or has ended, or the unique id is of an earlier run (an old file, a store that was not cleared). Make a new id for each run, and start all ranks", [f.remote]),
	"confidence": "likely",
	"messages": {f.message},
	"remedies": ["fix-application", "correct-launch"],
} if {
	not logs.rank_failed
	f := connections.earliest({f |
		some f in connections.hard_failures
		startswith(f.message.id, "nccl-")
		connections.to_itself(f)
		not connections.died_before(f.message)
	})
}

# Only the process that listens, which is rank 0, waits for clients: another one that asks to listen there also is rank 0.
signs contains {
	"id": "first-twice",
	"message": sprintf("Two processes are rank 0: one has the rendezvous port and waits for the others (%s of %s joined), and another one tries to listen on the same port. Give each process a RANK (--node_rank, --process_id) of its own", [waits.fields.joined, waits.fields.world]),
	"confidence": "likely",
	"messages": {taken, waits},
	"remedies": ["correct-launch", "fix-application"],
} if {
	taken := logs.first(logs.by_id["torch-port-in-use"])
	waits := logs.first(logs.by_id["torch-store-clients-missing"])
	taken.order < waits.order # A later one may be of the next try.
}

# Slurm starts a launcher for each task of a node, and each of them listens on the same port.
signs contains {
	"id": "launchers",
	"message": sprintf("The job has %d tasks on each node (--ntasks-per-node), and what each task starts listens on the same rendezvous port. Where a launcher starts the ranks, one task for each node is right (--ntasks-per-node=1); else only rank 0 may listen, and RANK must be SLURM_PROCID", [l.tasks]),
	"confidence": "likely",
	"messages": {taken},
	"evidence": [{"fact": "launches[].tasks", "value": l.tasks, "source": logs.at(l)}],
	"remedies": ["correct-launch", "fix-application"],
} if {
	taken := logs.first(logs.by_id["torch-port-in-use"])
	some l in logs.launches
	l.source == taken.source
	l.tasks > 1
}

# Ranks say in texts of their own where they meet, and it is not the same place.
signs contains {
	"id": "meeting",
	"message": sprintf("Ranks are to meet at different places (%s): MASTER_ADDR and MASTER_PORT must be the same for all ranks of a job", [facts.list({m.text | some m in places})]),
	"confidence": "likely",
	"messages": (places | {lost}),
	"remedies": ["correct-launch", "fix-application"],
} if {
	lost := logs.first(logs.messages({"torch-store-timed-out", "torch-store-clients-missing", "torch-store-connect-failed"}))
	some field in ["address", "port"]
	places := {m | some m in logs.by_id["torch-store-address"]; m.fields[field]}
	count({m.fields[field] | some m in places}) > 1
	count({m.source | some m in places}) == count(places)
}

# Several processes of one launch say that each is the only rank.
signs contains {
	"id": "alone",
	"message": sprintf("The launcher started %d processes, and %d of them say that they are the only rank: each does all of the work by itself. Their MPI does not match the launcher (mpirun of another installation, srun without the right --mpi), or what the launcher tells them in the environment was cleared (env -i, sudo)", [started, m.count]),
	"confidence": "likely",
	"messages": {m},
	"remedies": ["correct-launch", "fix-application"],
} if {
	some m in logs.by_id["rank-alone"]
	m.count > 1
	started := max({l.processes | some l in logs.launches})
	started >= m.count
}

# The processes that a job starts say who they are, and wait for more than were started.
signs contains {
	"id": "not-started",
	"message": sprintf("Each rank expects %d, and the job starts only %d: the others are waited for until a timeout. The number of ranks (WORLD_SIZE) must be that of the tasks, which are nodes times tasks on each", [world, started]),
	"severity": "critical",
	"confidence": "likely",
	"messages": ms,
	"evidence": [{"fact": "launches[].processes", "value": l.processes, "source": logs.at(l)} | some l in logs.launches; l.processes * object.get(l, "nodes", 1) == started],
	"remedies": ["correct-launch", "fix-application"],
} if {
	logs.failed
	ms := logs.by_id["rank-of-world"]
	world := max({to_number(m.fields.world) | some m in ms})
	started := max({n | some l in logs.launches; n := l.processes * object.get(l, "nodes", 1)})
	started > 1
	world > started
	named := {to_number(m.fields.of) | some m in ms}
	named == {r | some r in numbers.range(0, started - 1)}
}

# Each node starts the same ranks: a log of one node whose ranks say so twice looks alike, so that the nodes count.
signs contains {
	"id": "started-twice",
	"message": sprintf("Of %d ranks, %d announce themselves, each %d times, and the others do not: each of the %d nodes starts the same ones. Under Slurm, --ntasks-per-node must be the number of ranks on a node, and each needs a rank of its own (--node_rank, SLURM_PROCID)", [world, count(ms), times, times]),
	"severity": {true: "critical", false: "medium"}[told_of],
	"confidence": "likely",
	"messages": ms,
	"remedies": ["correct-launch", "fix-application"],
} if {
	ms := logs.by_id["rank-of-world"]
	count(ms) > 1
	some times in {l.nodes | some l in logs.launches}
	every m in ms {
		m.count == times
		to_number(m.fields.world) == times * count(ms)
	}
	times > 1
	world := times * count(ms)
}

default told_of := false

told_of if logs.failed
told_of if count(input.texts[_].topics) > 0

# Ranks that meet at one address, each with a log of its own, were told different numbers of ranks.
signs contains {
	"id": "told",
	"message": sprintf("The ranks of the job were started with different values of WORLD_SIZE (%s), so that they wait for each other in vain", [concat(", ", sort(worlds))]),
	"severity": "critical",
	"confidence": "likely",
	"messages": said,
	"remedies": ["correct-launch", "fix-application"],
} if {
	said := logs.by_id["rank-of-world"]
	worlds := {m.fields.world | some m in said}
	count(worlds) > 1
	count({m.fields.of | some m in said}) == count(said)
	count({m.source | some m in said}) == count(said)
	count({object.get(m.fields, "master", "") | some m in said}) == 1
}

# Each process of a test believes that it is the only one.
signs contains {
	"message": sprintf("%d processes of %s call themselves rank 0: each runs the test separately, on the same first GPUs, and nothing is measured between them. The program was built without MPI (make clean; make MPI=1), or its MPI does not match the launcher (mpirun of another installation, srun without the right --mpi)", [b.jobs, b.tool]),
	"confidence": "confirmed",
	"remedies": ["correct-launch", "install-matching-wheels"],
	"evidence": [{"fact": "benchmarks[].jobs", "value": b.jobs, "source": logs.at(b)}],
} if {
	some b in input.benchmarks
	b.jobs > 1
}

number(text) := to_number(text) if regex.match(`^[0-9]{1,9}$`, text)
