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
#   remedies: [start-fabric-manager, match-fabric-manager, reboot-or-reload-driver, reset-all-gpus, reboot, nccl-nvls-disable, replace-hardware, other]
#   explains: [p2p-broken-platform, p2p-unsupported-gpu, p2p-slow, nvlink-down, transfer-failed, collective-failed]
#   since: "0.1"
#   grades:
#     fabric: >-
#       The NVSwitch fabric has a problem[: CUDA fails to start with {error}][; the fabric manager has version {installed},
#       and the driver {loaded}: they must be equal][; the fabric state of {unsettled:GPU} is {states}][; the fabric
#       manager is {down}][. In {guest}, the fabric manager may run on the host or in a service VM: check there]
package gpudoctor.rules.fabric_manager

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci

findings contains {
	"grade": "fabric",
	"subject": "host",
	"affects": sort(object.keys(unsettled)),
	"about": {
		"error": ["system not ready (802)" | not_ready], "unsettled": object.keys(unsettled), "states": states,
		"installed": [installed | mismatch], "loaded": [loaded | mismatch],
		"down": ["not running" | stopped], "guest": ["a virtual machine" | facts.is_guest == true],
	},
	"messages": (said_not_ready | logs.messages({"fm-service-failed", "fm-service-missing", "fm-no-switches"})),
	"evidence": array.flatten([
		[{"fact": sprintf("gpus.devices[%s].fabric", [address]), "value": object.filter(f, ["state", "status"]), "source": "nvmlDeviceGetGpuFabricInfoV"} |
			some address, f in members
		],
		[{"fact": "gpus.driver.fabric_manager.running", "value": manager.running, "source": "/proc"} | is_boolean(manager.running)],
		[{"fact": "gpus.driver.fabric_manager.version", "value": installed, "source": "the installed fabric manager"} | mismatch],
		[{"fact": "transfers.error_code", "value": driver_errors.code.SYSTEM_NOT_READY, "source": "cuInit"} | probe_not_ready],
	]),
	"params": {"driver": d | d := loaded},
	"severity": severity,
	"confidence": {true: "confirmed", false: "likely"}[not_ready],
	"remedies": array.concat(["start-fabric-manager" | not mismatch], ["match-fabric-manager", "reboot-or-reload-driver"]),
} if broken

# A fabric in progress may be one that is just starting. One that is complete continues without its manager, but multicast
# and faults are not handled.
severity := "critical" if {
	not_ready
} else := "high" if {
	states == {"in progress"}
} else := "medium" if {
	count(members) > 0
	count(unsettled) == 0
} else := "critical"

broken if not_ready
broken if count(unsettled) > 0

# A manager of this machine that does not run, or cannot because of its version, is why nothing will start: its NVSwitches
# are PCI functions here. On an NVL72 tray it runs elsewhere.
broken if {
	"nvswitch" in {d.kind | some d in input.pci.devices}
	cannot_run
}

# Texts seldom show the PCI tree. Eight GPUs that only boards with NVSwitches hold are such a board, and a job that fails
# there without its fabric manager fails for that (pytorch issue 129749: a hang, not 802).
broken if {
	count([g | some g in input.gpus.devices; gpu_models.model[g.name].form == "board"; gpu_models.model[g.name].nvswitch]) >= 8
	count(members) == 0
	cannot_run
	logs.failed
}

cannot_run if stopped
cannot_run if mismatch

default not_ready := false

not_ready if probe_not_ready
not_ready if count(said_not_ready) > 0

probe_not_ready if driver_errors.code.SYSTEM_NOT_READY in ({code | code := input.transfers.error_code} | {d.error_code | some d in input.transfers.devices})

# A fabric that stalls for a moment while a multicast object is bound also answers 802; nvls-multicast covers that.
said_not_ready := logs.messages({"cuda-system-not-ready", "cuda-system-not-ready-number", "nccl-cuda-system-not-ready"})

missing contains {"fact": "gpus.devices[].fabric", "words": "NVML did not report the fabric state"} if {
	input.gpus.nvswitches > 0
	count(members) == 0
}

asks contains "gpus.nvswitches" if count(members) == 0

not_applicable contains "no NVIDIA GPU" if facts.only_amd

not_applicable contains "no NVSwitch here" if {
	count(members) == 0
	input.gpus.nvswitches == 0
}

not_applicable contains "no GPU" if count(facts.gpus) == 0

# members are the GPUs of a fabric. On Blackwell the NVSwitches are no PCI functions, and this is all that is seen of them.
members := {g.address: g.fabric | some g in facts.named; g.fabric.state != "not-supported"}

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

states := {state | some state in unsettled}

manager := input.gpus.driver.fabric_manager

loaded := input.gpus.driver.kernel_version if {
	input.gpus.driver.kernel_version != ""
} else := input.gpus.driver.version

# installed is the version of the fabric manager: its own output, or else that of its package, without the revision.
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

# In a container or a virtual machine, the fabric manager that works is elsewhere.
mismatch if {
	count({installed, loaded} - {""}) == 2
	not facts.is_guest == true
	not input.container.inside == true
}

# In a virtual machine the fabric manager may run on the host, in a container it runs outside.
stopped if {
	manager.running == false
	pci.bare_metal
	not input.container.private_pid == true
}
