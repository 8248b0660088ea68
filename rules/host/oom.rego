# METADATA
# title: Memory ran out
# description: >-
#   A GPU or the machine had too little free memory. The process that asked
#   for it fails, or the kernel kills one; the ranks that wait for it then
#   complain of a lost connection or a collective that takes too long.
# related_resources:
#   - ref: https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management
#     description: How PyTorch takes and keeps the memory of GPUs
#   - ref: https://docs.kernel.org/admin-guide/cgroup-v2.html#memory
#     description: What a control group's memory limit does
#   - ref: https://kubernetes.io/docs/tasks/configure-pod-container/assign-memory-resource/
#     description: OOMKilled, and how a memory limit is raised
# schemas:
#   - input: schema.facts
# custom:
#   severity: critical
#   confidence: confirmed
#   needs:
#     - job-told
#   remedies: [free-memory, fix-application, other]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.oom

import data.gpudoctor.lib.known_faults
import data.gpudoctor.lib.logs

# device are the messages that a GPU's memory ran out, host those that the
# machine's or the container's did.
device := logs.messages({"torch-out-of-memory", "vllm-memory-short"}) | {m |
	some m in logs.by_id["nccl-cuda-out-of-memory"]
	not known_faults.of_host_memory(m)
}

host := logs.messages({
	"torch-host-out-of-memory", "nccl-host-out-of-memory", "slurm-out-of-memory", "kubernetes-out-of-memory", "ray-out-of-memory",
	"host-allocation-failed", "shm-object-memory",
})

# killed is the kernel's record. It may tell of another day, so it is the cause
# of a failure only where something failed.
killed := logs.by_id["kernel-out-of-memory"]

# refused are NCCL's requests for memory of a GPU that failed, as PyTorch repeats
# them («Last error»), without CUDA's reason: that is lack of memory unless another
# cause is told.
refused := logs.messages({"nccl-gpu-alloc-failed"}) if {
	count({m | some m in logs.complaints; m.role == "cause"}) == 0
	count(logs.messages({"nccl-cuda-failure"})) == 0
} else := set()

findings contains object.union(
	finding(refused, "GPU memory", "high", "likely", "NCCL got no memory of the GPU, which PyTorch's cache or other processes hold"),
	{"remedies": ["free-memory", "fix-application"]},
) if {
	count(refused) > 0
}

# ended are processes that something killed.
ended := logs.messages({"process-killed", "dataloader-killed", "exit-killed"})

findings contains finding(device, "GPU memory", "critical", "confirmed", "the GPU had too little free memory") if count(device) > 0

findings contains finding(host, "host memory", "critical", "confirmed", "the machine, or the limit of the container or job, had too little free memory") if count(host) > 0

findings contains finding(killed, "host memory", severity, confidence, message) if {
	count(killed) > 0
	count(host) == 0
}

default severity := "medium"

severity := "critical" if count(ended) > 0

default confidence := "likely"

confidence := "confirmed" if count(ended) > 0

message := "the kernel killed a process because memory ran out, and a process of the job was killed" if {
	count(ended) > 0
} else := "the kernel killed a process because memory ran out"

findings contains finding(ended, "host memory", "medium", "possible", "a process was killed from outside (signal 9), which the kernel does when memory runs out, and launchers do after another rank has failed") if {
	count(ended) > 0
	count(host | device) == 0
	not recorded
}

recorded if count(killed) > 0

finding(list, subject, severity_, confidence_, text) := {
	"subject": subject,
	"message": sprintf("%s: %s", [logs.who(first), text]),
	"severity": severity_,
	"confidence": confidence_,
	"evidence": logs.all_evidence(list),
	"order": first.order,
} if {
	first := logs.first(list)
}

missing contains {"fact": "logs", "words": "no log of a job was given"} if not logs.given
