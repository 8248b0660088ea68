# METADATA
# title: The nodes of a job disagree
# description: A launcher that waits for more nodes than its job has never starts, and one that starts all ranks runs once a node.
# related_resources:
#   - {ref: https://docs.pytorch.org/docs/stable/elastic/run.html, description: --nnodes and --nproc-per-node of torchrun}
#   - {ref: https://slurm.schedmd.com/gres.html, description: GPUs in slurm.conf and gres.conf}
# custom:
#   severity: high
#   areas: [job]
#   remedies: [correct-launch]
#   cause: app-mismatch
#   since: "0.4"
#   grades:
#     waits: "The batch job has {nodes} nodes, and its launcher waits for {waits} ({place}): the rendezvous never completes"
#     tasks: "{opening} starts {tasks} tasks on each node, each of which starts {n} ranks ({place}). {launcher} needs one task a node"
#     differ: "Slurm's configuration gives the node {subject} {gpus:GPU} here and {many} in {at}: slurmctld drains the node"
#     large: "{opening} requests {gpus:GPU} on each node, but the largest in Slurm's configuration has {largest}: sbatch rejects the job"
package gpudoctor.rules.job_nodes

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches

gpus(l) := job.fact(l, "gpus", l.gpus)
program(run) := regex.replace(run.command[0], `^.*/`, "")

# waits is the number of nodes that a launcher waits for: of a range, the least.
waits(run) := to_number(least) if {
	launches.shows(run, {"nodes"})
	least := split(max(launches.options(run, "nnodes|num[_-]machines|num[_-]nodes")), ":")[0]
	regex.match(`^\d{1,6}$`, least)
}

of_run(run, grade, subject, part, value, about) := job.finding(
	job.header, grade, subject, [job.fact(job.header, part, value)], {"launcher": program(run)},
	object.union({"launcher": program(run), "place": launches.place_of(run, "command")}, about),
)

findings contains of_run(run, "waits", "nodes", "nodes", job.header.nodes, {"waits": waits(run)}) if {
	some run in job.runs
	waits(run) > job.header.nodes
}

findings contains of_run(run, "tasks", "ranks", "processes", job.header.tasks, {"n": run.processes}) if {
	job.header.tasks > 1
	some run in job.steps
	program(run) in {"torchrun", "accelerate", "deepspeed"}
	run.processes > 1
	launches.shows(run, {"tasks"})
	not run.tasks == 1
}

# nodes are the lines of slurm.conf and gres.conf about each node, by the GPUs that they give it.
nodes[line.name][line.gpus] contains line if {
	some line in input.launches
	line.kind == "slurm-node"
}

findings contains job.finding(few, "differ", name, [gpus(few), gpus(many)], {"slurm_node": name}, {"many": n, "at": place}) if {
	some name, all in nodes
	few := min(all[min(object.keys(all))])
	n := max(object.keys(all))
	many := min(all[n])
	few.source != many.source
	place := launches.place_of(many, "gpus")
}

findings contains job.finding(l, "large", "GPUs", [gpus(l)], {"too_many": l.gpus}, {"largest": largest}) if {
	l := job.header
	largest := max({gpus | some all in nodes; some gpus, _ in all})
	l.gpus > largest
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"nodes", "tasks"})
