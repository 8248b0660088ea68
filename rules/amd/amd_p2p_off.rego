# METADATA
# title: AMD's driver offers no peer access over PCIe
# description: >-
#   The amdgpu driver allows peer access over PCIe between two GPUs if the kernel was built for it (CONFIG_HSA_AMD_P2P,
#   which depends on CONFIG_PCI_P2PDMA and CONFIG_DMABUF_MOVE_NOTIFY), its module parameter pcie_p2p is on, all memory
#   of both is visible, and the chipset forwards between them. If one of these is missing, RCCL falls back to host
#   memory, with a fraction of the bandwidth, and programs that require peer access fail. xGMI needs none of this. This
#   rule has not been tested on AMD hardware.
# related_resources:
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/gpu/drm/amd/amdgpu/amdgpu_device.c
#     description: The conditions in amdgpu_device_is_peer_accessible, and the driver's messages
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/gpu/drm/amd/amdkfd/Kconfig
#     description: CONFIG_HSA_AMD_P2P and its dependencies
#   - ref: https://rocm.docs.amd.com/en/latest/conceptual/iommu.html
#     description: AMD's list of kernel options for peer access
# custom:
#   cause: p2p-unsupported-gpu
#   severity: medium
#   confidence: likely
#   areas: [paths]
#   needs: [gpus.devices, [gpus.amd.kernel_config, gpus.amd.parameters.pcie_p2p]]
#   remedies: [enable-amd-p2p, nccl-p2p-disable, plan-without-peer-access]
#   explains: [p2p-unsupported-gpu]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.amd_p2p_off

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.peers

# wanting is true where AMD GPUs have nothing but PCIe to reach each other by, as far as it is known how they are
# joined: a pair that the driver or its tools call "pcie", or several Radeon cards, which have no xGMI.
wanting if {
	count(amd.over_pcie) > 0
	count({p | some p in amd.pairs; p.link_type == "xgmi"}) == 0
}

wanting if {
	count(amd.pairs) + count(amd.discrete) > 1
	count({p | some p in amd.pairs; p.link_type}) == 0
	amd.only_radeon
}

# A program that was refused needs it, however the GPUs are connected: over xGMI it would have it.
wanting if count(refused) > 0

refused := logs.messages({"hip-no-peer-access", "hip-peer-access-failed"})

# lacks are what the driver is without: its own switch, or options of the kernel. A driver that was built outside the
# kernel (amdgpu-dkms) has its own configuration, except for the kernel functions that it needs.
lacks["pcie_p2p"] := {
	"words": "Peer access over PCIe is disabled in the amdgpu driver (module parameter pcie_p2p is off; the default is on)",
	"confidence": "likely",
	"evidence": [{"fact": "gpus.amd.parameters.pcie_p2p", "value": input.gpus.amd.parameters.pcie_p2p, "source": "/sys/module/amdgpu/parameters/pcie_p2p"}],
} if amd.p2p_switched_off

lacks["kernel"] := {
	"words": sprintf("The kernel was built without %s, which AMD's driver needs for peer access over PCIe (a driver from AMD, built outside the kernel, may not need all of them)", [facts.list(amd.kernel_lacks)]),
	"confidence": {true: "possible", false: "likely"}[object.get(input.gpus.amd, "version", "") != ""],
	"evidence": [{"fact": sprintf("gpus.amd.kernel_config.%s", [option]), "value": "n", "source": "the kernel's configuration"} | some option in sort(amd.kernel_lacks)],
} if count(amd.kernel_lacks) > 0

findings contains {
	"subject": name,
	"affects": [address | some address in sort(peers.ends(amd.over_pcie)); facts.is_address(address)],
	"message": sprintf("%s. RCCL uses host memory between GPUs that are connected only by PCIe, and programs that require peer access fail", [lack.words]),
	"severity": {true: "high", false: "medium"}[count(refused) > 0],
	"confidence": {true: "confirmed", false: lack.confidence}[(count(refused) + count([p | some p in amd.over_pcie; p.accessible == false])) > 0],
	"messages": refused,
	"evidence": lack.evidence,
	"params": {"parameter": name},
	"remedies": ["enable-amd-p2p", "nccl-p2p-disable"],
} if {
	some name, lack in lacks
	wanting
	not amd.peer_access
}

not_applicable contains "fewer than two AMD GPUs" if amd.no_pair
