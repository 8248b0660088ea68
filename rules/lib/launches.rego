# Readings of the descriptions in texts: docker run lines, compose files, pods, batch scripts, command lines.
package gpudoctor.lib.launches

import data.gpudoctor.lib.facts
import data.tables.thresholds

# isolating are the kinds of container that get a /dev/shm of their own: of 64 MiB, unless told otherwise (moby
# daemon/config/config.go, podman's containers.conf, containerd's and CRI-O's sandboxes).
isolating := {"docker-run", "compose", "kubernetes", "docker-inspect"}

containers := {l | some l in input.launches; l.kind in isolating}

# small_shm are the containers with GPUs whose own /dev/shm is smaller than what NCCL's guide asks for.
small_shm contains l if {
	some l in containers
	not l.gpus == 0
	shows(l, {"ipc", "shm_bytes", "mounts"})
	not large(l)
}

# large is true also of one that has the host's /dev/shm, or another's.
large(l) if l.shm_bytes >= thresholds.shm_recommended_bytes
large(l) if regex.match("^(host$|container:|service:)", l.ipc)

large(l) if {
	l.shm_mounted
	not l.shm_bytes
}

# shows is true of a launch whose description shows the values of parts, as far as it gives them any.
shows(l, parts) if count(parts & object.keys(object.get(l, "unknown", {}))) == 0

# lacks is true of one that shows that it sets none of some parts.
lacks(l, parts) if {
	shows(l, parts)
	count({part | some part in parts; not object.get(l, part, false) in [false, []]}) == 0
}

# without_gpus are containers whose command or service asks for no GPU in any of the ways there are.
without_gpus contains l if {
	some l in input.launches
	l.kind in {"docker-run", "compose"}
	lacks(l, {"gpus", "gpu_vendor", "runtime", "privileged", "devices"})
	shows(l, {"variables", "variables[NVIDIA_VISIBLE_DEVICES]", "variables[NVIDIA_DRIVER_CAPABILITIES]"})
	count({"NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"} & object.keys(object.get(l, "variables", {}))) == 0
}

# enclosed are all launches in a container, those of Slurm and Apptainer included, which share the host's /dev/shm.
enclosed := (containers | slurm_containers) | {l | some l in input.launches; l.kind == "apptainer"}

slurm_containers := {l | some l in input.launches; l.kind == "slurm"; l.image != ""}

# without_rdma are the containers that were given no RDMA device. A hook of enroot may silently add one to a container
# of Slurm, so this needs NCCL's message that there is none.
without_rdma contains l if {
	some l in (containers | slurm_containers)
	lacks(l, {"privileged"})
	shows(l, {"devices", "mounts", "resources"})
	count({p | some part in ["devices", "mounts"]; some p in l[part]; regex.match("^/dev(/infiniband[^:]*)?(:|$)", p)}) == 0
	count({r | some r, _ in l.resources; regex.match(`(?i)rdma|hca|infiniband|efa|sriov|mellanox|nic|claims`, r)}) == 0
}

devices_evidence(ls) := [fact(l, "devices", "none") | some l in sort(ls)]
evidence(l) := fact(l, "shm_bytes", "the default")

fact(l, part, otherwise) := {
	"fact": sprintf("launches[%s].%s", [object.get(l, "name", l.kind), part]),
	"value": object.get(l, part, otherwise), "source": place(l),
}

# options are the values of an option of a command, joined by = or the next word, by the pattern of its name.
options(l, name) := {value |
	some i, word in l.command
	regex.match(sprintf("^--(%s)(=|$)", [name]), word)
	value := array.concat(array.slice(split(word, "="), 1, 2), array.slice(l.command, i + 1, i + 2))[0]
}

place(l) := sprintf("%s:%d", [l.source, l.line])

# place_of is the line of a part of a launch, or its first line.
place_of(l, part) := sprintf("%s:%d", [l.source, object.get(l, ["lines", part], l.line)])

# shm_words say what a container gets as /dev/shm.
shm_words(l) := sprintf("requests %d MiB for /dev/shm", [floor(l.shm_bytes / 1048576)]) if {
	l.shm_bytes
} else := "sets no size for /dev/shm, so it has the default of 64 MiB"

# title names a launch: "the container train", "the pod llm", "the script".
title(l) := concat(" ", [object.get(words, l.kind, "the command"), l.name]) if {
	l.name
} else := concat(" of ", [object.get(words, l.kind, "the command"), l.image]) if {
	l.image
	l.kind != "dockerfile"
} else := object.get(words, l.kind, "the command")

words := {
	"docker-run": "the container", "docker-inspect": "the container", "apptainer": "the container",
	"compose": "the service", "kubernetes": "the pod", "slurm": "the batch job", "dockerfile": "the Dockerfile",
	"mpirun": "the mpirun command", "shell": "the script",
}

# several is true when the job is to run on more than one GPU of a machine.
several if {
	some l in input.launches
	some key in {"gpus", "processes", "tensor_parallel", "pipeline_parallel", "data_parallel"}
	l[key] > 1
}

several if input.logs.communicators[_].ranks > 1

several if count(facts.gpus) > 1
