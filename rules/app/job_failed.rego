# METADATA
# title: A job failed, and the input does not show why
# description: >-
#   The log reports failures ("unhandled system error", a watchdog timeout, a connection closed by a remote peer), but
#   each of them is a category or a consequence, not a cause. Start with the first failure on the rank that failed
#   first. The verdict lists which further logs would find the cause.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NCCL's errors are categories; its WARN lines have the details
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
package gpudoctor.rules.job_failed

import data.gpudoctor.lib.logs

findings contains {
	"subject": logs.who(first),
	"message": sprintf("%sThe first reported failure is at %s%s. No rule knows its cause: the logs of all ranks are needed to find what failed before it", [
		observed, logs.at(first), concat("", [sprintf(", by %s", [who]) | who := logs.who(first); who != "the log"]),
	]),
	"evidence": array.slice(logs.all_evidence(complaints), 0, 3),
	"order": first.order,
} if count(complaints) > 0

# observed is torchrun's report on the rank that failed first.
default observed := ""

observed := sprintf("torchrun saw rank %s on %s fail first (exit code %s%s): start with its output. ", [
	m.fields.rank, object.get(m.fields, "host", "its host"), object.get(m.fields, "exitcode", "unknown"), concat("", [sprintf(", %s", [name]) | name := m.fields.signal]),
]) if m := logs.first(logs.by_id["torch-first-failure"])

first := logs.first(complaints)

# complaints are those of a job: collective-failed reports what fails in the probe, and the kernel's are of the machine.
complaints := {m | some m in logs.complaints; not logs.own(m); m.program != "kernel"}
