# Where the ranks stand in their collectives. In which collective each rank of a process group waited when a watchdog
# gave up, and whether all of them had come to the same one. A group counts only where its size is known and each of its
# ranks was heard.
package gpudoctor.lib.collectives

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs

# names are the operations that all ranks of a group call, as PyTorch's watchdog spells
# them (torch/csrc/distributed/c10d/Work.cpp, opTypeToString).
names := {
	"ALLREDUCE", "BROADCAST", "REDUCE", "ALLGATHER", "_ALLGATHER_BASE", "REDUCE_SCATTER", "_REDUCE_SCATTER_BASE", "BARRIER",
	"ALLREDUCE_COALESCED", "ALLTOALL_BASE", "ALLTOALL",
}

# even are those whose data has one size on all ranks.
even := {"ALLREDUCE", "BROADCAST", "REDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE"}

# waiting are the ranks of each group that wait, with the number of the collective.
waiting[object.get(p, "group", "")] contains object.union(p, {"number": number(p)}) if {
	some p in input.logs.progress
	object.get(p, "op", "ALLREDUCE") in names
	not logs.went_on
}

number(p) := p.seq if {
	is_number(p.seq)
} else := p.completed + 1 if p.enqueued > p.completed

# sizes are the numbers of ranks that the texts give for the job.
sizes contains c.ranks if some c in input.logs.communicators
sizes contains l.processes * object.get(l, "nodes", 1) if some l in input.launches

sizes contains to_number(facts.env.WORLD_SIZE) if regex.match(`^[0-9]{1,6}$`, facts.env.WORLD_SIZE)
sizes contains to_number(m.fields.world) if some m in logs.messages({"torch-store-barrier-timeout", "torch-store-barrier-waiting"})

# whole is true of the group of all ranks of a job: PyTorch's default one, or the only one where lines name none.
whole("") if count(waiting) == 1
whole(group) if contains(group, "default_pg")

# standing are the groups in which every rank waits in the same collective.
standing contains {"group": group, "ranks": size, "op": op, "number": seq, "waiting": sort(ranks)} if {
	some group, ranks in waiting
	whole(group)
	size := max(sizes)
	size > 1
	count(ranks) == size
	{p.rank | some p in ranks} == {r | some r in numbers.range(0, size - 1)}
	seq := only({p.number | some p in ranks})
	op := only({p.op | some p in ranks})
	count({p.elements | some p in ranks; op in even}) < 2
	every p in ranks {
		object.get(p, "enqueued", seq) >= seq
		object.get(p, "completed", seq - 1) < seq
	}
}

# PyTorch's desynchronization report looks at each rank of the group: it lists those that
# are behind, and where all of them began the last collective, it lists all of those.
standing contains {"group": "", "ranks": count(ranks), "op": started.fields.op, "number": to_number(joined.fields.seq), "waiting": [], "report": {joined, started}} if {
	joined := only(logs.by_id["torch-desync-joined"])
	snapshot := only(logs.by_id["torch-desync-snapshot"])
	started := only(logs.by_id["torch-desync-started"])
	not logs.said("torch-desync-finished")
	not logs.went_on
	snapshot.fields.seq == joined.fields.seq
	started.fields.ranks == joined.fields.ranks
	ranks := split(joined.fields.ranks, ", ")
	count(ranks) > 1
	{to_number(r) | some r in ranks} == {r | some r, _ in ranks}
}

# interleaved is true where the ranks that stand have more than one communicator for all of them. Two ranks that use
# these in different orders block each other, and each then waits in a collective that all began.
interleaved(stuck) := count({c.id | some c in input.logs.communicators; c.ranks == stuck.ranks; c.id}) > 1

only(elements) := max(elements) if count(elements) == 1

# apart are, of each group, the rank that waits in the earliest collective and the one that waits in the latest, if
# these differ. A group in which a rank appears twice is left out: that rank was restarted.
apart contains {"group": group, "early": early, "late": late, "distance": late.number - early.number} if {
	some group, ranks in waiting
	count(ranks) == count({p.rank | some p in ranks})
	order := sort([[p.number, p.rank, p] | some p in ranks; p.op])
	early := order[0][2]
	late := order[count(order) - 1][2]
	early.number < late.number
}

named("") := "one process group"
named(group) := sprintf("process group %s", [group]) if group != ""

# described is the collective in which a rank waits.
described(p) := sprintf("%s number %d", [p.op, p.number])

evidence(p) := {"fact": "logs.progress", "value": p.text, "source": logs.at(p)}
