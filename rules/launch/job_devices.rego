# METADATA
# title: A job's container lacks devices
# description: A container sees only the devices that are passed in. Without GPUs a program does not start, HIP needs both of AMD's
#   device nodes, and NCCL without an RDMA device uses TCP, or ends if its variables call for RDMA.
# related_resources:
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
#     description: Devices that are passed to a container
#   - ref: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html
#     description: Devices and groups of a ROCm container
# custom:
#   severity: high
#   remedies: [pass-device-nodes, pass-amd-devices, pass-rdma-devices, add-ipc-lock]
#   cause: container-caps
#   since: "0.4"
package gpudoctor.rules.job_devices

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches
import data.tables.launch_files as words

# A container that starts ranks and is given no GPU. The default runtime of a machine may add them for an image that asks
# for them.
findings contains {
	"subject": "/dev/nvidia*", "severity": "medium", "confidence": "possible", "remedies": ["pass-device-nodes"],
	"message": sprintf("%s starts a program for GPUs and requests none (%s)", [job.opening(l), words.lacking.gpus[l.kind]]),
	"params": {"nodes": ["/dev/nvidia0"]}, "evidence": [job.fact(l, "processes", object.get(l, "command", []))],
} if {
	some l in (job.containers & without_gpus)

	# A single rank may be a test of the CPU, unless its image is for GPUs.
	job.ranks(l) > {true: 0, false: 1}[job.matches(words.gpu_images, object.get(l, "image", ""))]
	not array.concat(object.get(l, "command", []), [""])[0] in {"mpirun", "mpiexec", "orterun"}
	not job.matches(words.other_processors, object.get(l, "image", ""))
}

without_gpus := launches.without_gpus | {l |
	some l in job.deviceless
	launches.lacks(l, {"runtime"})
	launches.shows(l, {"variables", "variables[NVIDIA_VISIBLE_DEVICES]"})
	not job.settings(l).NVIDIA_VISIBLE_DEVICES
}

# AMD: HIP needs the compute node and the render nodes. A graphics node alone is also passed for other purposes.
findings contains {
	"subject": lacking, "remedies": ["pass-amd-devices"], "params": {"nodes": [lacking]}, "evidence": [job.fact(l, "devices", l.devices)],
	"message": sprintf("%s is passed to %s, but not %s: HIP then finds no GPU", [given, launches.title(l), lacking]),
} if {
	some l in job.confined
	launches.shows(l, {"devices", "mounts"})
	some [given, lacking] in [["/dev/kfd", "/dev/dri"], ["/dev/dri", "/dev/kfd"]]
	passed := array.concat(object.get(l, "devices", []), object.get(l, "mounts", []))
	strings.any_prefix_match(passed, given)
	not strings.any_prefix_match(passed, lacking)
	[lacking, contains(object.get(l, "image", ""), "rocm")] != ["/dev/kfd", false]
}

of_rdma(severity, message, evidence) := {
	"subject": "/dev/infiniband", "severity": severity, "remedies": ["pass-rdma-devices", "add-ipc-lock"],
	"params": {"nodes": ["/dev/infiniband"]}, "evidence": [evidence], "message": message,
}

# A network of its own may bring a pod an RDMA device.
without_rdma := {l | some l in (job.confined & launches.without_rdma); launches.lacks(l, {"networks"})}

findings contains of_rdma(called[0], sprintf("%s sets %s=%s but gets no RDMA device: %s", [job.opening(l), name, s.value, called[1]]), job.setting_fact(l, name)) if {
	some l in without_rdma
	some name, s in job.settings(l)
	called := calls(name, s.value)
}

calls("NCCL_NET", value) := ["high", "NCCL then ends instead of using TCP"] if upper(value) == "IB"
calls("NCCL_IB_HCA", value) := ["medium", "NCCL finds none of these NICs and uses TCP"] if not value in {"", "^"}

findings contains of_rdma("medium", sprintf("%s runs on %d nodes and gets no RDMA device, but the target has RDMA NICs: traffic between nodes uses TCP", [job.opening(l), l.nodes]), job.fact(l, "devices", object.get(l, "devices", []))) if {
	some l in without_rdma
	job.target_rdma
	l.nodes > 1
	job.asks(l)
}

# Enroot leaves /dev empty but for what its hooks add.
findings contains {
	"subject": "/dev/infiniband", "severity": "low", "confidence": "possible", "remedies": ["pass-rdma-devices"],
	"message": sprintf("ENROOT_RESTRICT_DEV=%s keeps the host's /dev out of containers: without MELLANOX_VISIBLE_DEVICES=all, RDMA devices are missing there", [value]),
	"params": {"nodes": ["/dev/infiniband"]}, "evidence": [job.fact(l, "variables[ENROOT_RESTRICT_DEV]", value)],
} if {
	some l in job.parts
	l.kind == "enroot-conf"
	value := l.variables.ENROOT_RESTRICT_DEV
	lower(value) in {"y", "yes", "1", "true", "t", "on"}
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"privileged", "devices", "mounts", "resources", "runtime", "nodes", "variables[NVIDIA_VISIBLE_DEVICES]", "variables[NVIDIA_DRIVER_CAPABILITIES]", "variables[NCCL_NET]", "variables[NCCL_IB_HCA]", "variables[ENROOT_RESTRICT_DEV]", "gpus", "processes", "tensor_parallel"})
