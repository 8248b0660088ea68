# METADATA
# title: A job failed, and the input does not show why
# description: >-
#   The log reports failures, but each of them is a category or a consequence ("unhandled system error", a timeout, a
#   closed connection), not a cause. The verdict lists which further logs would find it.
# related_resources:
#   - {ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html, description: NCCL's errors are categories}
#   - {ref: https://github.com/NVIDIA/nccl/blob/v2.30.7-1/src/init.cc, description: The texts of ncclGetErrorString}
# custom:
#   severity: high
#   confidence: possible
#   texts_only: true
#   needs: [job-told]
#   remedies: [other]
#   last_resort: true
#   profiles: [training]
#   since: "0.1"
#   grades:
#     failed: >-
#       [torchrun saw rank {rank} on {host|its host} fail first (exit code {exitcode|unknown}[, {signal}]): start with its
#       output. ]The first reported failure is at {at}[, by {who}]. No rule knows its cause: the logs of all ranks are
#       needed to find what failed before it
#     raised: >-
#       A process ended with {class}[: {said}][, at {file}[:{file_line}]]. No rule knows its cause
package gpudoctor.rules.job_failed

import data.gpudoctor.lib.logs

# What torchrun reports on the rank that failed first comes before.
findings contains {
	"grade": "failed",
	"subject": logs.who(first),
	"about": object.union(
		object.union_n([m.fields | m := logs.first(logs.by_id["torch-first-failure"])]),
		{"at": logs.at(first), "who": [who | who := logs.who(first); who != "the log"]},
	),
	"evidence": array.slice(logs.all_evidence(complaints), 0, 3),
	"order": first.order,
} if first := logs.first(complaints)

# A process ended with an exception of which no message, and no story of the job, says more.
findings contains {
	"grade": "raised",
	"subject": "job",
	"severity": {true: "low", false: "high"}[ended_by_a_person(d)],
	"about": object.filter(d, ["class", "said", "file", "file_line"]),
	"evidence": [{"fact": "logs.deaths", "value": d.text, "source": logs.at(d)}],
} if d := input.logs.job.unexplained

# ended_by_a_person is true where torchrun was told to end, by a key or a signal.
ended_by_a_person(d) := regex.match(`\bgot signal: (?:2|15)\b`, object.get(d, "said", ""))

# complaints are those of a job: collective-failed reports what fails in the probe, and the kernel's are of the machine.
complaints := {m | some m in logs.complaints; not logs.own(m); m.program != "kernel"}
