# METADATA
# title: Devices in files that describe a job
# description: >-
#   A file that starts programs for GPUs and passes none, or only a part of what
#   they need. Each element of unreached is a finding of rule container-caps.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.launch_devices

import data.gpudoctor.lib.launch_files as lf
import data.gpudoctor.lib.launches

# A container that starts ranks and is given no GPU. The default runtime of a machine may
# add them for an image that asks for them.
unreached contains {
	"subject": "/dev/nvidia*",
	"message": sprintf("%s starts a program for GPUs and requests none (%s)", [lf.opening(l), ways[l.kind]]),
	"severity": "medium",
	"confidence": "possible",
	"remedies": ["pass-device-nodes"],
	"params": {"nodes": ["/dev/nvidia0"]},
	"evidence": [lf.fact(l, "processes", object.get(l, "command", []))],
} if {
	some l in lf.contained
	not_given(l)
	lf.ranks(l) > 0
	not array.concat(object.get(l, "command", []), [""])[0] in {"mpirun", "mpiexec", "orterun"}
}

ways := {
	"docker-run": "neither --gpus nor --runtime=nvidia",
	"compose": "neither deploy.resources.reservations.devices nor gpus",
	"kubernetes": "no nvidia.com/gpu or amd.com/gpu among its limits",
}

not_given(l) if l in launches.without_gpus

not_given(l) if {
	l.kind == "kubernetes"
	launches.shows(l, {"gpus", "privileged", "resources", "variables", "variables[NVIDIA_VISIBLE_DEVICES]"})
	not l.gpus
	not l.privileged
	count(object.get(l, "resources", {})) == 0
	not lf.settings(l).NVIDIA_VISIBLE_DEVICES
}

# AMD: HIP needs the compute node and the render nodes.
unreached contains {
	"subject": lacking,
	"message": sprintf("%s is passed to %s, but not %s: HIP then finds no GPU", [given, lf.title(l), lacking]),
	"severity": "high",
	"confidence": "likely",
	"remedies": ["pass-amd-devices"],
	"params": {"nodes": [lacking]},
	"evidence": [lf.fact(l, "devices", l.devices)],
} if {
	some l in lf.contained
	launches.shows(l, {"privileged", "devices"})
	not l.privileged
	some [given, lacking] in [["/dev/kfd", "/dev/dri"], ["/dev/dri", "/dev/kfd"]]
	has(l, given)
	not has(l, lacking)
	not elsewhere(l)
}

has(l, prefix) if {
	some d in l.devices
	startswith(d, prefix)
}

# A graphics node alone is also passed for other purposes.
elsewhere(l) if {
	not has(l, "/dev/kfd")
	not contains(object.get(l, "image", ""), "rocm")
}
