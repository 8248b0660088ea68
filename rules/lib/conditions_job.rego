# Job conditions for findings of messages, which lib/conditions_gpu.rego explains: about containers, the
# GPUs that a program can use, and process limits and memory.
package gpudoctor.lib.conditions_job

import data.gpudoctor.lib.collectives
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.visible_devices as visible
import data.tables.thresholds

holds contains "machine_alone" if not logs.given

# The container of a job.
holds contains "container_told" if facts.in_container
holds contains "container_told" if count(launches.containers) > 0
holds contains "job_in_container" if count(launches.enclosed) > 0

# Which GPUs a program may use. What looks like one GPU may be instances of one.
holds contains "gpus_chosen" if count(visible.chosen) > 0
holds contains "several_mig_instances" if visible.instances

shown contains ["gpus_chosen", fact] if some fact in visible.evidence

values contains ["gpu_chooser", visible.chooser]

# There should be GPUs: a machine without any is no fault, and PyTorch's report says so of each laptop.
holds contains "gpus_expected" if count(surroundings.of_vendor) > 0
holds contains "gpus_expected" if count(logs.messages({"hip-no-device", "cuda-no-device", "nvsmi-no-devices"})) > 0
holds contains "gpus_expected" if count(visible.chosen) > 0

# A job uses GPUs; the CPUs near a GPU are known; a program set its affinity, as the lines before an error show.
holds contains "gpu_job" if input.benchmarks[_]
holds contains "gpu_job" if input.texts[_].gpu
holds contains "gpu_job" if input.logs.communicators[_]

holds contains "cpus_near_gpu_known" if {
	some m in logs.by_id["nccl-affinity-empty"]
	trim_space(m.fields.near) != ""
	trim_space(m.fields.allowed) != ""
}

holds contains "affinity_set_before" if {
	some m in logs.by_id["python-sets-affinity"]
	some error in logs.by_id["python-invalid-argument"]
	error.source == m.source
	(error.line - m.line) in {1, 2, 3, 4}
}

# HIP does not see a GPU that a program uses, and no list hides it.
holds contains "hip_lacks_gpus" if logs.said("hip-no-device")

holds contains "hip_lacks_gpus" if {
	logs.said("hip-invalid-device")
	count(visible.chosen) == 0
}

# The kernel killed what may be a rank, and the job failed.
holds contains "python_killed" if {
	logs.failed
	some m in logs.by_id["kernel-out-of-memory"]
	some field in ["command", "task"]
	regex.match(`^(?:python|pt_|torchrun|ray)`, m.fields[field])
}

holds contains "platform_chosen" if facts.env.JAX_PLATFORMS

# A program states what is wrong. That rocBLAS has no kernels for a GPU is no reason for the others.
holds contains "cause_stated" if {
	some m in causes
	m.id != "rocblas-no-kernels"
}

causes := {m | some m in logs.complaints; m.role == "cause"}

holds contains "rank_failed" if logs.rank_failed

# The same before the scheduler ended the job at its limit: what programs say after that is a consequence.
holds contains "cause_stated_in_time" if {
	some m in causes
	count([end | some end in logs.by_id["job-time-limit"]; end.order < m.order]) == 0
}

# The NVIDIA driver is loaded: nvidia-smi has shown its version somewhere, or the kernel does.
holds contains "driver_answered" if input.gpus.driver.kernel_version

holds contains "driver_answered" if {
	some p in input.software
	[p.name, p.manager] == ["nvidia-driver", "nvidia-smi"]
}

holds contains "all_ranks_stand" if count(collectives.standing) > 0
holds contains "process_killed" if count(logs.messages({"process-killed", "dataloader-killed", "exit-killed"})) > 0
holds contains "network_named" if facts.variable.NCCL_NET
holds contains "network_named" if facts.variable.NCCL_NET_PLUGIN
holds contains "topology_file_named" if facts.env.NCCL_TOPO_FILE != ""
holds contains "topology_file_named" if facts.env.NCCL_GRAPH_FILE != ""
holds contains "memlock_limit_known" if input.container.memlock_soft_bytes
holds contains "memlock_unlimited" if input.container.memlock_soft_bytes == -1
holds contains "memlock_unlimited" if {l.memlock_bytes | some l in input.launches} == {-1}

holds contains "open_files_few" if input.container.nofile_soft <= thresholds.open_files

holds contains "memlock_low" if {
	input.container.memlock_soft_bytes >= 0
	input.container.memlock_soft_bytes < thresholds.memlock_low_bytes
}

holds contains "memlock_low" if {
	some m in logs.by_id["ibv-no-memory"] # UCX says what its limit is.
	to_number(m.fields.kbytes) * 1024 < thresholds.memlock_low_bytes
}

shown contains ["memlock_limit_known", {"fact": "container.memlock_soft_bytes", "value": input.container.memlock_soft_bytes, "source": "/proc/self/limits"}]

# /dev/shm is small: here, in the description of a container, or by NVIDIA's image at startup. Semaphores are files there,
# and nowhere else (glibc sem_open).
holds contains "shm_small" if input.container.shm.size_bytes < thresholds.shm_recommended_bytes
holds contains "shm_small" if input.container.shm.free_bytes < thresholds.shm_default_bytes
holds contains "shm_small" if count(launches.small_shm) > 0
holds contains "shm_small" if count(logs.messages({"ngc-shm-default", "python-semaphore-refused"})) > 0

# A large one is full because of files of ended jobs.
holds contains "shm_full" if {
	input.container.shm.size_bytes >= thresholds.shm_recommended_bytes
	input.container.shm.free_bytes < thresholds.shm_default_bytes
}

shown contains ["shm_small", launches.evidence(l)] if some l in launches.small_shm
shown contains ["shm_small", {"fact": "container.shm.free_bytes", "value": input.container.shm.free_bytes, "source": "statfs /dev/shm"}]

# Another line tells more than that a call of the system failed.
holds contains "system_error_explained" if {
	some m in logs.complaints
	m.program in {"nccl", "libibverbs", "linux", "pytorch"}
	m.id != "nccl-unhandled-system-error"
}
