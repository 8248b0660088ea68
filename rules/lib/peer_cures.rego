# METADATA
# title: Remedies for failed peer copies
# description: >-
#   By platform, and by how the probe's transfers failed: host memory for NCCL's
#   copies, and for all others the removal of what blocks them.
package gpudoctor.lib.peer_cures

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.broken_transfers
import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.transfers

# only_fails is true where one way of giving memory to another process fails
# over each of these pairs, and the other is right.
only_fails(way, other, group) if {
	{t.way | some t in transfers.all(group)} == {way}
	every d in object.keys(group) {
		some t in peers.transfers_of[peers.key(d[0], d[1])]
		t.way == other
		t.outcome in {"ok", "slow"}
	}
}

# Memory that is at fault stays so without peer-to-peer. Over NVLink neither firmware nor
# IOMMU has a part in it, and in a virtual machine both are the host's. Pass-through cures
# only what it is not known to be in force for.
remedies(k, group) := process_remedies(group) if {
	k.paths == broken_transfers.exported
} else := ["reset-gpu", "reboot-or-reload-driver", "replace-hardware"] if {
	some t in transfers.all(group)
	t.error_code in driver_errors.in_gpu
} else := ["nccl-p2p-disable", "reset-gpu", "reboot-or-reload-driver", "upgrade-driver"] if {
	peers.under_nvlink(object.keys(group))
} else := ["nccl-p2p-disable", "upgrade-driver"] if {
	facts.is_guest == true
} else := array.flatten(["nccl-p2p-disable", pass_through(group), "update-bios", "upgrade-driver"]) if {
	k.worst != "error"
} else := array.flatten(["nccl-p2p-disable", "upgrade-driver", "update-bios", pass_through(group)])

process_remedies(group) := ["nccl-cumem-disable", "upgrade-driver"] if {
	only_fails("cuMem", "cudaIpc", group)
} else := ["upgrade-driver"] if {
	only_fails("cudaIpc", "cuMem", group)
} else := ["nccl-p2p-disable", "upgrade-driver"]

# AMD recommends remapping for Radeon GPUs.
pass_through(group) := ["iommu-pt"] if {
	not amd.only_radeon
	not untranslated(group)
} else := ["iommu-remap"] if {
	amd.only_radeon
	input.iommu.mode in {"passthrough", "off"}
} else := []

untranslated(group) if {
	every address in transfers.gpus(group) {
		pci.untranslated(address)
	}
}

# Peer access that the driver offers and that does not work is the platform's fault. cures
# are what lets copies arrive there: host memory for NCCL's, and for all others the
# removal of what blocks them on the platform.
cures := array.concat(["nccl-p2p-disable"], platform_cures)

platform_cures := ["upgrade-driver"] if {
	facts.is_guest == true
} else := ["disable-acs", "iommu-remap", "update-bios", "upgrade-driver"] if {
	amd.only_radeon
} else := ["iommu-pt", "iommu-off", "disable-acs", "update-bios", "upgrade-driver"]
