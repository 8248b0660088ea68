# METADATA
# title: The NVSwitch fabric
# description: >-
#   The state of the GPUs in the NVSwitch fabric, whether this machine manages
#   it, and whether its fabric manager works: that it runs and has the driver's
#   version.
package gpudoctor.lib.fabric

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models

# members are the GPUs that belong to a fabric, with its state.
members := {g.address: g.fabric |
	some g in facts.named
	g.fabric.state != "not-supported"
}

# switched is true on a machine with NVSwitches. On Blackwell they are no PCI
# functions, and the GPUs' membership in a fabric is all that is seen of them.
switched if input.gpus.nvswitches > 0

switched if count(members) > 0

waiting := {address: f | some address, f in members; f.state in {"not-started", "in-progress"}}

# failed are the GPUs whose registration ended in an error.
failed := {address: f |
	some address, f in members
	f.state == "completed"
	not object.get(f, "status", "SUCCESS") in {"SUCCESS", ""}
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

# stopped is true when the processes of this machine are seen and the fabric
# manager is not among them. In a virtual machine it may run on the host, in a
# container it runs outside.
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
evidence := array.concat(
	[{"fact": sprintf("gpus.devices[%s].fabric", [address]), "value": object.filter(f, ["state", "status"]), "source": "nvmlDeviceGetGpuFabricInfoV"} |
		some address, f in members
	],
	[e | some e in manager_evidence],
)

manager_evidence[0] := {"fact": "gpus.driver.fabric_manager.running", "value": manager.running, "source": "/proc"} if is_boolean(manager.running)

manager_evidence[1] := {"fact": "gpus.driver.fabric_manager.version", "value": installed, "source": "the installed fabric manager"} if mismatch

manager_evidence[2] := {"fact": "gpus.driver.kernel_version", "value": loaded, "source": "/proc/driver/nvidia/version"} if mismatch
