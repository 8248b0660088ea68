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
#   remedies: [start-fabric-manager, start-imex, pass-imex-channel, nccl-mnnvl-disable, match-fabric-manager, reboot-or-reload-driver, reset-all-gpus, reboot, replace-hardware, other]
#   explains: [p2p-broken-platform, p2p-unsupported-gpu, p2p-slow, nvlink-down, transfer-failed, collective-failed]
#   since: "0.1"
package gpudoctor.rules.fabric_manager

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.logs

probe_not_ready if driver_errors.code.SYSTEM_NOT_READY in probe_codes

probe_codes := {code | code := input.transfers.error_code} | {d.error_code | some d in input.transfers.devices}

# said_not_ready are programs' own messages for the same. A fabric that stalls for a
# moment while a multicast object is bound also answers 802; nvls-multicast covers that.
said_not_ready := logs.messages({"cuda-system-not-ready", "cuda-system-not-ready-number", "nccl-cuda-system-not-ready"})

not_ready if probe_not_ready

not_ready if count(said_not_ready) > 0

# complaints are what the fabric manager says against the fabric.
complaints := logs.messages({"fm-version-mismatch", "nvswitch-version-mismatch", "fm-topology", "fm-switch-fatal", "fm-umad-missing"})

# unserved are failures of its service. It fails wherever there is no NVSwitch
# ("nothing to do"), which is no fault there; on boards of NVLink 5, where the
# NVSwitches answer through NICs, the same words say that their driver is missing.
unserved := logs.messages({"fm-service-failed", "fm-service-missing", "fm-no-switches"})

# mismatches are the versions of the fabric manager and the driver that differ, as one of the two says, or as they are
# installed.
mismatches := {[m.fields.manager, m.fields.driver] |
	some m in logs.messages({"fm-version-mismatch", "nvswitch-version-mismatch"})
	m.fields.manager
	m.fields.driver
} | {[installed, loaded] | mismatch}

findings contains {
	"subject": "host",
	"affects": sort(object.keys(unsettled)),
	"message": sprintf("%s%s", [concat(" ", sort(observations)), advice]),
	"messages": told,
	"evidence": evidence,
	"params": params,
	"severity": severity,
	"confidence": confidence,
	"remedies": remedies,
} if {
	broken
}

# told are the messages that led here.
told := (said_not_ready | complaints) | {m | some m in dark; blacked_out}

broken if not_ready

broken if count(complaints) > 0

broken if count(unsettled) > 0

# Where this machine's own fabric manager serves the fabric, and nothing says that the fabric is complete, a manager
# that does not run, or cannot because of its version, is the reason why nothing will start.
broken if {
	in_tree
	count(members) == 0
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

# dark are the messages of programs that CUDA gave no GPU, without its number 802: older
# ones only print that there is none (wilicc/gpu-burn issue 36).
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

# unlisted is true where the packages of the driver are known, and the fabric manager is not among them.
unlisted if {
	count(packages) == 0
	count({p.name | some p in input.software; regex.match(`^(?:kmod-)?nvidia-`, p.name)}) > 1
}

observations contains "CUDA fails to start: system not ready (802)." if not_ready

observations contains sprintf("The fabric manager is version %s and the driver %s; they must be equal.", pair) if some pair in mismatches

observations contains sprintf("The fabric manager reported fatal NVSwitch errors: %s.", [concat(", ", codes)]) if {
	codes := sort({object.get(m, ["fields", "sxid"], "without a number") | some m in logs.messages({"fm-switch-fatal"})})
	count(codes) > 0
}

observations contains "The fabric manager service is missing or fails." if count(unserved) > 0

observations contains sprintf("The fabric state of %d of %d GPUs is %s.", [count(unsettled), count(members), concat(", ", sort({words | some words in unsettled}))]) if {
	count(unsettled) > 0
}

observations contains words if {
	some id, words in {
		"fm-topology": "The number of NVSwitches that the fabric manager finds matches no machine model: some are missing.",
		"fm-umad-missing": "NVIDIA's subnet manager for NVLink does not reach the NVSwitches, which appear as NICs on NVLink 5 boards: load the module ib_umad, then restart the fabric manager.",
	}
	logs.said(id)
}

observations contains sprintf("The driver shows the GPUs of a machine with NVSwitches, but CUDA offers none (%s), and nothing shows that its fabric manager runs.", [logs.at(logs.first(dark))]) if {
	blacked_out
}

observations contains "The fabric manager is not running." if stopped

default advice := ""

advice := " In a virtual machine, the fabric manager may run on the host or in a service VM: check there." if facts.is_guest == true

# A fabric in progress may be one that is just starting.
default severity := "critical"

severity := "high" if {
	not not_ready
	{words | some words in unsettled} == {"in progress"}
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

# remedies: one of another version fails to start, and one that runs was
# started.
default remedies := ["start-fabric-manager", "match-fabric-manager", "reboot-or-reload-driver"]

remedies := ["match-fabric-manager", "reboot-or-reload-driver"] if {
	count(mismatches) > 0
} else := ["start-fabric-manager", "reboot-or-reload-driver"] if {
	logs.said("fm-umad-missing")
} else := ["reset-all-gpus", "reboot", "replace-hardware"] if {
	count(complaints) > 0
} else := ["start-fabric-manager", "reboot-or-reload-driver"] if {
	installed == loaded
}

params["driver"] := loaded

evidence := array.concat(fabric_evidence, array.concat(
	[{"fact": "transfers.error_code", "value": driver_errors.code.SYSTEM_NOT_READY, "source": "cuInit"} | probe_not_ready],
	logs.all_evidence(unserved),
))

findings contains {
	"subject": "host",
	"message": unattended[0],
	"evidence": evidence,
	"params": params,
	"severity": "medium",
	"remedies": [unattended[1]],
} if {
	in_tree
	count(members) > 0
	count(unsettled) == 0
	not not_ready
}

unattended := [
	"The fabric is configured, but the fabric manager is not running: multicast (NVLS) cannot be set up, and fabric faults are not handled.",
	"start-fabric-manager",
] if {
	stopped
} else := [
	sprintf("The fabric manager installed here is version %s and the driver %s. The fabric is configured now, but the versions must match when it next starts.", [installed, loaded]),
	"match-fabric-manager",
] if {
	mismatch
	facts.is_guest == false
	not input.container.inside == true
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

# The state of the GPUs in the NVSwitch fabric, whether this machine manages it, and whether its fabric manager
# works: that it runs and has the driver's version.

# members are the GPUs that belong to a fabric, with its state.
members := {g.address: g.fabric |
	some g in facts.named
	g.fabric.state != "not-supported"
}

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

# loaded is the version of the driver that runs.
loaded := input.gpus.driver.kernel_version if {
	input.gpus.driver.kernel_version != ""
} else := input.gpus.driver.version

mismatch if {
	installed != ""
	loaded != ""
	installed != loaded
}

# installed is the version of the fabric manager: its own output, or else that of its
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

# stopped is true when the processes of this machine are seen and the fabric manager is not among them. In a virtual
# machine it may run on the host, in a container it runs outside.
stopped if {
	manager.running == false
	facts.is_guest == false
	not input.container.private_pid == true
}

# Texts do not show whether this is a virtual machine, but systemctl ran on this one.
stopped if {
	count(input.texts) > 0
	manager.running == false
	not facts.is_guest == true
}

cannot_run if stopped

cannot_run if mismatch

# in_tree is true where the NVSwitches are PCI functions of this machine: then
# its own fabric manager serves them. On an NVL72 tray it runs elsewhere.
in_tree if {
	some d in input.pci.devices
	d.kind == "nvswitch"
}

# board is true of eight GPUs on boards with NVSwitches.
board if count([g | some g in input.gpus.devices; on_board(gpu_models.model[g.name])]) >= 8

on_board(model) if {
	model.form == "board"
	model.nvswitch
}

# switches is true on a board with NVSwitches, as far as anything shows it.
switches if in_tree

switches if board

# evidence is the fabric state of the GPUs, and the fabric manager.
fabric_evidence := array.concat(
	[{"fact": sprintf("gpus.devices[%s].fabric", [address]), "value": object.filter(f, ["state", "status"]), "source": "nvmlDeviceGetGpuFabricInfoV"} |
		some address, f in members
	],
	[e | some e in manager_evidence],
)

manager_evidence[0] := {"fact": "gpus.driver.fabric_manager.running", "value": manager.running, "source": "/proc"} if is_boolean(manager.running)

manager_evidence[1] := {"fact": "gpus.driver.fabric_manager.version", "value": installed, "source": "the installed fabric manager"} if mismatch

manager_evidence[2] := {"fact": "gpus.driver.kernel_version", "value": loaded, "source": "/proc/driver/nvidia/version"} if mismatch
