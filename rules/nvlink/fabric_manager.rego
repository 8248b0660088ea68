# METADATA
# title: The NVSwitch fabric is not ready
# description: >-
#   On a machine with NVSwitches, the fabric manager must configure the fabric before CUDA can start (error 802 until
#   then), and it must have exactly the driver's version. Without it, no program can use a GPU.
# related_resources:
#   - ref: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
#     description: What the fabric manager does, where it runs, and why its version must match the driver's.
# custom:
#   severity: critical
#   confidence: likely
#   needs:
#     - [gpus.nvswitches, "gpus.devices[].fabric"]
#   remedies: [start-fabric-manager, match-fabric-manager, reboot-or-reload-driver, reset-all-gpus, reboot, replace-hardware, other]
#   explains: [p2p-broken-platform, p2p-unsupported-gpu, p2p-slow, nvlink-down, transfer-failed, collective-failed]
#   since: "0.1"
package gpudoctor.rules.fabric_manager

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci

# start is what helps where nothing says more: a fabric manager of the driver's version only has to be started.
start := ["start-fabric-manager", "reboot-or-reload-driver"] if {
	installed == loaded
} else := ["start-fabric-manager", "match-fabric-manager", "reboot-or-reload-driver"]

# signs are what is said against the fabric, with what helps. The first that is present names the remedies.
signs["not-ready"] := ["CUDA fails to start: system not ready (802)", start] if not_ready

signs["version"] := [
	sprintf("The fabric manager is version %s and the driver %s; they must be equal", [installed, loaded]),
	["match-fabric-manager", "reboot-or-reload-driver"],
] if mismatch

signs["state"] := [sprintf("The fabric state of %d of %d GPUs is %s", [count(unsettled), count(members), facts.list({words | some words in unsettled})]), start] if {
	count(unsettled) > 0
}

signs["no-gpu"] := ["The driver shows the GPUs of a machine with NVSwitches, but CUDA offers none, and nothing shows that its fabric manager runs", start] if blacked_out
signs["stopped"] := ["The fabric manager is not running", start] if stopped
signs["service"] := ["The fabric manager service is missing or fails", start] if count(unserved) > 0

present := [signs[id] | some id in ["version", "not-ready", "state", "no-gpu", "stopped", "service"]; signs[id]]

findings contains {
	"subject": "host",
	"affects": sort(object.keys(unsettled)),
	"message": concat(". ", array.concat([words | some [words, _] in present], elsewhere)),
	"messages": (said_not_ready | {m | some m in dark; blacked_out}),
	"evidence": array.flatten([
		fabric_evidence,
		[{"fact": "transfers.error_code", "value": driver_errors.code.SYSTEM_NOT_READY, "source": "cuInit"} | probe_not_ready],
		logs.all_evidence(unserved),
	]),
	"params": {"driver": d | d := loaded},
	"severity": severity,
	"confidence": confidence,
	"remedies": present[0][1],
} if broken

elsewhere := ["In a virtual machine, the fabric manager may run on the host or in a service VM: check there" | facts.is_guest == true]

# A fabric in progress may be one that is just starting. One that is complete continues without its manager, but multicast
# and faults are not handled.
severity := "critical" if {
	not_ready
} else := "high" if {
	{words | some words in unsettled} == {"in progress"}
} else := "medium" if {
	count(members) > 0
	count(unsettled) == 0
} else := "critical"

confidence := "confirmed" if {
	not_ready
} else := "possible" if {
	object.keys(signs) == {"no-gpu"}
} else := "likely"

broken if not_ready
broken if count(unsettled) > 0
broken if blacked_out

# A manager of this machine that does not run, or cannot because of its version, is why nothing will start.
broken if {
	in_tree
	cannot_run
}

# Texts seldom show the PCI tree. Eight GPUs of the kind that only boards with NVSwitches hold are such a board, and a
# job that fails there without its fabric manager fails for that (pytorch issue 129749: a hang, not 802).
broken if {
	count(input.texts) > 0
	board
	count(members) == 0
	not facts.is_guest == true
	cannot_run
	logs.failed
}

cannot_run if stopped
cannot_run if mismatch

probe_not_ready if driver_errors.code.SYSTEM_NOT_READY in ({code | code := input.transfers.error_code} | {d.error_code | some d in input.transfers.devices})

# A fabric that stalls for a moment while a multicast object is bound also answers 802; nvls-multicast covers that.
said_not_ready := logs.messages({"cuda-system-not-ready", "cuda-system-not-ready-number", "nccl-cuda-system-not-ready"})

not_ready if probe_not_ready
not_ready if count(said_not_ready) > 0

# unserved are failures of its service. It fails wherever there is no NVSwitch
# ("nothing to do"), which is no fault there; on boards of NVLink 5, where the
# NVSwitches answer through NICs, the same words say that their driver is missing.
unserved := logs.messages({"fm-service-failed", "fm-service-missing", "fm-no-switches"})

# Older programs print that there is no GPU, without CUDA's number 802 (wilicc/gpu-burn issue 36).
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

missing contains {"fact": "gpus.devices[].fabric", "words": "NVML did not report the fabric state"} if {
	input.gpus.nvswitches > 0
	count(members) == 0
}

asks contains "gpus.nvswitches" if count(members) == 0

not_applicable contains "no NVIDIA GPU" if {
	facts.only_amd
	not switched
}

not_applicable contains "no NVSwitch here" if {
	not switched
	is_number(input.gpus.nvswitches)
}

not_applicable contains "no GPU" if count(facts.gpus) == 0

members := {g.address: g.fabric | some g in facts.named; g.fabric.state != "not-supported"}

# switched is true on a machine with NVSwitches. On Blackwell they are no PCI
# functions, and the GPUs' membership in a fabric is all that is seen of them.
switched if input.gpus.nvswitches > 0
switched if count(members) > 0

# unsettled are the GPUs whose registration has not ended, with its state, or ended in an error.
unsettled[address] := replace(f.state, "-", " ") if {
	some address, f in members
	f.state in {"not-started", "in-progress"}
}

unsettled[address] := f.status if {
	some address, f in members
	f.state == "completed"
	not f.status in {"SUCCESS", ""}
}

manager := input.gpus.driver.fabric_manager

loaded := input.gpus.driver.kernel_version if {
	input.gpus.driver.kernel_version != ""
} else := input.gpus.driver.version

# In a container or a virtual machine, the fabric manager that works is elsewhere.
mismatch if {
	installed != ""
	loaded != ""
	installed != loaded
	not facts.is_guest == true
	not input.container.inside == true
}

# installed is the version of the fabric manager: its own output, or else that of its
# package, without the package's revision.
installed := manager.version if {
	manager.version != ""
} else := version if {
	count(packages) == 1
	some version in packages
}

packages := {split(p.version, "-")[0] |
	some p in input.software
	regex.match(`^(nvidia-fabric-?manager|cuda-fabric-?manager)(-[0-9]+)?$`, p.name)
	regex.match(`^[0-9]{3}\.`, p.version)
}

# stopped is true when the processes of this machine are seen and the fabric manager is not among them. In a virtual
# machine it may run on the host, in a container it runs outside.
stopped if {
	manager.running == false
	pci.bare_metal
	not input.container.private_pid == true
}

# in_tree is true where the NVSwitches are PCI functions of this machine: then
# its own fabric manager serves them. On an NVL72 tray it runs elsewhere.
in_tree if {
	some d in input.pci.devices
	d.kind == "nvswitch"
}

board if count([g |
	some g in input.gpus.devices
	model := gpu_models.model[g.name]
	model.form == "board"
	model.nvswitch
]) >= 8

switches if in_tree
switches if board

fabric_evidence := array.flatten([
	[{"fact": sprintf("gpus.devices[%s].fabric", [address]), "value": object.filter(f, ["state", "status"]), "source": "nvmlDeviceGetGpuFabricInfoV"} |
		some address, f in members
	],
	[{"fact": "gpus.driver.fabric_manager.running", "value": manager.running, "source": "/proc"} | is_boolean(manager.running)],
	[{"fact": "gpus.driver.fabric_manager.version", "value": installed, "source": "the installed fabric manager"} | mismatch],
	[{"fact": "gpus.driver.kernel_version", "value": loaded, "source": "/proc/driver/nvidia/version"} | mismatch],
])
