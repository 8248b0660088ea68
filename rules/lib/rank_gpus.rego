# METADATA
# title: The GPUs that ranks use
# description: >-
#   What programs log about the GPU of a rank, or of another rank.
package gpudoctor.lib.rank_gpus

import data.gpudoctor.lib.logs
import data.gpudoctor.lib.visible_devices as visible

# beyond_sight are GPUs that a peer named and this process does not see: NCCL opens the
# memory of a peer's GPU directly, which must be visible to both. From other files than
# these two NCCL's call is about the process's own GPU, or about host memory.
beyond_sight contains m if {
	some m in logs.by_id["nccl-cuda-invalid-device"]
	not file_name(m) in {"shm.cc", "alloc.h"}
}

# file_name is that of the source file which a message names.
file_name(m) := name if {
	parts := split(object.get(m, ["fields", "file"], ""), "/")
	name := parts[count(parts) - 1]
}

# CUDA_ERROR_INVALID_DEVICE (cuda.h) and cudaErrorInvalidDevice before CUDA 10.1.
beyond_sight contains m if {
	some m in logs.messages({"nccl-ipc-open-failed", "openmpi-cuda-ipc-failed"})
	m.fields.error in {"10", "101"}
}

beyond_sight contains m if {
	some m in logs.by_id["openmpi-cuda-ipc-failed"]
	one_each
}

# one_each is true if Slurm gives each task only one GPU, which its control group then
# hides from the others.
one_each if {
	some l in logs.launches
	l.kind == "slurm"
	l.gpus == 1
	l.processes > 1
}

# With one visible GPU a process can open the memory of no other; older drivers
# call that an invalid argument.
beyond_sight contains m if {
	some m in logs.by_id["nccl-ipc-open-failed"]
	visible.alone
}

# guessed are ranks that chose no GPU, and take one by their number among those that
# they see, by that number.
guessed[m.fields.gpu] contains m if some m in logs.by_id["torch-device-guessed"]

# neighbours are ranks that are surely on one machine: ranks of two machines
# guess alike.
neighbours(numbers) if {
	some a in numbers
	some b in numbers
	to_number(b) == to_number(a) + 1
}
