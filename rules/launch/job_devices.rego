# METADATA
# title: A job's container lacks devices
# description: A container sees only the devices that are passed in, and a program ends without those that it needs.
# related_resources:
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
#   - ref: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html
# custom:
#   severity: high
#   remedies: [pass-device-nodes, pass-amd-devices, pass-rdma-devices, add-ipc-lock]
#   cause: container-caps
#   since: "0.4"
#   grades:
#     gpus: {severity: medium, confidence: possible, remedies: [pass-device-nodes], text: "{opening} starts ranks without GPUs ({lacking})"}
#     amd: {remedies: [pass-amd-devices], text: "{opening} gets /dev/kfd, but not /dev/dri: HIP then finds no GPU"}
#     rdma: {remedies: [pass-rdma-devices, add-ipc-lock], text: "{opening} sets NCCL_NET=IB but gets no RDMA device: NCCL then ends"}
package gpudoctor.rules.job_devices

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches
import data.tables.launch_files as words

# The default runtime of a machine may add GPUs for an image that asks for them.
findings contains job.finding(l, "gpus", "/dev/nvidia*", [job.fact(l, "processes", n)], {}, {"lacking": words.lacking.gpus[l.kind]}) if {
	some l in (job.containers & (launches.without_gpus | unnamed))
	n := job.ranks(l)
	n > 1
	not array.concat(object.get(l, "command", []), [""])[0] in {"mpirun", "mpiexec", "orterun"}
	not job.matches(words.other_processors, object.get(l, "image", ""))
}

unnamed contains l if {
	some l in job.deviceless
	launches.shows(l, {"variables", "variables[NVIDIA_VISIBLE_DEVICES]"})
	not job.settings(l).NVIDIA_VISIBLE_DEVICES
}

findings contains job.finding(l, "amd", "/dev/dri", [job.fact(l, "devices", l.devices)], {"nodes": ["/dev/dri"]}, {}) if {
	some l in job.confined
	launches.shows(l, {"devices", "mounts"})
	passed := array.concat(object.get(l, "devices", []), object.get(l, "mounts", []))
	strings.any_prefix_match(passed, "/dev/kfd")
	not strings.any_prefix_match(passed, "/dev/dri")
}

# A network of its own may bring a pod an RDMA device.
findings contains job.finding(l, "rdma", "/dev/infiniband", [job.setting_fact(l, "NCCL_NET")], {"nodes": ["/dev/infiniband"]}, {}) if {
	some l in (job.confined & launches.without_rdma)
	launches.lacks(l, {"networks"})
	upper(job.settings(l).NCCL_NET.value) == "IB"
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"privileged", "devices", "mounts", "resources", "runtime", "variables[NVIDIA_VISIBLE_DEVICES]", "variables[NVIDIA_DRIVER_CAPABILITIES]", "variables[NCCL_NET]", "gpus", "processes", "tensor_parallel"})
