# METADATA
# title: The NVSwitch fabric is not ready
# description: >-
#   On a machine with NVSwitches the fabric manager has to configure the
#   fabric before CUDA starts at all (error 802 until then), and it has to be
#   of exactly the driver's version. Without it no program gets a GPU.
# related_resources:
#   - ref: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
#     description: What the fabric manager does, where it runs, and that its version must equal the driver's.
# schemas:
#   - input: schema.facts
# custom:
#   severity: critical
#   confidence: likely
#   needs:
#     - [gpus.nvswitches, "gpus.devices[].fabric"]
#   remedies: [start-fabric-manager, match-fabric-manager, reboot-or-reload-driver, reset-gpu, reboot, replace-hardware]
#   explains: [p2p-broken-platform, p2p-unsupported-gpu, p2p-slow, nvlink-down, transfer-failed]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.fabric_manager

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.logs

# members are the GPUs that belong to a fabric, with its state.
members := {g.address: g.fabric |
	some g in facts.named
	g.fabric.state != "not-supported"
}

# switched is true on a machine with NVSwitches. On Blackwell they are no PCI
# functions, and the GPUs' membership in a fabric is all that is seen of them.
switched if input.gpus.nvswitches > 0

switched if count(members) > 0

# not_ready is CUDA's own word for it: 802, CUDA_ERROR_SYSTEM_NOT_READY.
probe_not_ready if input.transfers.error_code == 802

probe_not_ready if {
	some d in input.transfers.devices
	d.error_code == 802
}

not_ready if probe_not_ready

# A program's own words for the same. A fabric that stalls for a moment while a
# multicast object is bound answers 802 too, and is nvls-multicast's.
said_not_ready contains m if {
	some m in logs.complaints
	m.role != "consequence"
	regex.match(`ystem not yet initialized|ErrorSystemNotReady|SYSTEM_NOT_READY`, m.text)
	not contains(m.text, "cuMulticast")
}

said_not_ready contains m if some m in logs.by_id["cuda-system-not-ready-number"]

not_ready if count(said_not_ready) > 0

# unshared are the pairs whose memory a fabric handle should have shared and did
# not, by NCCL's own check: between machines that is the work of IMEX.
unshared := {m | some m in logs.by_id["nccl-diag-p2p-import"]; m.fields.handle == "CUMEM_FABRIC"}

findings contains {
	"subject": "IMEX",
	"message": sprintf("NCCL's own check cannot map the memory of GPUs of the same NVLink domain by a fabric handle (%s). Either the IMEX domain is not up (nvidia-imex-ctl -H -N shows nodes that are not READY) or the processes have no access to /dev/nvidia-caps-imex-channels", [
		facts.list({sprintf("GPU %s to %s", [m.fields.from, m.fields.to]) | some m in unshared}),
	]),
	"evidence": array.slice(logs.all_evidence(unshared), 0, 4),
	"order": logs.first(unshared).order,
	"severity": "high",
	"confidence": "likely",
	"params": {"gpus": []},
	"remedies": ["start-fabric-manager", "reboot-or-reload-driver"],
} if {
	count(unshared) > 0
}

# complaints are what the fabric manager says against the fabric.
complaints := logs.messages({"fm-version-mismatch", "nvswitch-version-mismatch", "fm-topology", "fm-switch-fatal", "fm-umad-missing"})

# unserved are failures of its service. It fails wherever there is no NVSwitch
# ("nothing to do"), which is no fault there; on boards of NVLink 5, where the
# NVSwitches answer through NICs, the same words say that their driver is missing.
unserved := logs.messages({"fm-service-failed", "fm-service-missing", "fm-no-switches"})

waiting := {address: f | some address, f in members; f.state in {"not-started", "in-progress"}}

# failed are the GPUs whose registration ended in an error.
failed := {address: f |
	some address, f in members
	f.state == "completed"
	not object.get(f, "status", "SUCCESS") in {"SUCCESS", ""}
}

manager := input.gpus.driver.fabric_manager

# mismatches are the versions that the fabric manager and its driver have by the
# words of the one or the other.
mismatches := {[m.fields.manager, m.fields.driver] |
	some m in logs.messages({"fm-version-mismatch", "nvswitch-version-mismatch"})
	m.fields.manager
	m.fields.driver
}

# loaded is the version of the driver that runs.
loaded := input.gpus.driver.kernel_version if {
	input.gpus.driver.kernel_version != ""
} else := input.gpus.driver.version

mismatch if {
	installed != ""
	loaded != ""
	installed != loaded
}

# installed is the version of the fabric manager: its own word, else that of its
# package, without the package's revision.
installed := manager.version if {
	manager.version != ""
} else := packaged

packaged := version if {
	count(packages) == 1
	some version in packages
}

packages := {split(p.version, "-")[0] |
	some p in input.software
	regex.match(`^(nvidia-fabric-?manager|cuda-fabric-?manager)(-[0-9]+)?$`, p.name)
	regex.match(`^[0-9]{3}\.`, p.version)
}

# stopped is true when the processes of this machine are seen and the fabric
# manager is not among them. In a virtual machine it may run on the host, in a
# container it runs outside.
stopped if {
	manager.running == false
	facts.is_guest == false
	not input.container.private_pid == true
}

# Texts do not tell whether this is a virtual machine, but systemctl was asked on
# this one.
stopped if {
	count(input.texts) > 0
	manager.running == false
	not facts.is_guest == true
}

unsettled := object.keys(waiting) | object.keys(failed)

findings contains object.union(
	{
		"subject": "host",
		"affects": sort(unsettled),
		"message": sprintf("%s%s", [concat(" ", sort(observations)), advice]),
		"evidence": evidence,
		"params": params,
		"severity": severity,
		"confidence": confidence,
		"remedies": remedies,
	},
	place,
) if {
	broken
}

# told are the messages that led here, place where the first of them stands.
told := (said_not_ready | complaints) | shown_dark

shown_dark := dark if {
	blacked_out
} else := set()

default place := {}

place := {"order": logs.first(told).order} if count(told) > 0

broken if not_ready

broken if count(complaints) > 0

broken if count(unsettled) > 0

# Where this machine's own fabric manager serves the fabric, and nothing says
# that the fabric is complete, a manager that does not run, or cannot because of
# its version, is the reason why nothing will start.
broken if {
	in_tree
	count(members) == 0
	cannot_run
}

cannot_run if stopped

cannot_run if mismatch

# Texts seldom show the PCI tree. Eight GPUs of the kind that only boards with
# NVSwitches hold are such a board, and a job that fails there without its fabric
# manager fails for that (pytorch issue 129749: a hang, not 802).
broken if {
	count(input.texts) > 0
	board
	count(members) == 0
	not facts.is_guest == true
	cannot_run
	logs.failed
}

# dark are the words of programs that CUDA gave no GPU, without its number 802:
# older ones print no more than that there is none (wilicc/gpu-burn issue 36).
dark := logs.messages({"cuda-no-device", "cuda-init-error"})

# blacked_out is true where NVML shows the GPUs of a board with NVSwitches and CUDA
# offers none, no variable hides them, and nothing shows a fabric manager.
blacked_out if {
	count(input.texts) > 0
	count(dark) > 0
	count(input.gpus.devices) > 0
	switches
	count(members) == 0
	not facts.is_guest == true
	not manager.running == true
	not logs.said("fm-configured")
	count({n | some n in {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"}; is_string(facts.env[n])}) == 0
}

broken if blacked_out

switches if in_tree

switches if board

# unlisted is true where the packages of the driver are known, and the fabric
# manager is not among them.
unlisted if {
	count(packages) == 0
	count({p.name | some p in input.software; regex.match(`^(?:kmod-)?nvidia-`, p.name)}) > 1
}

default unlisted_words := "nothing shows that its fabric manager runs"

unlisted_words := "its fabric manager is not among the driver's packages" if unlisted

board if count([g | some g in input.gpus.devices; on_board(gpu_models.model[g.name])]) >= 8

on_board(model) if {
	model.form == "board"
	model.nvswitch
}

observations contains "CUDA refuses to start: system not ready (802)." if not_ready

observations contains sprintf("The fabric manager is version %s and the driver %s; they must be equal.", pair) if some pair in mismatches

observations contains "The fabric manager finds another number of NVSwitches than any machine has: some are missing." if {
	logs.said("fm-topology")
}

observations contains sprintf("The fabric manager met fatal errors of NVSwitches: %s.", [concat(", ", codes)]) if {
	codes := sort({object.get(m, ["fields", "sxid"], "without a number") | some m in logs.messages({"fm-switch-fatal"})})
	count(codes) > 0
}

observations contains "The fabric manager's service is not there or fails." if {
	count(unserved) > 0
	count(mismatches) == 0
}

observations contains sprintf("The fabric of %s is %s.", [some_gpus(waiting), concat(", ", sort({replace(f.state, "-", " ") | some f in waiting}))]) if {
	count(waiting) > 0
}

observations contains sprintf("Registration with the fabric of %s ended in %s.", [some_gpus(failed), concat(", ", sort({f.status | some f in failed}))]) if {
	count(failed) > 0
}

observations contains "NVIDIA's subnet manager for NVLink does not reach the NVSwitches, which on boards of NVLink 5 are NICs: load the module ib_umad, then start the fabric manager anew." if {
	logs.said("fm-umad-missing")
}

observations contains sprintf("The driver shows the GPUs of a machine with NVSwitches, CUDA offers none (%s), and %s.", [logs.at(logs.first(dark)), unlisted_words]) if {
	blacked_out
}

observations contains "The fabric manager does not run." if stopped

observations contains sprintf("The fabric manager is version %s and the driver %s; they must be equal.", [installed, loaded]) if mismatch

some_gpus(list) := sprintf("GPU %s", [facts.list(object.keys(list))]) if {
	count(list) == 1
} else := sprintf("all %d GPUs", [count(members)]) if {
	count(list) == count(members)
} else := sprintf("%d of %d GPUs", [count(list), count(members)])

default advice := ""

advice := " In a virtual machine the fabric manager may run on the host or in a service machine: look there." if facts.is_guest == true

# A fabric in progress may be one that is just starting.
default severity := "critical"

severity := "high" if {
	not not_ready
	count(failed) == 0
	{f.state | some f in waiting} == {"in-progress"}
}

default confidence := "likely"

confidence := "possible" if {
	blacked_out
	not unlisted
	not cannot_run
	not not_ready
	count(complaints) == 0
	count(unsettled) == 0
}

confidence := "confirmed" if not_ready

confidence := "confirmed" if count(complaints) > 0

# remedies: one of another version refuses to start, and one that runs was
# started.
default remedies := ["start-fabric-manager", "match-fabric-manager", "reboot-or-reload-driver"]

remedies := ["match-fabric-manager", "reboot-or-reload-driver"] if {
	mismatch
} else := ["match-fabric-manager", "reboot-or-reload-driver"] if {
	count(mismatches) > 0
} else := ["start-fabric-manager", "reboot-or-reload-driver"] if {
	logs.said("fm-umad-missing")
} else := ["reset-gpu", "reboot", "replace-hardware"] if {
	count(complaints) > 0
} else := ["start-fabric-manager", "reboot-or-reload-driver"] if {
	installed == loaded
}

params["gpus"] := sort(facts.gpus)

params["driver"] := loaded

params["fabric_manager"] := installed

evidence := array.concat(
	array.concat(fabric_evidence, array.concat(manager_evidence, probe_evidence)),
	logs.all_evidence(told | unserved),
)

fabric_evidence := [{
	"fact": sprintf("gpus.devices[%s].fabric", [address]),
	"value": object.filter(f, ["state", "status"]),
	"source": "nvmlDeviceGetGpuFabricInfoV",
} |
	some address in sort(object.keys(members))
	f := members[address]
]

manager_evidence := [{
	"fact": sprintf("gpus.driver.%s", [fact]),
	"value": value,
	"source": source,
} |
	some [fact, value, source] in array.concat(running_row, version_rows)
]

running_row := [["fabric_manager.running", manager.running, "/proc"] | is_boolean(manager.running)]

version_rows := [row |
	mismatch
	some row in [
		["fabric_manager.version", installed, "the installed fabric manager"],
		["kernel_version", loaded, "/proc/driver/nvidia/version"],
	]
]

probe_evidence := [{
	"fact": "transfers.error_code",
	"value": 802,
	"source": "cuInit",
} |
	probe_not_ready
]

# The fabric is complete, so something configured it; it is not looked after
# now, or will not be after the next restart.
complete if {
	count(members) > 0
	count(unsettled) == 0
	not not_ready
}

# in_tree is true where the NVSwitches are PCI functions of this machine: then
# its own fabric manager serves them. On an NVL72 tray it runs elsewhere.
in_tree if {
	some d in input.pci.devices
	d.kind == "nvswitch"
}

findings contains {
	"subject": "host",
	"message": "The fabric is configured, but the fabric manager does not run now: multicast (NVLS) cannot be set up, and a fault of the fabric is not dealt with.",
	"evidence": evidence,
	"params": params,
	"severity": "medium",
	"confidence": "likely",
	"remedies": ["start-fabric-manager"],
} if {
	complete
	in_tree
	stopped
}

findings contains {
	"subject": "host",
	"message": sprintf("The fabric manager installed here is version %s and the driver %s. The fabric is configured now, but they must be equal when it next starts.", [installed, loaded]),
	"evidence": evidence,
	"params": params,
	"severity": "medium",
	"confidence": "likely",
	"remedies": ["match-fabric-manager"],
} if {
	complete
	in_tree
	not stopped
	mismatch
	facts.is_guest == false
	not input.container.inside == true
}

missing contains {"fact": "gpus.devices[].fabric", "words": "NVML did not say how the fabric stands"} if {
	not broken
	input.gpus.nvswitches > 0
	count(members) == 0
}

missing contains {"fact": "gpus.nvswitches", "words": "whether there are NVSwitches is not known"} if {
	not broken
	count(members) == 0
	not counted
	not no_gpu
	not facts.only_amd
}

counted if is_number(input.gpus.nvswitches)

no_gpu if count(facts.gpus) == 0

not_applicable contains "no NVIDIA GPU" if {
	facts.only_amd
	not broken
	not switched
	not not_ready
}

not_applicable contains "no NVSwitch here" if {
	not switched
	not not_ready
	counted
}

not_applicable contains "no GPU" if no_gpu
