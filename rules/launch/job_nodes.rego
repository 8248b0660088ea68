# METADATA
# title: The nodes of a job disagree
# description: A launcher that waits for more nodes than its job has never starts, and one that starts all ranks of its node runs
#   once on each. A scheduler does not start what asks for more GPUs than a node has.
# related_resources:
#   - ref: https://docs.pytorch.org/docs/stable/elastic/run.html
#     description: --nnodes and --nproc-per-node of torchrun
#   - ref: https://slurm.schedmd.com/gres.html
#     description: GPUs in slurm.conf and gres.conf
# custom:
#   severity: high
#   areas: [job]
#   remedies: [correct-launch]
#   cause: app-mismatch
#   since: "0.4"
package gpudoctor.rules.job_nodes

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches

program(run) := regex.replace(run.command[0], `^.*/`, "")

# waits is the number of nodes that a launcher waits for: of a range, the least.
waits(l) := to_number(least) if {
	launches.shows(l, {"nodes"})
	least := split(max(launches.options(l, "nnodes|num[_-]machines|num[_-]nodes")), ":")[0]
	regex.match(`^\d{1,6}$`, least)
}

findings contains {
	"subject": "nodes", "params": {"launcher": program(run)}, "evidence": [job.fact(batch, "nodes", batch.nodes), job.fact(run, "nodes", waits(run))],
	"message": sprintf("The batch job has %d nodes, and its launcher waits for %d (%s): the rendezvous never completes", [batch.nodes, waits(run), launches.place_of(run, "nodes")]),
} if {
	batch := job.header
	some run in job.runs
	waits(run) > batch.nodes
}

findings contains {
	"subject": "nodes", "params": {"launcher": program(l)}, "evidence": [job.fact(l, "nodes", l.nodes)],
	"message": sprintf("%s is one of %d, and its launcher waits for %d nodes: the rendezvous never completes", [job.opening(l), l.nodes, waits(l)]),
} if {
	some l in job.containers
	l.kind == "kubernetes"
	waits(l) > l.nodes
}

findings contains {
	"subject": "ranks", "params": {"launcher": program(run)}, "evidence": [job.fact(batch, "processes", batch.tasks), job.fact(run, "processes", run.processes)],
	"message": sprintf("%s starts %d tasks on each node, and each starts a launcher with %d ranks of its own (%s): %d ranks share the GPUs of a node. Use --ntasks-per-node=1 with torchrun", [job.opening(batch), batch.tasks, run.processes, launches.place_of(run, "command"), batch.tasks * run.processes]),
} if {
	batch := job.header
	batch.tasks > 1
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

findings contains {
	"subject": name, "params": {"slurm_node": name}, "evidence": [job.fact(few, "gpus", few.gpus), job.fact(many, "gpus", many.gpus)],
	"message": sprintf("The configuration of Slurm gives the node %s %d GPUs in %s and %d in %s: slurmd then registers the node with fewer GPUs than configured, and slurmctld drains it", [name, few.gpus, launches.place_of(few, "gpus"), many.gpus, launches.place_of(many, "gpus")]),
} if {
	some name, all in nodes
	few := min(all[min(object.keys(all))])
	many := min(all[max(object.keys(all))])
	few.source != many.source
}

findings contains {
	"subject": "GPUs", "params": {"too_many": l.gpus}, "evidence": [job.fact(l, "gpus", l.gpus)],
	"message": sprintf("%s requests %d GPUs on each node, but the largest node in the configuration of Slurm has %d: sbatch rejects the job", [job.opening(l), l.gpus, largest]),
} if {
	l := job.header
	largest := max({gpus | some all in nodes; some gpus, _ in all})
	l.gpus > largest
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"nodes", "tasks"})
